"""`ReducerState`: every field that a reducer has, as plain attributes, and the few steps that all who change it share.

`apply` brings events in, `handlers` change messages and state, `accounting` counts against the limits, `copying` and
`checkpoint` copy and save it, `Reducer` shows it. Versions are counted without a counter in the hot loop: each content
event leaves one piece of text, and the pieces are counted when they are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from msgspec.structs import replace

from agui_core.errors import AGUIError, DecodeError, LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import Message
from agui_core.reducer.builders import Builder, MessageBuilder
from agui_core.reducer.families import FAMILY_OF
from agui_core.reducer.items import Noted, OpenItem
from agui_core.reducer.json_patch import Document
from agui_core.reducer.message_store import MessageStore, PieceTables
from agui_core.reducer.verify import VerifiedEvent, Verifier
from agui_core.reducer.views import Run
from agui_core.status import Status
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire import Decoder, JSONLinesReader, SSEReader
from agui_core.wire.decode import Policy

__all__ = ["REFUSALS", "Middleware", "Policy", "ReducerState"]

Middleware: TypeAlias = Callable[[Iterator[dict[str, Any]]], Iterable[dict[str, Any]]]
"""Sees decoded wire events before they are judged (PROC-3). A reducer calls it once per event, so what it remembers
from one event to the next belongs into an object or a closure, not into local variables."""

FastTables: TypeAlias = tuple[dict[str, Builder], dict[str, Builder], dict[str, Builder]]
"""Builders by id: of tool calls, of text messages, of reasoning messages."""

_NO_FAST: Any = ({}, {}, {})
_TOUCHED = 1_024
"""Builders with pieces that may wait to be counted when somebody asks for the event's index."""

REFUSALS = (ProtocolError, DecodeError, LimitExceeded)


