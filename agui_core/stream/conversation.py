"""`Conversation`: a whole thread with an agent: its runs, and the tool calls and questions between them.

    async with agui.Conversation(agent, toolset, confirm=ask) as chat:
        async for update in chat.send("What is the weather in Oslo?"):
            render(update.messages)

A message of the user starts a turn: a run, the answers to its calls and interrupts, the next run with these answers,
and so on, until the user has to act. There is one turn at a time, and in it one run. Turns run in a task that the block
owns; leaving the block ends it. Everything but a turn's `wait` returns at once, and belongs into the event loop.

Costs beyond the runs: one next input per run (a few microseconds per message), and a wake-up of the readers per update.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeAlias
from uuid import uuid4

import anyio
from anyio.abc import TaskGroup

from agui_core._options import COUNT, check_options
from agui_core._text import listed, plain
from agui_core.errors import ProtocolError, StillWaiting
from agui_core.protocol.base import UNSET, NotNull, UnsetType
from agui_core.protocol.content import ContentPart
from agui_core.protocol.messages import Message, UserMessage
from agui_core.protocol.run import Context
from agui_core.reducer import Reducer, Run
from agui_core.status import OVER, Status
from agui_core.stream.notifier import Notifier
from agui_core.stream.readers import check_interval
from agui_core.stream.saved_conversation import FORMAT, SavedConversation
from agui_core.stream.turn import Turn, TurnTask, Updates
from agui_core.stream.turn_runner import Agent, OnInterrupt, TurnRunner
from agui_core.stream.usage import Usage
from agui_core.tools.approval import ApprovalRequest, Confirm
from agui_core.tools.calls import Calls, CallsOptions
from agui_core.tools.interrupts import Answers
from agui_core.tools.run_input import InputOptions
from agui_core.tools.states import Waiting as Waits
from agui_core.tools.toolset import Toolset
from agui_core.warnings import ProtocolWarning
from agui_core.wire import encode, to_wire, validate
from agui_core.wire.compat import upgrade_message
from agui_core.wire.outgoing import enforced

__all__ = ["Content", "Conversation"]

Content: TypeAlias = str | Iterable[ContentPart | Mapping[str, Any]] | UserMessage | Mapping[str, Any]
"""What a user says: text, content parts, or a whole user message; parts and messages are structs or wire dicts."""

_OPTIONS = {"max_rounds": COUNT}


class Conversation:
    """A thread with an agent. An async context manager, to be entered once. It can be read after the block too.

    `agent`: an `HttpAgent`, or an object whose `run(run_input)` gives an async iterable of events (see `Agent`).
    `toolset`: the tools that the application offers.
    `reducer`: the reducer to go on with; its messages, state, policy, limits and middleware count, not the agent's.
    `calls`: the calls to go on with, in place of `toolset` and `reducer`.
    `thread_id`: random if not said (IN-13).
    `confirm`: asks a person about one call, or one interrupt that asks for approval, at a time.
    `on_interrupt`: answers the other interrupts, one at a time; without `confirm`, all of them.
    `before_effect`: awaited before a tool with effects runs; write `checkpoint()` down there.
    `progress`: gets the reports of tools.
    `context`, `forwarded_props`, `tools` (a part of the toolset): go into every input; change them in `options`.
    `max_rounds`: runs in one turn, at most.
    `interval`: seconds between two updates of a run, at least.

    Without `confirm` and `on_interrupt`, or when they give None, the turn ends as `waiting`, and `approve`, `deny`,
    `resume` and `set_output` take the answers. Expired interrupts are given up (INT-8).

    Raises: `ValueError` for `calls` beside a toolset or a reducer; `TypeError` or `ValueError` for other options.
    """

    def __init__(
        self,
        agent: Agent,
        toolset: Toolset | None = None,
        *,
        reducer: Reducer | None = None,
        calls: Calls | None = None,
        thread_id: str | None = None,
        confirm: Confirm | None = None,
        on_interrupt: OnInterrupt | None = None,
        before_effect: Callable[[], Awaitable[object]] | None = None,
        progress: Callable[[str, Any], Awaitable[object]] | None = None,
        context: Iterable[Context | Mapping[str, Any]] = (),
        forwarded_props: NotNull | UnsetType = UNSET,
        tools: Toolset | None = None,
        max_rounds: int = 10,
        interval: float = 1 / 30,
    ) -> None:
        check_interval(interval)
        check_options(_OPTIONS, max_rounds=max_rounds)
        if calls is None:
            calls = Calls(Reducer() if reducer is None else reducer, Toolset() if toolset is None else toolset)
        elif toolset is not None or reducer is not None:
            raise ValueError("calls bring their own toolset and reducer: give either calls or these")
        self.options: InputOptions = {"context": tuple(context), "forwarded_props": forwarded_props, "tools": tools}
        """What goes into every input: what `Calls.next_input` takes."""
        self.stopped = False
        """Whether the latest turn was stopped here. The status is then that of a run cut off, `truncated`, or that of
        the last whole run."""
        self.error: Exception | None = None
        """The exception of the latest turn."""
        self._notifier = Notifier()
        self._runner = TurnRunner(
            agent,
            calls,
            thread_id or calls.reducer.run.thread_id or str(uuid4()),
            self.options,
            confirm=confirm,
            on_interrupt=on_interrupt,
            before_effect=before_effect,
            progress=progress,
            max_rounds=max_rounds,
            interval=interval,
            tell=self._notifier.tell,
        )
        self._going: TurnTask | None = None
        self._turn: Turn | None = None
        self._tasks: TaskGroup | None = None

    def __repr__(self) -> str:
        going = "" if self._turn is None else ", a turn is going on"
        return (
            f"<{type(self).__name__} {plain(self.thread_id)} {self.status}: {len(self.messages)} messages, "
            f"{self.usage.runs} runs{going}>"
        )

    # --- reading --------------------------------------------------------------------------------------------------

    @property
    def calls(self) -> Calls:
        """The tool calls of the thread."""
        return self._runner.calls

    @property
    def reducer(self) -> Reducer:
        """The reducer of the thread; another one after a refusal."""
        return self._runner.reducer

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, frozen."""
        return self.reducer.messages

    @property
    def state(self) -> Any:
        """The state of the thread, a plain JSON value that is never changed in place."""
        return self.reducer.state

    @property
    def status(self) -> Status:
        """Where the latest run stands; see `stopped` as well."""
        return self.reducer.status

    @property
    def run(self) -> Run:
        """The latest run."""
        return self.reducer.run

    @property
    def thread_id(self) -> str:
        """The thread's id, as it is sent."""
        return self._runner.thread_id

    @property
    def usage(self) -> Usage:
        """Tokens of all runs so far."""
        return self._runner.usage

    @property
    def warnings(self) -> tuple[ProtocolWarning, ...]:
        """Warnings about the inputs that were sent and the runs so far."""
        return (*self._runner.log, *self.calls.warnings, *self.reducer.warnings)

    @property
    def turn(self) -> Turn | None:
        """The turn that is going on."""
        return self._turn

    def waiting(self) -> Waits:
        """Who has to act on the latest run, and on what."""
        return self.calls.waiting()

    def updates(self) -> Updates:
        """A reader of all turns, until the block is left. It raises nothing: a turn's error is in `error`."""
        return Updates(self, self._notifier, None, 0)

    # --- what the user does ---------------------------------------------------------------------------------------

    def send(self, content: Content, *, abandon: bool = False) -> Turn:
        """The user says something. Gives the turn that this starts.

        `content`: text, content parts, or a whole user message; parts and messages are structs or wire dicts.
        `abandon`: do not wait: the turn is stopped, open interrupts are given up, unanswered calls are answered so.

        Raises: `StillWaiting`, without `abandon`, while a turn is going on or somebody has to act on the last run;
        `ProtocolError` for malformed content.
        """
        message = self._message(content)
        since, going = self.reducer.version, self._going
        if not abandon:
            self._check_free()
        elif going is not None:
            going.scope.cancel()
            return self._start(since, message=message, after=going)
        self._check_entered()
        if abandon:
            self.calls.abandon()
        self._runner.say(message)
        return self._start(since, forced=True)

    def retry(self) -> Turn:
        """Send the thread once more, as a new run (IN-8), after a run that failed, broke off or was stopped.

        The messages of the broken run after the last word of the user or of a tool are not sent. They leave the thread
        with the first event of the new run (RUN-22). Its calls stay and are answered, unexecuted (OPEN-17). A new run
        without a message is warned about.

        Raises: `StillWaiting` as `send` does.
        """
        self._check_free()
        return self._start(self.reducer.version, forced=True, again=True)

    def proceed(self) -> Turn:
        """Do what is left to do, say in a restored conversation: ask, run the calls that may run, send what is owed.

        Raises: `StillWaiting` while a turn is going on.
        """
        self._check_idle()
        return self._start(self.reducer.version, forced=self._runner.owed and self._runner.is_free)

    def stop(self) -> bool:
        """Stop the turn: its run, the tools that run, the question that is asked. False when there is no turn.

        Everything received is kept. Later answers are recorded, and sent with the user's next step; `proceed` does what
        is left to do.
        """
        if self._going is None:
            return False
        self.stopped = True
        self._going.scope.cancel()
        return True

    # --- answers by hand ------------------------------------------------------------------------------------------

    def request(self, id: str) -> ApprovalRequest:
        """What a person is asked about a call (`Calls.request`)."""
        return self.calls.request(id)

    def approve(
        self,
        about: ApprovalRequest | str,
        edited_args: dict[str, Any] | None = None,
        reason: str | None = None,
        *,
        digest: str | None = None,
    ) -> Turn | None:
        """A person lets a call run (`Calls.approve`). Gives the turn that this starts.

        None is started while a turn is going on (it takes the answer up), while other calls or interrupts wait for
        somebody, or when the conversation was stopped.
        """
        self.calls.approve(about, edited_args, reason, digest=digest)
        return self._decided()

    def deny(
        self, about: ApprovalRequest | str, reason: str | None = None, *, digest: str | None = None
    ) -> Turn | None:
        """A person does not let a call run (`Calls.deny`). Gives a turn as `approve` does."""
        self.calls.deny(about, reason, digest=digest)
        return self._decided()

    def resume(self, answers: Answers) -> Turn | None:
        """Answer the open interrupts (`Calls.resume`). Gives a turn as `approve` does."""
        self.calls.resume(answers)
        return self._decided()

    def set_output(self, id: str, output: Any, *, error: str | None = None, proceed: bool = False) -> Turn | None:
        """Answer a call by hand (`Calls.set_output`), also one of a run that was stopped meanwhile. Gives a turn as
        `approve` does; for a call of the agent's own only when it was the last of that run that waits, or with
        `proceed`.
        """
        agents = not proceed and id in self.waiting().agent
        self.calls.set_output(id, output, error=error, stopped=self.stopped)
        calls = self.reducer.tool_calls
        others = agents and any(calls[other].result is None for other in self.waiting().agent)
        return None if others else self._decided()

    # --- the block ------------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Conversation:
        if self._tasks is not None:
            raise RuntimeError("a conversation can be entered once; restore its checkpoint to go on with it")
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        self.stop()
        self._tasks.cancel_scope.cancel()
        try:
            # Told of no exception: it would wrap the block's own in a group.
            await self._tasks.__aexit__(None, None, None)
        finally:
            self._notifier.close()

    # --- keeping --------------------------------------------------------------------------------------------------

    def checkpoint(self, since: int | None = None) -> bytes:
        """Everything as bytes, at any point: in the middle of a run, of an approval, of a tool.

        `since`: a version of the reducer at an earlier checkpoint; makes this one an increment.

        Raises: `AGUIError` for another `since`, also after a run failed or was refused: then make a whole one.
        """
        runner = self._runner
        return SavedConversation(
            format=FORMAT,
            calls=self.calls.checkpoint(since),
            thread_id=runner.thread_id,
            stopped=self.stopped,
            owed=runner.owed,
            usage=runner.usage,
            answers=encode([answer for given in runner.answers.values() for answer in given]),
            since=runner.since,
        ).encode()

    @classmethod
    def restore(
        cls,
        data: bytes,
        agent: Agent,
        toolset: Toolset | None = None,
        *increments: bytes,
        calls_options: CallsOptions | None = None,
        confirm: Confirm | None = None,
        on_interrupt: OnInterrupt | None = None,
        before_effect: Callable[[], Awaitable[object]] | None = None,
        progress: Callable[[str, Any], Awaitable[object]] | None = None,
        context: Iterable[Context | Mapping[str, Any]] = (),
        forwarded_props: NotNull | UnsetType = UNSET,
        tools: Toolset | None = None,
        max_rounds: int = 10,
        interval: float = 1 / 30,
    ) -> Conversation:
        """The conversation of a checkpoint and the increments made after it, to be entered.

        `calls_options` are those of `Calls.restore`, the others those of a new conversation. A run that was going on is
        truncated. `proceed` does what was left to do, `retry` runs again. Raises `AGUIError` for what is no checkpoint.
        """
        whole, *rest = (SavedConversation.read(part) for part in (data, *increments))
        last = rest[-1] if rest else whole
        offered = Toolset() if toolset is None else toolset
        calls = Calls.restore(whole.calls, offered, *(part.calls for part in rest), **(calls_options or {}))
        begun = calls.reducer.status == "running"
        calls.reducer.end()
        chat = cls(
            agent,
            calls=calls,
            thread_id=last.thread_id,
            confirm=confirm,
            on_interrupt=on_interrupt,
            before_effect=before_effect,
            progress=progress,
            context=context,
            forwarded_props=forwarded_props,
            tools=tools,
            max_rounds=max_rounds,
            interval=interval,
        )
        chat.stopped = last.stopped
        runner = chat._runner
        runner.broke_at = None if calls.reducer.status in OVER else last.since
        runner.usage, runner.owed, runner.answers = last.usage, last.owed and not begun, last.read_answers()
        return chat

    # --- turns ----------------------------------------------------------------------------------------------------

    def _check_entered(self) -> None:
        if self._tasks is None or self._notifier.closed:
            raise RuntimeError("a conversation goes on inside its block: async with Conversation(...) as chat")

    def _check_idle(self) -> None:
        if self._turn is not None:
            raise StillWaiting(
                "a turn is going on; wait for its end, stop() it, or send with abandon=True", who="agent"
            )

    def _check_free(self) -> None:
        """Raise `StillWaiting` unless the user may go on."""
        if not self._runner.is_free:
            waits = self.waiting()
            calls = (*waits.application, *waits.approver)
            about = [f"{noun} {listed(ids)}" for noun, ids in _kinds(calls, waits.interrupts)]
            raise StillWaiting(
                f"{' and '.join(about)} wait for the {waits.who}; answer, proceed(), or send with abandon=True"
                " [FT-5, INT-6]",
                who=waits.who,
                calls=calls,
                interrupts=waits.interrupts,
            )
        self._check_idle()

    def _message(self, content: Content) -> UserMessage:
        if isinstance(content, UserMessage):
            validate(content)
            return content
        if isinstance(content, Mapping):
            wire = dict(content)
        elif isinstance(content, str):
            wire = {"id": str(uuid4()), "role": "user", "content": content}
        else:
            parts = [part if isinstance(part, Mapping) else to_wire(part) for part in content]
            wire = {"id": str(uuid4()), "role": "user", "content": parts}
        upgrade_message(wire, (), lambda rule, told, path: None)
        message: UserMessage | None = enforced(UserMessage, wire, self._runner.log, said=True)
        if message is None:
            raise ProtocolError("what the user says is no user message", rule="PROC-9", type="UserMessage")
        return message

    def _start(
        self,
        since: int,
        *,
        forced: bool = False,
        again: bool = False,
        message: UserMessage | None = None,
        after: TurnTask | None = None,
    ) -> Turn:
        """A turn, whose updates count from version `since`. It begins with a `message`, once the one before is over."""
        self._check_entered()
        assert self._tasks is not None
        self.stopped, self.error = False, None
        task = self._going = TurnTask(since)
        turn = self._turn = Turn(self, self._notifier, task)
        self._tasks.start_soon(self._play, task, forced, again, message, after)
        self._notifier.tell()
        return turn

    async def _play(
        self, turn: TurnTask, forced: bool, again: bool, message: UserMessage | None, after: TurnTask | None
    ) -> None:
        """The task of a turn. An exception becomes the turn's `error`, and ends nothing else."""
        try:
            with turn.scope:
                if after is not None and message is not None:
                    # Shielded: a stop while this waits must not lose the user's message.
                    with anyio.CancelScope(shield=True):
                        await after.over.wait()
                    self.calls.abandon()
                    self._runner.say(message)
                    forced = True
                turn.ending = await self._runner.play(forced=forced, again=again)
            if turn.scope.cancelled_caught:
                turn.ending = "stopped"
        except Exception as error:
            turn.error = error
        except BaseException:
            turn.ending = "stopped"
            raise
        finally:
            if self._going is turn:
                self._going, self._turn, self.error = None, None, turn.error
            turn.end(self._notifier)

    def _decided(self) -> Turn | None:
        """After an answer by hand: go on, if that is possible now."""
        runner = self._runner
        runner.decisions += 1
        self._notifier.tell()
        if self._turn is not None or self.stopped or self._tasks is None or self._notifier.closed:
            return None
        approved = any(self.calls.state(id) == "approval-responded" for id in self.waiting().application)
        return self._start(self.reducer.version) if approved or (runner.is_free and runner.is_due) else None


def _kinds(*ids: tuple[str, ...]) -> list[tuple[str, tuple[str, ...]]]:
    return [(noun, some) for noun, some in zip(("tool calls", "interrupts"), ids, strict=True) if some]
