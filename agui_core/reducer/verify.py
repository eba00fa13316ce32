"""`Verifier`: from decoded events to accepted ones, by chunk expansion, the rules, and the lenient repairs.

`Verifier.verify` takes one event and returns what it amounts to: expanded, verified events, each with the open item
that it concerns. Either all of them are accepted, or the event is refused and nothing changed. The halves of characters
that deltas cut in two are joined here as well. The lenient policy refuses nothing: it repairs the event as `lenient`
says, or skips it, with a warning.
"""

from __future__ import annotations

from typing import TypeAlias

from agui_core.errors import LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.reducer.chunks import CHUNKS, Expander, Expansion
from agui_core.reducer.items import Note, OpenItem
from agui_core.reducer.lenient import find_repair
from agui_core.reducer.rules import verify
from agui_core.reducer.stream_state import Mark, StreamState
from agui_core.reducer.surrogates import CONTENT, Halves

__all__ = ["Verifier", "VerifiedEvent"]


VerifiedEvent: TypeAlias = tuple[e.Event, OpenItem | None]
"""One accepted event and the open item that it concerns, if it is one of a triad."""


_REPAIRS_IN_A_ROW = 3
"""A run may have to be assumed, and an item opened in it; what is refused even then is skipped."""


class Verifier:
    """The state of one stream between decoding and application."""

    __slots__ = ("_before", "_commits", "_halves", "_note", "assumed", "expander", "lenient", "stream")

    def __init__(self, limits: Limits, note: Note, *, lenient: bool, assumed: tuple[str, str] = ("", "")) -> None:
        self.expander = Expander(limits)
        self.stream = StreamState(limits, note)
        self.lenient = lenient
        self.assumed = assumed
        self._note = note
        # What `revoke` needs, of one event.
        self._before: Mark | None = None
        self._commits: list[Expansion] = []
        self._halves = Halves(note)

    def verify(self, event: e.Event, revocable: bool = False) -> list[VerifiedEvent]:
        """The steps of one event. Raises `ProtocolError` (strict only) or `LimitExceeded`, changing nothing.

        What is `revocable`, or was repaired, can be unsaid by `revoke` until the next event; of others only what was
        opened and ended. O(1) more, but O(owners) for a snapshot of the messages.
        """
        if self._commits or self._halves.before:
            self._commits, self._halves.before = [], []
        self._before = self.stream.mark(event) if revocable else None
        try:
            return self._judge(event)
        except ProtocolError as error:
            if not self.lenient:
                raise
            self._before = self.stream.mark(event, repaired=True)
            steps: list[VerifiedEvent] = []
            try:
                self._repair(event, error, _REPAIRS_IN_A_ROW, steps)
            except LimitExceeded:
                self.revoke(event, steps)
                raise
            return steps

    def revoke(self, event: e.Event, steps: list[VerifiedEvent]) -> None:
        """Undo the last `verify`, which returned these steps, for an event that a later limit refuses."""
        for step, item in reversed(steps):
            self.stream.unverify(step, item)
        if self._before is not None:
            self.stream.restore(self._before, event)
        for expansion in reversed(self._commits):
            self.expander.revert(expansion)
        self._halves.revert()

    def copy(self, note: Note) -> Verifier:
        """An independent verifier in the same state."""
        twin: Verifier = object.__new__(Verifier)
        twin.expander, twin.stream = self.expander.copy(), self.stream.copy(note)
        twin.lenient, twin.assumed, twin._note = self.lenient, self.assumed, note
        twin._before, twin._commits, twin._halves = None, [], Halves(note)
        return twin

    def _judge(self, event: e.Event) -> list[VerifiedEvent]:
        kind = type(event)
        if not self.expander.lanes and kind not in CHUNKS:
            item = verify(self.stream, event)
            whole = item is None or (not item.half and kind not in CONTENT)
            return [(event, item)] if whole else self._halves.paired(event, item)
        stream = self.stream
        expansion = self.expander.plan(event)
        steps: list[VerifiedEvent] = []
        ended = [(end, verify(stream, end)) for end in expansion.ends]
        try:
            judged = [(expanded, verify(stream, expanded)) for expanded in expansion.events]
        except (ProtocolError, LimitExceeded) as error:
            error.type = event.type  # what is on the wire, and not what it expands to
            for end, item in ended:
                stream.unverify(end, item)
            raise
        self.expander.commit(expansion)
        if expansion.closes or expansion.opens is not None:
            self._commits.append(expansion)
        for expanded, item in (*ended, *judged):
            steps += self._halves.paired(expanded, item)
        return steps

    def _repair(self, event: e.Event, error: ProtocolError, repairs_left: int, steps: list[VerifiedEvent]) -> None:
        repair = find_repair(self.stream, self.expander, event, error, self.assumed) if repairs_left else None
        if repair is None:
            self._note(error.rule, event.type, f"skipped: {error.message}", refused=True)
            return
        how, events = repair
        self._note(error.rule, event.type, f"{how}: {error.message}", refused=True)
        for replacement in events:
            try:
                steps += self._judge(replacement)
            except ProtocolError as again:
                self._repair(replacement, again, repairs_left - 1, steps)
