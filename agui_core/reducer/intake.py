"""Events in: how bytes, dicts and structs become changes of messages and state.

Theory of operation. Plain content (see `wire.plain`) of an item that is *warm* is a look-up by id and an append: the
tables `_warm` map the ids of open items to their entries, so being found proves that a run is active, the item is open,
and nothing else has to be done than to note that it changed. Where that is noted already, the item is *hot*, and the
tables `_hot` map its id to its list of pieces. Everything else is *taken*: the gate expands and verifies it, its
handlers first check what can fail and then change the conversation, and the observer is told. What makes content need
more (an open chunk stream, an observer, a limit that is near) hides these tables instead of being asked for each event.
Nothing is counted per event: content leaves one piece each, which is counted when the pieces are joined.
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
from agui_core.reducer.conversation import Conversation, Hot
from agui_core.reducer.entries import Entry, MessageEntry
from agui_core.reducer.gate import Gate, Step
from agui_core.reducer.handlers import HANDLERS
from agui_core.reducer.items import Noted, Open
from agui_core.reducer.json_patch import Document
from agui_core.reducer.partial_json import PartialJson
from agui_core.reducer.views import Run
from agui_core.warning import ProtocolWarning, WarningLog
from agui_core.wire import Batch, Decoder, JSONLinesDecoder, SSEDecoder, check_nesting, cut
from agui_core.wire.plain import PlainArgs, PlainEvent, PlainReasoning, PlainText
from agui_core.wire.reading import Bytes

__all__ = ["Intake", "Middleware", "Policy", "Status", "through"]

Policy: TypeAlias = Literal["strict", "lenient"]
Status: TypeAlias = Literal[
    "idle", "running", "finished", "interrupted", "cancelled", "failed", "truncated", "rejected"
]
Middleware: TypeAlias = Callable[[Iterator[dict[str, Any]]], Iterable[dict[str, Any]]]
"""Sees decoded wire events before they are judged (PROC-3). A reducer calls it once per event, so what it remembers
from one event to the next belongs into an object or a closure, not into local variables."""

Warm: TypeAlias = tuple[dict[str, Entry], dict[str, Entry], dict[str, Entry]]
"""Entries by id: of tool calls, of text messages, of reasoning messages."""

_COLD: Any = ({}, {}, {})
_ROOM = 1024 * 1024
"""Characters that may come between two countings, at most; it also bounds the pieces that wait to be joined."""
_TOUCHED = 1_024
"""Entries with pieces that may wait to be counted when somebody asks for the event's index."""
_decode_event = msgspec.json.Decoder(PlainEvent).decode
_encode = msgspec.json.encode
_PLAIN = frozenset[type]((PlainText, PlainArgs, PlainReasoning))
_OPEN = frozenset(
    {
        e.ActivityDeltaEvent,
        e.ActivitySnapshotEvent,
        e.CustomEvent,
        e.MessagesSnapshotEvent,
        e.RawEvent,
        e.RunErrorEvent,
        e.RunFinishedEvent,
        e.RunStartedEvent,
        e.StateDeltaEvent,
        e.StateSnapshotEvent,
        e.SubagentFinishedEvent,
        e.ToolCallResultEvent,
    }
)
"""Events with members that may be nested, besides those that every event has."""
_REFUSALS = (ProtocolError, DecodeError, LimitExceeded)
_UNDECODED = (msgspec.MsgspecError, RecursionError, ValueError)


_FAMILY: dict[type, int] = {
    e.ToolCallStartEvent: 0,
    PlainArgs: 0,
    e.TextMessageStartEvent: 1,
    PlainText: 1,
    e.ReasoningMessageStartEvent: 2,
    PlainReasoning: 2,
}
"""Places in `Warm`."""


