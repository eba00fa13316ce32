"""Copies of a reducer's state: independent, at the same event, even in the middle of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from agui_core.reducer.builders import Builder, MessageBuilder
from agui_core.reducer.handlers import HANDLERS
from agui_core.reducer.items import Noted, OpenItem
from agui_core.reducer.state import ReducerState

__all__ = ["copy_state", "renewed"]


def copy_state(state: ReducerState) -> ReducerState:
    """An independent state at the same event. O(messages held); shares what is frozen."""
    state.stamp()
    twin = object.__new__(ReducerState)
    twin.__dict__.update(state.__dict__)
    twin.log = state.log.copy(state.log.listener)
    twin.decoder = state.decoder.copy(twin.log)
    twin.verifier = state.verifier.copy(Noted(twin.note))
    twin.store, new_of = state.store.copy()
    twin.document = state.document.copy()
    twin.sse, twin.lines = state.sse.copy(), state.lines.copy()
    twin.answered = set(state.answered)
    twin.checkpoint_marks = dict(state.checkpoint_marks)
    twin.fast_items = ({}, {}, {})
    _bind_items(twin, state, new_of)
    twin.refresh_fast()
    if state.mid_event:
        _finish_event(twin, state, new_of)
    return twin


def renewed(state: ReducerState) -> ReducerState:
    """An idle state with the same messages, state and version."""
    twin = copy_state(state)
    fresh = ReducerState(
        policy=twin.policy,
        limits=state.limits,
        on_event=state.on_event,
        middleware=state.middleware,
        on_warning=state.log.listener,
    )
    fresh.store, fresh.document = twin.store, twin.document
    fresh.refresh_fast()
    fresh.other_events = -fresh.store.pieces
    fresh.other_changes, fresh.state_version, fresh.run_version = state.now, state.state_version, state.run_version
    fresh.overhead_chars, fresh.overhead_since = state.overhead_chars, state.overhead_since
    fresh.overhead_allowed = state.overhead_allowed
    return fresh


def _bind_items(state: ReducerState, other: ReducerState, new_of: Mapping[Builder, Builder]) -> None:
    """Give each open item the copy of the builder that the same item of `other` has."""
    ours, theirs = state.verifier.stream, other.verifier.stream
    for table, model in ((ours.texts, theirs.texts), (ours.reasonings, theirs.reasonings), (ours.calls, theirs.calls)):
        for id, item in table.items():
            entry = model[id].entry
            item.entry = None if entry is None else new_of.get(entry)
    for fast, model_fast in zip(state.fast_items, other.fast_items, strict=True):
        fast.update({id: new_of[entry] for id, entry in model_fast.items()})


def _finish_event(state: ReducerState, other: ReducerState, new_of: Mapping[Builder, Builder]) -> None:
    """Apply what is left of the event in whose middle the state was copied, by its own observer."""

    def ours(entry: Any) -> Any:
        return new_of.get(entry) or (entry.copy() if isinstance(entry, MessageBuilder) else None)

    match other.prepared:
        case MessageBuilder() as entry:
            state.prepared = ours(entry)
        case list() as entries:
            state.prepared = [ours(entry) for entry in entries]
        case (entries, warnings):
            state.prepared = [ours(entry) for entry in entries], warnings
    stream = state.verifier.stream
    for event, item in other.steps_left:
        if item is not None:
            tables = (stream.texts, stream.calls, stream.reasonings)
            open_one = next((table[item.id] for table in tables if _same(table.get(item.id), item)), None)
            item = open_one or replace(item, entry=ours(item.entry))
        state.other_changes += 1
        _, change = HANDLERS[type(event)]
        if change is not None:
            change(state, event, item)
    state.mid_event, state.steps_left = 0, []
    state.refresh_fast()


def _same(one: OpenItem | None, other: OpenItem) -> bool:
    """Whether two open items are the same one, in two states."""
    return one is not None and type(one.start) is type(other.start)
