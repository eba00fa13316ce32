"""The 31 events of AG-UI 1.0 (protocol section 3.1), one struct each, and `Event`, the union that decodes them."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

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
    timestamp: SafeInteger | UnsetType = UNSET
    raw_event: NotNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class _Attributed(_Event, frozen=True, kw_only=True):
    subagent_run_id: str | UnsetType = UNSET


class RunStartedEvent(_Event, frozen=True, kw_only=True, tag="RUN_STARTED"):
    """A run begins (RUN-1, RUN-2). Absent `protocol_version` means a producer from before versioning."""

    thread_id: str
    run_id: str
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    input: RunAgentInput | UnsetType = UNSET


class RunFinishedEvent(_Event, frozen=True, kw_only=True, tag="RUN_FINISHED"):
    """A run ends: success, interrupt or cancelled by its `outcome`; none means success (RUN-13)."""

    thread_id: str
    run_id: str
    result: NotNull | UnsetType = UNSET
    outcome: RunFinishedOutcome | UnsetType = UNSET
    usage: tuple[TokenUsage, ...] | UnsetType = UNSET


class RunErrorEvent(_Event, frozen=True, kw_only=True, tag="RUN_ERROR"):
    """A run failed, in its middle, before its start or after its finish (RUN-5, RUN-6)."""

    message: str
    code: str | UnsetType = UNSET
    usage: tuple[TokenUsage, ...] | UnsetType = UNSET


class StepStartedEvent(_Attributed, frozen=True, kw_only=True, tag="STEP_STARTED"):
    """A named step of its owner begins (STEP-1)."""

    step_name: str


class StepFinishedEvent(_Attributed, frozen=True, kw_only=True, tag="STEP_FINISHED"):
    """A named step of its owner ends (STEP-3)."""

    step_name: str


class TextMessageStartEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_START"):
    """A text message opens, or opens again (TEXT-1, STR-6)."""

    message_id: str
    role: TextRole | UnsetType = UNSET
    name: str | UnsetType = UNSET


class TextMessageContentEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_CONTENT"):
    """Text to append to an open message (TEXT-2)."""

    message_id: str
    delta: str


class TextMessageEndEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_END"):
    """A text message closes."""

    message_id: str


class TextMessageChunkEvent(_Attributed, frozen=True, kw_only=True, tag="TEXT_MESSAGE_CHUNK"):
    """Start, content and end in one event (CHUNK-1)."""

    message_id: str | UnsetType = UNSET
    role: TextRole | UnsetType = UNSET
    name: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ToolCallStartEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_START"):
    """A tool call opens, or opens again (TOOL-1, TOOL-6)."""

    tool_call_id: str
    tool_call_name: str
    parent_message_id: str | UnsetType = UNSET


class ToolCallArgsEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_ARGS"):
    """Text to append to an open call's arguments (TOOL-3)."""

    tool_call_id: str
    delta: str


class ToolCallEndEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_END"):
    """A tool call closes; only now may its arguments be used (TOOL-4)."""

    tool_call_id: str


class ToolCallChunkEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_CHUNK"):
    """Start, arguments and end in one event (CHUNK-1)."""

    tool_call_id: str | UnsetType = UNSET
    tool_call_name: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ToolCallResultEvent(_Attributed, frozen=True, kw_only=True, tag="TOOL_CALL_RESULT"):
    """The answer to a call (TOOL-7)."""

    message_id: str
    tool_call_id: str
    content: str | tuple[ContentPart, ...]
    role: Literal["tool"] | UnsetType = UNSET


class ReasoningStartEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_START"):
    """A span of reasoning opens; it makes no message (REAS-2)."""

    message_id: str


class ReasoningEndEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_END"):
    """A span of reasoning closes."""

    message_id: str


class ReasoningMessageStartEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_START"):
    """A reasoning message opens, or opens again (REAS-6)."""

    message_id: str
    role: Literal["reasoning"]


class ReasoningMessageContentEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_CONTENT"):
    """Text to append to an open reasoning message."""

    message_id: str
    delta: str


class ReasoningMessageEndEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_END"):
    """A reasoning message closes."""

    message_id: str


class ReasoningMessageChunkEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_MESSAGE_CHUNK"):
    """Start, content and end in one event (CHUNK-1)."""

    message_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class ReasoningEncryptedValueEvent(_Attributed, frozen=True, kw_only=True, tag="REASONING_ENCRYPTED_VALUE"):
    """An opaque artefact for a message or a call (REAS-8..11)."""

    subtype: Literal["message", "tool-call"]
    entity_id: str
    encrypted_value: str


class StateSnapshotEvent(_Attributed, frozen=True, kw_only=True, tag="STATE_SNAPSHOT"):
    """The whole state (STATE-1)."""

    snapshot: Any


class StateDeltaEvent(_Attributed, frozen=True, kw_only=True, tag="STATE_DELTA"):
    """A patch of the state (STATE-2)."""

    delta: list[dict[str, Any]]

    def __post_init__(self) -> None:
        check_patch(self.delta)


class MessagesSnapshotEvent(_Event, frozen=True, kw_only=True, tag="MESSAGES_SNAPSHOT"):
    """All messages that the producer owns, reconciled by id (MSGS-1)."""

    messages: tuple[Message, ...]


class ActivitySnapshotEvent(_Attributed, frozen=True, kw_only=True, tag="ACTIVITY_SNAPSHOT"):
    """An activity message, made or replaced (ACT-1..3). Absent `replace` means true."""

    message_id: str
    activity_type: str
    content: dict[str, Any]
    replace: bool | UnsetType = UNSET


class ActivityDeltaEvent(_Attributed, frozen=True, kw_only=True, tag="ACTIVITY_DELTA"):
    """A patch of an activity's content (ACT-5)."""

    message_id: str
    activity_type: str
    patch: list[dict[str, Any]]

    def __post_init__(self) -> None:
        check_patch(self.patch)


class SubagentStartedEvent(_Event, frozen=True, kw_only=True, tag="SUBAGENT_STARTED"):
    """A subagent's invocation begins (SUB-3..5)."""

    subagent_run_id: str
    name: str
    description: str | UnsetType = UNSET
    parent_subagent_run_id: str | UnsetType = UNSET
    parent_tool_call_id: str | UnsetType = UNSET
    parent_message_id: str | UnsetType = UNSET


class SubagentFinishedEvent(_Event, frozen=True, kw_only=True, tag="SUBAGENT_FINISHED"):
    """An invocation ends or is suspended (SUB-7)."""

    subagent_run_id: str
    result: NotNull | UnsetType = UNSET
    outcome: SubagentFinishedOutcome | UnsetType = UNSET


class SubagentErrorEvent(_Event, frozen=True, kw_only=True, tag="SUBAGENT_ERROR"):
    """An invocation failed; the run goes on (SUB-6)."""

    subagent_run_id: str
    message: str
    code: str | UnsetType = UNSET


class RawEvent(_Attributed, frozen=True, kw_only=True, tag="RAW"):
    """An event of another system, passed through (PASS-1)."""

    event: Any
    source: str | UnsetType = UNSET


class CustomEvent(_Attributed, frozen=True, kw_only=True, tag="CUSTOM"):
    """An application's own event (PASS-2, PASS-3)."""

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

EVENT_TYPES: dict[str, type[Event]] = {str(kind.__struct_config__.tag): kind for kind in Event.__args__}
"""Struct by wire name."""
