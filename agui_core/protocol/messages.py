"""The seven kinds of message, told apart by `role` (protocol section 3.3)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

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
    """The name of a tool and its arguments. `arguments` is text, which may be broken JSON (TOOL-3)."""

    name: str
    arguments: str


class ToolCall(WireStruct, frozen=True, kw_only=True):
    """One call in an assistant message. Its owner is its message's (TOOL-14)."""

    id: str
    type: Literal["function"]
    function: FunctionCall
    encrypted_value: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class _Message(WireStruct, frozen=True, kw_only=True, tag_field="role"):
    id: str
    metadata: Metadata | UnsetType = UNSET
    subagent_run_id: str | UnsetType = UNSET

    @property
    def role(self) -> str:
        """The wire's discriminator."""
        return str(self.__struct_config__.tag)


class DeveloperMessage(_Message, frozen=True, kw_only=True, tag="developer"):
    """Instructions of the application's developer."""

    content: str
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class SystemMessage(_Message, frozen=True, kw_only=True, tag="system"):
    """Instructions of the system."""

    content: str
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class AssistantMessage(_Message, frozen=True, kw_only=True, tag="assistant"):
    """A turn of the agent. One made by tool calls alone has no `content` (TEXT-6)."""

    content: str | UnsetType = UNSET
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class UserMessage(_Message, frozen=True, kw_only=True, tag="user"):
    """A turn of the user."""

    content: str | tuple[ContentPart, ...]
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class ToolMessage(_Message, frozen=True, kw_only=True, tag="tool"):
    """The answer to a tool call, found by (`id`, `tool_call_id`) (OPEN-12)."""

    tool_call_id: str
    content: str | tuple[ContentPart, ...]
    error: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET


class ActivityMessage(_Message, frozen=True, kw_only=True, tag="activity"):
    """Structured progress for the front end; never sent back to the agent (ACT-10)."""

    activity_type: str
    content: dict[str, Any]


class ReasoningMessage(_Message, frozen=True, kw_only=True, tag="reasoning"):
    """What the model thought aloud; as confidential as the conversation (REAS-15)."""

    content: str
    encrypted_value: str | UnsetType = UNSET


Message: TypeAlias = (
    DeveloperMessage | SystemMessage | AssistantMessage | UserMessage | ToolMessage | ActivityMessage | ReasoningMessage
)
