"""The seven kinds of message, told apart by `role` (protocol section 3.3)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from agui_core.protocol.base import UNSET, Metadata, UnsetType, WireStruct
from agui_core.protocol.content import ContentPart

__all__ = [
    "ActivityMessage",
    "AssistantMessage",
    "DeveloperMessage",
    "FunctionCall",
    "Message",
    "ReasoningMessage",
    "SystemMessage",
    "ToolCall",
    "ToolMessage",
    "UserMessage",
]


class FunctionCall(WireStruct, frozen=True, kw_only=True):
    """The tool of a call, and its arguments.

    name: the name of the tool.
    arguments: text, which may be broken JSON (TOOL-3).
    """

    name: str
    arguments: str


class ToolCall(WireStruct, frozen=True, kw_only=True):
    """One call in an assistant message. Its owner is its message's (TOOL-14).

    id: the call's id, which results and interrupts name.
    type: always `function`.
    function: the tool and the arguments.
    encrypted_value: an opaque artefact of the producer's, returned as it came (REAS-9).
    metadata: gathered from the call's events (META-3).
    """

    id: str
    type: Literal["function"]
    function: FunctionCall
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class _Message(WireStruct, frozen=True, kw_only=True, tag_field="role"):
    """What all messages have.

    id: unique within the thread (EVT-7).
    metadata: gathered from the message's events (META-2).
    subagent_run_id: the invocation that owns the message; absent for the parent agent (SUB-1).
    """

    role: ClassVar[str]
    id: str
    metadata: Metadata | UnsetType = UNSET
    subagent_run_id: str | UnsetType = UNSET


class DeveloperMessage(_Message, frozen=True, kw_only=True, tag="developer"):
    """Instructions of the application's developer.

    content: the text.
    name: who speaks, where a role has several.
    encrypted_value: an opaque artefact of the producer's, returned as it came (REAS-9).
    """

    role: ClassVar[Literal["developer"]] = "developer"
    content: str
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class SystemMessage(_Message, frozen=True, kw_only=True, tag="system"):
    """Instructions of the system.

    content: the text.
    name: who speaks, where a role has several.
    encrypted_value: an opaque artefact of the producer's, returned as it came (REAS-9).
    """

    role: ClassVar[Literal["system"]] = "system"
    content: str
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant"):
    """A turn of the agent.

    content: the text; absent in a turn made by tool calls alone (TEXT-6).
    tool_calls: the calls of this turn, in order.
    name: which agent speaks, where there are several.
    encrypted_value: an opaque artefact of the producer's, returned as it came (REAS-9).
    """

    role: ClassVar[Literal["assistant"]] = "assistant"
    content: str | UnsetType = UNSET
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class UserMessage(_Message, frozen=True, kw_only=True, tag="user"):
    """A turn of the user.

    content: text, or a list of parts.
    name: who speaks, where there are several users.
    encrypted_value: an opaque artefact of the producer's, returned as it came (REAS-9).
    """

    role: ClassVar[Literal["user"]] = "user"
    content: str | tuple[ContentPart, ...]
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class ToolMessage(_Message, frozen=True, kw_only=True, tag="tool"):
    """The answer to a tool call, found by (`id`, `tool_call_id`) (OPEN-12).

    tool_call_id: the call that is answered.
    content: text for the model, or a list of parts.
    error: a text for people that marks a failure (FT-6).
    encrypted_value: an opaque artefact of the producer's, returned as it came (REAS-9).
    """

    role: ClassVar[Literal["tool"]] = "tool"
    tool_call_id: str
    content: str | tuple[ContentPart, ...]
    error: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class ActivityMessage(_Message, frozen=True, kw_only=True, tag="activity"):
    """Structured progress for the front end; never sent back to the agent (ACT-10).

    activity_type: any string; tells the front end how to draw the content.
    content: a JSON object.
    """

    role: ClassVar[Literal["activity"]] = "activity"
    activity_type: str
    content: dict[str, Any]


class ReasoningMessage(_Message, frozen=True, kw_only=True, tag="reasoning"):
    """What the model thought aloud; as confidential as the conversation (REAS-15).

    content: the text.
    encrypted_value: an opaque artefact of the producer's, returned as it came (REAS-9).
    """

    role: ClassVar[Literal["reasoning"]] = "reasoning"
    content: str
    encrypted_value: str | UnsetType = UNSET


Message: TypeAlias = (
    DeveloperMessage | SystemMessage | AssistantMessage | UserMessage | ToolMessage | ActivityMessage | ReasoningMessage
)
