"""What an agent asks a person, on the terminal: to allow a call, or for any other answer.

A prompt for approval shows the exact JSON that the call runs with, inert (SEC-3). Only "y" or "yes", by itself, allows
anything; whatever else is unclear is asked again. What was typed before the question is no answer to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from agui_core.cli.keyboard import Keyboard
from agui_core.cli.live_text import LiveText
from agui_core.cli.safe import pretty, safe_json, safe_line
from agui_core.errors import AGUIError, ResumeError
from agui_core.protocol.base import UNSET
from agui_core.protocol.run import Interrupt, ResumeEntry
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import ToolCallView
from agui_core.tools.approval import Verdict
from agui_core.tools.arguments import read_arguments
from agui_core.tools.errors import InvalidArguments
from agui_core.tools.resume import APPROVAL, entry_of

__all__ = ["Questions"]

_ALLOW = "Allow it? y(es), n(o) [WHY], e(dit) {JSON} for other arguments, l(ater): "
_ANSWER = "Your answer (text or JSON), /cancel to give it up, /later: "

Answer = Verdict | ResumeEntry | None


class Questions:
    """Puts interrupts to whoever sits at the keyboard. `reducer` gives the conversation of the moment."""

    def __init__(self, keyboard: Keyboard, live: LiveText, reducer: Callable[[], Reducer]) -> None:
        self._keyboard = keyboard
        self._live = live
        self._reducer = reducer

    async def put(self, interrupt: Interrupt) -> Answer:
        """Show one interrupt and get an answer; None when there is none yet, and when there are no more lines."""
        self._live.settle(self._reducer())
        approval = _takes_approval(interrupt)
        self._show(interrupt, approval)
        self._keyboard.forget()
        read = self._verdict if approval else self._free
        while True:
            print(_ALLOW if approval else _ANSWER, end="" if self._keyboard.interactive else "\n", flush=True)
            line = await self._keyboard.line()
            if line is None:
                return None
            try:
                return read(interrupt, line.strip())
            except _Unclear as problem:
                self._live.say(safe_line(str(problem)), "red")

    def _show(self, interrupt: Interrupt, approval: bool) -> None:
        live = self._live
        id = interrupt.tool_call_id
        call = None if id is UNSET else self._reducer().tool_calls.get(id)
        message = "" if interrupt.message is UNSET else interrupt.message
        live.say()
        live.say(f"The agent asks ({safe_line(interrupt.reason)}):", "yellow")
        if message:
            live.block(message)
        if call is not None:
            self._show_call(call)
        elif id is not UNSET or approval:
            live.say("It shows no tool call for this; all you have is what it says.", "yellow")
        if interrupt.expires_at is not UNSET:
            live.say(f"It expires {safe_line(interrupt.expires_at)}.", "dim")
        if interrupt.response_schema is not UNSET and not approval:
            live.say("It takes an answer of this form:", "dim")
            live.block(pretty(interrupt.response_schema))

    def _show_call(self, call: ToolCallView) -> None:
        live = self._live
        live.say(f"Tool {safe_line(call.name)} ({safe_line(call.id)}) with exactly these arguments:", "yellow")
        live.block(call.arguments or "{}")
        if not call.valid:
            live.say(
                f"They are no whole JSON document: {safe_line(str(call.error or 'the call has not ended'))}", "red"
            )

    def _verdict(self, interrupt: Interrupt, line: str) -> Answer:
        word, _, rest = line.partition(" ")
        word, rest = word.lower(), rest.strip()
        if word in ("l", "later") and not rest:
            return None
        if word in ("y", "yes") and not rest:
            verdict = Verdict(approved=True)
        elif word in ("n", "no"):
            verdict = Verdict(approved=False, reason=rest or None)
        elif word in ("e", "edit") and rest:
            verdict = Verdict(approved=True, edited_args=_arguments(rest))
        else:
            raise _Unclear("That is neither a yes nor a no.")
        try:
            entry = entry_of(interrupt, verdict)
        except AGUIError as error:
            raise _Unclear(str(error)) from None
        if verdict.edited_args is not None:
            self._live.say("It will run with exactly these arguments:", "yellow")
            self._live.block(safe_json(verdict.edited_args))
        return entry

    def _free(self, interrupt: Interrupt, line: str) -> Answer:
        if line == "/later":
            return None
        if line == "/cancel":
            return ResumeEntry(interrupt_id=interrupt.id, status="cancelled")
        if not line:
            raise _Unclear("An empty line is no answer.")
        payload: Any = line
        if _kind(interrupt) != "string":
            try:
                payload = msgspec.json.decode(line)
            except (msgspec.DecodeError, ValueError, RecursionError):
                payload = line
        if payload is None:
            raise _Unclear("null is no answer; /cancel gives the question up. [INT-9]")
        return ResumeEntry(interrupt_id=interrupt.id, status="resolved", payload=payload)


class _Unclear(Exception):
    """A line that answers nothing; the text says why."""


def _takes_approval(interrupt: Interrupt) -> bool:
    """Whether a yes or a no is what an interrupt asks for."""
    if interrupt.reason != APPROVAL and interrupt.tool_call_id is UNSET:
        return False
    try:
        entry_of(interrupt, True)
    except ResumeError:
        return False
    return True


def _kind(interrupt: Interrupt) -> Any:
    return None if interrupt.response_schema is UNSET else interrupt.response_schema.get("type")


def _arguments(text: str) -> dict[str, Any]:
    try:
        return read_arguments(text)
    except InvalidArguments as error:
        raise _Unclear(f"That is no JSON object: {error}") from None
