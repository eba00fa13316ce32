"""The items of a source go into a reducer. Nothing here waits, or knows about tasks.

An item that is bytes or text is a piece of the wire, cut anywhere, server-sent events or JSON Lines. Anything else is
one event. The JSON text of one event is JSON Lines, and needs no line end. Costs one look at the item's type, and for
JSON Lines what `JsonLineEnd` costs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from agui_core.errors import AGUIError
from agui_core.limits import Limits
from agui_core.reducer import Reducer
from agui_core.reducer.state import Middleware, Policy
from agui_core.stream.json_line_end import JsonLineEnd
from agui_core.wire.framing import Bytes, as_bytes
from agui_core.wire.sniff import BOM, begins_json_lines, first_text

__all__ = ["WIRE", "Applier", "open_reducer"]

WIRE = (bytes, bytearray, memoryview, str)


def open_reducer(
    reducer: Reducer | None,
    middleware: Iterable[Middleware],
    policy: Policy | None,
    limits: Limits | None,
) -> Reducer:
    """The reducer to go on with, or a new one with these options.

    Raises: `ValueError` for both.
    """
    layers = tuple(middleware)
    if reducer is None:
        return Reducer(policy=policy or "strict", limits=limits, middleware=layers)
    if layers or policy is not None or limits is not None:
        raise ValueError("a reducer brings its own middleware, policy and limits: give them to Reducer(...) instead")
    return reducer


class Applier:
    """Applies the items of one source.

    Raises: what the reducer raises, after everything before was applied.
    """

    __slots__ = ("_held", "_line", "_lines", "_reducer", "failure", "over")

    def __init__(self, reducer: Reducer) -> None:
        self.over = False
        """Nothing more will come."""
        self.failure: BaseException | None = None
        """Why nothing more comes, if the source failed or the stream was refused."""
        self._reducer = reducer
        self._lines: bool | None = None
        self._line = JsonLineEnd()
        self._held = b""

    def apply(self, item: object) -> None:
        """Apply a whole item."""
        if not isinstance(item, WIRE):
            self._reducer.apply(item)
        else:
            self._apply_wire(self._read(item))

    def steps(self, item: object) -> Iterator[None]:
        """Apply an item one event at a time: a step is one event, dropped ones too. Steps not taken apply nothing."""
        if not isinstance(item, WIRE):
            return self._one(item)
        data = self._read(item)
        return self._reducer.apply_each(data, lines=bool(self._lines))

    def conclude(self, failure: BaseException | None) -> bool:
        """The source has ended, or failed. Tells whether there is something new to look at: a last event, a run that is
        truncated, a failure.
        """
        self.over = True
        reducer = self._reducer
        before = reducer.version, reducer.status
        try:
            self._end()
        except AGUIError as error:
            failure = failure or error
        self.failure = failure
        return failure is not None or (reducer.version, reducer.status) != before

    def leave(self) -> None:
        """Nobody reads on. A run still open is truncated (RUN-16)."""
        if not self.over:
            self.over = True
            with suppress(AGUIError):  # a last event that was cut: the reducer keeps that as its `error`
                self._end()

    def _end(self) -> None:
        if self._reducer.error is None:
            if self._held:  # too short to tell its format, so it is not JSON Lines
                held, self._held = self._held, b""
                self._apply_wire(held)
            self._reducer.end()

    def _one(self, event: object) -> Iterator[None]:
        self._reducer.apply(event)
        yield

    def _apply_wire(self, data: Bytes) -> None:
        if self._lines:
            self._reducer.apply_lines(data)
        else:
            self._reducer.apply_sse(data)

    def _read(self, item: Bytes) -> Bytes:
        """What an item adds to the stream: the item, and a line end if it ends with a whole object."""
        data = item if self._lines is not None else self._decide(item)
        if not self._lines:
            return data
        data = as_bytes(data)
        return data + b"\n" if self._line.closes(data) else data

    def _decide(self, data: Bytes) -> bytes:
        """What was held and `data`, once their format is known; nothing before that."""
        held = self._held + as_bytes(data)
        text = first_text(held)
        if text is None:
            self._held = held
            return b""
        self._held = b""
        self._lines = begins_json_lines(text)
        return held.removeprefix(BOM)
