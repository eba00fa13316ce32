"""Checkpoints: everything that a reducer is, as bytes.

Promised: a reducer restored from a checkpoint, in another process, goes on as if it had never stopped, whatever comes:
the rest of an event that was half received, the rest of a surrogate pair, chunks, text for a message that a snapshot
dropped. Messages, versions, `changes`, warnings, refusals and what is left of the limits are the same. Argument text is
kept and parsed again when somebody reads it.

Not held: what only code is (`on_event`, `on_warning`, `middleware`), which `restore` is given anew.

Costs. A whole checkpoint: time and bytes in proportion to what is held. An increment: to what changed since the one it
continues (changed messages whole; the state whole if it changed), plus what is open now, the half-received event among
it, and the owners of the run's activities. Restoring: the sum of all pieces.

A checkpoint is data and nothing else. It is decoded by type and refused with `AGUIError` when it is cut, damaged, of a
newer format, or an increment on something else; but its checksum is no signature: who can write your store decides
what the conversation was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from agui_core.errors import AGUIError, DecodeError, LimitExceeded, ProtocolError
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import ToolMessage
from agui_core.reducer.builders import Builder, CallBuilder, MessageBuilder
from agui_core.reducer.checkpoint.format import (
    TABLES,
    Body,
    ConversationPart,
    Counters,
    MessageRecord,
    OpenRecord,
    Ref,
    Refusal,
    RunPart,
    Settings,
    StreamPart,
    lineage,
    ranges,
    write,
)
from agui_core.reducer.items import OpenItem
from agui_core.reducer.state import ReducerState
from agui_core.wire import encode

__all__ = ["CheckpointMark", "make", "mark"]

_MARKS = 1_024


class CheckpointMark(msgspec.Struct, frozen=True):
    """What an increment has to know of the checkpoint that it continues."""

    lineage: int
    warned: int
    lengths: dict[str, int]
    """Of the tables that only grow."""


# --- making -------------------------------------------------------------------------------------------------------


def make(state: ReducerState, extra: bytes, since: int | None) -> bytes:
    """The checkpoint of a state, as `Reducer.checkpoint` says."""
    if not isinstance(extra, bytes):
        raise TypeError(f"extra is bytes, not {type(extra).__name__}")
    if state.mid_event:
        raise AGUIError("no checkpoint can be made from on_event, in the middle of an event; make it after `apply`")
    version = state.stamp()
    before = None
    if since is not None:
        before = state.checkpoint_marks.pop(since, None)
        if before is None:
            raise AGUIError(
                f"since={since} is not the version of a checkpoint made (or restored from) here, or of one long ago:"
                " make a whole one"
            )
        state.checkpoint_marks[since] = before
    known = state.checkpoint_marks.get(version)
    data = write(_body(state, version, extra, since, before), None if known is None else known.lineage)
    if known is None:
        state.checkpoint_marks[version] = mark(state, data)
        while len(state.checkpoint_marks) > _MARKS:
            del state.checkpoint_marks[next(iter(state.checkpoint_marks))]
    return data


def mark(state: ReducerState, data: bytes) -> CheckpointMark:
    """What to remember of a checkpoint that a reducer made or was restored from."""
    stream = state.verifier.stream
    lengths = {name: len(getattr(stream, name)) for name in TABLES}
    return CheckpointMark(lineage(data), _warned(state), {**lengths, "calls": len(state.store.calls)})


def _warned(state: ReducerState) -> int:
    return sum(warning.count for warning in state.log) + state.log.dropped


def _body(state: ReducerState, version: int, extra: bytes, since: int | None, mark: CheckpointMark | None) -> Body:
    log = state.log
    after = -1 if since is None else since
    changed = [*state.store.changed_since(after)]
    changed.reverse()
    # What was refused may have left traces in the tables that nothing else tells of.
    renewed = max(state.run_began_at, state.store.restated) > after or state.error is not None
    return Body(
        version=version,
        since=since,
        base=0 if mark is None else mark.lineage,
        settings=None if mark else Settings(state.policy, state.limits, state.verifier.assumed),
        counters=Counters(*[getattr(state, name) for name in Counters.__struct_fields__]),
        conversation=_conversation_part(state, changed, after, mark),
        sequence=_stream_part(state, changed, renewed, mark),
        answered=_answered(state.answered, changed, renewed),
        run=_run_part(state) if state.run_version > after else None,
        state=encode(state.document.value) if state.state_version > after else None,
        warnings=None if mark and mark.warned == _warned(state) else (list(log), log.dropped),
        boundary=state.decoder.boundary,
        sse=state.sse.pause(),
        lines=state.lines.pause(),
        extra=extra,
    )


def _conversation_part(
    state: ReducerState, changed: list[Builder], after: int, mark: CheckpointMark | None
) -> ConversationPart:
    store = state.store
    calls: Iterable[CallBuilder] = store.calls.values()
    order = None
    if mark is None or store.restated > after:
        everything = list(store.entries())
        messages = [entry for entry in everything if mark is None or entry.stamp > after or not entry.serial]
        _name(state, messages)
        order = ranges(entry.serial for entry in everything)
        results: Iterable[MessageBuilder] = store.results.values()
    else:
        messages = [entry for entry in changed if isinstance(entry, MessageBuilder)]
        messages.sort(key=lambda entry: entry.place)
        _name(state, messages)
        calls = _last(store.calls, mark.lengths["calls"]).values()
        results = [entry for entry in messages if _is_result(state, entry)]
    places = _places_of_calls((*calls, *(entry for entry in changed if isinstance(entry, CallBuilder))))
    return ConversationPart(
        [_message_record(entry) for entry in messages],
        order,
        [_ref(entry, places) for entry in changed],
        [_ref(call, places) for call in calls],
        [entry.serial for entry in results],
        [(id, version) for id, version in store.removed.items() if version > after],
        store.reordered,
        store.restated,
        store.serials,
        store.characters,
        store.largest,
        store.pieces,
    )


def _name(state: ReducerState, entries: Iterable[MessageBuilder]) -> None:
    for entry in entries:
        if not entry.serial:
            state.store.serials += 1
            entry.serial = state.store.serials


def _last(table: dict[str, Any], length: int) -> dict[str, Any]:
    """What a table has beyond its first `length` keys. Costs what it gives."""
    tail = list(islice(reversed(table.items()), len(table) - length))
    return dict(reversed(tail))


def _is_result(state: ReducerState, entry: MessageBuilder) -> bool:
    base = entry.base
    return isinstance(base, ToolMessage) and state.store.results.get(base.tool_call_id) is entry


def _places_of_calls(calls: Iterable[CallBuilder]) -> dict[CallBuilder, int]:
    """The place in its message of each call and its siblings."""
    holders = dict.fromkeys(call.holder for call in calls)
    return {call: place for holder in holders for place, call in enumerate(holder.calls or ())}


def _ref(entry: Builder, places: Mapping[CallBuilder, int]) -> Ref:
    if isinstance(entry, CallBuilder):
        return entry.holder.serial, places[entry]
    return entry.serial, -1


def _message_record(entry: MessageBuilder) -> MessageRecord:
    message = entry.message
    if message is None:
        message = entry.build()
        entry.message = None  # which the conversation has to build for itself, as it knows who waits for it
    return MessageRecord(
        entry.serial,
        encode(message),
        entry.added,
        entry.stamp,
        entry.number,
        entry.role == "tool",
        entry.parts is not None and entry.text is not None,
        [(call.added, call.stamp, call.complete, call.broken) for call in entry.calls or ()],
    )


def _stream_part(state: ReducerState, changed: list[Builder], renewed: bool, mark: CheckpointMark | None) -> StreamPart:
    stream = state.verifier.stream
    lengths = {} if mark is None else {"run_ids": mark.lengths["run_ids"]} if renewed else mark.lengths
    tables = {name: _last(getattr(stream, name), lengths.get(name, 0)) for name in TABLES}
    if not renewed:
        # The only values in the middle of a table that change do so together with these.
        for entry in changed:
            name, table = ("started_calls", stream.started_calls)
            if isinstance(entry, MessageBuilder):
                name, table = ("message_owners", stream.message_owners)  # type: ignore[assignment]
            if entry.id in table:
                tables[name][entry.id] = table[entry.id]
    places = _places_of_calls(item.entry for item in stream.calls.values() if item.entry is not None)
    return StreamPart(
        stream.phase,
        stream.thread_id,
        stream.run_id,
        renewed,
        tables,
        _answered(stream.answered, changed, renewed),
        stream.activity_owners,
        [_open_record(item, places) for item in stream.texts.values()],
        [_open_record(item, places) for item in stream.calls.values()],
        [_open_record(item, places) for item in stream.reasonings.values()],
        list(stream.spans),
        list(stream.steps),
        list(stream.subagents),
        list(state.verifier.expander.lanes.items()),
    )


def _answered(answered: set[str], changed: list[Builder], renewed: bool) -> list[str]:
    """Answered calls; if the run is the same, those that changed messages are the answers of."""
    if renewed:
        return sorted(answered)
    bases = [entry.base for entry in changed if isinstance(entry, MessageBuilder)]
    return [base.tool_call_id for base in bases if isinstance(base, ToolMessage) and base.tool_call_id in answered]


def _open_record(item: OpenItem, places: Mapping[CallBuilder, int]) -> OpenRecord:
    # What an item's start is kept for has nothing to do with these, which may be large.
    start = replace(item.start, metadata=UNSET, raw_event=UNSET, timestamp=UNSET)
    entry = None if item.entry is None else _ref(item.entry, places)
    return OpenRecord(encode(start), item.owner, entry, ord(item.half or "\0"), item.broken)


def _run_part(state: ReducerState) -> RunPart:
    error = state.error
    refusal = None
    if isinstance(error, DecodeError | ProtocolError | LimitExceeded):
        limit = error.limit if isinstance(error, LimitExceeded) else ""
        kind = type(error).__name__
        refusal = Refusal(kind, error.message, error.rule, error.index, error.type, error.ids, limit)
    return RunPart(state.status, encode(state.run), state.named_pending, refusal)
