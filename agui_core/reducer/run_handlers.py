"""What the events of a run's beginning and end do to messages and state; see `handlers` (protocol section 8)."""

from __future__ import annotations

from typing import Any

from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.protocol.run import CancelledOutcome, InterruptOutcome, SuccessOutcome
from agui_core.reducer.accounting import bound, bound_text
from agui_core.reducer.builders import MessageBuilder
from agui_core.reducer.state import ReducerState
from agui_core.status import Status

__all__ = ["prepare_run_started", "run_error", "run_finished", "run_started"]


def prepare_run_started(state: ReducerState, event: e.RunStartedEvent) -> None:
    if event.input is not UNSET:
        bound(event, "messages", state.store.count + len(event.input.messages), state.limits.messages)
        state.prepared = [MessageBuilder.of(message, state.limits) for message in event.input.messages]
        calls = sum(len(entry.calls or ()) for entry in state.prepared)
        bound(event, "tool_calls", state.store.call_count + calls, state.limits.tool_calls)
        for entry in state.prepared:
            bound_text(state, event, entry)


def _take_out_superseded(state: ReducerState) -> None:
    """What the run that begins takes the place of goes before it, as by a snapshot."""
    if state.superseded is None:
        return
    gone, textless = state.superseded
    state.superseded = None
    store = state.store
    store.settle(state.upcoming)
    kept = [entry for entry in store.entries() if entry.id not in gone or entry.role == "tool"]
    for entry in kept:
        if entry.id in textless and entry.role == "assistant":
            entry.text = None
            store.touch(entry)
    state.fold()
    store.restate(kept, state.upcoming)


def run_started(state: ReducerState, event: e.RunStartedEvent, item: None) -> None:
    _take_out_superseded(state)
    state.deny_all()
    state.begin_run(event)
    if event.input is not UNSET:
        # OPEN-2: only what is not held, and the state is not touched.
        for entry in state.prepared:
            held = state.store.index.get(entry.id)
            if held is None or (entry.role == "tool" and not state.store.holds_result(entry.base)):
                state.store.append_entry(entry)
        state.store.settle(state.upcoming)  # they were there when the run began (EVT-7)


def run_finished(state: ReducerState, event: e.RunFinishedEvent, item: None) -> None:
    outcome = event.outcome
    state.store.settle(state.upcoming)
    state.note_speech()
    calls = list(state.verifier.stream.started_calls)
    changes: dict[str, Any] = {
        "result": event.result,
        "usage": () if event.usage is UNSET else event.usage,
        "last_calls": tuple(calls[state.quiet_from :]),
        "reused_calls": tuple([id for id in calls if state.is_reused(id)]),
    }
    status: Status = "finished"
    if isinstance(outcome, InterruptOutcome):
        status = "interrupted"
        changes["interrupts"] = outcome.interrupts
    elif isinstance(outcome, CancelledOutcome):
        status = "cancelled"
    elif isinstance(outcome, SuccessOutcome) and outcome.pending_tool_call_ids:
        state.named_pending = changes["named_calls"] = outcome.pending_tool_call_ids
    state.deny_all()
    state.end_run(status, changes)


def run_error(state: ReducerState, event: e.RunErrorEvent, item: None) -> None:
    _take_out_superseded(state)
    changes: dict[str, Any] = {"error": event, "interrupts": ()}
    if event.usage is not UNSET:
        changes["usage"] = event.usage
    state.deny_all()
    state.named_pending = ()
    state.end_run("failed", changes)
