"""The three kinds of streamed item, one row each: text messages, tool calls, reasoning messages.

Each has a start, content, an end and a chunk event, and ids that are unique within the kind. Code that would
differ between them only in names is written once, for a `Family`.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from agui_core.protocol import events as e

__all__ = ["CALL", "FAMILIES", "FAMILY_OF", "REASONING", "TEXT", "Family", "FamilyName"]

FamilyName: TypeAlias = Literal["text", "call", "reasoning"]


class Family(NamedTuple):
    """One kind of streamed item."""

    name: FamilyName
    noun: str
    """What people call an item of it."""
    place: int
    """Its place in the tables of the fast path."""
    id: str
    """The member that names the item."""
    wire_id: str
    """The same on the wire."""
    open: str
    """The table of `StreamState` that holds what is open."""
    owners: str
    """The table of `StreamState` that knows who owns what."""
    start: type[Any]
    content: type[Any]
    end: type[Any]
    chunk: type[Any]
    repeats: tuple[tuple[str, str, str], ...]
    """What later chunks may repeat: attribute of the chunk, attribute of `ChunkStream`, name on the wire."""

    def make(self, kind: type[Any], id: str, **members: Any) -> e.Event:
        """An event of the family, `start`, `content` or `end`, for an item."""
        event: e.Event = kind(**{self.id: id}, **members)
        return event


CALL = Family(
    name="call",
    noun="tool call",
    place=0,
    id="tool_call_id",
    wire_id="toolCallId",
    open="calls",
    owners="call_owners",
    start=e.ToolCallStartEvent,
    content=e.ToolCallArgsEvent,
    end=e.ToolCallEndEvent,
    chunk=e.ToolCallChunkEvent,
    repeats=(("tool_call_name", "name", "toolCallName"), ("parent_message_id", "parent", "parentMessageId")),
)
TEXT = Family(
    name="text",
    noun="text message",
    place=1,
    id="message_id",
    wire_id="messageId",
    open="texts",
    owners="message_owners",
    start=e.TextMessageStartEvent,
    content=e.TextMessageContentEvent,
    end=e.TextMessageEndEvent,
    chunk=e.TextMessageChunkEvent,
    repeats=(("role", "role", "role"), ("name", "name", "name")),
)
REASONING = Family(
    name="reasoning",
    noun="reasoning message",
    place=2,
    id="message_id",
    wire_id="messageId",
    open="reasonings",
    owners="reasoning_owners",
    start=e.ReasoningMessageStartEvent,
    content=e.ReasoningMessageContentEvent,
    end=e.ReasoningMessageEndEvent,
    chunk=e.ReasoningMessageChunkEvent,
    repeats=(),
)
FAMILIES = (CALL, TEXT, REASONING)
FAMILY_OF: dict[type[Any], Family] = {
    kind: family for family in FAMILIES for kind in (family.start, family.content, family.end, family.chunk)
}