class Intake:
    """Everything that a reducer holds, and the way in. `Reducer` adds what is read."""

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
        self._gate = Gate(limits, Noted(self), lenient=policy == "lenient")
        self._conversation = Conversation(limits)
        self._state = Document({} if state is UNSET or state is None else state, limits)
        self._sse = SSEDecoder(limits.event_bytes)
        self._lines = JSONLinesDecoder(limits.event_bytes)
        self._middleware = tuple(middleware)
        self._on_event = on_event
        self._warmable: Warm = ({}, {}, {})
        """What is warm unless nothing may be."""
        self._careful = False
        self._rewarm()
        self._prepared: Any = None
        self._status: Status = "idle"
        self._error: AGUIError | None = None
        self._run = Run()
        self._named_pending: tuple[str, ...] = ()
        self._pending_seen: object = None
        """What the run's pending calls were last worked out from."""
        self._answered: set[str] = set()
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
        self._room = 0
        # Characters that are no text: those held when they were last measured, and all that came since.
        self._other = 0
        self._since = 0
        self._hold(messages)

    # --- events in ------------------------------------------------------------------------------------------------

    def apply(self, event: object) -> None:
        """Apply one event: a struct, a decoded dict, its JSON as bytes or str, or an object of `ag_ui.core`.

        Raises `DecodeError`, `ProtocolError` or `LimitExceeded`; then nothing of the event was applied, `status` is
        `"rejected"`, and every later call raises the same error. In the lenient policy only `LimitExceeded` is raised.
        """
        if type(event) is bytes:
            room = self._room = self._room - len(event)
            if room >= 0:
                try:
                    decoded: Any = _decode_event(event)
                    if type(decoded) is PlainArgs:
                        entry: Any = self._warm[0][decoded.tool_call_id]
                    elif type(decoded) is PlainText:
                        entry = self._warm[1][decoded.message_id]
                    else:
                        entry = None
                except KeyError:
                    entry = None
                except _UNDECODED:
                    self._apply_judged(event)
                    return
                if entry is None:
                    self._take(decoded)
                    return
                entry.pieces.append(decoded.delta)
                if not entry.touched:
                    entry.touched = True
                    self._conversation.touched.append(entry)
                return
        self._apply_any(event)

    def apply_sse(self, data: Bytes) -> None:
        """Apply a piece of a server-sent event stream, cut anywhere. Raises as `apply`, after the events before."""
        self._apply_bytes(self._sse, data)

    def apply_lines(self, data: Bytes) -> None:
        """Apply a piece of a JSON Lines stream, cut anywhere. Raises as `apply`, after the events before."""
        self._apply_bytes(self._lines, data)

    def steps(self, data: Bytes, *, lines: bool = False) -> Iterator[None]:
        """As `apply_sse`, or `apply_lines`, but yields after each event, for callers that look at every one."""
        reader = self._lines if lines else self._sse
        for piece in cut(data):
            batch = self._read(reader, piece)
            for payload in () if batch is None else batch.payloads():
                self.apply(payload)
                yield
        self._check(reader)

    def end(self) -> None:
        """The source has ended: a run still open is truncated (RUN-17). A last JSON line without its newline is applied
        when it is whole; a last server-sent block without its blank line is discarded (SSE-12).
        """
        if self._error is not None:
            return
        try:
            last = self._lines.finish()
            self._sse.close()
        except LimitExceeded as error:
            raise self._reject(error) from None
        for payload in () if last is None else last.payloads():
            if _is_cut(payload):
                self._log.add("SSE-12", "the last line was cut off; it is discarded", index=self._index)
            else:
                self.apply(payload)
        # Whatever comes next is of another source, which may open as any does.
        self._gate.sequence.set_phase("idle")
        if self._status == "running":
            self._chill()
            self._gate.expander.clear()
            self._status = "truncated"
            self._changes += 1
            self._run_version = self._now

    # --- how an event goes in -------------------------------------------------------------------------------------

    def _apply_any(self, event: object) -> None:
        """Apply what is not bytes, or not within the room that was granted (none is, after a refusal)."""
        if self._error is not None:
            raise self._error
        if isinstance(event, bytes | bytearray | memoryview | str):
            self._grant(len(event))
        self._apply_judged(event)

    def _apply_bytes(self, reader: SSEDecoder | JSONLinesDecoder, data: Bytes) -> None:
        for piece in cut(data):
            batch = self._read(reader, piece)
            if batch is not None:
                self._apply_batch(batch)
        self._check(reader)

    def _read(self, reader: SSEDecoder | JSONLinesDecoder, piece: Bytes) -> Batch | None:
        """The records that a piece completes."""
        if self._error is not None:
            raise self._error
        room = self._room = self._room - len(piece)
        try:
            if room < 0:
                self._grant(len(piece))
            return reader.take(piece)
        except LimitExceeded as error:
            raise self._reject(error) from None

    def _check(self, reader: SSEDecoder | JSONLinesDecoder) -> None:
        """Raise what is wrong with the reading itself, behind the records before it."""
        try:
            reader.check()
        except LimitExceeded as error:
            raise self._reject(error) from None

    def _apply_batch(self, batch: Batch) -> None:
        if self._middleware:
            for payload in batch.payloads():
                self._apply_judged(payload)
            return
        events = self._decoder.decode_fit(batch)
        if events is not None:
            self._run_events(events)
            return
        try:
            for index, events in self._decoder.decode_batch(batch, self._index):
                # Events that were dropped count as well.
                self._skip_to(index)
                self._run_events(events)
        except _REFUSALS as error:
            if error.index is not None:
                self._skip_to(error.index)
            self._decoder.settle(self._index)
            raise self._reject(error) from None

    def _run_events(self, events: list[Any]) -> None:
        """Apply decoded events. The loop that conforming traffic lives in."""
        calls, texts, reasonings = self._hot
        for event in events:
            try:
                if type(event) is PlainArgs:
                    calls[event.tool_call_id].append(event.delta)
                    continue
                if type(event) is PlainText:
                    texts[event.message_id].append(event.delta)
                    continue
                if type(event) is PlainReasoning:
                    reasonings[event.message_id].append(event.delta)
                    continue
            except KeyError:
                pass
            if type(event) not in _PLAIN or not self._wake(event):
                self._take(event)
                calls, texts, reasonings = self._hot

    def _wake(self, event: Any) -> bool:
        """Append plain content to an item that is warm, and hot from now on."""
        family, id = _FAMILY[type(event)], event.tool_call_id if type(event) is PlainArgs else event.message_id
        entry = self._warm[family].get(id)
        if entry is None:
            return False
        entry.pieces.append(event.delta)
        if not entry.touched:
            entry.touched = True
            self._conversation.touched.append(entry)
        self._hot[family][id] = entry.pieces
        return True

    def _apply_judged(self, event: object) -> None:
        """The slow way in, for whatever is not a conforming event by itself."""
        index = self._index
        try:
            for judged in self._judged(event, index):
                self._charge(judged)
                self._take(judged)
        except _REFUSALS as error:
            raise self._reject(error) from None
        self._skip_to(index + 1)

    def _judged(self, event: object, index: int) -> Iterator[e.Event]:
        decoder = self._decoder
        if not self._middleware:
            decoded = decoder.to_event(event, index)
            if decoded is not None:
                yield decoded
            return
        wire = decoder.to_dict(event, index)
        for passed in through(self._middleware, () if wire is None else (wire,)):
            decoded = decoder.enforce(passed, index)
            if decoded is not None:
                yield decoded

    def _take(self, event: Any) -> None:
        """Everything but plain content of a warm item: expand, verify, prepare, apply, observe."""
        if type(event) in _PLAIN:
            event = event.full()
        steps: list[Step] = []
        try:
            if event.raw_event is not event.metadata or type(event) in _OPEN:
                check_nesting(event, self._limits.nesting)
            steps = self._gate.admit(event)
            for accepted, _ in steps:
                prepare, _ = HANDLERS[type(accepted)]
                if prepare is not None:
                    prepare(self, accepted)
        except _REFUSALS as error:
            self._take_back(steps)
            raise self._reject(error) from None
        observed = self._on_event is not None
        for accepted, item in steps:
            if self._skew:
                self._changes += 1  # the observer may have asked for the version of what was applied so far
            _, apply = HANDLERS[type(accepted)]
            if apply is not None:
                apply(self, accepted, item)
            if observed:
                self._others += 1 - self._skew
                self._skew = 1
                self._observe(accepted)
        self._others += 1 - self._skew
        self._skew = 0
        if self._gate.expander.lanes or self._warm is _COLD:
            self._rewarm()

    def _take_back(self, steps: list[Step]) -> None:
        """Undo what the gate noted of an event that is refused for a limit."""
        for event, item in reversed(steps):
            answered = isinstance(event, e.ToolCallResultEvent) and event.tool_call_id in self._conversation.results
            self._gate.sequence.unverify(event, item, answered=answered)

    def _observe(self, event: e.Event) -> None:
        assert self._on_event is not None
        try:
            self._on_event(event)
        except Exception as error:
            self._warn("OBSERVER", event, f"on_event raised {type(error).__name__}: {error}"[:500])

    def _reject(self, error: AGUIError) -> AGUIError:
        if self._error is None:
            if isinstance(error, _REFUSALS) and error.index is None:
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
        self._warm: Warm = _COLD if cold else self._warmable
        self._hot: Hot = _COLD if cold else self._conversation.hot

    def _heat(self, item: Open) -> None:
        entry = item.entry
        if entry is None or item.half or (type(entry) is MessageEntry and entry.document is not None):
            self._cool(item)
        else:
            self._warmable[_FAMILY[type(item.start)]][item.id] = entry

    def _cool(self, item: Open) -> None:
        family = _FAMILY[type(item.start)]
        self._warmable[family].pop(item.id, None)
        self._conversation.hot[family].pop(item.id, None)

    def _chill(self) -> None:
        for table in (*self._warmable, *self._conversation.hot):
            table.clear()

    # --- counting ---------------------------------------------------------------------------------------------------

    def _grant(self, size: int) -> None:
        """Grant room for what comes. Where there is little left, every event is counted before it is applied."""
        conversation, limits = self._conversation, self._limits
        conversation.settle(self._now)
        if self._other + self._since > limits.characters:
            self._measure_other()
        left = min(limits.characters - conversation.characters, limits.item_characters - conversation.largest)
        self._careful = left < size
        self._rewarm()
        granted = max(size, min(_ROOM, left, limits.event_bytes))
        self._since += granted
        # With middleware nothing may take the fast way in.
        self._room = -1 if self._middleware else granted - size

    def _measure_other(self) -> None:
        """Bound what is held besides text by the same number of characters. It grows by no more than what comes, so it
        has to be measured only when that could be too much.
        """
        conversation, limit = self._conversation, self._limits.characters
        state = len(_encode(self._state.value)) if self._state_version or self._state_changes else 0
        inside = sum([entry.other_characters for entry in conversation.entries()])
        self._other = state + inside + self._gate.sequence.characters
        self._since = 0
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

    def _begin(self, event: e.RunStartedEvent) -> None:
        self._status = "running"
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


def _is_cut(payload: bytes) -> bool:
    """Whether a text is the beginning of a JSON value, and no whole one."""
    document = PartialJson()
    document.feed(payload.decode(errors="replace"))
    if document.error is not None:
        return False
    document.close()
    return document.error is not None


def through(middleware: Iterable[Middleware], events: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """`events` as they leave a chain of middleware."""
    for layer in middleware:
        events = layer(iter(events))
    return events
