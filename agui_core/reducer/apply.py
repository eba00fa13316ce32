"""Events in: how bytes, dicts and structs become changes of messages and state.

Theory of operation. Most events of a stream are plain content (see `wire.fast_events`): one more piece of an open text
message or tool call. For these there is a fast path. `ReducerState.fast` maps the ids of open items to their builders:
an id that is found proves that a run is active and the item is open, so the piece is appended and the builder noted as
changed. Once it is noted, `fast_pieces` maps its id to its list of pieces, and only the append is left. What needs more
than an append (an open chunk stream, an observer, a limit that is near) switches the fast path off by swapping these
tables for empty ones, so the hot loop never tests a flag.

Every other event goes the careful way, `apply_decoded`: the verifier expands and judges it, its handler prepares what
can fail, then changes messages and state, and the observer is told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec

from agui_core.errors import LimitExceeded
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.reducer.accounting import charge, event_size, grant, measure_overhead
from agui_core.reducer.families import CALL, REASONING, TEXT
from agui_core.reducer.handlers import HANDLERS
from agui_core.reducer.state import REFUSALS, Middleware, ReducerState
from agui_core.reducer.verify import VerifiedEvent
from agui_core.wire import Batch, JSONLinesReader, SSEReader, check_nesting, cut
from agui_core.wire.fast_events import FastArgs, FastEvent, FastReasoning, FastText
from agui_core.wire.framing import Bytes

__all__ = [
    "UNDECODED",
    "apply_any",
    "apply_bytes",
    "apply_decoded",
    "apply_each",
    "apply_judged",
    "decode_event",
    "end",
    "through",
]

_encode = msgspec.json.encode
decode_event = msgspec.json.Decoder(FastEvent).decode
_PLACES: dict[type, int] = {FastArgs: CALL.place, FastText: TEXT.place, FastReasoning: REASONING.place}
_PLAIN = frozenset(_PLACES)
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
Reader: TypeAlias = SSEReader | JSONLinesReader
UNDECODED = (msgspec.MsgspecError, RecursionError, ValueError)


Apply: TypeAlias = Callable[[object], None]
"""A reducer's own way to apply one event."""


def apply_each(state: ReducerState, reader: Reader, data: Bytes, apply: Apply) -> Iterator[None]:
    """Apply what a piece completes, event by event."""
    for piece in cut(data):
        batch = _read(state, reader, piece)
        for payload in () if batch is None else batch.payloads():
            apply(payload)
            yield
    _check(state, reader)


def end(state: ReducerState, apply: Apply) -> None:
    """Apply what a last line without its newline holds, and truncate a run that is still open (RUN-17, SSE-12)."""
    if state.error is not None:
        return
    if state.sse.skipped_json:
        told = "lines that begin as JSON does were skipped: JSON Lines are read with apply_lines"
        state.log.add("SSE-5", told, index=state.index)
    try:
        last = state.lines.finish()
        state.sse.close()
    except LimitExceeded as error:
        raise state.reject(error) from None
    for payload in () if last is None else last.payloads():
        if _is_cut(payload):
            state.log.add("SSE-12", "the last line was cut off; it is discarded", index=state.index)
        else:
            apply(payload)
    # Whatever comes next is of another source, which may open as any does.
    state.verifier.stream.phase = "idle"
    if state.status == "running":
        state.deny_all()
        state.verifier.expander.clear()
        state.status = "truncated"
        state.other_changes += 1
        state.run_version = state.now


def apply_any(state: ReducerState, event: object) -> None:
    """Apply what is not bytes, or exceeds the budget of characters (as everything does after a refusal)."""
    if state.error is not None:
        raise state.error
    if isinstance(event, bytes | bytearray | memoryview | str):
        grant(state, len(event))
    apply_judged(state, event)


def apply_bytes(state: ReducerState, reader: Reader, data: Bytes) -> None:
    for piece in cut(data):
        batch = _read(state, reader, piece)
        if batch is not None:
            _apply_batch(state, batch)
    _check(state, reader)


def _read(state: ReducerState, reader: Reader, piece: Bytes) -> Batch | None:
    """The records that a piece completes."""
    if state.error is not None:
        raise state.error
    room = state.char_budget = state.char_budget - len(piece)
    try:
        if room < 0:
            grant(state, len(piece) + reader.held_bytes)
        return reader.take(piece)
    except LimitExceeded as error:
        raise state.reject(error) from None


def _check(state: ReducerState, reader: Reader) -> None:
    """Raise what is wrong with the reading itself, after the records before it."""
    try:
        reader.check()
    except LimitExceeded as error:
        raise state.reject(error) from None


def _apply_batch(state: ReducerState, batch: Batch) -> None:
    if state.middleware:
        for payload in batch.payloads():
            apply_judged(state, payload)
        return
    events = state.decoder.decode_fit(batch)
    if events is not None:
        _run_events(state, events)
        return
    try:
        for index, events in state.decoder.decode_batch(batch, state.index):
            # Events that were dropped count as well.
            state.skip_to(index)
            _run_events(state, events)
    except REFUSALS as error:
        if error.index is not None:
            state.skip_to(error.index)
        state.log.settle(state.index)
        state.log.forget()
        raise state.reject(error) from None


