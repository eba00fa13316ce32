"""What is known of the calls of the last run besides the conversation: offered, asked, approved, begun, answered.

The reducer does not know who declared a tool, what was advertised for a run, or who approved what. The ledger does, and
compares notes with the reducer before each answer it gives: what changed in between voids what was decided (TOOL-6).
Synchronous; all that has to outlive the process is one struct, `Memory`. Reading it costs what changed since the last
read, plus one step for each call of the last run.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from datetime import datetime

import msgspec

from agui_core.errors import ApprovalError
from agui_core.protocol.messages import ToolMessage
from agui_core.protocol.run import Interrupt, ResumeEntry, RunAgentInput
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import Run, ToolCallView
from agui_core.tools.answers import Outcome, clean, interrupted, invalid, not_run, signal_of
from agui_core.tools.approval import Plan, Verdict, digest_of, plan_of
from agui_core.tools.arguments import read_arguments
from agui_core.tools.resume import Answers, check_resume, entries_of, entry_of, expired
from agui_core.tools.states import ANSWERED, Phase, Signal, State, Waiting, advance, who_acts
from agui_core.tools.toolset import Toolset
from agui_core.warning import WarningLog

__all__ = ["Ledger", "Memory", "Record"]

_PHASES: dict[str, Phase] = {
    "idle": "none",
    "running": "going",
    "finished": "over",
    "interrupted": "over",
    "cancelled": "broken",
    "failed": "broken",
    "truncated": "broken",
    "rejected": "broken",
}
_OFFERS = 64
"""Run inputs whose tools are remembered: the last run's, and the latest."""


class Record(msgspec.Struct):
    """One call of the last run."""

    message_id: str
    opening: int = 0
    """Counts up when the call starts anew."""
    state: State = "input-streaming"
    verdict: Verdict | None = None
    digest: str = ""
    """Of what the verdict is about."""
    begun: bool = False
    """A tool with effects was started for it, and no answer is known."""


class Memory(msgspec.Struct):
    """What outlives the process. It rides as the `extra` of the reducer's checkpoint."""

    format: int = 1
    seen: int = 0
    """The version of the reducer up to which the records are right."""
    thread_id: str | None = None
    offered: dict[str, tuple[str, ...]] = {}
    """Names of the tools advertised, by run id."""
    records: dict[str, Record] = {}
    answers: dict[str, ToolMessage] = {}
    """Answers that are not in the conversation yet."""
    entries: dict[str, ResumeEntry] = {}
    """Answers to open interrupts."""
    decided_at: int = 0
    """The version at which the last of these came."""
    sent: bool = False
    """Whether they went into an input. Whatever the run then does, they are used up (OPEN-16)."""
    carried: tuple[Interrupt, ...] = ()
    """Interrupts that the reducer no longer shows, and that stay open because the input was refused (OPEN-16)."""
    carried_from: str | None = None


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """What the reducer says of the last run, as of one version."""

    version: int
    thread_id: str
    run_id: str
    offered: Container[str]
    """Names of the tools advertised for the run. One that no input of ours started, or that came back under another id,
    had what was offered last; before the first input that is the whole toolset.
    """
    left: dict[str, None]
    """The calls that had no result when the run ended, in order, answered since or not (FT-2)."""
    pending: frozenset[str]
    """Those that the agent's own list names too, where there is one, and that nobody has answered since (FT-13)."""
    interrupts: tuple[Interrupt, ...]
    """What the next input has to answer (INT-5)."""
    named: dict[str, list[Interrupt]]
    """Calls that are answered through the resume entries of the interrupts that name them (FT-11)."""


