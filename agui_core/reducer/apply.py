"""Events in: how bytes, dicts and structs become changes of messages and state.

Theory of operation. Plain content (see `wire.fast_events`) of an item that is *warm* is a look-up by id and an append: the
tables `_warm` map the ids of open items to their entries, so being found proves that a run is active, the item is open,
and nothing else has to be done than to note that it changed. Where that is noted already, the item is *hot*, and the
tables `_hot` map its id to its list of pieces. Everything else is *taken*: the gate expands and verifies it, its
handlers first check what can fail and then change the conversation, and the observer is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from agui_core.errors import LimitExceeded
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.reducer.handlers import HANDLERS
from agui_core.reducer.partial_json.parser import PartialJson
from agui_core.reducer.state import FAMILY, REFUSALS, Middleware, Standing, event_size
from agui_core.reducer.verify import VerifiedEvent
from agui_core.wire import Batch, JSONLinesDecoder, SSEDecoder, check_nesting, cut
from agui_core.wire.fast_events import FastArgs, FastEvent, FastReasoning, FastText
from agui_core.wire.framing import Bytes

__all__ = ["Intake", "through"]

_encode = msgspec.json.encode
_decode_event = msgspec.json.Decoder(FastEvent).decode
_PLAIN = frozenset[type]((FastText, FastArgs, FastReasoning))
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
_NONE, _ONE, _TAG, _MANY = range(4)
_RISKS: dict[type, int] = {
    e.ReasoningEncryptedValueEvent: _NONE,
    e.ReasoningStartEvent: _NONE,
    e.StepStartedEvent: _NONE,
    e.SubagentStartedEvent: _NONE,
    e.ReasoningMessageChunkEvent: _ONE,
    e.ReasoningMessageStartEvent: _ONE,
    e.TextMessageChunkEvent: _ONE,
    e.TextMessageStartEvent: _ONE,
    e.ToolCallChunkEvent: _ONE,
    e.ToolCallResultEvent: _ONE,
    e.ToolCallStartEvent: _ONE,
    e.StateDeltaEvent: _TAG,
    e.StateSnapshotEvent: _TAG,
    e.ActivityDeltaEvent: _MANY,
    e.ActivitySnapshotEvent: _MANY,
    e.MessagesSnapshotEvent: _MANY,
    e.RunStartedEvent: _MANY,
}
"""Events of which more is held than text and metadata, and what a limit may refuse of them after they were verified:
nothing; one message or call; anything, but only their tag was noted; anything."""
_UNDECODED = (msgspec.MsgspecError, RecursionError, ValueError)


class Intake(Standing):
    """The way in."""

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
                    if type(decoded) is FastArgs:
                        entry: Any = self._warm[0][decoded.tool_call_id]
                    elif type(decoded) is FastText:
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
        if self._sse.skipped_json:
            told = "lines that begin as JSON does were skipped: JSON Lines are read with apply_lines"
            self._log.add("SSE-5", told, index=self._index)
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
                self._grant(len(piece) + reader.held_bytes)
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
        except REFUSALS as error:
            if error.index is not None:
                self._skip_to(error.index)
            self._log.settle(self._index)
            self._log.forget()
            raise self._reject(error) from None

    def _run_events(self, events: list[Any]) -> None:
        """Apply decoded events. The loop that conforming traffic lives in."""
        calls, texts, reasonings = self._hot
        args, text, reasoning = FastArgs, FastText, FastReasoning
        for event in events:
            kind = type(event)
            try:
                if kind is args:
                    calls[event.tool_call_id].append(event.delta)
                    continue
                if kind is text:
                    texts[event.message_id].append(event.delta)
                    continue
                if kind is reasoning:
                    reasonings[event.message_id].append(event.delta)
                    continue
            except KeyError:
                pass
            if kind not in _PLAIN or not self._wake(event):
                self._take(event)
                calls, texts, reasonings = self._hot

    def _wake(self, event: Any) -> bool:
        """Append plain content to an item that is warm, and hot from now on."""
        family, id = FAMILY[type(event)], event.tool_call_id if type(event) is FastArgs else event.message_id
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
        except REFUSALS as error:
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
        kind: type = type(event)
        if kind in _PLAIN:
            event = event.full()
            kind = type(event)
        risk = _RISKS.get(kind)
        steps: list[VerifiedEvent] = []
        try:
            if kind in _OPEN or event.raw_event is not event.metadata:
                check_nesting(event, self._limits.nesting)
            if risk is not None or event.metadata is not UNSET:
                # Bounded by the number of characters that text may have. It grows by no more than the events that are
                # no mere text, so it is measured only when these could be too much, and not again for each event at the
                # bound. Events alone decide when, and not how their bytes were cut.
                if self._since > self._allowed:
                    self._measure_other()
                self._since += len(_encode(event.metadata)) if risk is None else event_size(event)
            if risk == _ONE:
                conversation, limits = self._conversation, self._limits
                revocable = (
                    conversation.count >= limits.messages
                    or conversation.call_count >= self._call_limit
                    or self._careful
                )
            else:
                revocable = risk == _MANY or (risk == _TAG and event.subagent_run_id is not UNSET) or self._careful
            steps = self._gate.admit(event, revocable)
            for accepted, _ in steps:
                prepare, _ = HANDLERS[type(accepted)]
                if prepare is not None:
                    prepare(self, accepted)
        except REFUSALS as error:
            if steps:
                self._gate.revoke(event, steps)
            raise self._reject(error) from None
        if self._on_event is not None:
            self._apply_observed(steps)
        else:
            for accepted, item in steps:
                _, apply = HANDLERS[type(accepted)]
                if apply is not None:
                    apply(self, accepted, item)
            self._others += 1
        if self._gate.expander.lanes or self._warm is not self._warmable:
            self._rewarm()

    def _apply_observed(self, steps: list[VerifiedEvent]) -> None:
        """Apply the steps of an event, each seen by the observer."""
        observed = True
        failure: BaseException | None = None
        for number, (accepted, item) in enumerate(steps, 1):
            if self._skew:
                self._changes += 1  # the observer may have asked for the version of what was applied so far
            _, apply = HANDLERS[type(accepted)]
            if apply is not None:
                apply(self, accepted, item)
            if observed:
                self._others += 1 - self._skew
                self._skew = 1
                self._steps_left = steps[number:]
                try:
                    self._observe(accepted)
                except BaseException as error:  # the program ends, or is interrupted: the event is applied whole
                    failure, observed = error, False
        self._others += 1 - self._skew
        self._skew, self._steps_left = 0, []
        if failure is not None:
            self._rewarm()
            raise failure

    def _observe(self, event: e.Event) -> None:
        assert self._on_event is not None
        try:
            self._on_event(event)
        except Exception as error:
            self._warn("OBSERVER", event, f"on_event raised {type(error).__name__}: {error}"[:500])


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
