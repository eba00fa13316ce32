"""`CallTracker`: what is known of the calls of the last run besides the conversation: offered, asked, approved, begun.

The reducer does not know who declared a tool, what was advertised for a run, or who approved what. The tracker does,
and compares notes with the reducer before each answer it gives: what changed in between voids a decision (TOOL-6).
Synchronous. What has to outlive the process is one struct, `Persisted`. A read costs what changed since the last read,
plus one step for each call of the last run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agui_core._text import cut, quoted
from agui_core.errors import ApprovalError, ProtocolError
from agui_core.protocol.run import Interrupt, RunAgentInput
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import ToolCallView
from agui_core.tools.approval import DecidedBy, Plan, Verdict, digest_of, own_verdict, plan_of
from agui_core.tools.effects import Effects, says_run
from agui_core.tools.interrupts import not_voted
from agui_core.tools.outcomes import (
    Outcome,
    clean,
    content_of,
    denied,
    interrupted,
    invalid,
    not_run,
    signal_of,
    went_on,
)
from agui_core.tools.persisted import CallRecord, Persisted
from agui_core.tools.result_size import size_of
from agui_core.tools.run_view import RunView, read_run
from agui_core.tools.states import ANSWERED, Actor, Phase, Signal, Waiting, advance, sum_up, who_acts
from agui_core.tools.toolset import Tool, Toolset
from agui_core.warnings import WarningLog

__all__ = ["CallTracker"]

_RUN_IDS = 64
"""Run ids of ours that are remembered (IN-8)."""
_NAMES = 10_000
"""Names of tools that were offered in the thread and are remembered."""


class CallTracker:
    """See the module."""

    def __init__(
        self,
        reducer: Reducer,
        toolset: Toolset,
        memory: Persisted,
        log: WarningLog,
        begun: Mapping[str, Mapping[str, Any] | None] = {},
    ) -> None:
        self.reducer = reducer
        self.toolset = toolset
        self.memory = memory
        self.log = log
        self.effects = Effects(toolset, reducer.limits.tool_calls, memory.marks, memory.ran)
        self.running: set[str] = set()
        """Calls whose tools run in this process."""
        calls = reducer.tool_calls
        self.effects.read(reducer.messages, calls)
        for id, edited in begun.items():
            if id in calls:
                self._take_over(calls[id], edited)
        self._plans: dict[str, Plan] = {}
        self._page: RunView | None = None
        self.shown: dict[str, tuple[object, ...]] = {}
        """What this process showed of calls that wait for approval."""

    def _take_over(self, call: ToolCallView, edited: Mapping[str, Any] | None) -> None:
        """A call that format 1 says was begun, or holds an answer of."""
        answer, tool = self.memory.answers.get(call.id), self.toolset.get(call.name)
        if answer is not None:
            self.memory.answers_to[call.id] = digest_of(call, 0)
        if (tool is None or tool.effects) and (answer is None or says_run(answer)):
            self.effects.begin(call, edited)

    # --- the last run ---------------------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """Where the last run stands, as far as its calls are concerned."""
        return self.page.phase

    @property
    def page(self) -> RunView:
        """What the reducer says of the last run."""
        version = self.reducer.version
        if self._page is None or self._page.version != version:
            self._page = read_run(self.reducer, self.toolset, self.memory, version)
        return self._page

    @property
    def unanswered(self) -> list[str]:
        """Calls of the last run that have no answer yet. A call whose id was answered before stays answered."""
        return [id for id in self.page.left if not self.is_answered(id)]

    def is_answered(self, id: str) -> bool:
        """Whether a call has an answer, in the conversation or held."""
        return self.reducer.tool_calls[id].result is not None or id in self.memory.answers

    def is_ours(self, name: str) -> bool:
        """Whether a call of this name is the application's to answer (FT-1, FT-9)."""
        return name in self.page.offered or name in self.toolset

    def offer(self, run_id: str, names: tuple[str, ...]) -> None:
        """Remember what goes out with a run that is about to start."""
        memory = self.memory
        memory.offered = names
        memory.run_ids = [*memory.run_ids[1 - _RUN_IDS :], run_id]
        for name in names:
            memory.offered_ever.pop(name, None)
            memory.offered_ever[name] = None
        while len(memory.offered_ever) > _NAMES:
            del memory.offered_ever[next(iter(memory.offered_ever))]
        self._page = None

    # --- what changed ---------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Compare notes with the reducer: what was decided about a call that changed is void."""
        memory = self.memory
        changes = self.reducer.changes(memory.seen)
        if changes.version == memory.seen:
            return
        memory.seen = changes.version
        self.effects.sync(changes, self.reducer.tool_calls)
        calls = frozenset(changes.calls)
        messages = frozenset((*changes.changed, *changes.added, *changes.removed))
        for id, record in tuple(memory.records.items()):
            if id in calls:
                self._start_anew(id, record, "opened")
            elif record.message_id in messages:
                self._start_anew(id, record, "restated")
        if changes.run:
            self._turn_page()

    def _start_anew(self, id: str, record: CallRecord, signal: Signal) -> None:
        self._plans.pop(id, None)
        view = self.reducer.tool_calls.get(id)
        if view is None:
            del self.memory.records[id]
            return
        held = self.memory.answers_to.get(id)
        if held is not None and held != digest_of(view, 0):
            self._drop_answer(id)
        record.message_id = view.message_id
        record.opening += 1
        record.verdict, record.digest = None, ""
        record.state = advance(record.state, signal)
        if signal == "opened" and view.complete:
            record.state = advance(record.state, "closed")

    def _drop_answer(self, id: str) -> None:
        del self.memory.answers[id], self.memory.answers_to[id]
        self.log.add("TOOL-6", f"tool call {quoted(id)} became another one before its answer was added; it is dropped")

    def _turn_page(self) -> None:
        """The run went on, or another one began: keep what still matters."""
        memory = self.memory
        left = self.page.left
        memory.records = {id: record for id, record in memory.records.items() if id in left or id in self.running}
        calls = self.reducer.tool_calls
        memory.answers = {id: answer for id, answer in memory.answers.items() if id in calls}
        memory.answers_to = {id: digest for id, digest in memory.answers_to.items() if id in calls}
        self.shown = {id: face for id, face in self.shown.items() if id in calls}
        self._plans = {id: plan for id, plan in self._plans.items() if id in left}
        open_ones = {interrupt.id for interrupt in self.page.interrupts}
        if memory.sent:
            memory.entries, memory.votes, memory.sent = {}, {}, False
        memory.entries = {id: entry for id, entry in memory.entries.items() if id in open_ones}
        memory.votes = {id: votes for id, votes in memory.votes.items() if id in open_ones}

    # --- one call -------------------------------------------------------------------------------------------------

    def record(self, id: str) -> CallRecord:
        """The record of a call as it was left. Raises `KeyError` for an unknown id."""
        record = self.memory.records.get(id)
        if record is None:
            record = self.memory.records[id] = CallRecord(message_id=self.reducer.tool_calls[id].message_id)
        return record

    def opening(self, id: str) -> int | None:
        """Which opening of a call this is; None when there is no such call (any more). A call in another opening than
        before has to be decided on anew.
        """
        self.sync()
        return self.record(id).opening if id in self.reducer.tool_calls else None

    def look(self, id: str) -> CallRecord:
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

    def _ask(self, id: str, record: CallRecord) -> None:
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
        if id not in self.page.pending:
            why = "the agent's own list of pending calls does not name this call (FT-13)."
            return Plan(action="answer", outcome=invalid(why, "not in the list of pending calls"))
        verdict = self._verdict(id)
        tool = self.toolset.get(call.name) if call.name in self.page.offered else None
        known = self.toolset.get(call.name)
        if (known is None or known.effects) and id not in self.running:
            if self.effects.may_have_run(call, None if verdict is None else verdict.edited_args):
                return Plan(action="answer", outcome=interrupted())
            if tool is not None and self.effects.full:
                why = "too many calls of this thread may or may not have run (Limits.tool_calls)."
                return Plan(action="answer", outcome=invalid(why, "too many calls without a known answer"))
        asked = record is not None and record.state in ("approval-requested", "approval-responded")
        return plan_of(call, tool, verdict, asked=asked, nesting=self.reducer.limits.nesting)

    def _verdict(self, id: str) -> Verdict | None:
        """What a person has said about a call as it is now."""
        record = self.memory.records.get(id)
        if record is None or record.verdict is None:
            return None
        return record.verdict if record.digest == digest_of(self.reducer.tool_calls[id], record.opening) else None

    # --- running --------------------------------------------------------------------------------------------------

    def begin(self, id: str, plan: Plan) -> None:
        """The tool of a call runs from now on."""
        self.running.add(id)
        if plan.tool is not None and plan.tool.effects:
            self.effects.begin(self.reducer.tool_calls[id], plan.edited)

    def undo(self, id: str) -> None:
        """A tool that was about to run did not."""
        self.running.discard(id)
        self.effects.undo(id)

    def forget(self, id: str) -> None:
        """What a tool gave has no call to answer any more. Its mark stays (see `Effects`)."""
        self.running.discard(id)
        self.log.add("TOOL-6", f"tool call {quoted(id)} became another one while its tool ran; the result is dropped")

    # --- decisions ------------------------------------------------------------------------------------------------

    def show(self, id: str) -> None:
        """Remember what a call is that a person may now be looking at: a decision by its bare id is about this."""
        if self.record(id).state == "approval-requested":
            self.shown[id] = self.face(id)

    def face(self, id: str) -> tuple[object, ...]:
        call = self.reducer.tool_calls[id]
        return self.record(id).opening, call.name, call.arguments, tuple(self.page.named.get(id, ()))

    def accept(self, id: str, verdict: Verdict) -> None:
        """Go by a verdict on a call as it is now."""
        record = self.record(id)
        record.verdict, record.digest = own_verdict(verdict), digest_of(self.reducer.tool_calls[id], record.opening)
        self._plans.pop(id, None)

    @property
    def undecided(self) -> list[Interrupt]:
        """The open interrupts that somebody still has to say something about."""
        return not_voted(
            self.memory.votes, [each for each in self.page.interrupts if each.id not in self.memory.entries]
        )

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

    def keep(self, id: str, outcome: Outcome, run_id: str, by: DecidedBy | None = None) -> None:
        """Hold an answer until `flush` adds it. It says who decided on the call: what a person said is never dropped,
        unless the policy did (`by`).
        """
        self.running.discard(id)
        verdict = self._verdict(id)
        if by == "policy":
            outcome = outcome.decided("policy")
        elif verdict is not None:
            outcome = outcome.decided("person", verdict.reason, edited=verdict.edited_args is not None)
        self.memory.answers[id] = outcome.message(run_id, id)
        self.memory.answers_to[id] = digest_of(self.reducer.tool_calls[id], 0)

    def flush(self, ids: Iterable[str]) -> list[str]:
        """Add the answers held for these calls, in this order; the ids of those added. A call that was answered
        meanwhile keeps that answer: ours is dropped, with a warning.
        """
        added = []
        reducer, memory = self.reducer, self.memory
        for id in ids:
            message = memory.answers.pop(id)
            memory.answers_to.pop(id, None)
            call = reducer.tool_calls.get(id)
            if call is not None and call.result is not None:
                self.log.add("FT-5", f"tool call {quoted(id)} has an answer already; the second one was dropped")
                continue
            before = reducer.version
            reducer.add(message)
            if call is not None:
                self.effects.settle(call, message)
            if memory.seen == before:  # a tool message at its place changes no call
                memory.seen = reducer.version
            added.append(id)
        return added

    def answer_by_hand(
        self,
        id: str,
        output: Any,
        error: str | None,
        *,
        stopped: bool,
        bound: Callable[[Tool | None], int | None],
    ) -> None:
        """Answer a call, as `Calls.set_output` says; `stopped`: also one of a run that was cut off. `bound`: the bytes
        that the answers of a tool may have.
        """
        self.sync()
        page = self.page
        if id not in page.left:
            raise ApprovalError(f"the last run left no tool call {quoted(id)} to be answered")
        call, record = self.reducer.tool_calls[id], self.look(id)
        if record.state in ANSWERED:
            raise ApprovalError(f"tool call {quoted(id)} is answered already; the second answer was refused")
        if id in self.running:
            raise ApprovalError(f"the tool of call {quoted(id)} runs here; its own answer is on the way")
        late = stopped and self.reducer.status == "truncated"
        if late and not call.complete:
            raise ApprovalError(
                f"tool call {quoted(id)} was cut off, so nobody can have run it; the answer was refused"
            )
        denied = record.verdict is not None and not record.verdict.approved
        asked = record.state == "approval-requested"
        if denied or asked or id in page.named or (page.phase != "over" and not late):
            said = " (a person said no)" if denied else ""
            raise ApprovalError(f"tool call {quoted(id)} takes no answer by hand: it is {record.state}{said}")
        try:
            outcome = Outcome(kind="ok", content=content_of(output))
        except ProtocolError:
            raise
        except Exception:
            raise TypeError(
                f"the output of tool call {quoted(id)} cannot be written as JSON; nothing was answered"
            ) from None
        limit, size = bound(self.toolset.get(call.name)), size_of(outcome.content)
        if limit is not None and size > limit:
            told = f"the output of tool call {quoted(id)} has {size:,} bytes, more than result_bytes={limit:,}"
            raise ValueError(f"{told}; nothing was answered: shorten it")
        if not isinstance(error, str | None):
            raise TypeError(f"the error is a short text or None, not {type(error).__name__}")
        if error is not None:
            outcome = replace(outcome, kind="error", error=clean(error) or "failed")
        if record.verdict is not None and record.verdict.edited_args is not None:
            outcome = outcome.after_edit(record.verdict.edited_args)
        self.keep(id, outcome, page.run_id)
        self.flush([id])

    # --- who acts -------------------------------------------------------------------------------------------------

    def waiting(self) -> Waiting:
        """Who has to act on the last run, by the table."""
        self.sync()
        phase, page, calls = self.phase, self.page, self.reducer.tool_calls
        acting: list[tuple[str, Actor]] = []
        answered = bool(self.memory.entries)
        for id in page.left:
            state = self.look(id).state
            ours, named = self.is_ours(calls[id].name), id in page.named
            actor = who_acts(phase, state, ours=ours, named=named)
            if actor == "agent" and not named and phase == "over":
                actor = "agent" if id in page.waiting else "nobody"
            elif id in page.reused and phase == "over":
                actor = "agent"
            elif state in ANSWERED and id not in page.pending and phase == "over":
                answered = True
            if actor == "approver":
                self.show(id)
            acting.append((id, actor))
        open_ones = tuple(dict.fromkeys(each.id for each in self.undecided))
        return sum_up(phase, acting, open_ones, answered=answered)

    def came_after(self, version: int) -> bool:
        """Whether an answer, or a decision on an interrupt, came after that version."""
        if self.memory.entries and self.memory.decided_at >= version:
            return True
        added = frozenset(self.reducer.changes(version).added)
        page, calls = self.page, self.reducer.tool_calls
        results = [calls[id].result for id in page.left if id not in page.pending and id not in page.reused]
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
        calls = self.reducer.tool_calls
        if self.phase == "broken":
            given_up += [(id, status) for id in self.unanswered]
        for id, ending in given_up:
            if id not in page.named:
                begun = id in self.running or self.effects.may_have_run(calls[id], None)
                self.keep(id, interrupted() if begun else not_run(ending), page.run_id)
        for id in page.unknown:
            if id not in memory.answers:
                self.keep(
                    id, invalid(f"there is no tool named {cut(calls[id].name)} here.", "unknown tool"), page.run_id
                )

    def leave(self) -> None:
        """Answer every call that waits for somebody here, save through an interrupt: the user goes on."""
        waits, page = self.waiting(), self.page
        ids = [id for id in (*waits.application, *waits.approver) if id not in page.named]
        for id in ids:
            verdict = self._verdict(id)
            outcome = went_on() if verdict is None or verdict.approved else denied(verdict.reason)
            self.keep(id, outcome, page.run_id)
        self.flush(ids)

    def send(self, run_input: RunAgentInput) -> None:
        """An input leaves: what it offers and answers is remembered until its run has begun."""
        memory = self.memory
        self.offer(run_input.run_id, tuple(tool.name for tool in run_input.tools or ()))
        memory.thread_id = run_input.thread_id
        memory.carried, memory.carried_from = self.page.interrupts, self.reducer.run.run_id
        memory.sent = True

    def saved(self) -> Persisted:
        """What outlives the process, as of now."""
        self.memory.marks, self.memory.ran = list(self.effects.marks), self.effects.ran
        return self.memory

    def renew(self) -> Reducer:
        """Go on with a fresh reducer that holds the same."""
        memory = self.memory
        memory.carried, memory.carried_from = self.page.interrupts, self.reducer.run.run_id
        memory.thread_id = memory.thread_id or self.reducer.run.thread_id
        self.reducer = self.reducer.renew()
        self._page = None
        return self.reducer