class Ledger:
    """See the module."""

    def __init__(self, reducer: Reducer, toolset: Toolset, memory: Memory, log: WarningLog) -> None:
        self.reducer = reducer
        self.toolset = toolset
        self.memory = memory
        self.log = log
        self._plans: dict[str, Plan] = {}
        self._page: Page | None = None

    # --- the last run ---------------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where the last run stands, as far as its calls are concerned."""
        return _PHASES[self.reducer.status]

    @property
    def page(self) -> Page:
        """What the reducer says of the last run."""
        version = self.reducer.version
        if self._page is None or self._page.version != version:
            self._page = self._read_page(version)
        return self._page

    def _read_page(self, version: int) -> Page:
        run, calls, offers = self.reducer.run, self.reducer.tool_calls, self.memory.offered
        interrupts = self._open_interrupts(run)
        named: dict[str, list[Interrupt]] = {}
        for interrupt in interrupts:
            if isinstance(interrupt.tool_call_id, str):
                named.setdefault(interrupt.tool_call_id, []).append(interrupt)
        offered = offers.get(run.run_id or "")
        return Page(
            version=version,
            thread_id=run.thread_id or "",
            run_id=run.run_id or "",
            offered=offered if offered is not None else next(reversed(offers.values()), self.toolset),
            left={id: None for id in run.calls_without_result if id in calls},
            pending=frozenset(run.pending_tool_calls),
            interrupts=interrupts,
            named=named,
        )

    def _open_interrupts(self, run: Run) -> tuple[Interrupt, ...]:
        if run.interrupts:
            return run.interrupts
        memory = self.memory
        refused = self.reducer.status == "failed" and run.run_id == memory.carried_from
        return memory.carried if run.run_id is None or refused else ()

    @property
    def unanswered(self) -> list[str]:
        """Calls of the last run that have no answer yet. A call whose id was answered before stays answered."""
        calls = self.reducer.tool_calls
        return [id for id in self.page.left if calls[id].result is None and id not in self.memory.answers]

    def is_ours(self, name: str) -> bool:
        """Whether a call of this name is the application's to answer (FT-1, FT-9)."""
        return name in self.page.offered or name in self.toolset

    def offer(self, run_id: str, names: tuple[str, ...]) -> None:
        """Remember what is advertised for a run that is about to start."""
        offers = self.memory.offered
        last = self.reducer.run.run_id
        if last is not None and last not in offers:
            known = self.page.offered
            offers[last] = tuple(tool.name for tool in self.toolset if tool.name in known)
        offers[run_id] = names
        if len(offers) > _OFFERS:
            del offers[next(id for id in offers if id != last)]
        self._page = None

    # --- what changed ---------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Compare notes with the reducer: what was decided about a call that changed is void."""
        memory = self.memory
        changes = self.reducer.changes(memory.seen)
        if changes.version == memory.seen:
            return
        memory.seen = changes.version
        calls = frozenset(changes.calls)
        messages = frozenset((*changes.changed, *changes.added, *changes.removed))
        for id, record in tuple(memory.records.items()):
            if id in calls:
                self._start_anew(id, record, "opened")
            elif record.message_id in messages:
                self._start_anew(id, record, "restated")
        if changes.run:
            self._turn_page()

    def _start_anew(self, id: str, record: Record, signal: Signal) -> None:
        self._plans.pop(id, None)
        view = self.reducer.tool_calls.get(id)
        if view is None:
            del self.memory.records[id]
            return
        record.message_id = view.message_id
        record.opening += 1
        record.verdict, record.digest = None, ""
        record.state = advance(record.state, signal)
        if signal == "opened" and view.complete:
            record.state = advance(record.state, "closed")

    def _turn_page(self) -> None:
        """The run went on, or another one began: keep what still matters."""
        memory = self.memory
        left = self.page.left
        memory.records = {id: record for id, record in memory.records.items() if id in left or record.begun}
        calls = self.reducer.tool_calls
        memory.answers = {id: answer for id, answer in memory.answers.items() if id in calls}
        self._plans = {id: plan for id, plan in self._plans.items() if id in left}
        open_ones = {interrupt.id for interrupt in self.page.interrupts}
        if memory.sent:
            memory.entries, memory.sent = {}, False
        memory.entries = {id: entry for id, entry in memory.entries.items() if id in open_ones}

    # --- one call -------------------------------------------------------------------------------------------------

    def record(self, id: str) -> Record:
        """The record of a call as it was left. Raises `KeyError` for an unknown id."""
        record = self.memory.records.get(id)
        if record is None:
            record = self.memory.records[id] = Record(message_id=self.reducer.tool_calls[id].message_id)
        return record

    def opening(self, id: str) -> int | None:
        """Which opening of a call this is; None when there is no such call (any more). A call in another opening than
        before has to be decided on anew.
        """
        self.sync()
        return self.record(id).opening if id in self.reducer.tool_calls else None

    def look(self, id: str) -> Record:
        """The record of a call, up to date. `sync` first. Raises `KeyError` for an unknown id."""
        view = self.reducer.tool_calls[id]
        record = self.record(id)
        if record.state == "input-streaming" and view.complete:
            record.state = advance(record.state, "closed")
        if record.state not in ANSWERED:
            answer = view.result or self.memory.answers.get(id)
            if answer is not None:
                record.state = advance(record.state, signal_of(answer))
            else:
                self._ask(id, record)
        return record

    def _ask(self, id: str, record: Record) -> None:
        naming = self.page.named.get(id)
        if record.state == "input-available" and (naming or self._needs_approval(id)):
            record.state = advance(record.state, "asked")
        if record.state == "approval-requested" and naming and all(i.id in self.memory.entries for i in naming):
            record.state = advance(record.state, "decided")

    def _needs_approval(self, id: str) -> bool:
        if self.phase != "over" or id not in self.page.left or not self.is_ours(self.reducer.tool_calls[id].name):
            return False
        return self.plan(id).action == "ask"

    def plan(self, id: str, *, fresh: bool = False) -> Plan:
        """What has to happen with an unanswered call of ours. `fresh` judges it again, as is due before it runs."""
        plan = None if fresh else self._plans.get(id)
        if plan is None:
            plan = self._plans[id] = self._judge(id, self.reducer.tool_calls[id])
        return plan

    def _judge(self, id: str, call: ToolCallView) -> Plan:
        record = self.memory.records.get(id)
        if record is not None and record.begun:
            return Plan(action="answer", outcome=interrupted())
        if id not in self.page.pending:
            why = "the agent's own list of pending calls does not name this call (FT-13)."
            return Plan(action="answer", outcome=invalid(why, "not in the list of pending calls"))
        verdict = None
        if record is not None and record.verdict is not None and record.digest == digest_of(call):
            verdict = record.verdict
        tool = self.toolset.get(call.name) if call.name in self.page.offered else None
        asked = record is not None and record.state in ("approval-requested", "approval-responded")
        return plan_of(call, tool, verdict, asked=asked)

    # --- decisions ------------------------------------------------------------------------------------------------

    def decide(self, id: str, verdict: Verdict, *, strict: bool = True, now: datetime | None = None) -> None:
        """What a person says about a call that waits for it. Raises `ApprovalError` when it waits for nothing; when
        `strict`, also `InvalidArguments` for edited arguments that do not fit.
        """
        self.sync()
        if id not in self.reducer.tool_calls:
            raise ApprovalError(f"there is no tool call {id!r}")
        record = self.look(id)
        if record.state != "approval-requested" or (self.phase == "broken" and id not in self.page.named):
            raise ApprovalError(f"tool call {id!r} waits for no approval: it is {record.state}")
        naming = self.page.named.get(id)
        if naming:
            for interrupt in naming:
                self.decide_interrupt(interrupt, verdict, now)
        else:
            call = self.reducer.tool_calls[id]
            tool = self.plan(id).tool
            verdict = _own(verdict)
            if strict and tool is not None and verdict.edited_args is not None:
                tool.convert(verdict.edited_args)
            record.verdict, record.digest = verdict, digest_of(call)
            self._plans.pop(id, None)
        record.state = advance(record.state, "decided")

    def decide_interrupt(self, interrupt: Interrupt, verdict: Verdict, now: datetime | None = None) -> None:
        """What a person says about an open interrupt."""
        if expired(interrupt, now):
            raise ApprovalError(f"interrupt {interrupt.id!r} has expired and can only be given up, by `resume` [INT-8]")
        self.memory.entries[interrupt.id] = entry_of(interrupt, verdict)
        self.memory.decided_at = self.reducer.version

    def resume(self, answers: Answers, now: datetime | None) -> tuple[ResumeEntry, ...]:
        """The entries for all open interrupts, from these answers and earlier decisions; kept for the next input."""
        self.sync()
        memory = self.memory
        interrupts = self.page.interrupts
        given = entries_of(answers, interrupts, self.log)
        answered = {entry.interrupt_id for entry in given}
        entries = (*given, *(entry for id, entry in memory.entries.items() if id not in answered))
        check_resume(interrupts, entries, now)
        by_id = {entry.interrupt_id: entry for entry in entries}
        memory.entries = {interrupt.id: by_id[interrupt.id] for interrupt in interrupts}
        if given:
            memory.decided_at = self.reducer.version
        return tuple(memory.entries.values())

    # --- answers --------------------------------------------------------------------------------------------------

    def answerable(self) -> list[str]:
        """The unanswered calls of the last run that are the application's, in order; none of a run that broke."""
        if self.phase != "over":
            return []
        page, calls, toolset = self.page, self.reducer.tool_calls, self.toolset
        unanswered = [(id, calls[id].name) for id in self.unanswered if id not in page.named]
        return [id for id, name in unanswered if name in page.offered or name in toolset]

    @property
    def held(self) -> list[str]:
        """Calls whose answers are not in the conversation yet: late ones of earlier runs, then the last run's."""
        answers, left = self.memory.answers, self.page.left
        return [*(id for id in answers if id not in left), *(id for id in left if id in answers)]

    def keep(self, id: str, outcome: Outcome, run_id: str) -> None:
        """Hold an answer until `flush` adds it."""
        self.memory.answers[id] = outcome.message(run_id, id)
        record = self.memory.records.get(id)
        if record is not None:
            record.begun = False

    def flush(self, ids: Iterable[str]) -> list[str]:
        """Add the answers held for these calls, in this order; the ids of those added. A call that was answered
        meanwhile keeps that answer: ours is dropped, with a warning.
        """
        added = []
        reducer = self.reducer
        for id in ids:
            message = self.memory.answers.pop(id)
            call = reducer.tool_calls.get(id)
            if call is not None and call.result is not None:
                self.log.add("FT-5", f"tool call {id!r} has an answer already; the second one was dropped")
                continue
            before = reducer.version
            reducer.add(message)
            if self.memory.seen == before:  # a tool message at its place changes no call
                self.memory.seen = reducer.version
            added.append(id)
        return added

    # --- who acts -------------------------------------------------------------------------------------------------

    def waiting(self) -> Waiting:
        """Who has to act on the last run, by the table."""
        self.sync()
        phase, page, calls = self.phase, self.page, self.reducer.tool_calls
        states = {id: self.look(id).state for id in page.left}
        acting = [
            (id, who_acts(phase, state, ours=self.is_ours(calls[id].name), named=id in page.named))
            for id, state in states.items()
        ]
        open_ones = tuple(i.id for i in page.interrupts if i.id not in self.memory.entries)
        answered = bool(self.memory.entries) or (
            phase == "over" and any(state in ANSWERED and id not in page.pending for id, state in states.items())
        )
        return Waiting.of(phase, acting, open_ones, answered=answered)

    def came_after(self, version: int) -> bool:
        """Whether an answer, or a decision on an interrupt, came after that version."""
        if self.memory.entries and self.memory.decided_at >= version:
            return True
        added = frozenset(self.reducer.changes(version).added)
        page, calls = self.page, self.reducer.tool_calls
        results = [calls[id].result for id in page.left if id not in page.pending]
        return any(result.id in added for result in results if result is not None)

    def round(self) -> tuple[object, ...]:
        """What the last run asked, and what it was answered: equal rounds bring nothing new."""
        page, calls = self.page, self.reducer.tool_calls
        asked = tuple((i.reason, i.message, i.tool_call_id, i.response_schema) for i in page.interrupts)
        answers = [(calls[id].name, calls[id].arguments, calls[id].result) for id in page.left]
        contents = tuple((name, text, None if result is None else result.content) for name, text, result in answers)
        return asked, contents

    # --- the next run ---------------------------------------------------------------------------------------------

    def give_up(self) -> None:
        """Answer, unexecuted, what nobody can answer any more: calls of ours from before the last run (FT-5), and all
        calls, whoever's they are, of a last run that ended badly (OPEN-17).
        """
        page, memory, status = self.page, self.memory, self.reducer.status
        given_up: list[tuple[str, str | None]] = [
            (id, None)
            for id, call in self.reducer.tool_calls.items()
            if call.result is None and call.name in self.toolset and id not in page.left and id not in memory.answers
        ]
        if self.phase == "broken":
            given_up += [(id, status) for id in self.unanswered]
        for id, ending in given_up:
            if id not in page.named:
                record = memory.records.get(id)
                outcome = interrupted() if record is not None and record.begun else not_run(ending)
                self.keep(id, outcome, page.run_id)

    def send(self, run_input: RunAgentInput) -> None:
        """An input leaves: what it offers and answers is remembered until its run has begun."""
        memory = self.memory
        self.offer(run_input.run_id, tuple(tool.name for tool in run_input.tools or ()))
        memory.thread_id = run_input.thread_id
        memory.carried, memory.carried_from = self.page.interrupts, self.reducer.run.run_id
        memory.sent = True

    def renew(self) -> Reducer:
        """Go on with a fresh reducer that holds the same."""
        memory = self.memory
        memory.carried, memory.carried_from = self.page.interrupts, self.reducer.run.run_id
        memory.thread_id = memory.thread_id or self.reducer.run.thread_id
        self.reducer = self.reducer.renew()
        self._page = None
        return self.reducer


def _own(verdict: Verdict) -> Verdict:
    """A copy that the application does not change, and that can be written down."""
    edited = verdict.edited_args if verdict.approved else None
    return Verdict(
        approved=verdict.approved,
        edited_args=None if edited is None else read_arguments(edited),
        reason=None if verdict.reason is None else clean(verdict.reason),
        cancelled=verdict.cancelled,
    )
