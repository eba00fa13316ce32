"""`ChatSession`: lines of a person in, the growing conversation out, and Ctrl-C."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import Any

import anyio

from agui_core.cli.escape import escape_block, escape_line, pretty
from agui_core.cli.keyboard import Keyboard
from agui_core.cli.live_text import LiveText
from agui_core.cli.questions import Questions
from agui_core.cli.terminal import Style
from agui_core.cli.transcript import Writer
from agui_core.errors import StillWaiting, TransportError
from agui_core.reducer.reducer import Reducer
from agui_core.status import WHOLE
from agui_core.stream import Agent, Conversation, Turn

__all__ = ["ChatSession"]

_HELP = """\
  /retry       run once more, after a run that did not end well
  /ask         be asked again what is still open
  /drop TEXT   send TEXT and give up what is open
  /state       the state of the thread
  /usage       tokens so far
  /warnings    where the agent deviates from the protocol
  /quit        leave (or Ctrl-D, or Ctrl-C while nothing runs)
  //TEXT       send a text that begins with /"""

_ENDINGS = {
    "stopped": "stopped",
    "rounds": "stopped here, after many rounds of tool calls; /ask goes on",
    "repeated": "stopped here: the agent asks the same again and again",
    "waiting": "the agent waits for an answer; /ask asks you again, /drop TEXT goes on without",
}


class ChatSession:
    """A conversation on standard input and output. `thread_id` None: a random one."""

    def __init__(self, agent: Agent, reducer: Reducer, thread_id: str | None = None) -> None:
        self.interrupted = False
        """Whether it was left by Ctrl-C."""
        self.good = True
        """Whether the last turn ended well, or was stopped."""
        self._style = Style(sys.stdout)
        self._chat = Conversation(agent, reducer=reducer, thread_id=thread_id, on_interrupt=self._ask)
        self._state: Any = reducer.state
        self._actions: dict[str, Callable[[], Turn | None]] = {
            "/retry": self._retry,
            "/ask": self._proceed,
            "/help": self._show_help,
            "/state": self._show_state,
            "/usage": self._show_usage,
            "/warnings": self._show_warnings,
        }

    async def run(self) -> None:
        """Take lines until they end, or until the person leaves.

        Raises: `OSError` when the output fails.
        """
        self._scope = anyio.CancelScope()
        self._keyboard = keyboard = Keyboard()
        self._live = LiveText(self._style, echo=not keyboard.interactive)
        self._questions = Questions(keyboard, self._live, lambda: self._chat.reducer)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch_for_interrupt)
            try:
                with self._scope:
                    async with self._chat:
                        await self._lines()
            except Exception as error:  # raised below, as itself and not in a group
                failure = error
            keyboard.close()
            tasks.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def _watch_for_interrupt(self) -> None:
        """Ctrl-C stops the turn. Without a turn, or a second time, it leaves."""
        try:
            with anyio.open_signal_receiver(signal.SIGINT) as signals:
                async for _ in signals:
                    if self._chat.stopped or not self._chat.stop():
                        self.interrupted = True
                        self._scope.cancel()
        except NotImplementedError:
            return  # Windows: Ctrl-C leaves at once

    async def _lines(self) -> None:
        if self._keyboard.interactive:
            self._live.say("Talk to the agent; /help lists what else you can type.", "dim")
        while True:
            if self._keyboard.interactive:
                print(self._style("bold", "> "), end="", flush=True)
            line = await self._keyboard.line()
            if line is None or line.strip() == "/quit":
                return
            turn = self._do(line) if line.strip() else None
            if turn is not None:
                await self._follow(turn)

    def _do(self, line: str) -> Turn | None:
        """Do what a line says. Gives the turn that it starts."""
        command, _, rest = line.strip().partition(" ")
        try:
            if command == "/drop" and rest.strip():
                return self._chat.send(rest.strip(), abandon=True)
            if not line.startswith("/") or line.startswith("//"):
                return self._chat.send(line.removeprefix("/") if line.startswith("//") else line)
            action = self._actions.get(command)
            if action is not None and not rest:
                return action()
        except StillWaiting:
            self._live.say(_ENDINGS["waiting"], "yellow")
            return None
        self._live.say(f"There is no command {escape_line(line.strip())}; /help lists them, // sends a text.", "red")
        return None

    async def _follow(self, turn: Turn) -> None:
        """Show a turn to its end, and the reason of that."""
        live, chat = self._live, self._chat
        error: Exception | None = None
        try:
            async for _ in turn:
                live.draw(chat.reducer)
        except Exception as raised:
            error = raised
        if isinstance(error, OSError):
            raise error  # of the output, or of the recording; a connection's is a TransportError
        live.settle(chat.reducer)
        self.good = error is None and (turn.ending != "broken" or chat.status in WHOLE)
        self._show_ending(turn, error)

    def _show_ending(self, turn: Turn, error: Exception | None) -> None:
        live, chat = self._live, self._chat
        if chat.state is not self._state:
            self._state = chat.state
            live.say("the state changed; /state shows it", "dim")
        if error is not None and chat.reducer.error is not error:
            live.say(escape_line(str(error)), "red")
            if isinstance(error, TransportError) and error.body:
                live.block(error.body)
        elif turn.ending in _ENDINGS:
            live.say(_ENDINGS[turn.ending], "yellow")
        elif turn.ending != "done":
            for line in Writer(chat.reducer, self._style).run():
                live.say(line)

    async def _ask(self, interrupt: Any) -> Any:
        return await self._questions.put(interrupt)

    # --- commands ---------------------------------------------------------------------------------------------------

    def _retry(self) -> Turn:
        return self._chat.retry()

    def _proceed(self) -> Turn:
        return self._chat.proceed()

    def _show_help(self) -> None:
        self._live.say(_HELP)

    def _show_state(self) -> None:
        self._live.say(pretty(self._chat.state))

    def _show_usage(self) -> None:
        usage = self._chat.usage
        self._live.say(f"{usage.total} tokens in {usage.runs} runs")
        for model in usage.models:
            name = " ".join(escape_line(word) for word in (model.provider, model.model) if word) or "unnamed"
            self._live.say(f"  {name}: {model.input_tokens} in, {model.output_tokens} out, {model.total_tokens} in all")

    def _show_warnings(self) -> None:
        for warning in self._chat.warnings:
            self._live.say(escape_block(str(warning)))
        if not self._chat.warnings:
            self._live.say("none")
