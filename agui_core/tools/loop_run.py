"""One run of a `ToolLoop`: begin or take up again, decide, answer, and so on until it ends.

A run holds a conversation of its own: a reducer that starts from the run input. Each decision is played into it as a
run of calls. `CallTracker` and `Executor` treat these like an application's: judged, run, answered in call order. The
played events and the answers go out, so the stream folds to the conversation that the model saw.

All work happens inside `__anext__`, in the caller's task. No task outlives it, and no scope stays open in between. So
the results of calls that run at the same time come together, after the last of them.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from inspect import isawaitable
from math import inf
from types import TracebackType
from typing import Any, TypeAlias

from anyio import CapacityLimiter, ResourceGuard
from anyio.lowlevel import checkpoint

from agui_core._text import plain
from agui_core.errors import AGUIError, ResumeError
from agui_core.protocol import events as e
from agui_core.protocol import messages as m
from agui_core.protocol.base import UNSET
from agui_core.protocol.run import (
    PROTOCOL_VERSION,
    Interrupt,
    RunAgentInput,
    RunFinishedOutcome,
    SuccessOutcome,
    ToolDeclaration,
)
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import ToolCallView
from agui_core.tools.approval import Verdict, plan_of
from agui_core.tools.concurrency import ThreadedCall, abandoned_threads
from agui_core.tools.decision import Asked, BadDecision, normalise
from agui_core.tools.executor import Executor, in_thread
from agui_core.tools.interrupts import decisions, interrupt_for
from agui_core.tools.loop_plan import LoopPlan
from agui_core.tools.loop_result import LoopResult, LoopStatus, observe, on_the_wire
from agui_core.tools.outcomes import Outcome, denied, not_run
from agui_core.tools.persisted import Persisted
from agui_core.tools.tracker import CallTracker
from agui_core.warnings import WarningLog

__all__ = ["LoopRun"]

_log = logging.getLogger("agui_core.tools")

_REPEATS = 3
"""How often the same call is asked for before the loop ends."""

_Step: TypeAlias = "Callable[[], Awaitable[_Step | None]]"


class _DecideFailed(Exception):
    """`decide` raised."""


class LoopRun:
    """One run of a tool loop: gives its events, once. Cancelled in the middle, or closed, it gives no more."""

    def __init__(self, loop: LoopPlan, run_input: RunAgentInput) -> None:
        if not isinstance(run_input, RunAgentInput):
            raise TypeError(f"a run takes a RunAgentInput, not a {type(run_input).__name__}")
        self.result: LoopResult | None = None
        """The result, from the last event on; None before, and when the run was left earlier."""
        self._loop = loop
        self._input = run_input
        self._guard = ResourceGuard("iterating over")
        self._events: deque[e.Event] = deque()
        self._step: _Step | None = self._begin
        self._closed = False
        self._reducer = Reducer()
        self._decisions = 0
        self._message_ids = {message.id for message in run_input.messages}
        # The calls that count: since the last user message, and those taken up again. Those of the last decision.
        self._calls: dict[str, None] = {}
        self._round: list[str] = []
        self._attempts = 0
        self._asked: Counter[tuple[str, str]] = Counter()
        self._stop: str | None = None
        self._clients = _clients_tools(loop, run_input)

    def __repr__(self) -> str:
        state = "no result yet" if self.result is None else self.result.status
        return f"<{type(self).__name__} {plain(self._input.run_id)}: {state}>"

    async def __aenter__(self) -> LoopRun:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> LoopRun:
        return self

    async def __anext__(self) -> e.Event:
        """The next event. Failures are events; only cancellation raises."""
        with self._guard:
            while not self._closed:
                if self._events:
                    return self._events.popleft()
                step, self._step = self._step, None  # a step that is cancelled is the last one
                if step is None:
                    break
                self._step = await self._safely(step)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Give no more events."""
        self._closed = True

    async def _safely(self, step: _Step) -> _Step | None:
        await checkpoint()
        try:
            return await step()
        except ResumeError as error:
            self._fail("resume", str(error))
        except BadDecision as error:
            self._fail("decision", str(error))
        except _DecideFailed:
            self._fail("decision", "The agent could not decide what to do next.")
        except AGUIError as error:
            self._fail("refused", str(error))
        except Exception as error:
            _log.warning("a run of a tool loop failed", exc_info=error)
            self._fail("internal", "The agent failed.")
        return None

    # --- beginning, and taking up interrupted calls -------------------------------------------------------------------

    async def _begin(self) -> _Step | None:
        """Take the input in. Until RUN_STARTED it can still be refused, and then its interrupts stay open (OPEN-16)."""
        given = self._input
        if not given.resume and not any(map(_says_something, given.messages)):
            raise AGUIError("the input has no message that says anything to answer; send the user's message with it")
        self._reducer = Reducer(given.messages, given.state)
        self._tracker = CallTracker(
            self._reducer, self._loop.toolset, Persisted(seen=self._reducer.version), WarningLog()
        )
        unanswered = [call for call in self._reducer.tool_calls.values() if call.result is None]
        waiting = self._waiting(unanswered)
        verdicts = decisions(given.resume, waiting.values()) if given.resume else {}
        self._count(waiting)
        self._emit(
            e.RunStartedEvent(
                thread_id=given.thread_id,
                run_id=given.run_id,
                protocol_version=PROTOCOL_VERSION,
                parent_run_id=given.parent_run_id,
            )
        )
        self._give_up([call for call in unanswered if call.id not in waiting])
        if not waiting:
            return self._decide
        if verdicts:
            self._take_up(waiting, verdicts)
            return self._answer
        self._interrupt(tuple(waiting))  # INT-13: an open question is asked again
        return None

    def _waiting(self, unanswered: list[ToolCallView]) -> dict[str, Interrupt]:
        """The calls that need approval or that an entry names, each with its question to a person."""
        ours = [(call, tool) for call in unanswered if (tool := self._loop.toolset.get(call.name)) is not None]
        if not ours:
            return {}
        named = {entry.interrupt_id for entry in self._input.resume or ()}
        interrupts = interrupt_for(*(call for call, _ in ours), tools=self._loop.toolset).interrupts
        return {
            call.id: interrupt
            for (call, tool), interrupt in zip(ours, interrupts, strict=True)
            if interrupt.id in named or plan_of(call, tool, None, asked=False).action == "ask"
        }

    def _count(self, waiting: Iterable[str]) -> None:
        """Calls that were attempted before this run count too, so that an interrupt gives no fresh allowance."""
        turn: list[m.ToolCall] = []
        for message in reversed(self._reducer.messages):
            if isinstance(message, m.UserMessage):
                break
            if isinstance(message, m.AssistantMessage):
                turn += reversed(message.tool_calls or ())
        self._calls = dict.fromkeys((*(call.id for call in reversed(turn)), *waiting))
        self._attempts = len(self._calls)
        for id in self._calls:
            call = self._reducer.tool_calls[id]
            self._asked[Asked(name=call.name, arguments=call.arguments).sameness] += 1

    def _give_up(self, calls: Iterable[ToolCallView]) -> None:
        """Calls that an earlier run left behind may have run already; models reject those without an answer (OPEN-17).
        The client's own are answered to the model only (FT-1).
        """
        for call in calls:
            self._put_answer(call.id, not_run("the run that asked for it ended without an answer"))
            if call.name not in self._clients:
                self._emit_result(call.id)

    def _take_up(self, waiting: dict[str, Interrupt], verdicts: dict[str, Verdict]) -> None:
        """Open the calls again, in a run of their own, with the verdicts on them."""
        calls = [self._reducer.tool_calls[id] for id in waiting]
        opened: list[e.Event] = []
        for call in calls:
            opened += _opened(call.id, call.name, "", call.message_id)
        self._play(opened)
        self._tracker.sync()
        for call in calls:
            verdict = verdicts[waiting[call.id].id]
            if verdict.cancelled:
                given_up = denied(verdict.reason or "the question was given up")
                self._put_answer(call.id, given_up.decided("person", verdict.reason))
                continue
            self._tracker.accept(call.id, verdict)
        self._round = list(waiting)

    # --- deciding -----------------------------------------------------------------------------------------------------

    async def _decide(self) -> _Step | None:
        decision = normalise(await self._ask())
        self._decisions += 1
        message_id = self._message_id()
        played = _text(message_id, decision.text)
        self._round, refused = [], {}
        for asked in decision.calls:
            outcome = self._refusal(asked)
            if outcome is not None and asked.name in self._clients:
                continue  # only the client may answer it (FT-1), so it is not made
            id = self._id(asked)
            self._calls[id] = None
            self._round.append(id)
            played += _opened(id, asked.name, asked.arguments, message_id)
            if outcome is not None:
                refused[id] = outcome
        self._emit(*self._play(played))
        if not decision.calls:
            self._finish("ok", SuccessOutcome(), decision.text)
            return None
        for id, outcome in refused.items():
            self._put_answer(id, outcome)
        return self._answer

    async def _ask(self) -> Any:
        loop = self._loop
        decide = partial(loop.decide, self._reducer.messages, self._tools())
        try:
            if loop.decides_async:
                return await decide()
            left_behind = abandoned_threads()
            if left_behind >= loop.settings.max_threads:
                raise RuntimeError(f"no thread for it: {left_behind} earlier calls never came back")
            given, error = await in_thread(decide, ThreadedCall(), CapacityLimiter(inf))
            if error is not None:
                raise error
            return await given if isawaitable(given) else given
        except Exception as error:
            _log.warning("decide failed", exc_info=error)
            raise _DecideFailed from error

    def _tools(self) -> tuple[ToolDeclaration, ...]:
        return (*self._loop.toolset.as_tools(), *self._clients.values())

    def _refusal(self, asked: Asked) -> Outcome | None:
        """The answer to a call beyond the cap, or asked too often; None when it may be judged."""
        self._attempts += 1
        if self._attempts > self._loop.max_tool_calls:
            self._stop = "max_tool_calls"
            return not_run(f"no more than {self._loop.max_tool_calls} tool calls may be made")
        self._asked[asked.sameness] += 1
        if self._asked[asked.sameness] >= _REPEATS:
            self._stop = "repeated"
            return not_run("the same call was asked for before, and has its answer")
        return None

    def _message_id(self) -> str:
        """An id that is the same each time, and that no other message has."""
        number = self._decisions
        while (id := f"{self._input.run_id}:message:{number}") in self._message_ids:
            number += 1
        self._message_ids.add(id)
        return id

    def _id(self, asked: Asked) -> str:
        """The model's id for a call, unless the conversation has it already; else one that is the same each time."""
        id, number = asked.id, len(self._calls)
        while not id or id in self._calls or id in self._reducer.tool_calls:
            number += 1
            id = f"{self._input.run_id}:call:{number}"
        return id

    # --- answering ----------------------------------------------------------------------------------------------------

    async def _answer(self) -> _Step | None:
        """Run the calls that may run, send their answers, and see who has to act."""
        loop, tracker, calls = self._loop, self._tracker, self._reducer.tool_calls
        for id in self._round:
            call = calls[id]
            if call.result is None and call.name not in loop.toolset and call.name not in self._clients:
                self._put_answer(id, plan_of(call, None, None, asked=False).outcome)
        await Executor(
            tracker,
            loop.settings,
            confirm=None,
            before_effect=None,
            progress=None,
        ).run()
        left = []
        for id in self._round:
            if calls[id].result is None:
                left.append(id)
            else:
                self._emit_result(id)
        asking = [id for id in left if tracker.plan(id, tracker.view).action == "ask"]
        if asking:
            self._interrupt(tuple(asking))
        elif left or self._stop:
            pending = tuple(left) or UNSET  # the client runs these (FT-3)
            self._finish("needs_review" if self._stop else "ok", SuccessOutcome(pending_tool_call_ids=pending))
        else:
            return self._decide
        return None

    def _put_answer(self, id: str, outcome: Outcome | None) -> None:
        assert outcome is not None
        self._reducer.add(outcome.message(self._input.run_id, id))

    def _emit_result(self, id: str) -> None:
        answer = self._reducer.tool_calls[id].result
        assert answer is not None
        self._emit(
            e.ToolCallResultEvent(
                message_id=answer.id, tool_call_id=id, content=answer.content, role="tool", metadata=answer.metadata
            )
        )

    # --- ending -------------------------------------------------------------------------------------------------------

    def _interrupt(self, ids: tuple[str, ...]) -> None:
        calls = (self._reducer.tool_calls[id] for id in ids)
        self._finish("needs_confirmation", interrupt_for(*calls, tools=self._loop.toolset))

    def _finish(self, status: LoopStatus, outcome: RunFinishedOutcome, output: str | None = None) -> None:
        given = self._input
        self.result = self._result(status, output)
        self._emit(
            e.RunFinishedEvent(
                thread_id=given.thread_id, run_id=given.run_id, result=on_the_wire(self.result), outcome=outcome
            )
        )

    def _fail(self, code: str, message: str) -> None:
        self._stop = code
        self.result = self._result("failed")
        self._emit(e.RunErrorEvent(message=message, code=code))

    def _result(self, status: LoopStatus, output: str | None = None) -> LoopResult:
        calls = self._reducer.tool_calls
        results, failures = observe(calls[id] for id in self._calls if id in calls)
        metadata: dict[str, Any] = {
            "thread_id": self._input.thread_id,
            "run_id": self._input.run_id,
            "decisions": self._decisions,
        }
        if self._stop is not None:
            metadata["reason"] = self._stop
        return LoopResult(
            status=status,
            final_output=output,
            tool_results=results,
            tool_errors=failures,
            tool_call_count=min(self._attempts, self._loop.max_tool_calls),
            metadata=metadata,
        )

    # --- events -------------------------------------------------------------------------------------------------------

    def _emit(self, *events: e.Event) -> None:
        self._events += events

    def _play(self, events: list[e.Event]) -> list[e.Event]:
        """Apply these events to the conversation inside, as one run; gives them back."""
        thread_id, run_id = self._input.thread_id, self._input.run_id
        self._reducer.apply(e.RunStartedEvent(thread_id=thread_id, run_id=run_id))
        for event in events:
            self._reducer.apply(event)
        self._reducer.apply(e.RunFinishedEvent(thread_id=thread_id, run_id=run_id))
        return events