def _run_events(state: ReducerState, events: list[Any]) -> None:
    """Apply decoded events. The loop that conforming traffic lives in."""
    calls, texts, reasonings = state.fast_pieces
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
        if kind not in _PLAIN or not _append_first(state, event):
            apply_decoded(state, event)
            calls, texts, reasonings = state.fast_pieces


def _append_first(state: ReducerState, event: Any) -> bool:
    """Append plain content to an open item, whose pieces the loop finds by itself from now on."""
    place, id = _PLACES[type(event)], event.tool_call_id if type(event) is FastArgs else event.message_id
    entry = state.fast[place].get(id)
    if entry is None:
        return False
    entry.pieces.append(event.delta)
    if not entry.touched:
        entry.touched = True
        state.store.touched.append(entry)
    state.fast_pieces[place][id] = entry.pieces
    return True


def apply_judged(state: ReducerState, event: object) -> None:
    """Decode one event of any form, by way of the middleware, and apply it the careful way."""
    index = state.index
    try:
        for judged in _judged(state, event, index):
            charge(state, judged)
            apply_decoded(state, judged)
    except REFUSALS as error:
        raise state.reject(error) from None
    state.skip_to(index + 1)


def _judged(state: ReducerState, event: object, index: int) -> Iterator[e.Event]:
    decoder = state.decoder
    if not state.middleware:
        decoded = decoder.to_event(event, index)
        if decoded is not None:
            yield decoded
        return
    wire = decoder.to_dict(event, index)
    for passed in through(state.middleware, () if wire is None else (wire,)):
        decoded = decoder.enforce(passed, index)
        if decoded is not None:
            yield decoded


def apply_decoded(state: ReducerState, event: Any) -> None:
    """The careful way: expand, verify, prepare, apply, observe."""
    kind: type = type(event)
    if kind in _PLAIN:
        event = event.full()
        kind = type(event)
    risk = _RISKS.get(kind)
    steps: list[VerifiedEvent] = []
    try:
        if kind in _OPEN or event.raw_event is not event.metadata:
            check_nesting(event, state.limits.nesting)
        if risk is not None or event.metadata is not UNSET:
            # What is held besides text has the bound of the text. It grows by no more than these events, so it is
            # measured only when they could be too much, and not again for each event at the bound. The events decide
            # when that is, however their bytes were cut.
            if state.overhead_since > state.overhead_allowed:
                measure_overhead(state)
            state.overhead_since += len(_encode(event.metadata)) if risk is None else event_size(event)
        if risk == _ONE:
            store, limits = state.store, state.limits
            revocable = store.count >= limits.messages or store.call_count >= state.call_limit or state.near_limit
        else:
            revocable = risk == _MANY or (risk == _TAG and event.subagent_run_id is not UNSET) or state.near_limit
        steps = state.verifier.verify(event, revocable)
        for accepted, _ in steps:
            prepare, _ = HANDLERS[type(accepted)]
            if prepare is not None:
                prepare(state, accepted)
    except REFUSALS as error:
        if steps:
            state.verifier.revoke(event, steps)
        raise state.reject(error) from None
    if state.on_event is not None:
        _apply_observed(state, steps)
    else:
        for accepted, item in steps:
            _, change = HANDLERS[type(accepted)]
            if change is not None:
                change(state, accepted, item)
        state.other_events += 1
    if state.verifier.expander.lanes or state.fast is not state.fast_items:
        state.refresh_fast()


def _apply_observed(state: ReducerState, steps: list[VerifiedEvent]) -> None:
    """Apply the steps of an event, each seen by the observer."""
    observed = True
    failure: BaseException | None = None
    for number, (accepted, item) in enumerate(steps, 1):
        if state.mid_event:
            state.other_changes += 1  # the observer may have asked for the version of what was applied so far
        _, change = HANDLERS[type(accepted)]
        if change is not None:
            change(state, accepted, item)
        if observed:
            state.other_events += 1 - state.mid_event
            state.mid_event = 1
            state.steps_left = steps[number:]
            try:
                _observe(state, accepted)
            except BaseException as error:  # the program ends, or is interrupted: the event is applied whole
                failure, observed = error, False
    state.other_events += 1 - state.mid_event
    state.mid_event, state.steps_left = 0, []
    if failure is not None:
        state.refresh_fast()
        raise failure


def _observe(state: ReducerState, event: e.Event) -> None:
    assert state.on_event is not None
    try:
        state.on_event(event)
    except Exception as error:
        state.warn("OBSERVER", event, f"on_event raised {type(error).__name__}: {error}"[:500])


def _is_cut(payload: bytes) -> bool:
    """Whether a text is the beginning of a JSON value, and no whole one."""
    from agui_core.reducer.partial_json.parser import PartialJson  # only where a stream ends without a line end

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
