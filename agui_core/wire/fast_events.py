"""Content events with nothing but their content: nineteen events of twenty.

`FastEvent` decodes the same JSON as `Event`, but the three content types become structs without the members that are
nearly always absent (`metadata`, `rawEvent`, `subagentRunId`), which are made faster. Content with one of these members
does not decode here, so a fast struct needs no further look.
"""

from __future__ import annotations

import functools
import operator
from typing import Any, TypeAlias

from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET, SafeInteger, UnsetType, WireStruct

__all__ = ["FAST_OF", "FastArgs", "FastContent", "FastEvent", "FastReasoning", "FastText"]


# Three times the same fields: shared ones of a base class would come first, out of the order of the wire, and a `full`
# shared over the names of fields takes seven times as long.


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


FastContent: TypeAlias = FastText | FastArgs | FastReasoning

FAST_OF: dict[Any, type[FastContent]] = {
    e.TextMessageContentEvent: FastText,
    e.ToolCallArgsEvent: FastArgs,
    e.ReasoningMessageContentEvent: FastReasoning,
}
"""The fast struct of each content event."""

FastEvent: Any = functools.reduce(operator.or_, [FAST_OF.get(kind, kind) for kind in e.EVENT_TYPES.values()])
"""The union: `FastContent`, and every other event as it is."""
