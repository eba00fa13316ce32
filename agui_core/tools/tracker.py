"""`CallTracker`: what the reducer does not know of the last run's calls: offered, asked, approved, started.

The tracker knows who declared a tool, which tools a run was offered, and who approved a call.
Each public call first takes in the reducer's changes (`sync`), as a change voids a decision (TOOL-6), and hands the
`RunView` on. The part that outlives the process is one struct, `Persisted`. Synchronous. A read costs a step for each
change since the last one, and for each call of the last run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from agui_core._text import quoted
from agui_core.errors import ApprovalError, ProtocolError
from agui_core.protocol.run import Interrupt, RunAgentInput
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import ToolCallView
from agui_core.tools.approval import DecidedBy, Plan, Verdict, digest_of, own_verdict, plan_of
from agui_core.tools.effects import Effects, says_run
from agui_core.tools.interrupts import not_voted
from agui_core.tools.outcomes import (
    Outcome,
    content_of,
    denied,
    interrupted,
    invalid,
    run_ended,
    signal_of,
    unknown_tool,
    went_on,
)
from agui_core.tools.persisted import CallRecord, Persisted
from agui_core.tools.result_size import size_of
from agui_core.tools.run_view import RunView, read_run
from agui_core.tools.states import ANSWERED, Actor, Signal, Waiting, advance, sum_up, who_acts
from agui_core.tools.tool import Tool
from agui_core.tools.toolset import Toolset
from agui_core.warnings import WarningLog
from agui_core.wire.json_values import clean_text

__all__ = ["CallTracker"]

_RUN_IDS = 64
"""Run ids of ours that are remembered (IN-8)."""
_NAMES = 10_000
"""Names of tools that were offered in the thread and are remembered."""


class CallTracker:
    """See the module. `effect_started`: the calls that a checkpoint of format 1 says had begun."""

    def __init__(
        self,
        reducer: Reducer,
        toolset: Toolset,
        persisted: Persisted,
        log: WarningLog,
        effect_started: Mapping[str, Mapping[str, Any] | None] = {},
    ) -> None:
        self.reducer = reducer
        self.toolset = toolset
        self.persisted = persisted
        self.log = log
        self.effects = Effects(toolset, reducer.limits.tool_calls, persisted.marks, persisted.ran)
        self.running: set[str] = set()
        """Calls whose tools run in this process."""
        calls = reducer.tool_calls
        self.effects.read(reducer.messages, calls)
        for id, edited in effect_started.items():
            if id in calls:
                self._take_over(calls[id], edited)
        self._plans: dict[str, Plan] = {}
        self._view: RunView | None = None
        self._viewed = -1
        """The version that the view is of."""
        self.shown: dict[str, tuple[object, ...]] = {}
        """Calls that wait for approval, as this process showed them."""

    def _take_over(self, call: ToolCallView, edited: Mapping[str, Any] | None) -> None:
        """A call that had begun in format 1, or has a held answer there."""
        answer, tool = self.persisted.answers.get(call.id), self.toolset.get(call.name)
        if answer is not None:
            self.persisted.answers_to[call.id] = digest_of(call, 0)
        if (tool is None or tool.effects) and (answer is None or says_run(answer)):
            self.effects.start(call, edited)

    # --- the last run ---------------------------------------------------------------------------------------------

    @property
    def view(self) -> RunView:
        """The last run as the reducer tells it, read again when the reducer has changed. A method takes it once."""
        version = self.reducer.version
        if self._view is None or self._viewed != version:
            self._view, self._viewed = read_run(self.reducer, self.toolset, self.persisted), version
        return self._view

    def unanswered(self, view: RunView) -> list[str]:
        """Calls of the last run that have no answer yet. A call whose id was answered before stays answered."""
        calls, answers = self.reducer.tool_calls, self.persisted.answers
        return [id for id in view.left if calls[id].result is None and id not in answers]

    def is_answered(self, id: str) -> bool:
        """Whether a call has an answer, in the conversation or held."""
        return self.reducer.tool_calls[id].result is not None or id in self.persisted.answers

    # --- what changed ---------------------------------------------------------------------------------------------

    def sync(self) -> RunView:
        """The last run, once all changes are known: a decision about a call that changed is void."""
        persisted, view = self.persisted, self.view
        if self._viewed == persisted.seen:
            return view
        changes = self.reducer.changes(persisted.seen)
        persisted.seen = changes.version
        self.effects.sync(changes, self.reducer.tool_calls)
        calls = frozenset(changes.calls)
        messages = frozenset((*changes.changed, *changes.added, *changes.removed))
        for id, record in tuple(persisted.records.items()):
            if id in calls:
                self._start_anew(id, record, "opened")
            elif record.message_id in messages:
                self._start_anew(id, record, "restated")
        if changes.run:
            self._run_changed(view)
        return view

    def _start_anew(self, id: str, record: CallRecord, signal: Signal) -> None:
        self._plans.pop(id, None)
        call = self.reducer.tool_calls.get(id)
        if call is None:
            del self.persisted.records[id]
            return
        held = self.persisted.answers_to.get(id)
        if held is not None and held != digest_of(call, 0):
            self._drop_answer(id)
        record.message_id = call.message_id
        record.generation += 1
        record.verdict, record.digest = None, ""
        record.state = advance(record.state, signal)
        if signal == "opened" and call.complete:
            record.state = advance(record.state, "closed")

    def _drop_answer(self, id: str) -> None:
        del self.persisted.answers[id], self.persisted.answers_to[id]
        self.log.add("TOOL-6", f"tool call {quoted(id)} became another one before its answer was added; it is dropped")

    def _run_changed(self, view: RunView) -> None:
        """The run went on, or another one began: forget what is about calls and interrupts that are gone."""
        persisted, left = self.persisted, view.left
        persisted.records = {id: record for id, record in persisted.records.items() if id in left or id in self.running}
        calls = self.reducer.tool_calls
        persisted.answers = {id: answer for id, answer in persisted.answers.items() if id in calls}
        persisted.answers_to = {id: digest for id, digest in persisted.answers_to.items() if id in calls}
        self.shown = {id: face for id, face in self.shown.items() if id in calls}
        self._plans = {id: plan for id, plan in self._plans.items() if id in left}
        open_ones = {interrupt.id for interrupt in view.interrupts}
        if persisted.sent:
            persisted.entries, persisted.votes, persisted.sent = {}, {}, False
        persisted.entries = {id: entry for id, entry in persisted.entries.items() if id in open_ones}
        persisted.votes = {id: votes for id, votes in persisted.votes.items() if id in open_ones}

    # --- one call -------------------------------------------------------------------------------------------------

    def record(self, id: str) -> CallRecord:
        """The record of a call as it was left. Raises `KeyError` for an unknown id."""
        record = self.persisted.records.get(id)
        if record is None:
            record = self.persisted.records[id] = CallRecord(message_id=self.reducer.tool_calls[id].message_id)
        return record

    def generation(self, id: str) -> int | None:
        """The generation of a call; None when there is no such call (any more). A decision is about one generation."""
        self.sync()
        return self.record(id).generation if id in self.reducer.tool_calls else None

    def look(self, id: str, view: RunView) -> CallRecord:
        """The record of a call, up to date. `view` is what `sync` gave. Raises `KeyError` for an unknown id."""
        call = self.reducer.tool_calls[id]
        record = self.record(id)
        if record.state == "input-streaming" and call.complete:
            record.state = advance(record.state, "closed")
        if record.state not in ANSWERED:
            answer = call.result or self.persisted.answers.get(id)
            if answer is not None:
                record.state = advance(record.state, signal_of(answer))
            else:
                self._ask(call, record, view)
        return record

    def _ask(self, call: ToolCallView, record: CallRecord, view: RunView) -> None:
        naming = view.named.get(call.id)
        if record.state == "input-available" and (naming or self._needs_approval(call, view)):
            record.state = advance(record.state, "asked")
        if record.state == "approval-requested" and naming and all(i.id in self.persisted.entries for i in naming):
            record.state = advance(record.state, "decided")

    def _needs_approval(self, call: ToolCallView, view: RunView) -> bool:
        ours = view.phase == "over" and call.id in view.left and view.is_ours(call.name)
        return ours and self.plan(call.id, view).action == "ask"

    def plan(self, id: str, view: RunView, *, fresh: bool = False) -> Plan:
        """The plan for an unanswered call of ours. `fresh` judges it again, as is due before it runs."""
        plan = None if fresh else self._plans.get(id)
        if plan is None:
            plan = self._plans[id] = self._judge(self.reducer.tool_calls[id], view)
        return plan

    def _judge(self, call: ToolCallView, view: RunView) -> Plan:
        id = call.id
        record = self.persisted.records.get(id)
        if id not in view.pending:
            why = "the agent's own list of pending calls does not name this call (FT-13)."
            return Plan(action="answer", outcome=invalid(why, "not in the list of pending calls"))
        verdict = self._verdict(id)
        known = self.toolset.get(call.name)
        tool = known if call.name in view.offered else None
        if (known is None or known.effects) and id not in self.running:
            if self.effects.may_have_run(call, None if verdict is None else verdict.edited_args):
                return Plan(action="answer", outcome=interrupted())
            if tool is not None and self.effects.full:
                why = "too many calls of this thread may or may not have run (Limits.tool_calls)."
                return Plan(action="answer", outcome=invalid(why, "too many calls without a known answer"))
        asked = record is not None and record.state in ("approval-requested", "approval-responded")
        return plan_of(call, tool, verdict, asked=asked, nesting=self.reducer.limits.nesting)

    def _verdict(self, id: str) -> Verdict | None:
        """The verdict on a call as it is now."""
        record = self.persisted.records.get(id)
        if record is None or record.verdict is None:
            return None
        return record.verdict if record.digest == digest_of(self.reducer.tool_calls[id], record.generation) else None

    # --- running --------------------------------------------------------------------------------------------------

    def start(self, id: str, plan: Plan) -> None:
        """The tool of a call runs from now on."""
        self.running.add(id)
        if plan.tool is not None and plan.tool.effects:
            self.effects.start(self.reducer.tool_calls[id], plan.edited)

    def undo(self, id: str) -> None:
        """A tool that was about to run did not."""
        self.running.discard(id)
        self.effects.undo(id)

    def forget(self, id: str) -> None:
        """The call of a result is gone. Its mark stays (see `Effects`)."""
        self.running.discard(id)
        self.log.add("TOOL-6", f"tool call {quoted(id)} became another one while its tool ran; the result is dropped")

    # --- decisions ------------------------------------------------------------------------------------------------

    def show(self, id: str, view: RunView) -> None:
        """Remember a call as a person may see it now: a decision by its bare id is about this."""
        if self.record(id).state == "approval-requested":
            self.shown[id] = self.face(id, view)

    def face(self, id: str, view: RunView) -> tuple[object, ...]:
        """All that a person is shown of a call."""
        call = self.reducer.tool_calls[id]
        return self.record(id).generation, call.name, call.arguments, tuple(view.named.get(id, ()))

    def accept(self, id: str, verdict: Verdict) -> None:
        """Keep the verdict on a call as it is now."""
        record = self.record(id)
        record.verdict, record.digest = own_verdict(verdict), digest_of(self.reducer.tool_calls[id], record.generation)
        self._plans.pop(id, None)

    def undecided(self, view: RunView) -> list[Interrupt]:
        """The open interrupts that nobody has decided on."""
        persisted = self.persisted
        return not_voted(persisted.votes, [each for each in view.interrupts if each.id not in persisted.entries])

    # --- answers --------------------------------------------------------------------------------------------------

    def answerable(self, view: RunView) -> list[str]:
        """The unanswered calls of the last run that are the application's, in order; none of a run that broke."""
        if view.phase != "over":
            return []
        calls = self.reducer.tool_calls
        return [id for id in self.unanswered(view) if id not in view.named and view.is_ours(calls[id].name)]

    def held(self, view: RunView) -> list[str]:
        """Calls whose answers are not in the conversation yet: late ones of earlier runs, then the last run's."""
        answers, left = self.persisted.answers, view.left
        return [*(id for id in answers if id not in left), *(id for id in left if id in answers)]

    def hold(self, id: str, outcome: Outcome, run_id: str, by: DecidedBy | None = None) -> None:
        """Hold an answer until `flush` adds it. It tells who decided on the call: the policy (`by`), or else the person
        with a verdict.
        """
        self.running.discard(id)
        verdict = self._verdict(id)
        if by == "policy":
            outcome = outcome.decided("policy")
        elif verdict is not None:
            outcome = outcome.decided("person", verdict.reason, edited=verdict.edited_args is not None)
        self.persisted.answers[id] = outcome.message(run_id, id)
        self.persisted.answers_to[id] = digest_of(self.reducer.tool_calls[id], 0)

    def flush(self, ids: Iterable[str]) -> list[str]:
        """Add the held answers of these calls, in this order. Gives the ids of those added. A call that was answered
        meanwhile keeps that answer; ours is dropped with a warning.
        """
        added = []
        reducer, persisted = self.reducer, self.persisted
        for id in ids:
            message = persisted.answers.pop(id)
            persisted.answers_to.pop(id, None)
            call = reducer.tool_calls.get(id)
            if call is not None and call.result is not None:
                self.log.add("FT-5", f"tool call {quoted(id)} has an answer already; the second one was dropped")
                continue
            before = reducer.version
            reducer.add(message)
            if call is not None:
                self.effects.settle(call, message)
            after = reducer.version
            if persisted.seen == before:  # a tool message at its place changes no call
                persisted.seen = after
            if self._view is not None and self._viewed == before and not self._view.unknown:
                # All that it changes of the view; reading the run anew for each answer would cost calls times calls.
                self._view.pending.discard(id)
                self._viewed = after
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
        """Answer a call, as `Calls.set_output` describes.

        `stopped`: also one of a run that was cut off.
        `bound`: gives the bytes that the answers of a tool may have.
        """
        view = self.sync()
        if id not in view.left:
            raise ApprovalError(f"the last run left no tool call {quoted(id)} to be answered")
        call, record = self.reducer.tool_calls[id], self.look(id, view)
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
        if denied or asked or id in view.named or (view.phase != "over" and not late):
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
            outcome = replace(outcome, kind="error", error=clean_text(error) or "failed")
        if record.verdict is not None and record.verdict.edited_args is not None:
            outcome = outcome.after_edit(record.verdict.edited_args)
        self.hold(id, outcome, view.run_id)
        self.flush([id])

    # --- who acts -------------------------------------------------------------------------------------------------

    def waiting(self) -> Waiting:
        """Who has to act on the last run, by the table."""
        return self.waiting_in(self.sync())

    def waiting_in(self, view: RunView) -> Waiting:
        """The same of a view that `sync` gave."""
        phase, calls = view.phase, self.reducer.tool_calls
        acting: list[tuple[str, Actor]] = []
        answered = bool(self.persisted.entries)
        for id in view.left:
            state = self.look(id, view).state
            ours, named = view.is_ours(calls[id].name), id in view.named
            actor = who_acts(phase, state, ours=ours, named=named)
            if actor == "agent" and not named and phase == "over":
                actor = "agent" if id in view.waiting else "nobody"
            elif id in view.reused and phase == "over":
                actor = "agent"
            elif state in ANSWERED and id not in view.pending and phase == "over":
                answered = True
            if actor == "approver":
                self.show(id, view)
            acting.append((id, actor))
        open_ones = tuple(dict.fromkeys(each.id for each in self.undecided(view)))
        return sum_up(phase, acting, open_ones, answered=answered)

    def came_after(self, version: int, view: RunView) -> bool:
        """Whether an answer, or a decision on an interrupt, came after that version."""
        if self.persisted.entries and self.persisted.decided_at >= version:
            return True
        added, calls = frozenset(self.reducer.changes(version).added), self.reducer.tool_calls
        results = [calls[id].result for id in view.left if id not in view.pending and id not in view.reused]
        return any(result.id in added for result in results if result is not None)

    def round(self, view: RunView) -> tuple[object, ...]:
        """The questions of the last run and their answers: equal rounds bring nothing new."""
        calls = self.reducer.tool_calls
        asked = tuple((i.reason, i.message, i.tool_call_id, i.response_schema) for i in view.interrupts)
        answers = [(calls[id].name, calls[id].arguments, calls[id].result) for id in view.left]
        contents = tuple((name, text, None if result is None else result.content) for name, text, result in answers)
        return asked, contents

    # --- the next run ---------------------------------------------------------------------------------------------

    def give_up(self, view: RunView) -> None:
        """Answer, unexecuted, the calls that nobody can answer any more: those of ours from before the last run (FT-5),
        and all calls of a last run that ended badly (OPEN-17).
        """
        calls, persisted = self.reducer.tool_calls, self.persisted
        given_up: list[tuple[str, str | None]] = [
            (id, None)
            for id, call in calls.items()
            if call.result is None and call.name in self.toolset and id not in view.left and id not in persisted.answers
        ]
        if view.phase == "broken":
            given_up += [(id, self.reducer.status) for id in self.unanswered(view)]
        for id, ending in given_up:
            if id not in view.named:
                started = id in self.running or self.effects.may_have_run(calls[id], None)
                self.hold(id, interrupted() if started else run_ended(ending), view.run_id)
        for id in view.unknown:
            if id not in persisted.answers:
                self.hold(id, unknown_tool(calls[id].name), view.run_id)

    def leave(self) -> None:
        """The user goes on: answer every call that waits for somebody here, save those that an interrupt names."""
        view = self.sync()
        waits = self.waiting_in(view)
        ids = [id for id in (*waits.application, *waits.approver) if id not in view.named]
        for id in ids:
            verdict = self._verdict(id)
            outcome = went_on() if verdict is None or verdict.approved else denied(verdict.reason)
            self.hold(id, outcome, view.run_id)
        self.flush(ids)

    def send(self, run_input: RunAgentInput, view: RunView) -> None:
        """An input leaves: its offers and answers are remembered until its run has begun."""
        persisted = self.persisted
        self._carry(view)
        self._offer(run_input.run_id, tuple(tool.name for tool in run_input.tools or ()))
        persisted.thread_id = run_input.thread_id
        persisted.sent = True

    def _offer(self, run_id: str, names: tuple[str, ...]) -> None:
        """Remember the tools that go out with a run."""
        persisted = self.persisted
        persisted.offered = names
        persisted.run_ids = [*persisted.run_ids[1 - _RUN_IDS :], run_id]
        for name in names:
            persisted.offered_ever.pop(name, None)
            persisted.offered_ever[name] = None
        while len(persisted.offered_ever) > _NAMES:
            del persisted.offered_ever[next(iter(persisted.offered_ever))]
        self._view = None

    def _carry(self, view: RunView) -> None:
        """Remember the open interrupts, which stay open if the next input is refused (OPEN-16)."""
        self.persisted.carried, self.persisted.carried_from = view.interrupts, self.reducer.run.run_id

    def saved(self) -> Persisted:
        """The struct that outlives the process, as of now."""
        self.persisted.marks, self.persisted.ran = list(self.effects.marks), self.effects.ran
        return self.persisted

    def renew(self) -> Reducer:
        """Go on with a fresh reducer that holds the same."""
        self._carry(self.view)
        self.persisted.thread_id = self.persisted.thread_id or self.reducer.run.thread_id
        self.reducer = self.reducer.renew()
        self._view = None
        return self.reducer