def _clients_tools(loop: LoopPlan, run_input: RunAgentInput) -> dict[str, ToolDeclaration]:
    """The tools that the client runs. It cannot stand in for one of ours."""
    tools: dict[str, ToolDeclaration] = {}
    for tool in run_input.tools or ():
        if tool.name not in loop.toolset:
            tools.setdefault(tool.name, tool)
    return tools


def _says_something(message: m.Message) -> bool:
    """Whether a message has text that is not blank, or a part."""
    if isinstance(message, m.AssistantMessage | m.ReasoningMessage | m.ActivityMessage):
        return False
    return bool(message.content.strip() if isinstance(message.content, str) else message.content)


def _text(id: str, text: str) -> list[e.Event]:
    if not text:
        return []
    return [
        e.TextMessageStartEvent(message_id=id, role="assistant"),
        e.TextMessageContentEvent(message_id=id, delta=text),
        e.TextMessageEndEvent(message_id=id),
    ]


def _opened(id: str, name: str, arguments: str, message_id: str) -> list[e.Event]:
    """The events of a whole call; without arguments, those that open an existing call again."""
    args = [e.ToolCallArgsEvent(tool_call_id=id, delta=arguments)] if arguments else []
    return [
        e.ToolCallStartEvent(tool_call_id=id, tool_call_name=name, parent_message_id=message_id),
        *args,
        e.ToolCallEndEvent(tool_call_id=id),
    ]
