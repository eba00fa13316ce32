"""A new reducer becomes what a checkpoint says; see `save` for what is promised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import msgspec

from agui_core.errors import AGUIError, DecodeError, LimitExceeded, ProtocolError
from agui_core.protocol import events as e
from agui_core.protocol.content import TextPart
from agui_core.protocol.messages import Message, ToolMessage
from agui_core.reducer.accounting import allow_overhead
from agui_core.reducer.builders import Builder, CallBuilder, MessageBuilder
from agui_core.reducer.checkpoint.format import (
    ConversationPart,
    Counters,
    MessageRecord,
    OpenRecord,
    Places,
    Ref,
    RunPart,
    Whole,
)
from agui_core.reducer.items import OpenItem
from agui_core.reducer.state import ReducerState
from agui_core.reducer.views import Run

__all__ = ["fill"]

_START: TypeAlias = e.TextMessageStartEvent | e.ToolCallStartEvent | e.ReasoningMessageStartEvent
_decode_message = msgspec.json.Decoder(Message).decode
_decode_start = msgspec.json.Decoder(_START).decode
_decode_run = msgspec.json.Decoder(Run).decode
_decode_any = msgspec.json.Decoder().decode
_DAMAGE = (msgspec.MsgspecError, LookupError, ValueError, TypeError, RecursionError, OverflowError)
_REFUSALS: dict[str, type[DecodeError | ProtocolError]] = {"DecodeError": DecodeError, "ProtocolError": ProtocolError}


def fill(state: ReducerState, whole: Whole) -> None:
    """Make a new reducer what the checkpoint says. Raises `AGUIError` when that makes no sense."""
    try:
        _fill(state, whole)
    except _DAMAGE as error:
        raise AGUIError(f"the checkpoint is damaged: {error}") from None


def _fill(state: ReducerState, whole: Whole) -> None:
    last = whole.last
    for name in Counters.__struct_fields__:
        setattr(state, name, getattr(last.counters, name))
    allow_overhead(state)
    if state.limits != whole.settings.limits:
        state.char_budget = min(0, state.char_budget)  # so that the next event is counted against the new ones
    state.verifier.assumed = whole.settings.assumed
    state.document.replace(_decode_any(whole.state))
    entries = _fill_conversation(state, whole.places, last.conversation)
    _fill_run(state, whole.run)
    _fill_stream(state, whole, entries)
    state.answered.update(whole.answered)
    state.log.resume(*whole.warnings)
    state.decoder.boundary = last.boundary
    state.sse.resume(last.sse)
    state.lines.resume(last.lines)
    state.extra = last.extra
    if state.stamp() != last.version:
        raise ValueError("its counters do not add up to its version")
    state.refresh_fast()


def _fill_conversation(state: ReducerState, places: Places, part: ConversationPart) -> dict[Ref, Builder]:
    store = state.store
    entries: dict[Ref, Builder] = {}
    messages: list[MessageBuilder] = []
    for serial in places.serials():
        entry = _message_entry(places.records[serial], state)
        messages.append(entry)
        entries[serial, -1] = entry
        entries.update(((serial, place), call) for place, call in enumerate(entry.calls or ()))
    store.fill(messages)
    store.log = [entries[ref] for ref in places.log]
    calls = [entries[ref] for ref in places.calls]
    store.calls = {call.id: call for call in calls if isinstance(call, CallBuilder)}
    store.results = {
        entry.base.tool_call_id: entry
        for entry in (entries[serial, -1] for serial in places.results)
        if isinstance(entry, MessageBuilder) and isinstance(entry.base, ToolMessage)
    }
    store.removed = {id: version for id, version in places.removed.items() if id not in store.index}
    store.reordered, store.restated = part.reordered, part.restated
    store.serials = part.serials
    store.characters, store.largest, store.pieces = part.characters, part.largest, part.pieces
    if max((serial for serial, _ in entries), default=0) > part.serials:
        raise ValueError("a message has a serial that was never given")
    return entries


def _message_entry(record: MessageRecord, state: ReducerState) -> MessageBuilder:
    entry = MessageBuilder.of(_decode_message(record.message), state.limits)
    entry.serial, entry.added, entry.stamp = record.serial, record.added, record.stamp
    if record.grows:
        growing = entry.parts[-1] if entry.parts else None
        if not isinstance(growing, TextPart):
            raise ValueError("a message grows without a text")
        entry.parts, entry.text = entry.parts[:-1], growing.text  # type: ignore[index]
        entry.counted = len(growing.text)
    for call, (added, stamp, complete, broken) in zip(entry.calls or (), record.calls, strict=True):
        call.added, call.stamp, call.complete, call.broken = added, stamp, complete, broken
    return entry


def _fill_run(state: ReducerState, part: RunPart) -> None:
    state.status = part.status
    state.run = _decode_run(part.run)
    state.named_pending = part.named_pending
    refusal = part.error
    if refusal is None:
        return
    common: dict[str, Any] = {"index": refusal.index, "type": refusal.type, "ids": refusal.ids}
    if refusal.kind == "LimitExceeded":
        state.error = LimitExceeded(refusal.message, limit=refusal.limit, **common)
    else:
        state.error = _REFUSALS[refusal.kind](refusal.message, rule=refusal.rule, **common)


def _fill_stream(state: ReducerState, whole: Whole, entries: Mapping[Ref, Builder]) -> None:
    stream, expander, part = state.verifier.stream, state.verifier.expander, whole.last.sequence
    stream.phase = part.phase
    stream.thread_id, stream.run_id = part.thread_id, part.run_id
    for name, table in whole.tables.items():
        setattr(stream, name, table)
    stream.answered.update(whole.run_answered)
    stream.activity_owners.update(part.activity_owners)
    for items, records, owners, kind in (
        (stream.texts, part.texts, stream.message_owners, MessageBuilder),
        (stream.calls, part.calls, stream.call_owners, CallBuilder),
        (stream.reasonings, part.reasonings, stream.reasoning_owners, MessageBuilder),
    ):
        for record in records:
            item = _open_item(record, entries)
            if item.id not in owners or not isinstance(item.entry, kind | None):
                raise ValueError("an open item has no owner, or is something else")
            items[item.id] = item
            if state.status == "running" or part.phase.endswith("+"):
                state.allow_fast(item)
    stream.spans.update(dict.fromkeys(part.spans))
    stream.steps.update(dict.fromkeys(part.steps))
    stream.subagents.update(dict.fromkeys(part.subagents))
    for owner, lane in part.lanes:
        if expander.holds(lane.family, lane.id):
            raise ValueError("two lanes assemble one item")
        expander.open(owner, lane)
    if not stream.spans.keys() <= stream.reasoning_owners.keys():
        raise ValueError("an open span has no owner")


def _open_item(record: OpenRecord, entries: Mapping[Ref, Builder]) -> OpenItem:
    start = _decode_start(record.start)
    id = start.tool_call_id if isinstance(start, e.ToolCallStartEvent) else start.message_id
    entry = None if record.entry is None else entries[record.entry]
    return OpenItem(id, record.owner, start, entry, chr(record.half) if record.half else "", record.broken)
