"""Content events that carry nothing but their content: nineteen events of twenty.

`FastEvent` decodes the same JSON as `Event`, save that the three content types become structs without the members
that are nearly always absent (`metadata`, `rawEvent`, `subagentRunId`). Content that has one of them does not decode
here. So whoever gets a plain struct knows without asking that there is nothing else to look at, and the struct is made
faster.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, TypeAlias

from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET, SafeInteger, UnsetType, WireStruct

__all__ = ["PLAIN_OF", "FastArgs", "PlainContent", "FastEvent", "FastReasoning", "FastText"]


class FastText(WireStruct, frozen=True, kw_only=True, tag_field="type", tag="TEXT_MESSAGE_CONTENT"):
    """Text and nothing else."""

    message_id: str
    delta: str
    timestamp: SafeInteger | UnsetType = UNSET

    def full(self) -> e.TextMessageContentEvent:
        """The event that this is."""
        return e.TextMessageContentEvent(message_id=self.message_id, delta=self.delta, timestamp=self.timestamp)


class FastArgs(WireStruct, frozen=True, kw_only=True, tag_field="type", tag="TOOL_CALL_ARGS"):
    """Arguments and nothing else."""

    tool_call_id: str
    delta: str
    timestamp: SafeInteger | UnsetType = UNSET

    def full(self) -> e.ToolCallArgsEvent:
        """The event that this is."""
        return e.ToolCallArgsEvent(tool_call_id=self.tool_call_id, delta=self.delta, timestamp=self.timestamp)


class FastReasoning(WireStruct, frozen=True, kw_only=True, tag_field="type", tag="REASONING_MESSAGE_CONTENT"):
    """Reasoning and nothing else."""

    message_id: str
    delta: str
    timestamp: SafeInteger | UnsetType = UNSET

    def full(self) -> e.ReasoningMessageContentEvent:
        """The event that this is."""
        return e.ReasoningMessageContentEvent(message_id=self.message_id, delta=self.delta, timestamp=self.timestamp)


PlainContent: TypeAlias = FastText | FastArgs | FastReasoning

PLAIN_OF: dict[Any, type[PlainContent]] = {
    e.TextMessageContentEvent: FastText,
    e.ToolCallArgsEvent: FastArgs,
    e.ReasoningMessageContentEvent: FastReasoning,
}
"""The plain struct of each content event."""

FastEvent: Any = functools.reduce(operator.or_, [PLAIN_OF.get(kind, kind) for kind in e.EVENT_TYPES.values()])
"""The union: `PlainContent`, and every other event as it is."""
