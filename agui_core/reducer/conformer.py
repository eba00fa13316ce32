"""Clean events for gateways and stores that pass them on: decoded, sanitized, expanded, verified, and not applied.

What comes out is what a reducer would apply, in that order. Memory does not grow with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from agui_core.errors import AGUIError, DecodeError, LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.reducer.apply import through
from agui_core.reducer.items import Noted
from agui_core.reducer.state import Middleware, Policy
from agui_core.reducer.verify import Verifier
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire import Decoder

__all__ = ["Conformer", "conform"]

_REFUSALS = (ProtocolError, DecodeError, LimitExceeded)


class Conformer:
    """Clean events for gateways and stores, one event at a time. Options as for `Reducer`; `on_warning` is called with
    each deviation as it occurs.
    """

    def __init__(
        self,
        policy: Policy = "strict",
        limits: Limits | None = None,
        middleware: Iterable[Middleware] = (),
        on_warning: Callable[[ProtocolWarning], object] | None = None,
    ) -> None:
        self._halves = _Halves(policy, limits, on_warning)
        self._middleware = tuple(middleware)

    @property
    def warnings(self) -> tuple[ProtocolWarning, ...]:
        """What was stripped, dropped, skipped or repaired."""
        return tuple(self._halves.log)

    def feed(self, event: object) -> list[e.Event]:
        """The accepted events that one event amounts to: none, itself, or several for a chunk. Takes what
        `Reducer.apply` takes and raises what it raises; after an error every later call raises the same one.
        """
        halves = self._halves
        if not self._middleware:
            return halves.whole(event)
        wires = through(self._middleware, halves.read((event,)))
        return [accepted for wire in wires for accepted in halves.judge(wire)]

    def close(self) -> list[e.Event]:
        """The end of the stream. Nothing is made up for what is still open (CHUNK-25), so this is always empty."""
        return []


class _Halves:
    """The two halves of conforming, between which middleware sees the events."""

    def __init__(
        self, policy: Policy, limits: Limits | None, on_warning: Callable[[ProtocolWarning], object] | None
    ) -> None:
        limits = limits or Limits()
        self.log = WarningLog(limits.warnings, on_warning)
        self._decoder = Decoder(self.log, policy=policy, limits=limits)
        self._verifier = Verifier(limits, Noted(self._note), lenient=policy == "lenient")
        self._error: AGUIError | None = None
        self._index = 0

    def whole(self, event: object) -> list[e.Event]:
        """Both halves at once, where nobody looks in between."""
        return self._accept(self._decoder.to_event, event)

    def read(self, events: Iterable[object]) -> Iterator[dict[str, Any]]:
        """The first half, for middleware to see: decoded wire events, translated by the compatibility boundary."""
        for event in events:
            if self._error is not None:
                raise self._error
            try:
                wire = self._decoder.to_dict(event, self._index)
            except _REFUSALS as error:
                raise self._refuse(error) from None
            self._index += 1
            if wire is not None:
                yield wire

    def judge(self, wire: dict[str, Any]) -> list[e.Event]:
        """The second half: enforcement, expansion, verification."""
        self._index -= 1
        return self._accept(self._decoder.enforce, wire)

    def _accept(self, decode: Callable[[Any, int], e.Event | None], given: object) -> list[e.Event]:
        if self._error is not None:
            raise self._error
        try:
            decoded = decode(given, self._index)
            accepted = [] if decoded is None else [step[0] for step in self._verifier.verify(decoded)]
        except _REFUSALS as error:
            raise self._refuse(error) from None
        self._index += 1
        for event in accepted:  # a run may have been ignored, or assumed
            if isinstance(event, e.RunStartedEvent):
                self._decoder.boundary.run_id = event.run_id
        return accepted

    def _refuse(self, error: AGUIError) -> AGUIError:
        if isinstance(error, _REFUSALS) and error.index is None:
            error.index = self._index
        self._error = error
        return error

    def _note(self, rule: str, type: str, message: str, *, refused: bool = False) -> None:
        self.log.add(rule, message, index=self._index, type=type, refused=refused)


def conform(
    events: Iterable[object],
    *,
    policy: Policy = "strict",
    limits: Limits | None = None,
    middleware: Iterable[Middleware] = (),
    on_warning: Callable[[ProtocolWarning], object] | None = None,
) -> Iterator[e.Event]:
    """The accepted events of a whole stream, lazily. A middleware is called once, with an iterator of all events."""
    halves = _Halves(policy, limits, on_warning)
    layers = tuple(middleware)
    if not layers:
        for event in events:
            yield from halves.whole(event)
        return
    for wire in through(layers, halves.read(events)):
        yield from halves.judge(wire)