class ReducerState:
    """Everything that a reducer holds."""

    # `Reducer` and `reduce` repeat these options, as signatures are what `help` and editors show.
    def __init__(
        self,
        messages: Iterable[Message | Mapping[str, Any]] = (),
        state: Any = UNSET,
        policy: Policy = "strict",
        limits: Limits | None = None,
        on_event: Callable[[e.Event], object] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        on_warning: Callable[[ProtocolWarning], object] | None = None,
    ) -> None:
        self.limits = limits = limits or Limits()
        self.log = WarningLog(limits.warnings, on_warning)
        self.decoder = Decoder(self.log, policy=policy, limits=limits)
        self.verifier = Verifier(limits, Noted(self.note), lenient=policy == "lenient")
        self.store = MessageStore(limits)
        self.document = Document(
            {} if state is UNSET or state is None else self.decoder.to_json(state, "state"), limits
        )
        self.sse = SSEReader(limits.event_bytes)
        self.lines = JSONLinesReader(limits.event_bytes)
        self.middleware = tuple(middleware)
        self.on_event = on_event
        self.fast_items: FastTables = ({}, {}, {})
        """Builders of the open items that plain content may be appended to, by id; `fast` is this, or empty."""
        self.near_limit = False
        self.refresh_fast()
        self.prepared: Any = None
        self.steps_left: list[VerifiedEvent] = []
        """What of an event that is being observed is still to be applied."""
        self.status: Status = "idle"
        self.error: AGUIError | None = None
        self.run = Run()
        self.named_pending: tuple[str, ...] = ()
        self.pending_seen: object = None
        """What the run's pending calls were last worked out from."""
        self.answered: set[str] = set()
        # How many calls of the run came before its latest text or result, and what had been said by then.
        self.quiet_from = 0
        self.spoken = 0
        self.may_have_spoken = True
        """Whether a text may have ended since what was said was last looked at."""
        self.other_events = 0
        self.mid_event = 0
        self.other_changes = 0
        self.state_version = 0
        self.run_version = 0
        # Whether they changed since a version was last asked for.
        self.state_unstamped = False
        self.run_unstamped = False
        self.run_began_at = 0
        self.checkpoint_marks: dict[int, Any] = {}
        """What `checkpoint` remembers of the checkpoints made here."""
        self.extra = b""
        self.superseded: tuple[frozenset[str], frozenset[str]] | None = None
        """Ids of the messages that go, and of those that lose their text, when the next run begins."""
        self.char_budget = 0
        # Characters that are no text: those held when they were last measured, and all that came since.
        self.overhead_chars = 0
        self.overhead_since = 0
        self.overhead_allowed = limits.characters
        self.call_limit = min(limits.tool_calls, limits.tool_calls_per_message)
        self.hold(messages)

    @property
    def policy(self) -> Policy:
        return "lenient" if self.verifier.lenient else "strict"

    # --- a refusal ----------------------------------------------------------------------------------------------------

    def reject(self, error: AGUIError) -> AGUIError:
        if self.error is None:
            if isinstance(error, REFUSALS) and error.index is None:
                error.index = self.index
            self.error = error
            self.char_budget = -1
            self.status = "rejected"
            self.deny_all()
            self.other_changes += 1
            self.run_version = self.now
        return self.error

    # --- where in the stream we are -------------------------------------------------------------------------------

    @property
    def index(self) -> int:
        """Events so far. Content leaves one piece of text each, which is counted when the pieces are; so the hot loops
        count nothing.
        """
        store = self.store
        touched = store.touched
        index = self.other_events + store.pieces + sum([len(entry.pieces) for entry in touched])
        if len(touched) > _TOUCHED:
            store.fold()
        return index

    @property
    def now(self) -> int:
        """The version as of now."""
        return self.index + self.other_changes

    @property
    def upcoming(self) -> int:
        """The version that the event being applied leads to."""
        return self.now + 1 - self.mid_event

    def stamp(self) -> int:
        """Settle, so that all that changed has a version: this one, at the latest."""
        version = self.now
        if self.run_unstamped:
            self.run_version, self.run_unstamped = version, False
        if self.state_unstamped:
            self.state_version, self.state_unstamped = version, False
        self.store.settle(version)
        return version

    def skip_to(self, index: int) -> None:
        """Count events that were dropped, or otherwise amounted to nothing."""
        self.other_events += index - self.index

    def piece_added(self) -> None:
        """A content event left a piece, which counts for it."""
        self.other_events -= 1

    # --- the fast path: items whose plain content needs no more than a look-up and an append ------------------------

    def refresh_fast(self) -> None:
        """Switch the fast path on or off."""
        # Any content may have to close an open chunk stream, an observer wants to see it, and near a limit it has to be
        # counted first.
        off = self.verifier.expander.lanes or self.near_limit or self.on_event is not None
        self.fast: FastTables = _NO_FAST if off else self.fast_items
        self.fast_pieces: PieceTables = _NO_FAST if off else self.store.open_pieces

    def allow_fast(self, item: OpenItem) -> None:
        entry = item.entry
        if entry is None or item.half or (type(entry) is MessageBuilder and entry.document is not None):
            self.deny_fast(item)
        else:
            self.fast_items[FAMILY_OF[type(item.start)].place][item.id] = entry

    def deny_fast(self, item: OpenItem) -> None:
        place = FAMILY_OF[type(item.start)].place
        self.fast_items[place].pop(item.id, None)
        self.store.open_pieces[place].pop(item.id, None)

    def deny_all(self) -> None:
        for table in (*self.fast_items, *self.store.open_pieces):
            table.clear()

    # --- for handlers -----------------------------------------------------------------------------------------------

    def fold(self) -> None:
        """Join what arrived. Versions need more: `stamp`, or `store.settle`."""
        if self.store.touched:
            self.store.fold()

    def hold(self, messages: Iterable[Message | Mapping[str, Any]]) -> None:
        """Start from these messages."""
        if isinstance(messages, Mapping):
            raise TypeError("messages is a list of messages, not one message")
        for message in messages:
            self.store.append(self.decoder.to_shape(message, Message, own=True))
        self.store.begin()

    def note(self, rule: str, type: str, message: str, *, refused: bool = False) -> None:
        self.log.add(rule, message, index=self.index, type=type, refused=refused)

    def warn(self, rule: str, event: e.Event, message: str) -> None:
        self.log.add(rule, message, index=self.index - self.mid_event, type=event.type)

    @property
    def has_spoken(self) -> bool:
        """Whether a message grew since `note_speech`, as of the last settling."""
        return self.store.spoken != self.spoken

    @has_spoken.setter
    def has_spoken(self, value: bool) -> None:
        self.spoken = self.store.spoken - value

    def note_speech(self, starting: str | None = None) -> None:
        """Whether the run has said something since its latest call, or before one that is `starting`. The conversation
        is settled.
        """
        self.may_have_spoken = False
        if self.has_spoken:
            self.said_something()
            if starting is not None and starting == next(reversed(self.verifier.stream.started_calls), None):
                self.quiet_from -= 1

    def said_something(self) -> None:
        """No call so far is what the run ends with."""
        self.spoken = self.store.spoken
        self.quiet_from = len(self.verifier.stream.started_calls)

    def is_reused(self, id: str) -> bool:
        """EVT-7: whether a call of the run has the id of one that was answered before the run began."""
        result = self.store.results.get(id)
        return result is not None and 0 <= result.added <= self.run_began_at and id not in self.verifier.stream.answered

    def begin_run(self, event: e.RunStartedEvent) -> None:
        self.status = "running"
        self.store.settle(self.upcoming)
        self.said_something()
        version = event.protocol_version
        self.run = Run(
            thread_id=event.thread_id, run_id=event.run_id, protocol_version=None if version is UNSET else version
        )
        self.named_pending = ()
        self.pending_seen = None
        self.answered.clear()
        self.decoder.boundary.run_id = event.run_id
        self.run_changed()
        self.run_began_at = self.run_version

    def end_run(self, status: Status, changes: dict[str, Any]) -> None:
        self.status = status
        self.run = replace(self.run, **changes)
        self.run_changed()

    def run_changed(self) -> None:
        self.run_version = self.upcoming

    def state_changed(self) -> None:
        self.state_unstamped = True
