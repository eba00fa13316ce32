"""All that a reducer holds, and where it stands: its place in the stream, its versions, what is warm, and what counts
towards the limits.

Nothing is counted per event: content leaves one piece of text each, which is counted when the pieces are joined. What
makes content need more than an append (an open chunk stream, an observer, a limit that is near) hides the tables of
what is warm, instead of being asked for each event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from agui_core.errors import AGUIError, DecodeError, LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import Message
from agui_core.reducer.builders import Builder, MessageBuilder
from agui_core.reducer.items import Noted, OpenItem
from agui_core.reducer.json_patch import Document
from agui_core.reducer.message_store import MessageStore, PieceTables
from agui_core.reducer.verify import VerifiedEvent, Verifier
from agui_core.reducer.views import Run
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire import Decoder, JSONLinesDecoder, SSEDecoder, encode
from agui_core.wire.decode import Policy
from agui_core.wire.fast_events import FastArgs, FastReasoning, FastText

__all__ = ["FAMILY", "REFUSALS", "Middleware", "Policy", "Standing", "Status", "event_size"]

Status: TypeAlias = Literal[
    "idle", "running", "finished", "interrupted", "cancelled", "failed", "truncated", "rejected"
]
Middleware: TypeAlias = Callable[[Iterator[dict[str, Any]]], Iterable[dict[str, Any]]]
"""Sees decoded wire events before they are judged (PROC-3). A reducer calls it once per event, so what it remembers
from one event to the next belongs into an object or a closure, not into local variables."""

FastTables: TypeAlias = tuple[dict[str, Builder], dict[str, Builder], dict[str, Builder]]
"""Entries by id: of tool calls, of text messages, of reasoning messages."""

_COLD: Any = ({}, {}, {})
_ROOM = 1024 * 1024
"""Characters that may come between two countings, at most; it also bounds the pieces that wait to be joined."""
_SLACK = 16
"""What is held besides text may exceed its bound by this part of it, so that measuring it stays linear."""
_TOUCHED = 1_024
"""Entries with pieces that may wait to be counted when somebody asks for the event's index."""
_encode = msgspec.json.encode

REFUSALS = (ProtocolError, DecodeError, LimitExceeded)

FAMILY: dict[type, int] = {
    e.ToolCallStartEvent: 0,
    FastArgs: 0,
    e.TextMessageStartEvent: 1,
    FastText: 1,
    e.ReasoningMessageStartEvent: 2,
    FastReasoning: 2,
}
"""Places in `FastTables`."""


def event_size(event: Any) -> int:
    """Bytes of an event as JSON."""
    try:
        return len(_encode(event))
    except UnicodeEncodeError:  # half a character waits in its text
        return len(encode(event))


