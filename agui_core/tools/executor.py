"""Answering: one pass over the calls of the last run, with a pool of workers and one person to ask.

At most `limit` workers take calls from a queue, so a call does not cost the start of a task. The person is asked in
call order, beside the workers. Answers are added in call order, each as soon as all before it are there. Runs on
asyncio and trio. Only abandoned threads outlive `run`.

Cancellation at any await leaves every call answered, or as pending as it was. A call has started once its tool may have
run.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from inspect import isawaitable
from math import inf
from time import perf_counter
from typing import Any, TypeAlias

from anyio import CancelScope, CapacityLimiter, create_task_group, current_effective_deadline, current_time
from anyio import get_cancelled_exc_class as cancelled_class
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from msgspec.structs import replace

from agui_core._text import plain
from agui_core.errors import AGUIError
from agui_core.protocol.run import Interrupt
from agui_core.tools.approval import ApprovalRequest, Confirm, Plan, Verdict
from agui_core.tools.concurrency import ThreadedCall, abandoned_threads
from agui_core.tools.context import ToolContext
from agui_core.tools.executor_settings import ExecutorSettings, awaited, contained
from agui_core.tools.interrupts import asks_approval, expired
from agui_core.tools.outcomes import (
    Outcome,
    cancelled,
    crowded_out,
    outcome_of_error,
    outcome_of_result,
    timed_out,
)
from agui_core.tools.result_size import bounded
from agui_core.tools.states import ANSWERED
from agui_core.tools.tracker import CallTracker
from agui_core.tools.verdicts import decide, decide_interrupt
from agui_core.tools.verdicts import request as request_for

__all__ = ["Executor", "in_thread"]

_log = logging.getLogger("agui_core.tools")
_log.addHandler(logging.NullHandler())

Question: TypeAlias = str | Interrupt
"""The id of a call of ours that needs approval, or an interrupt."""

_TURN = 0.01
"""Seconds of judging after which the event loop gets a turn."""


async def in_thread(function: Callable[[], Any], thread: ThreadedCall, limiter: CapacityLimiter) -> Any:
    """The value of a function in a worker thread, or its error (see `ThreadedCall.run`). The thread is abandoned when
    this is cancelled.
    """
    try:
        return await run_sync(partial(thread.run, function), abandon_on_cancel=True, limiter=limiter)
    finally:
        thread.give_up()


class Executor:
    """One pass."""

    def __init__(
        self,
        tracker: CallTracker,
        settings: ExecutorSettings,
        *,
        confirm: Confirm | None,
        before_effect: Callable[[], Awaitable[object]] | None,
        progress: Callable[[str, Any], Awaitable[object]] | None,
    ) -> None:
        self._tracker = tracker
        self._settings = settings
        self._confirm = confirm
        self._before_effect = before_effect
        self._progress = progress
        view = tracker.sync()
        self._thread_id, self._run_id = view.thread_id, view.run_id
        # The calls of this pass in order, how many of them are through, and those that turned out to wait.
        self._order: list[str] = []
        self._through = 0
        self._waiting: set[str] = set()
        self._added: list[str] = []
        self._queue: deque[tuple[str, Plan]] = deque()
        self._generations: dict[str, int] = {}
        self._workers = 0
        self._started: dict[str, Plan] = {}
        self._errors: list[Exception] = []

    async def run(self) -> tuple[str, ...]:
        """Answer all calls that can be answered. Gives the ids of those whose answers were added."""
        await checkpoint()
        try:
            questions = await self._judge()
            self._flush()
            if self._queue or questions:
                self._limiter = CapacityLimiter(inf)
                async with create_task_group() as self._tasks:
                    self._fill()
                    await self._ask(questions)
        finally:
            self._close()
        if self._errors:
            raise self._errors[0]
        return tuple(self._added)

    # --- what has to happen ---------------------------------------------------------------------------------------

    async def _judge(self) -> list[Question]:
        """Decide on each call. Gives the questions for a person, in call order."""
        tracker = self._tracker
        view = tracker.view
        ours, held, left = tracker.answerable(view), tracker.held(view), view.left
        in_turn = {*ours, *held}
        self._order = [*(id for id in held if id not in left), *(id for id in left if id in in_turn)]
        turn = perf_counter()
        asking: set[str] = set()
        for id in ours:
            plan = tracker.plan(id, tracker.view, fresh=True)
            if plan.action == "ask" and self._confirm is not None:
                asking.add(id)
            else:
                self._dispatch(id, plan)
            if perf_counter() - turn > _TURN:
                await checkpoint()
                turn = perf_counter()
        return [] if self._confirm is None else self._questions(left, asking)

    def _questions(self, left: Iterable[str], asking: set[str]) -> list[Question]:
        """The calls that need approval and the interrupts that ask for one, in call order."""
        naming: dict[str, list[Interrupt]] = {}
        for interrupt in self._tracker.undecided(self._tracker.view):
            id = interrupt.tool_call_id
            if asks_approval(interrupt) and not expired(interrupt):
                naming.setdefault(id if isinstance(id, str) else "", []).append(interrupt)
        questions: list[Question] = []
        for id in left:
            questions += naming.pop(id, ())
            if id in asking:
                questions.append(id)
        return [*questions, *(interrupt for interrupts in naming.values() for interrupt in interrupts)]

    def _dispatch(self, id: str, plan: Plan) -> None:
        if plan.action == "run":
            self._generations[id] = self._tracker.record(id).generation
            self._queue.append((id, plan))
        elif plan.outcome is not None:
            self._tracker.hold(id, plan.outcome, self._run_id, plan.by)
        else:
            self._waiting.add(id)

    # --- asking ---------------------------------------------------------------------------------------------------

    async def _ask(self, questions: list[Question]) -> None:
        """Ask one question after the other. When asking fails, the remaining ones wait."""
        for number, question in enumerate(questions):
            try:
                if isinstance(question, Interrupt):
                    await self._ask_about_interrupt(question)
                else:
                    await self._ask_about_call(question)
            except Exception as error:
                self._errors.append(error)
                self._waiting.update(id for id in questions[number:] if isinstance(id, str))
                break
            self._flush()
            self._fill()
        self._flush()

    async def _ask_about_interrupt(self, interrupt: Interrupt) -> None:
        tracker = self._tracker
        if interrupt not in tracker.undecided(tracker.view):  # it was asked twice, or somebody decided elsewhere
            return
        request = request_for(tracker, interrupt)
        verdict = await self._put(request)
        undecided = tracker.undecided(tracker.sync())
        if verdict is not None and request == request_for(tracker, interrupt) and interrupt in undecided:
            decide_interrupt(tracker, interrupt, verdict)

    async def _ask_about_call(self, id: str) -> None:
        """Ask, and apply the verdict unless the call changed meanwhile, or was decided elsewhere."""
        tracker = self._tracker
        generation = tracker.generation(id)
        verdict = await self._put(request_for(tracker, id))
        view = tracker.sync()
        if generation is None or tracker.generation(id) != generation or view.phase != "over":
            self._waiting.add(id)
            return
        if verdict is not None and not verdict.cancelled and tracker.look(id, view).state == "approval-requested":
            decide(tracker, id, verdict, strict=False)
        if tracker.look(id, view).state in ANSWERED:
            self._waiting.add(id)
        else:
            self._dispatch(id, tracker.plan(id, view, fresh=True))

    async def _put(self, request: ApprovalRequest) -> Verdict | None:
        assert self._confirm is not None
        answer: Any = self._confirm(request)
        if isawaitable(answer):
            answer = await answer
        if isinstance(answer, bool):
            return Verdict(approved=answer)
        if answer is None or isinstance(answer, Verdict):
            return answer
        raise TypeError(f"confirm gave {answer!r}, but True, False, None or a Verdict is an answer")

    # --- running --------------------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Start workers, at most one for each call in the queue."""
        for _ in range(min(len(self._queue), self._settings.limit - self._workers)):
            self._workers += 1
            self._tasks.start_soon(self._work)

    async def _work(self) -> None:
        try:
            while self._queue:
                await self._execute(*self._queue.popleft())
        finally:
            self._workers -= 1

    async def _execute(self, id: str, plan: Plan) -> None:
        assert plan.tool is not None
        left_behind = 0 if plan.tool.is_async else abandoned_threads()
        if left_behind >= self._settings.max_threads:
            self._tracker.hold(id, crowded_out(left_behind), self._run_id, plan.by)
            self._flush()
            return
        if not await self._mark(id, plan):
            self._waiting.add(id)
            return
        self._started[id] = plan
        outcome = await self._call(id, plan)
        self._started.pop(id, None)
        self._keep_result(id, outcome, plan)
        self._flush()

    def _keep_result(self, id: str, outcome: Outcome, plan: Plan) -> None:
        """Hold the result of a tool, unless its call is gone (MSGS-4, TOOL-6)."""
        tracker = self._tracker
        if plan.edited is not None:
            outcome = outcome.after_edit(plan.edited)
        outcome = replace(outcome, content=bounded(outcome.content, self._settings.result_bytes_of(plan.tool)))
        if tracker.generation(id) == self._generations.get(id):
            tracker.hold(id, outcome, self._run_id, plan.by)
        else:
            tracker.forget(id)
            self._waiting.add(id)

    async def _mark(self, id: str, plan: Plan) -> bool:
        """Mark a call as started, and have that written down before its tool runs; False when it must not run now."""
        tracker = self._tracker
        if not self._may_begin(id):
            return False
        tracker.start(id, plan)
        if self._before_effect is None or plan.tool is None or not plan.tool.effects:
            return True
        try:
            await self._before_effect()
        except BaseException as error:
            tracker.undo(id)
            if not isinstance(error, Exception):
                raise
            self._errors.append(error)
            return False
        if not self._may_begin(id):
            tracker.undo(id)
            return False
        return True

    def _may_begin(self, id: str) -> bool:
        """Whether a call is still the one that was judged, and nobody has answered it since."""
        tracker, generation = self._tracker, self._generations.get(id)
        return (
            tracker.sync().phase == "over"
            and id in tracker.reducer.tool_calls
            and tracker.record(id).generation == generation
            and not tracker.is_answered(id)
        )

    async def _call(self, id: str, plan: Plan) -> Outcome:
        """Run one tool. A result, an error and a timeout are all answers."""
        tool, arguments = plan.tool, plan.arguments
        assert tool is not None
        assert arguments is not None
        context = ToolContext(
            call_id=id,
            thread_id=self._thread_id,
            run_id=self._run_id,
            state=self._tracker.reducer.state,
            report=None if self._progress is None else self._report,
        )
        seconds = self._settings.timeout if tool.timeout is None else tool.timeout
        scope = None if seconds is None else CancelScope(deadline=current_time() + seconds)
        thread = None if tool.is_async else ThreadedCall()
        try:
            function = tool.bind(arguments, context)
            if scope is None:
                result = await self._invoke(id, function, thread)
            else:
                with scope:
                    result = await self._invoke(id, function, thread)
        except (KeyboardInterrupt, GeneratorExit):  # see `contained`: this task is being closed
            raise
        except BaseException as error:
            if current_effective_deadline() == -inf:  # the whole pass is being cancelled
                if isinstance(error, cancelled_class()):
                    raise
                await checkpoint()
            if scope is None or not scope.cancel_called:
                _log.warning("tool %s failed: %s", plain(tool.name), type(error).__name__)
                _log.debug("tool %s failed", plain(tool.name), exc_info=error)
                return outcome_of_error(tool.name, error, exposed=self._settings.expose_errors)
        else:
            if scope is None or not scope.cancelled_caught:
                return outcome_of_result(tool.name, result)
        assert seconds is not None
        return timed_out(tool.name, seconds, abandoned=thread is not None and thread.abandoned)

    async def _invoke(self, id: str, function: Callable[[], Any], thread: ThreadedCall | None) -> Any:
        if thread is None:
            return await contained(function())
        result, error = await self._in_thread(id, function, thread)
        if isinstance(error, GeneratorExit):  # of the function's own; nobody closes us
            raise RuntimeError("the function raised GeneratorExit") from error
        if error is not None:
            raise error
        return await contained(awaited(result)) if isawaitable(result) else result

    async def _in_thread(self, id: str, function: Callable[[], Any], thread: ThreadedCall) -> Any:
        try:
            return await in_thread(function, thread, self._limiter)
        finally:
            if not thread.started:
                self._started.pop(id, None)
                self._tracker.undo(id)

    async def _report(self, id: str, value: Any) -> None:
        assert self._progress is not None
        try:
            await self._progress(id, value)
        except Exception as error:
            _log.warning("reporting the progress of a tool failed: %s", type(error).__name__)
            _log.debug("reporting the progress of a tool failed", exc_info=error)

    # --- adding answers -------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Add the answers whose turn it is. During a run they are held, as nothing can be added."""
        if self._tracker.reducer.status == "running":
            return
        held = self._tracker.persisted.answers
        start = self._through
        while self._through < len(self._order) and (
            self._order[self._through] in held or self._order[self._through] in self._waiting
        ):
            self._through += 1
        self._added += self._tracker.flush([id for id in self._order[start : self._through] if id in held])

    def _close(self) -> None:
        """At the end, or when cancelled: started calls are answered, the others stay as they were."""
        tracker = self._tracker
        for id, plan in self._started.items():
            self._keep_result(id, cancelled(), plan)
        if tracker.reducer.status == "running":
            if any(id in tracker.persisted.answers for id in self._order):
                self._errors.append(AGUIError("a run began while its calls were being answered; the answers are held"))
            return
        rest = self._order[self._through :]
        self._added += tracker.flush([id for id in rest if id in tracker.persisted.answers])
