"""`TurnRunner`: the runs of one turn, and the answers between them.

A run; the answers of the application and its people to its calls and interrupts; the next run, with these answers.
Nothing here starts a task. `play` may be cancelled at any wait, and leaves the thread as it is then.

`Calls.continue_with` has a loop of its own, for applications that send inputs themselves, as `tools` cannot know this
room. It has no retry, no stop, no questions about interrupts and no message that waits to be sent, which are most of
the loop here.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

from anyio.lowlevel import checkpoint

from agui_core._text import listed, quoted
from agui_core.errors import AGUIError, ResumeError, TransportError
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import UserMessage
from agui_core.protocol.run import Interrupt, ResumeEntry, RunAgentInput
from agui_core.reducer import Reducer, Run
from agui_core.status import BROKEN, OVER
from agui_core.stream.follow import LiveRun, follow
from agui_core.stream.half_said import HalfSaid, half_said
from agui_core.stream.turn import Ending
from agui_core.stream.usage import Usage
from agui_core.tools.approval import Confirm, Verdict
from agui_core.tools.calls import Calls
from agui_core.tools.interrupts import APPROVAL, agreed, entry_of, expired
from agui_core.tools.run_input import InputOptions
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire import validate

__all__ = ["Agent", "OnInterrupt", "TurnRunner"]

OnInterrupt: TypeAlias = Callable[[Interrupt], Awaitable[Any]]
"""Answers an interrupt: None for no answer yet; a `ResumeEntry` in full; True, False or a `Verdict` where it asks for
approval; any other JSON value is the payload."""

_ENDED = frozenset({"failed", "rejected"})
"""After these the next stream takes a renewed reducer: the old one refuses more, or an error at its begin (RUN-7)."""


class Agent(Protocol):
    """Anything that makes runs: `HttpAgent`, or an object of the application's."""

    def run(self, run_input: RunAgentInput, /) -> Any:
        """One run: an async context manager that yields a `LiveRun`, or an async iterable of events or bytes.

        A `run` that makes a `LiveRun` takes a keyword argument `reducer`, and applies the run to that reducer.
        """


