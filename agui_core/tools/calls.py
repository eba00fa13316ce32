"""`Calls`: the tool calls of one thread, from the agent's asking to the application's answer and the next input.

    calls = agui.Calls(reducer, toolset)
    run_input = calls.next_input(thread_id="t")     # send it, and give the reducer what comes back
    await calls.answer(confirm)                      # run what may run; `confirm` asks a person
    calls.waiting()                                  # who has to act, and on what
    run_input = calls.next_input()                   # once all is answered

A call runs when it is complete, valid, advertised for the run, and approved where its tool asks for that; never twice.
Only `answer` and `continue_with` need an event loop, asyncio or trio.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict
from uuid import uuid4

from agui_core._options import Option, check_options
from agui_core._text import listed, quoted
from agui_core.errors import AGUIError, ResumeError
from agui_core.limits import Limits
from agui_core.protocol.base import UNSET, NotNull, UnsetType
from agui_core.protocol.events import Event
from agui_core.protocol.run import Context, Interrupt, ResumeEntry, RunAgentInput
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.state import Middleware
from agui_core.tools.approval import ApprovalRequest, Confirm, Verdict
from agui_core.tools.executor_settings import ExecutorSettings
from agui_core.tools.interrupts import Answers, check_resume
from agui_core.tools.persisted import Persisted, read_persisted
from agui_core.tools.result_size import RESULT_BYTES
from agui_core.tools.run_input import build_input
from agui_core.tools.run_view import RunView
from agui_core.tools.states import CallState, Waiting
from agui_core.tools.toolset import Toolset
from agui_core.tools.tracker import CallTracker
from agui_core.tools.verdicts import decide, request, resume
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire import encode

__all__ = ["Calls", "CallsOptions", "Ending"]

Ending: TypeAlias = Literal["done", "waiting", "broken", "rounds", "repeated"]
"""Why `Calls.continue_with` ended. `done`: only the user has to act. `waiting`: a person or the application has to.
`broken`: the run failed, was cancelled, cut off or refused. `rounds`: the cap was reached. `repeated`: a round brought
nothing new."""

Send: TypeAlias = Callable[[RunAgentInput], Awaitable[object]]


class CallsOptions(TypedDict, total=False):
    """What `Calls.restore` takes besides a checkpoint and a toolset."""

    limit: int
    threads: int | None
    timeout: float | None
    expose_errors: bool
    result_bytes: int | None
    on_event: Callable[[Event], object] | None
    limits: Limits | None
    middleware: Iterable[Middleware]
    on_warning: Callable[[ProtocolWarning], object] | None


_OPTIONS = {
    "reducer": Option("a Reducer", (Reducer,)),
    "toolset": Option("a Toolset", (Toolset,)),
}


class Calls:
    """The tool calls of one reducer's thread.

    `toolset`: all tools that the application offers.
    `limit`: calls that run at a time.
    `threads`: a sync tool runs in a thread, which cannot be stopped. Threads that never came back are counted for the
    whole process; from this many on (4 times `limit` unless given) sync tools are answered "not run".
    `timeout`: seconds for a tool without a timeout of its own, from the start of its call.
    `expose_errors`: put the text of a tool's exceptions into its answers. It may show paths and secrets to the model
    and to people.
    `result_bytes`: bytes of UTF-8 in an answer, for a tool without a bound of its own; None for no bound. A longer
    answer is cut and says so.

    Raises: `TypeError` or `ValueError` for an option that does not fit.
    """

    # `restore` and `ToolLoop` repeat these options, as signatures are what `help` and editors show.
    def __init__(
        self,
        reducer: Reducer,
        toolset: Toolset,
        *,
        limit: int = 32,
        threads: int | None = None,
        timeout: float | None = None,
        expose_errors: bool = False,
        result_bytes: int | None = RESULT_BYTES,
    ) -> None:
        check_options(_OPTIONS, reducer=reducer, toolset=toolset)
        self._settings = ExecutorSettings(limit, threads, timeout, expose_errors, result_bytes).checked()
        self._log = WarningLog()
        self._tracker = CallTracker(reducer, toolset, Persisted(seen=reducer.version), self._log)
        self._answering = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.toolset!r} on {self.reducer!r}>"

    @property
    def reducer(self) -> Reducer:
        """The reducer of the thread."""
        return self._tracker.reducer

    @property
    def toolset(self) -> Toolset:
        """All tools of the application. More may be added at any time."""
        return self._tracker.toolset

    @property
    def interrupts(self) -> tuple[Interrupt, ...]:
        """The interrupts that the next input has to answer (INT-5), decided or not."""
        return self._tracker.view.interrupts

    @property
    def warnings(self) -> tuple[ProtocolWarning, ...]:
        """Members stripped from inputs, and second answers that were dropped."""
        return tuple(self._log)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Ids of unanswered calls that the last run named as pending, of tools that nobody in the thread knows. The
        next input answers them as invalid.
        """
        view = self._tracker.view
        unanswered = self._tracker.unanswered(view)
        return tuple(id for id in view.unknown if id in unanswered)

    # --- reading --------------------------------------------------------------------------------------------------

    def state(self, id: str) -> CallState:
        """The state of a call. Raises: `KeyError` for an id that no call has."""
        view = self._tracker.sync()
        state = self._tracker.look(id, view).state
        self._tracker.show(id, view)
        return state

    def waiting(self) -> Waiting:
        """Who has to act on the last run, and on what. Costs a step for each of its calls."""
        return self._tracker.waiting()

    def ready(self, since: int = 0) -> bool:
        """Whether the next input can go out on its own: nothing of the last run waits for an answer or a decision, and
        one of these came after version `since` of the reducer.
        """
        view = self._tracker.sync()
        waiting = self._tracker.waiting_in(view)
        return waiting.who == "agent" and self.reducer.status != "running" and self._tracker.came_after(since, view)

    # --- approving ------------------------------------------------------------------------------------------------

    def request(self, id: str) -> ApprovalRequest:
        """The question to a person about a call: its exact arguments, the interrupts that name it, a `digest` of both.
        Show it, and give it back to `approve` or `deny`.

        Raises: `KeyError` for an id that no call has.
        """
        self.state(id)
        return request(self._tracker, id)

    def approve(
        self,
        about: ApprovalRequest | str,
        edited_args: dict[str, Any] | None = None,
        reason: str | None = None,
        *,
        digest: str | None = None,
        now: datetime | None = None,
    ) -> None:
        """A person lets a call run. It runs in the next `answer`, and is judged again there. A call that an interrupt
        names is approved by the next input (FT-11). The approval is void when the call is reopened or changes.

        `about`: the request that the person saw, or a call id. A bare id means the call as `request`, `waiting` or
        `state` of this object last showed it, or else as it is now.
        `edited_args`: a full replacement of the arguments.
        `reason`: goes into the answer's metadata, or to the agent.
        `digest`: of the request, where `about` is an id.
        `now`: the time to compare expiry with.

        Raises: `ApprovalError`, with nothing decided, when the call waits for no approval or is not the one that was
        shown; `InvalidArguments` when the edited arguments do not fit; `ResumeError` when the interrupt takes none.
        """
        verdict = Verdict(approved=True, edited_args=edited_args, reason=reason)
        decide(self._tracker, about, verdict, digest=digest, now=now)

    def deny(
        self,
        about: ApprovalRequest | str,
        reason: str | None = None,
        *,
        digest: str | None = None,
        now: datetime | None = None,
    ) -> None:
        """A person does not let a call run; the next `answer` tells the model, with the reason.

        Parameters and errors are those of `approve`.
        """
        decide(self._tracker, about, Verdict(approved=False, reason=reason), digest=digest, now=now)

    def resume(self, answers: Answers = (), *, now: datetime | None = None) -> tuple[ResumeEntry, ...]:
        """Answer the open interrupts: all of them, together with earlier calls of `approve` and `deny` (INT-6). Gives
        the entries that the next input will carry.

        `answers`: interrupt ids with True, False, a `Verdict` or None (give up); or resume entries, as structs or wire
        dicts, for any other payload.
        `now`: the time to compare expiry with.

        Raises: `ResumeError`, before anything is sent, for interrupts without an answer, unknown, answered twice, or
        resolved after their expiry; `InvalidArguments` for edited arguments that are no JSON.
        """
        return resume(self._tracker, answers, now)

    # --- answering ------------------------------------------------------------------------------------------------

    async def answer(
        self,
        confirm: Confirm | None = None,
        *,
        before_effect: Callable[[], Awaitable[object]] | None = None,
        progress: Callable[[str, Any], Awaitable[object]] | None = None,
    ) -> tuple[str, ...]:
        """Answer the calls of the last run that are ours: run those that may run, and say why the others did not. Gives
        the ids of the calls answered, in call order, as their answers are added.

        `confirm`: asks a person about one call or interrupt at a time, in call order, while calls that need no approval
        run. Without it such calls wait.
        `before_effect`: awaited before a tool with effects runs. Write `checkpoint()` down there, and the call is not
        run again after a crash.
        `progress`: gets the reports of tools.

        Sync tools run in threads. One that is not back at its timeout is abandoned and holds up nobody. On
        cancellation, finished calls are answered, begun ones get "cancelled: it may have taken effect", and the others
        stay pending. Calls of a failed, cancelled, truncated or refused run are not executed (FT-7).

        Raises: `AGUIError` during a run, or while another `answer` goes on. Errors of `confirm` and `before_effect`, at
        the end; the calls concerned stay pending.
        """
        from agui_core.tools.executor import Executor  # anyio is loaded when something async is touched

        if self.reducer.status == "running":
            raise AGUIError("a run is going on; its calls are answered when it has finished [FT-7]")
        if self._answering:
            raise AGUIError("the calls are being answered already; await that")
        self._answering = True
        try:
            return await Executor(
                self._tracker,
                self._settings,
                confirm=confirm,
                before_effect=before_effect,
                progress=progress,
            ).run()
        finally:
            self._answering = False

    def set_output(self, id: str, output: Any, *, error: str | None = None, stopped: bool = False) -> None:
        """Answer a call of the last run by hand: one of a tool without a handler here, or one of the agent's own that
        waits.

        `output`: for the model, a text, content parts or any JSON value.
        `error`: a short text for people; marks a failure.
        `stopped`: the application cut the run off, and ran a whole call of it all the same.

        Raises: `TypeError` for an output that is no JSON, `ValueError` for more than `result_bytes`, `ApprovalError`
        when the call is answered already, runs here, waits for an approval, was denied, is answered through an
        interrupt, or belongs to a run that goes on or ended badly (FT-7).
        """
        self._tracker.answer_by_hand(id, output, error, stopped=stopped, bound=self._settings.result_bytes_of)

    def abandon(self) -> None:
        """The user goes on: give up every interrupt, and answer every call that waits for somebody here."""
        interrupts = self.interrupts
        if interrupts:
            self.resume({interrupt.id: None for interrupt in interrupts})
        self._tracker.leave()

    # --- the next run ---------------------------------------------------------------------------------------------

    def next_input(
        self,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        parent_run_id: str | UnsetType = UNSET,
        tools: Toolset | None = None,
        context: Iterable[Context | Mapping[str, Any]] = (),
        forwarded_props: NotNull | UnsetType = UNSET,
        now: datetime | None = None,
    ) -> RunAgentInput:
        """The input of the next run: the whole history without activities, the state, the tools, the answers to open
        interrupts. Add the user's message to the reducer first. The calls of a run that ended badly (OPEN-17), and
        calls of ours that an earlier run left, are answered here, unexecuted.

        `thread_id`: needed once (IN-13).
        `run_id`: fresh and random unless given (IN-8).
        `tools`: the part of the toolset to offer in this run.
        `now`: the time to compare expiry with.

        Raises: `ResumeError` while a call to a tool that was advertised for the last run is unanswered and no open
        interrupt names it (FT-5), or an interrupt is not answered (INT-7); `ProtocolError` for a malformed argument;
        `ValueError` for a used run id, another thread's id, or a tool that is not in the toolset.
        """
        tracker, reducer = self._tracker, self.reducer
        if reducer.status == "running":
            raise ResumeError("a run is going on; the next one begins after its end [RUN-2]")
        offered, thread, fresh = self._offered(tools), self._thread(thread_id), self._fresh(run_id)
        view = self._settle()
        interrupts = view.interrupts
        entries = tuple(tracker.persisted.entries.values())
        check_resume(interrupts, entries, now)
        run_input = build_input(
            thread_id=thread,
            run_id=fresh,
            parent_run_id=parent_run_id,
            messages=reducer.messages,
            state=reducer.state,
            tools=offered,
            context=context,
            forwarded_props=forwarded_props,
            interrupts=interrupts,
            entries=entries,
            log=self._log,
        )
        tracker.send(run_input, view)
        return run_input

    def _offered(self, tools: Toolset | None) -> Toolset:
        if tools is None:
            return self.toolset
        strangers = [tool.name for tool in tools if self.toolset.get(tool.name) is not tool]
        if strangers:
            raise ValueError(
                f"tools {', '.join(strangers)} are not in the toolset of these calls; add them there first"
            )
        return tools

    def _thread(self, thread_id: str | None) -> str:
        known = self._tracker.persisted.thread_id or self.reducer.run.thread_id
        if thread_id is None and known is None:
            raise ValueError("the thread has no id yet: give thread_id [IN-13]")
        if thread_id is not None and known is not None and thread_id != known:
            raise ValueError(
                f"this is thread {quoted(known)}, not {quoted(thread_id)}; another thread takes another reducer [INT-4]"
            )
        return thread_id if thread_id is not None else known or ""

    def _fresh(self, run_id: str | None) -> str:
        if run_id is None:
            return str(uuid4())
        if run_id == self.reducer.run.run_id or run_id in self._tracker.persisted.run_ids:
            raise ValueError(f"run id {quoted(run_id)} was used already; each try takes a new one [IN-8]")
        return run_id

    def _settle(self) -> RunView:
        """Add held answers, answer calls that nobody can answer any more, and refuse to leave a call of ours behind."""
        tracker = self._tracker
        view = tracker.sync()
        tracker.give_up(view)
        tracker.flush(tracker.held(view))
        view, calls = tracker.sync(), self.reducer.tool_calls
        open_ones = [id for id in tracker.answerable(view) if calls[id].name in view.offered]
        if open_ones:
            raise ResumeError(
                f"tool calls {listed(open_ones)} have no answer; answer, approve or deny them first [FT-5]"
            )
        return view

    def renew(self) -> Reducer:
        """After a refusal: a new idle reducer with the same messages and state, which is `reducer` from now on. The
        calls of the refused run are answered, unexecuted (OPEN-17); its interrupts stay open.
        """
        if self._tracker.sync().phase == "broken":
            self._settle()
        return self._tracker.renew()

    async def continue_with(
        self,
        send: Send,
        confirm: Confirm | None = None,
        *,
        max_rounds: int = 10,
        before_effect: Callable[[], Awaitable[object]] | None = None,
        progress: Callable[[str, Any], Awaitable[object]] | None = None,
        thread_id: str | None = None,
        parent_run_id: str | UnsetType = UNSET,
        tools: Toolset | None = None,
        context: Iterable[Context | Mapping[str, Any]] = (),
        forwarded_props: NotNull | UnsetType = UNSET,
    ) -> Ending:
        """Answer, send the next input, and again, until somebody else has to act.

        `send` sends a run input and gives the reducer the events of the whole run before it returns. `max_rounds`
        bounds how often it is called. Also ends when the agent asks the same again after the same answers.
        The options from `thread_id` on are those of `next_input`, for each run.
        """
        asked: object = None
        context = tuple(context)
        for _ in range(max_rounds):
            await self.answer(confirm, before_effect=before_effect, progress=progress)
            view = self._tracker.sync()
            if view.phase == "broken":
                return "broken"
            waiting = self._tracker.waiting_in(view)
            if waiting.who in ("application", "approver"):
                return "waiting"
            if not self.ready():
                return "waiting" if waiting.agent else "done"
            asking = self._tracker.round(view)
            if asking == asked:
                return "repeated"
            asked = asking
            run_input = self.next_input(
                thread_id=thread_id,
                parent_run_id=parent_run_id,
                tools=tools,
                context=context,
                forwarded_props=forwarded_props,
            )
            await send(run_input)
        return "rounds"

    # --- keeping --------------------------------------------------------------------------------------------------

    def checkpoint(self, since: int | None = None) -> bytes:
        """Everything as bytes: the reducer's checkpoint, with the decisions on calls as its `extra`. With `since` an
        increment, as for the reducer.
        """
        self._tracker.sync()
        return self.reducer.checkpoint(encode(self._tracker.saved()), since)

    @classmethod
    def restore(
        cls,
        data: bytes,
        toolset: Toolset,
        *increments: bytes,
        limit: int = 32,
        threads: int | None = None,
        timeout: float | None = None,
        expose_errors: bool = False,
        result_bytes: int | None = RESULT_BYTES,
        on_event: Callable[[Event], object] | None = None,
        limits: Limits | None = None,
        middleware: Iterable[Middleware] = (),
        on_warning: Callable[[ProtocolWarning], object] | None = None,
    ) -> Calls:
        """Go on from a checkpoint, in another process. A call of a tool with effects that had begun is answered "may or
        may not have run".

        `toolset`: the tools, declared anew.
        `options`: those of `Reducer.restore`.

        Raises: `AGUIError` for bytes that are not a checkpoint.
        """
        reducer = Reducer.restore(
            data, *increments, on_event=on_event, limits=limits, middleware=middleware, on_warning=on_warning
        )
        calls = cls(
            reducer,
            toolset,
            limit=limit,
            threads=threads,
            timeout=timeout,
            expose_errors=expose_errors,
            result_bytes=result_bytes,
        )
        if reducer.extra:
            persisted, effect_started = read_persisted(reducer.extra)
            calls._tracker = CallTracker(reducer, toolset, persisted, calls._log, effect_started)
        return calls
