"""Where a partial JSON text has come to: the open containers, what grows, and what the grammar expects next."""

from __future__ import annotations

from typing import Any, NoReturn

from agui_core.reducer.partial_json.grammar import ROOT, GrammarState, Kind
from agui_core.reducer.partial_json.number import PartialNumber

__all__ = ["Cursor", "RefusedError"]


class RefusedError(Exception):
    """Leaves the parser's loop: the text, as cut for this feed, is broken at `offset`."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        self.reason = reason


class Cursor:
    """The place in the value that the next character of the text concerns."""

    __slots__ = ("depth_limit", "growing", "kind", "name", "number", "slot", "stack", "state", "top")

    def __init__(self, depth_limit: int) -> None:
        self.depth_limit = depth_limit
        # The root sits in a list of its own, so that it is stored like an element. Containers are `Any` throughout:
        # a list is indexed by int and an object by str, and the grammar sees to it that the two never mix.
        self.top: Any = []
        self.kind: Kind = ROOT
        # For each container that is not innermost: itself, where its open child sits in it, and its kind.
        self.stack: list[tuple[Any, Any, Kind]] = []
        self.state: GrammarState = ROOT.value
        # The string now growing is `growing[slot]`. A key grows in a list of its own, and stays there for its value.
        self.growing: Any = None
        self.slot: Any = 0
        self.name = [""]
        self.number: PartialNumber | None = None

    def store(self, value: Any) -> None:
        if self.kind.is_object:
            self.top[self.name[0]] = value
        else:
            self.top.append(value)

    def open_slot(self) -> str | int:
        """Where in the innermost container the value now growing is, or will be."""
        if self.kind.is_object:
            return self.name[0]
        return len(self.top) - self.state.in_string

    def grow(self, text: str) -> None:
        growing = self.growing
        slot = self.slot
        grown = growing[slot]
        growing[slot] = None  # as in feed
        grown += text
        growing[slot] = grown

    def go_on_number(self, number: PartialNumber, text: str, position: int) -> int:
        end = number.scan(text, position)
        if number.too_large:
            raise RefusedError(end, number.range_fault)
        if end == len(text):
            return end
        if not number.whole:
            self.refuse(text, end, "a digit")
        if text[end] not in self.kind.number_ends:
            self.refuse(text, end, self.kind.after.expects)
        self.end_number(number, end)
        return end

    def end_number(self, number: PartialNumber, end: int) -> None:
        value = number.value()
        if value is None:
            raise RefusedError(end, number.range_fault)
        self.number = None
        self.store(value)
        self.state = self.kind.after

    def refuse(self, text: str, position: int, expected: str) -> NoReturn:
        raise RefusedError(position, f"{text[position]!a} instead of {expected}")