class Standing:
    """Everything that a reducer holds. `Intake` adds the way in, and `Reducer` what is read."""

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
        self._limits = limits = limits or Limits()
        self._log = WarningLog(limits.warnings, on_warning)
        self._decoder = Decoder(self._log, policy=policy, limits=limits)
        self._gate = Verifier(limits, Noted(self), lenient=policy == "lenient")
        self._conversation = MessageStore(limits)
        self._state = Document({} if state is UNSET or state is None else self._decoder.to_json(state, "state"), limits)
        self._sse = SSEDecoder(limits.event_bytes)
        self._lines = JSONLinesDecoder(limits.event_bytes)
        self._middleware = tuple(middleware)
        self._on_event = on_event
        self._warmable: FastTables = ({}, {}, {})
        """What is warm unless nothing may be."""
        self._careful = False
        self._rewarm()
        self._prepared: Any = None
        self._steps_left: list[VerifiedEvent] = []
        """What of an event that is being observed is still to be applied."""
        self._status: Status = "idle"
        self._error: AGUIError | None = None
        self._run = Run()
        self._named_pending: tuple[str, ...] = ()
        self._pending_seen: object = None
        """What the run's pending calls were last worked out from."""
        self._answered: set[str] = set()
        # How many calls of the run came before its latest text or result, and what had been said by then.
        self._quiet_from = 0
        self._spoken = 0
        self._speaks = True
        """Whether a text may have ended since what was said was last looked at."""
        self._others = 0
        self._skew = 0
        self._changes = 0
        self._state_version = 0
        self._run_version = 0
        # Whether they changed since a version was last asked for.
        self._state_changes = False
        self._run_changes = False
        self._begun = 0
        self._marks: dict[int, Any] = {}
        """What `checkpoint` remembers of the checkpoints made here."""
        self._extra = b""
        self._superseded: tuple[frozenset[str], frozenset[str]] | None = None
        """Ids of the messages that go, and of those that lose their text, when the next run begins."""
        self._room = 0
        # Characters that are no text: those held when they were last measured, and all that came since.
        self._other = 0
        self._since = 0
        self._allow()
        self._call_limit = min(limits.tool_calls, limits.tool_calls_per_message)
        self._hold(messages)

    # --- a refusal ----------------------------------------------------------------------------------------------------

    def _reject(self, error: AGUIError) -> AGUIError:
        if self._error is None:
            if isinstance(error, REFUSALS) and error.index is None:
                error.index = self._index
            self._error = error
            self._room = -1
            self._status = "rejected"
            self._chill()
            self._changes += 1
            self._run_version = self._now
        return self._error

    # --- where in the stream we are -------------------------------------------------------------------------------

    @property
    def _index(self) -> int:
        """Events so far. Content leaves one piece of text each, which is counted when the pieces are; so the hot loops
        count nothing.
        """
        conversation = self._conversation
        touched = conversation.touched
        index = self._others + conversation.pieces + sum([len(entry.pieces) for entry in touched])
        if len(touched) > _TOUCHED:
            conversation.fold()
        return index

    @property
    def _now(self) -> int:
        """The version as of now."""
        return self._index + self._changes

    @property
    def _upcoming(self) -> int:
        """The version that the event being applied leads to."""
        return self._now + 1 - self._skew

    def _stamp(self) -> int:
        """Settle, so that all that changed has a version: this one, at the latest."""
        version = self._now
        if self._run_changes:
            self._run_version, self._run_changes = version, False
        if self._state_changes:
            self._state_version, self._state_changes = version, False
        self._conversation.settle(version)
        return version

    def _skip_to(self, index: int) -> None:
        """Count events that were dropped, or otherwise amounted to nothing."""
        self._others += index - self._index

    def piece_added(self) -> None:
        """A content event left a piece, which counts for it."""
        self._others -= 1

    # --- what is warm: items whose plain content needs no more than a look-up and an append -----------------------

    def _rewarm(self) -> None:
        # An open chunk stream may have to be closed by any content, an observer wants to see it, and where the room
        # is used up it has to be counted first.
        cold = self._gate.expander.lanes or self._careful or self._on_event is not None
        self._warm: FastTables = _COLD if cold else self._warmable
        self._hot: PieceTables = _COLD if cold else self._conversation.hot

    def _heat(self, item: OpenItem) -> None:
        entry = item.entry
        if entry is None or item.half or (type(entry) is MessageBuilder and entry.document is not None):
            self._cool(item)
        else:
            self._warmable[FAMILY[type(item.start)]][item.id] = entry

    def _cool(self, item: OpenItem) -> None:
        family = FAMILY[type(item.start)]
        self._warmable[family].pop(item.id, None)
        self._conversation.hot[family].pop(item.id, None)

    def _chill(self) -> None:
        for table in (*self._warmable, *self._conversation.hot):
            table.clear()

    # --- counting ---------------------------------------------------------------------------------------------------

    def _grant(self, size: int) -> None:
        """Grant room for what comes, and for what a reader holds of it already: nothing that is not counted may be more
        than what is left. Where there is little left, every event is counted before it is applied.
        """
        conversation, limits = self._conversation, self._limits
        conversation.settle(self._now)
        left = min(limits.characters - conversation.characters, limits.item_characters - conversation.largest)
        self._careful = left < size
        self._rewarm()
        granted = max(size, min(_ROOM, left, limits.event_bytes))
        # With middleware nothing may take the fast way in.
        self._room = -1 if self._middleware else granted - size

    def _allow(self) -> None:
        """Say how much may come before what is held is measured again."""
        limit = self._limits.characters
        self._allowed = max(limit - self._other, limit // _SLACK)

    def _measure_other(self) -> None:
        conversation, limit = self._conversation, self._limits.characters
        conversation.settle(self._now)
        state = len(_encode(self._state.value)) if self._state_version or self._state_changes else 0
        inside = sum([entry.other_characters for entry in conversation.entries()])
        self._other = state + inside + self._gate.sequence.characters
        self._since = 0
        self._allow()
        if self._other > limit:
            raise self._reject(
                LimitExceeded(
                    f"ids, names, metadata, activities and state hold {self._other:,} characters, which is more than"
                    f" Limits(characters={limit}) allows",
                    limit="characters",
                )
            )

    def _charge(self, event: Any) -> None:
        """Take an event that did not come as bytes out of the room."""
        delta = getattr(event, "delta", None)
        size = len(delta) if isinstance(delta, str) else len(_encode(event))
        self._room -= size
        if self._room < 0:
            self._grant(size)

    def _characters_with(self, more: int) -> int:
        self._conversation.settle(self._now)
        return self._conversation.characters + more

    # --- for handlers -----------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """Fold what arrived; whoever wants to know versions settles the conversation itself."""
        if self._conversation.touched:
            self._conversation.fold()

    def _hold(self, messages: Iterable[Message | Mapping[str, Any]]) -> None:
        """Start from these messages."""
        if isinstance(messages, Mapping):
            raise TypeError("messages is a list of messages, not one message")
        for message in messages:
            self._conversation.append(self._decoder.to_shape(message, Message, own=True))
        self._conversation.begin()

    def _note(self, rule: str, type: str, message: str, *, refused: bool = False) -> None:
        self._log.add(rule, message, index=self._index, type=type, refused=refused)

    def _warn(self, rule: str, event: e.Event, message: str) -> None:
        self._log.add(rule, message, index=self._index - self._skew, type=event.type)

    def _note_speech(self, starting: str | None = None) -> None:
        """Whether the run has said something since its latest call, or before one that is `starting`. The conversation
        is settled.
        """
        self._speaks = False
        if self._conversation.spoken != self._spoken:
            self._said_something()
            if starting is not None and starting == next(reversed(self._gate.sequence.started_calls), None):
                self._quiet_from -= 1

    def _said_something(self) -> None:
        """No call so far is what the run ends with."""
        self._spoken = self._conversation.spoken
        self._quiet_from = len(self._gate.sequence.started_calls)

    def _begin(self, event: e.RunStartedEvent) -> None:
        self._status = "running"
        self._conversation.settle(self._upcoming)
        self._said_something()
        version = event.protocol_version
        self._run = Run(
            thread_id=event.thread_id, run_id=event.run_id, protocol_version=None if version is UNSET else version
        )
        self._named_pending = ()
        self._pending_seen = None
        self._answered.clear()
        self._decoder.boundary.run_id = event.run_id
        self._run_changed()
        self._begun = self._run_version

    def _end_run(self, status: Status, changes: dict[str, Any]) -> None:
        self._status = status
        self._run = replace(self._run, **changes)
        self._run_changed()

    def _run_changed(self) -> None:
        self._run_version = self._upcoming

    def _state_changed(self) -> None:
        self._state_changes = True