class TurnRunner:
    """The work of a conversation between two messages of the user, and the memory that this takes."""

    def __init__(
        self,
        agent: Agent,
        calls: Calls,
        thread_id: str,
        options: InputOptions,
        *,
        confirm: Confirm | None,
        on_interrupt: OnInterrupt | None,
        before_effect: Callable[[], Awaitable[object]] | None,
        progress: Callable[[str, Any], Awaitable[object]] | None,
        max_rounds: int,
        interval: float,
        tell: Callable[[], object],
    ) -> None:
        self.calls = calls
        self.thread_id = thread_id
        self.usage = Usage()
        self.answers: dict[str, list[ResumeEntry]] = {}
        """Answers to interrupts by id, until all have one; several where interrupts share an id, in their order."""
        self.owed = False
        """No run has taken up the user's last message."""
        self.broke_at: int | None = None
        """The version of the reducer before the last run that began; None if that run came whole."""
        self._trying: tuple[int, Run] | None = None
        """The version before the run that is asked for now, and the run before it."""
        self.decisions = 0
        """How many answers came by hand."""
        self.log = WarningLog()
        self._agent = agent
        self._takes_reducer = _takes(agent.run, "reducer")
        self._options = options
        self._confirm = confirm
        self._on_interrupt = on_interrupt
        self._before_effect = before_effect
        self._progress = progress
        self._max_rounds = max_rounds
        self._interval = interval
        self._tell = tell

    @property
    def reducer(self) -> Reducer:
        """The reducer of the thread; another one after a refusal."""
        return self.calls.reducer

    @property
    def since(self) -> int | None:
        """The version of the reducer before the run that `retry` replaces. It stays until another run begins: an agent
        that cannot be reached is asked again.
        """
        if self._trying is None or not self._began(self._trying[1]):
            return self.broke_at
        return self._trying[0]

    @property
    def is_free(self) -> bool:
        """Whether neither the application nor a person has to act on the last run."""
        return self.calls.waiting().who not in ("application", "approver")

    @property
    def is_due(self) -> bool:
        """Whether the next input has something to say. Interrupts of a refused resume are still open, though another
        run came last (OPEN-16).
        """
        return self.calls.ready() or bool(self.calls.interrupts and not self.calls.waiting().interrupts)

    def say(self, message: UserMessage) -> None:
        """Add the user's message to the thread."""
        self.reducer.add(message)
        self.owed = True

    async def play(self, *, forced: bool, again: bool = False) -> Ending:
        """Run after run, to the end of the turn. Gives the reason for the end.

        `forced`: send the first run without an answer to the last one.
        `again`: the first run replaces the last run, which broke.
        """
        asked: object = None
        runs = 0
        told_unknown = False  # a run was sent with nothing to say but that tools are unknown
        while True:
            if not forced:
                if self.reducer.status in BROKEN and not self.calls.interrupts:
                    return "broken"
                decisions = self.decisions
                await self._answer()
                if not self.is_free:
                    if self.decisions != decisions:
                        continue
                    return "waiting"
                unknown = self.calls.unknown
                if not self.is_due and not (unknown and not told_unknown):
                    return self._idle()
                told_unknown = told_unknown or bool(unknown)
                asking = self._asked()
                if asking == asked:
                    return "repeated"
                asked = asking
            if runs == self._max_rounds:
                return "rounds"
            await checkpoint()  # a stop during the answers: they are kept, and not sent
            runs += 1
            retry = self._half_said() if again else None
            forced = again = False
            await self._exchange(retry)
            if self.reducer.status in BROKEN:
                return "broken"

    def _idle(self) -> Ending:
        """Nothing can be sent: the user goes on, unless calls of the agent's own wait for somebody."""
        waiting = self.calls.waiting().agent
        if not waiting:
            return "done"
        self.log.add(
            "FT-2", f"tool calls {listed(list(waiting))} are the agent's own and wait; set_output answers them"
        )
        return "waiting"

    # --- a run ----------------------------------------------------------------------------------------------------

    def _half_said(self) -> HalfSaid | None:
        """What the last run said before it broke: it would be said twice, and agents do not answer an assistant."""
        if self.broke_at is None:
            return None
        said = half_said(self.reducer, self.broke_at)
        for id in said.grown:
            self.log.add(
                "RUN-22", f"message {quoted(id)} was held before the run that broke, and keeps what that added"
            )
        return said

    async def _exchange(self, retry: HalfSaid | None = None) -> None:
        """One run, from the reducer's messages and state on. With `retry` it replaces those of the broken run."""
        calls = self.calls
        if self.reducer.status in _ENDED:
            self._note(self.reducer.warnings)
            calls.renew()
        late = {interrupt.id: None for interrupt in calls.interrupts if expired(interrupt)}
        if late:
            calls.resume(late)  # decided or not, they can only be given up now (INT-8)
        run_input = calls.next_input(thread_id=self.thread_id, **self._options)
        self.answers = {}  # ids come again, with other questions
        reducer = self.reducer
        if retry is not None:
            run_input = retry.without(run_input)
            reducer.supersede(retry.gone, text_of=retry.textless)
        version, before = reducer.version, reducer.run
        self._trying = version, before
        told = -1
        try:
            async with await self._open(run_input) as live:
                if live.reducer is not reducer:
                    raise TypeError(
                        "the agent's run has a reducer of its own; let `run` take `reducer` and apply it to that"
                    )
                try:
                    async for _ in live.updates(self._interval):
                        told = reducer.version
                        self._tell()
                except TransportError as error:
                    # The run that was asked for is the last one of a stream (RUN-8), so all that was asked for is here.
                    if reducer.status not in OVER or reducer.run.run_id != run_input.run_id:
                        raise
                    self.log.add("TR-1", f"the run is whole, but its connection did not end cleanly: {error}")
                finally:
                    self._note(live.warnings[: len(live.warnings) - len(reducer.warnings)])
            if not self._began(before):
                raise TransportError(_no_run(live))
            if retry is not None and reducer.status in OVER and not reducer.changes(version).added:
                self.log.add("RUN-22", "the run that was tried again brought no message")
        finally:
            if reducer.status != "running":
                reducer.supersede(())
            self._conclude(version, before)
            if reducer.version != told:
                self._tell()

    async def _open(self, run_input: RunAgentInput) -> AbstractAsyncContextManager[LiveRun]:
        agent: Any = self._agent
        run = agent.run(run_input, reducer=self.reducer) if self._takes_reducer else agent.run(run_input)
        if inspect.isawaitable(run):
            run = await run
        return follow(run, reducer=self.reducer) if isinstance(run, AsyncIterable) else run

    def _began(self, before: Run) -> bool:
        """Whether a run has begun since `before`. A refusal changes the status, but begins no run."""
        return self.reducer.run is not before

    def _conclude(self, version: int, before: Run) -> None:
        """The run is over. If it began, add its tokens (USE-4, USE-5)."""
        self._trying = None
        if not self._began(before):
            return
        reducer = self.reducer
        run = reducer.run
        self.broke_at = None if reducer.status in OVER else version
        self.owed = False
        # An error in place of a run leaves all else as the run before had it.
        in_place = run.error is not None and run.run_id == before.run_id
        usage = run.error.usage if in_place and run.error is not None else run.usage
        self.usage = self.usage.plus(usage or ())

    def _note(self, warnings: Iterable[ProtocolWarning]) -> None:
        """Keep the warnings of a reducer or a run that goes away."""
        for each in warnings:
            self.log.add_all(
                each.rule,
                each.message,
                [each.index] * each.count,
                type=each.type,
                path=each.path,
                refused=each.refused,
            )

    # --- between runs ---------------------------------------------------------------------------------------------

    async def _answer(self) -> None:
        """Answer the calls that are ours, and the interrupts, as far as possible now."""
        version = self.reducer.version
        try:
            await self.calls.answer(self._confirm, before_effect=self._before_effect, progress=self._progress)
            await self._ask()
        finally:
            if self.reducer.version != version:
                self._tell()

    async def _ask(self) -> None:
        """Have the open interrupts answered; once all are, they are resumed together (INT-6)."""
        undecided = frozenset(self.calls.waiting().interrupts)
        sharing: dict[str, list[Interrupt]] = {}
        for interrupt in self.calls.interrupts:
            if interrupt.id in undecided and interrupt not in sharing.setdefault(interrupt.id, []):
                sharing[interrupt.id].append(interrupt)
        self.answers = {id: given for id, given in self.answers.items() if id in sharing}
        for id, interrupts in sharing.items():
            if any(expired(each) or self._is_confirmed(each) for each in interrupts):
                continue
            given = self.answers.setdefault(id, [])
            for interrupt in interrupts[len(given) :]:
                answer = await self._put(interrupt)
                if answer is None:
                    break
                given.append(answer)
        entries = [self._entry(interrupts) for interrupts in sharing.values()]
        if entries and None not in entries and undecided == frozenset(self.calls.waiting().interrupts):
            self.calls.resume([entry for entry in entries if entry is not None])
            self.answers = {}

    def _entry(self, interrupts: list[Interrupt]) -> ResumeEntry | None:
        """The entry for the interrupts that share an id; None while one of them has no answer."""
        id = interrupts[0].id
        if any(map(expired, interrupts)):
            return ResumeEntry(interrupt_id=id, status="cancelled")
        given = self.answers.get(id, [])
        if len(given) < len(interrupts):
            return None
        try:
            return agreed(interrupts[0], given)
        except ResumeError:
            del self.answers[id]  # to be asked again
            raise

    def _is_confirmed(self, interrupt: Interrupt) -> bool:
        """Whether `confirm` answers an interrupt."""
        return self._confirm is not None and (interrupt.reason == APPROVAL or interrupt.tool_call_id is not UNSET)

    async def _put(self, interrupt: Interrupt) -> ResumeEntry | None:
        answer = None if self._on_interrupt is None else await self._on_interrupt(interrupt)
        if answer is None:
            return None
        if isinstance(answer, bool | Verdict):
            return entry_of(interrupt, answer)
        if not isinstance(answer, ResumeEntry):
            answer = ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload=answer)
        validate(answer)
        if answer.interrupt_id != interrupt.id:
            told = f"the answer to interrupt {quoted(interrupt.id)} names {quoted(answer.interrupt_id)} [INT-5]"
            raise AGUIError(told)
        return answer

    def _asked(self) -> object:
        """The questions of the last run and their answers, to tell whether the agent asks the same again."""
        found = self.reducer.tool_calls
        calls = [found[id] for id in self.reducer.run.calls_without_result if id in found]
        interrupts = [(i.reason, i.message, i.tool_call_id, i.response_schema) for i in self.calls.interrupts]
        return interrupts, [(call.name, call.arguments, call.result and call.result.content) for call in calls]


def _no_run(live: LiveRun) -> str:
    """The error for a stream without a run."""
    dropped = [str(warning) for warning in live.warnings[-3:]]
    why = f": all that came was dropped ({'; '.join(dropped)})" if dropped else ""
    return f"the agent's stream ended before a run began{why}; `retry` asks again [RUN-1]"


def _takes(function: Callable[..., Any], name: str) -> bool:
    """Whether a function takes a keyword argument."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return name in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())
