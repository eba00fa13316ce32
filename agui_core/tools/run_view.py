"""`RunView`: the calls of the last run or of a loaded history, as the reducer tells them at one version."""

from __future__ import annotations

from collections.abc import Callable, Container

import msgspec

from agui_core.protocol.messages import AssistantMessage, UserMessage
from agui_core.protocol.run import Interrupt
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import ToolCalls
from agui_core.status import BROKEN, OVER, Status
from agui_core.tools.persisted import Persisted
from agui_core.tools.states import Phase
from agui_core.tools.toolset import Toolset

__all__ = ["RunView", "read_run"]

_PHASES: dict[Status, Phase] = {
    "idle": "none",
    "running": "going",
    **dict.fromkeys(OVER, "over"),
    **dict.fromkeys(BROKEN, "broken"),
}


class RunView(msgspec.Struct, frozen=True, kw_only=True):
    """The last run at one version of the reducer."""

    phase: Phase
    """`over` also for a loaded history with calls that wait for us."""
    toolset: Toolset
    thread_id: str
    run_id: str
    offered: Container[str]
    """Names of the tools in our latest input; before the first one, all tools of the toolset."""
    left: dict[str, None]
    """The calls that had no result when the run ended, in order, answered since or not (FT-2)."""
    pending: set[str]
    """Those that the agent's own list names too, where there is one, and that nobody has answered since (FT-13)."""
    waiting: frozenset[str]
    """The agent's own calls that the run ended with: somebody has to act on them."""
    unknown: tuple[str, ...]
    """Calls that the run named as pending, of a tool that no input and no answered call of the thread knows."""
    reused: frozenset[str]
    """Calls with an id that was answered before the run (EVT-7)."""
    interrupts: tuple[Interrupt, ...]
    """The interrupts that the next input has to answer (INT-5)."""
    named: dict[str, list[Interrupt]]
    """Calls that are answered through the resume entries of the interrupts that name them (FT-11)."""

    def is_ours(self, name: str) -> bool:
        """Whether a call of this name is the application's to answer (FT-1, FT-9)."""
        return name in self.offered or name in self.toolset


def read_run(reducer: Reducer, toolset: Toolset, persisted: Persisted) -> RunView:
    """The view as of now. Costs a step for each call of the last run; before any run, for each message since the user's
    last one.
    """
    run, calls = reducer.run, reducer.tool_calls
    phase, interrupts = _PHASES[reducer.status], _open_interrupts(reducer, persisted)
    named: dict[str, list[Interrupt]] = {}
    for interrupt in interrupts:
        if isinstance(interrupt.tool_call_id, str):
            named.setdefault(interrupt.tool_call_id, []).append(interrupt)
    offered: Container[str] = toolset if persisted.offered is None else frozenset(persisted.offered)
    left = {id: None for id in run.calls_without_result if id in calls}
    pending = set(run.pending_tool_calls)
    if phase == "none":
        left = _loaded(reducer, persisted, lambda name: name in offered or name in toolset)
        pending = {id for id in left if calls[id].result is None}
        phase = "over" if left else phase
    theirs = [id for id in left if not (calls[id].name in offered or calls[id].name in toolset)]
    unknown = _unknown(calls, persisted, [id for id in theirs if id in run.named_calls and calls[id].result is None])
    last = frozenset(run.last_calls)
    return RunView(
        phase=phase,
        toolset=toolset,
        thread_id=run.thread_id or "",
        run_id=run.run_id or "",
        offered=offered,
        left=left,
        pending=pending,
        waiting=frozenset(id for id in theirs if id in last and id not in unknown),
        unknown=unknown,
        reused=frozenset(run.reused_calls),
        interrupts=interrupts,
        named=named,
    )


def _open_interrupts(reducer: Reducer, persisted: Persisted) -> tuple[Interrupt, ...]:
    run = reducer.run
    if run.interrupts:
        return run.interrupts
    refused = reducer.status == "failed" and run.run_id == persisted.carried_from
    return persisted.carried if run.run_id is None or refused else ()


def _loaded(reducer: Reducer, persisted: Persisted, ours: Callable[[str], bool]) -> dict[str, None]:
    """Before any run: the calls to tools of ours since the last user message that wait, or were answered here."""
    before = frozenset(persisted.loaded)
    found: list[str] = []
    for message in reversed(reducer.messages):
        if isinstance(message, UserMessage):
            break
        if isinstance(message, AssistantMessage):
            found += [call.id for call in reversed(message.tool_calls or ()) if ours(call.function.name)]
    calls = reducer.tool_calls
    persisted.loaded = tuple(id for id in reversed(found) if id in before or calls[id].result is None)
    return dict.fromkeys(persisted.loaded)


def _unknown(calls: ToolCalls, persisted: Persisted, ids: list[str]) -> tuple[str, ...]:
    """Those of a tool that no input offered and no answered call named."""
    if not ids:
        return ()
    known = {call.name for call in calls.values() if call.result is not None}
    return tuple(id for id in ids if calls[id].name not in known and calls[id].name not in persisted.offered_ever)
