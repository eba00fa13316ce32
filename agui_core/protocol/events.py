"""The 31 events of AG-UI 1.0 (protocol section 3.1), one struct each, and `Event`, the union that decodes them."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from agui_core.protocol.base import UNSET, Metadata, NotNull, SafeInteger, TypedStruct, UnsetType
from agui_core.protocol.content import ContentPart
from agui_core.protocol.messages import Message
from agui_core.protocol.patch import check_patch
from agui_core.protocol.run import RunAgentInput, RunFinishedOutcome, SubagentFinishedOutcome, TokenUsage

__all__ = [
    "ActivityDeltaEvent",
    "ActivitySnapshotEvent",
    "CustomEvent",
    "EVENT_TYPES",
    "Event",
    "MessagesSnapshotEvent",
    "RawEvent",
    "ReasoningEncryptedValueEvent",
    "ReasoningEndEvent",
    "ReasoningMessageChunkEvent",
    "ReasoningMessageContentEvent",
    "ReasoningMessageEndEvent",
    "ReasoningMessageStartEvent",
    "ReasoningStartEvent",
    "RunErrorEvent",
    "RunFinishedEvent",
    "RunStartedEvent",
    "StateDeltaEvent",
    "StateSnapshotEvent",
    "StepFinishedEvent",
    "StepStartedEvent",
    "SubagentErrorEvent",
    "SubagentFinishedEvent",
    "SubagentStartedEvent",
    "TextMessageChunkEvent",
    "TextMessageContentEvent",
    "TextMessageEndEvent",
    "TextMessageStartEvent",
    "TextRole",
    "ToolCallArgsEvent",
    "ToolCallChunkEvent",
    "ToolCallEndEvent",
    "ToolCallResultEvent",
    "ToolCallStartEvent",
]

TextRole: TypeAlias = Literal["developer", "system", "assistant", "user"]
"""The roles that streamed text can have; absent means assistant."""


class _Event(TypedStruct, frozen=True, kw_only=True):
    """What all events have.

    timestamp: Unix milliseconds by convention; order of arrival counts (EVT-3).
    raw_event: what the event was made from, for inspection only (EVT-4).
    metadata: free keys, merged into what the event builds (META-2, META-3).
    """

    timestamp: SafeInteger | UnsetType = UNSET
    raw_event: NotNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class _Attributed(_Event, frozen=True, kw_only=True):
    """What all events have that an agent or a subagent may send.

    subagent_run_id: the invocation that sent the event; absent for the parent agent (SUB-1).
    """

    subagent_run_id: str | UnsetType = UNSET


class RunStartedEvent(_Event, frozen=True, kw_only=True, tag="RUN_STARTED"):
    """A run begins (RUN-1, RUN-2).

    thread_id: the conversation.
    run_id: unique within the thread.
    protocol_version: the producer's; absent means one from before versioning (VER-1).
    parent_run_id: the run that spawned this one.
    input: the request, repeated (OPEN-2).
    """

    type: ClassVar[Literal["RUN_STARTED"]] = "RUN_STARTED"
    thread_id: str
    run_id: str
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    input: RunAgentInput | UnsetType = UNSET


class RunFinishedEvent(_Event, frozen=True, kw_only=True, tag="RUN_FINISHED"):
    """A run ends.

    thread_id: the conversation, as at the start.
    run_id: the run, as at the start.
    result: what the run returns (RUN-14).
    outcome: success, interrupt or cancelled; absent means success (RUN-13).
    usage: what the run spent, an entry per provider and model (USE-1).
    """

    type: ClassVar[Literal["RUN_FINISHED"]] = "RUN_FINISHED"
    thread_id: str
    run_id: str
    result: NotNull | UnsetType = UNSET
    outcome: RunFinishedOutcome | UnsetType = UNSET
    usage: tuple[TokenUsage, ...] | UnsetType = UNSET


class RunErrorEvent(_Event, frozen=True, kw_only=True, tag="RUN_ERROR"):
    """A run failed, in its middle, before its start or after its finish (RUN-5, RUN-6).

    message: what went wrong.
    code: any string, for programs (RUN-18).
    usage: what was spent before the failure (USE-5).
    """

    type: ClassVar[Literal["RUN_ERROR"]] = "RUN_ERROR"
    message: str
    code: str | UnsetType = UNSET
    usage: tuple[TokenUsage, ...] | UnsetType = UNSET


class StepStartedEvent(_Attributed, frozen=True, kw_only=True, tag="STEP_STARTED"):
    """The step `step_name` of its owner begins (STEP-1)."""

    type: ClassVar[Literal["STEP_STARTED"]] = "STEP_STARTED"
    step_name: str


class StepFinishedEvent(_Attributed, frozen=True, kw_only=True, tag="STEP_FINISHED"):
    """The step `step_name` of its owner ends (STEP-3)."""

    type: ClassVar[Literal["STEP_FINISHED"]] = "STEP_FINISHED"
    step_name: str


class TextMessageStartEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_START"):
    """A text message opens, or opens again (TEXT-1, STR-6).

    message_id: the id of the message.
    role: whose message it is; absent means assistant.
    name: who speaks, where a role has several.
    """

    type: ClassVar[Literal["TEXT_MESSAGE_START"]] = "TEXT_MESSAGE_START"
    message_id: str
    role: TextRole | UnsetType = UNSET
    name: str | UnsetType = UNSET


class TextMessageContentEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_CONTENT"):
    """`delta` is appended to the open text message `message_id` (TEXT-2)."""

    type: ClassVar[Literal["TEXT_MESSAGE_CONTENT"]] = "TEXT_MESSAGE_CONTENT"
    message_id: str
    delta: str


class TextMessageEndEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_END"):
    """The text message `message_id` closes."""

    type: ClassVar[Literal["TEXT_MESSAGE_END"]] = "TEXT_MESSAGE_END"
    message_id: str


class TextMessageChunkEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_CHUNK"):
    """Start, content and end in one event (CHUNK-1).

    message_id: the id of the message; required in its first chunk (CHUNK-3).
    role: whose message it is; absent in the first chunk means assistant (CHUNK-8).
    name: who speaks, where a role has several.
    delta: text to append.
    """

    type: ClassVar[Literal["TEXT_MESSAGE_CHUNK"]] = "TEXT_MESSAGE_CHUNK"
    message_id: str | UnsetType = UNSET
    role: TextRole | UnsetType = UNSET
    name: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ToolCallStartEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_START"):
    """A tool call opens, or opens again (TOOL-1, TOOL-6).

    tool_call_id: the id of the call.
    tool_call_name: the tool that is called.
    parent_message_id: the assistant message that the call goes into (TOOL-2).
    """

    type: ClassVar[Literal["TOOL_CALL_START"]] = "TOOL_CALL_START"
    tool_call_id: str
    tool_call_name: str
    parent_message_id: str | UnsetType = UNSET


class ToolCallArgsEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_ARGS"):
    """`delta` is appended to the arguments of the open call `tool_call_id` (TOOL-3)."""

    type: ClassVar[Literal["TOOL_CALL_ARGS"]] = "TOOL_CALL_ARGS"
    tool_call_id: str
    delta: str


class ToolCallEndEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_END"):
    """The call `tool_call_id` closes; only now may its arguments be used (TOOL-4)."""

    type: ClassVar[Literal["TOOL_CALL_END"]] = "TOOL_CALL_END"
    tool_call_id: str


class ToolCallChunkEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_CHUNK"):
    """Start, arguments and end in one event (CHUNK-1).

    tool_call_id: the id of the call; required in its first chunk (CHUNK-3).
    tool_call_name: the tool that is called; required in the first chunk.
    parent_message_id: the assistant message that the call goes into.
    delta: text to append to the arguments.
    """

    type: ClassVar[Literal["TOOL_CALL_CHUNK"]] = "TOOL_CALL_CHUNK"
    tool_call_id: str | UnsetType = UNSET
    tool_call_name: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ToolCallResultEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_RESULT"):
    """The answer to a call (TOOL-7).

    message_id: the id of the tool message that it makes.
    tool_call_id: the call that is answered.
    content: text for the model, or a list of parts (TOOL-8).
    role: `tool`, or absent.
    """

    type: ClassVar[Literal["TOOL_CALL_RESULT"]] = "TOOL_CALL_RESULT"
    message_id: str
    tool_call_id: str
    content: str | tuple[ContentPart, ...]
    role: Literal["tool"] | UnsetType = UNSET


class ReasoningStartEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_START"):
    """The span of reasoning `message_id` opens; it makes no message (REAS-2)."""

    type: ClassVar[Literal["REASONING_START"]] = "REASONING_START"
    message_id: str


class ReasoningEndEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_END"):
    """The span of reasoning `message_id` closes."""

    type: ClassVar[Literal["REASONING_END"]] = "REASONING_END"
    message_id: str


class ReasoningMessageStartEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_START"):
    """The reasoning message `message_id` opens, or opens again; `role` is required (REAS-6, REAS-7)."""

    type: ClassVar[Literal["REASONING_MESSAGE_START"]] = "REASONING_MESSAGE_START"
    message_id: str
    role: Literal["reasoning"]


class ReasoningMessageContentEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_CONTENT"):
    """`delta` is appended to the open reasoning message `message_id`."""

    type: ClassVar[Literal["REASONING_MESSAGE_CONTENT"]] = "REASONING_MESSAGE_CONTENT"
    message_id: str
    delta: str


class ReasoningMessageEndEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_END"):
    """The reasoning message `message_id` closes."""

    type: ClassVar[Literal["REASONING_MESSAGE_END"]] = "REASONING_MESSAGE_END"
    message_id: str


class ReasoningMessageChunkEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_CHUNK"):
    """Start, content and end in one event (CHUNK-1).

    message_id: the id of the message; required in its first chunk (CHUNK-3).
    delta: text to append.
    """

    type: ClassVar[Literal["REASONING_MESSAGE_CHUNK"]] = "REASONING_MESSAGE_CHUNK"
    message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ReasoningEncryptedValueEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_ENCRYPTED_VALUE"):
    """An opaque artefact for a message or a call (REAS-8..11).

    subtype: whether `entity_id` names a message or a call.
    entity_id: the message or call that holds it.
    encrypted_value: the artefact, never interpreted.
    """

    type: ClassVar[Literal["REASONING_ENCRYPTED_VALUE"]] = "REASONING_ENCRYPTED_VALUE"
    subtype: Literal["message", "tool-call"]
    entity_id: str
    encrypted_value: str


class StateSnapshotEvent(_Attributed, frozen=True, kw_only=True, tag="STATE_SNAPSHOT"):
    """The whole state is `snapshot` from here on (STATE-1)."""

    type: ClassVar[Literal["STATE_SNAPSHOT"]] = "STATE_SNAPSHOT"
    snapshot: Any


class StateDeltaEvent(_Attributed, frozen=True, kw_only=True, tag="STATE_DELTA"):
    """The state is patched by the operations in `delta` (STATE-2, PATCH-1)."""

    type: ClassVar[Literal["STATE_DELTA"]] = "STATE_DELTA"
    delta: list[dict[str, Any]]

    def __post_init__(self) -> None:
        check_patch(self.delta)


class MessagesSnapshotEvent(_Event, frozen=True, kw_only=True, tag="MESSAGES_SNAPSHOT"):
    """All `messages` that the producer owns, reconciled by id (MSGS-1)."""

    type: ClassVar[Literal["MESSAGES_SNAPSHOT"]] = "MESSAGES_SNAPSHOT"
    messages: tuple[Message, ...]


class ActivitySnapshotEvent(_Attributed, frozen=True, kw_only=True, tag="ACTIVITY_SNAPSHOT"):
    """An activity message, made or replaced (ACT-1..3).

    message_id: the id of the activity.
    activity_type: any string; tells the front end how to draw the content (ACT-4).
    content: a JSON object.
    replace: whether it replaces an activity that is held; absent means true.
    """

    type: ClassVar[Literal["ACTIVITY_SNAPSHOT"]] = "ACTIVITY_SNAPSHOT"
    message_id: str
    activity_type: str
    content: dict[str, Any]
    replace: bool | UnsetType = UNSET


class ActivityDeltaEvent(_Attributed, frozen=True, kw_only=True, tag="ACTIVITY_DELTA"):
    """A patch of an activity's content (ACT-5).

    message_id: the id of the activity.
    activity_type: the activity's type from here on.
    patch: the operations (PATCH-1).
    """

    type: ClassVar[Literal["ACTIVITY_DELTA"]] = "ACTIVITY_DELTA"
    message_id: str
    activity_type: str
    patch: list[dict[str, Any]]

    def __post_init__(self) -> None:
        check_patch(self.patch)


class SubagentStartedEvent(_Event, frozen=True, kw_only=True, tag="SUBAGENT_STARTED"):
    """A subagent's invocation begins (SUB-3..5).

    subagent_run_id: the id of the invocation, which its events carry.
    name: which subagent.
    description: what it is asked to do.
    parent_subagent_run_id: the invocation that spawned it; absent for the parent agent (SUB-13).
    parent_tool_call_id: the call that spawned it.
    parent_message_id: the message that spawned it.
    """

    type: ClassVar[Literal["SUBAGENT_STARTED"]] = "SUBAGENT_STARTED"
    subagent_run_id: str
    name: str
    description: str | UnsetType = UNSET
    parent_subagent_run_id: str | UnsetType = UNSET
    parent_tool_call_id: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET


class SubagentFinishedEvent(_Event, frozen=True, kw_only=True, tag="SUBAGENT_FINISHED"):
    """An invocation ends or is suspended (SUB-7).

    subagent_run_id: the id of the invocation.
    result: what it returns.
    outcome: success or suspended; absent means success.
    """

    type: ClassVar[Literal["SUBAGENT_FINISHED"]] = "SUBAGENT_FINISHED"
    subagent_run_id: str
    result: NotNull | UnsetType = UNSET
    outcome: SubagentFinishedOutcome | UnsetType = UNSET


class SubagentErrorEvent(_Event, frozen=True, kw_only=True, tag="SUBAGENT_ERROR"):
    """An invocation failed; the run goes on (SUB-6).

    subagent_run_id: the id of the invocation.
    message: what went wrong.
    code: any string, for programs.
    """

    type: ClassVar[Literal["SUBAGENT_ERROR"]] = "SUBAGENT_ERROR"
    subagent_run_id: str
    message: str
    code: str | UnsetType = UNSET


class RawEvent(_Attributed, frozen=True, kw_only=True, tag="RAW"):
    """An event of another system, `event`, passed through from `source` (PASS-1)."""

    type: ClassVar[Literal["RAW"]] = "RAW"
    event: Any
    source: str | UnsetType = UNSET


class CustomEvent(_Attributed, frozen=True, kw_only=True, tag="CUSTOM"):
    """An application's own event: a `name` and any `value` (PASS-2, PASS-3)."""

    type: ClassVar[Literal["CUSTOM"]] = "CUSTOM"
    name: str
    value: Any


Event: TypeAlias = (
    RunStartedEvent
    | RunFinishedEvent
    | RunErrorEvent
    | StepStartedEvent
    | StepFinishedEvent
    | TextMessageStartEvent
    | TextMessageContentEvent
    | TextMessageEndEvent
    | TextMessageChunkEvent
    | ToolCallStartEvent
    | ToolCallArgsEvent
    | ToolCallEndEvent
    | ToolCallChunkEvent
    | ToolCallResultEvent
    | ReasoningStartEvent
    | ReasoningEndEvent
    | ReasoningMessageStartEvent
    | ReasoningMessageContentEvent
    | ReasoningMessageEndEvent
    | ReasoningMessageChunkEvent
    | ReasoningEncryptedValueEvent
    | StateSnapshotEvent
    | StateDeltaEvent
    | MessagesSnapshotEvent
    | ActivitySnapshotEvent
    | ActivityDeltaEvent
    | SubagentStartedEvent
    | SubagentFinishedEvent
    | SubagentErrorEvent
    | RawEvent
    | CustomEvent
)
"""Any event, told apart by `type`; decode one with `agui_core.decode`."""

EVENT_TYPES: dict[str, type[Event]] = {kind.type: kind for kind in Event.__args__}
"""Struct by wire name."""
