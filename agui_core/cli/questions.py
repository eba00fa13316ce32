"""Questions of an agent to a person, on the terminal: to allow a call, or for any other answer.

A prompt for approval shows the exact JSON of the call, escaped (SEC-3). Only "y" or "yes", by itself, allows a call; an
unclear line is asked again. Lines that were typed before the question do not answer it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from agui_core._text import cut
from agui_core.cli.escape import escape_json, escape_line, pretty
from agui_core.cli.keyboard import Keyboard
from agui_core.cli.live_text import LiveText
from agui_core.errors import AGUIError, ResumeError
from agui_core.protocol.base import UNSET
from agui_core.protocol.run import Interrupt, ResumeEntry
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import ToolCallView
from agui_core.tools.approval import Verdict
from agui_core.tools.errors import InvalidArguments
from agui_core.tools.interrupts import APPROVAL, entry_of
from agui_core.tools.json_arguments import read_arguments

__all__ = ["Questions"]

_ALLOW = "Allow it? y(es), n(o) [WHY], e(dit) {JSON} for other arguments, v(iew whole), l(ater): "
_ANSWER = "Your answer (text or JSON), /view to see it whole, /cancel to give it up, /later: "
_BLANKS = re.compile(r"[\s\u2800\u3164]{8,}")
_ROWS = 5
"""Rows of each end of a long text; on a terminal of 24 rows the call and the prompt stay in sight."""
_PIECES = 5
"""Pieces between runs of blanks that are shown."""
_FIRST, _LAST = 20, 12
"""Characters of both ends of a name or an id that is longer than these together."""
_WORD = re.compile(r"[\w.:/+-]+").fullmatch

Answer = Verdict | ResumeEntry | None


class Questions:
    """Puts interrupts to the person at the keyboard. `reducer` gives the conversation of the moment."""

    def __init__(self, keyboard: Keyboard, live: LiveText, reducer: Callable[[], Reducer]) -> None:
        self._keyboard = keyboard
        self._live = live
        self._reducer = reducer

    async def put(self, interrupt: Interrupt) -> Answer:
        """Show one interrupt and get an answer. None for "later", and at the end of the lines."""
        self._live.settle(self._reducer())
        approval = _takes_approval(interrupt)
        hidden = self._show(interrupt, approval)
        self._keyboard.forget()
        read = self._verdict if approval else self._free
        view = ("v", "view") if approval else ("/view",)
        prompt = f"{self._about(interrupt, approval)}{_ALLOW if approval else _ANSWER}"
        while True:
            print(prompt, end="" if self._keyboard.interactive else "\n", flush=True)
            line = await self._keyboard.line()
            if line is None:
                return None
            word = line.strip().lower()
            unseen = hidden and approval and word in ("y", "yes")
            if unseen:
                self._live.say("Not all of it was shown. This is the whole; answer once more.", "yellow")
            if unseen or word in view:
                self._show_whole(interrupt)
                hidden = False
                continue
            try:
                return read(interrupt, line.strip())
            except _Unclear as problem:
                self._live.say(escape_line(str(problem)), "red")

    def _about(self, interrupt: Interrupt, approval: bool) -> str:
        """The name of the call, on the line of the prompt: text above it cannot speak for another call."""
        call = self._call(interrupt)
        if call is not None:
            return f"Tool {_named(call.name)} (call {_named(call.id)}). "
        return f"No tool call is shown (interrupt {_named(interrupt.id)}). " if approval else ""

    def _call(self, interrupt: Interrupt) -> ToolCallView | None:
        id = interrupt.tool_call_id
        return None if id is UNSET else self._reducer().tool_calls.get(id)

    def _show_whole(self, interrupt: Interrupt) -> None:
        """Show the shortened texts whole."""
        live, call = self._live, self._call(interrupt)
        if interrupt.message is not UNSET and interrupt.message:
            live.block(interrupt.message)
        if call is not None:
            if _is_long(call.name) or _is_long(call.id):
                live.say("The names of the tool and of the call are:", "yellow")
                live.block(call.name)
                live.block(call.id)
            live.block(call.arguments or "{}")

    def _show(self, interrupt: Interrupt, approval: bool) -> bool:
        """Show a question, the call last. Tells whether something of it is hidden."""
        live = self._live
        call = self._call(interrupt)
        message = "" if interrupt.message is UNSET else interrupt.message
        live.say()
        live.say(f"The agent asks ({_named(interrupt.reason)}):", "yellow")
        hidden = bool(message) and self._shortened(message)
        if interrupt.expires_at is not UNSET:
            live.say(f"It expires {_named(interrupt.expires_at)}.", "dim")
        if interrupt.response_schema is not UNSET and not approval:
            live.say("It takes an answer of this form:", "dim")
            live.block(pretty(interrupt.response_schema))
        if call is not None:
            hidden = self._show_call(call) or hidden
        elif interrupt.tool_call_id is not UNSET or approval:
            live.say("It shows no tool call for this; all you have is what it says.", "yellow")
        return hidden

    def _shortened(self, text: str) -> bool:
        """Show a text from the wire: of a long text the ends, of runs of blanks the count. Tells whether it is cut."""
        pieces = self._pieces(text)
        for piece in pieces:
            if isinstance(piece, str):
                self._live.block(piece)
            else:
                self._live.say(f"... {piece[0]:,} {piece[1]} not shown ...", "yellow")
        return not all(isinstance(piece, str) for piece in pieces)

    def _pieces(self, text: str) -> list[str | tuple[int, str]]:
        """A text as its shown pieces, and the length of the others. Costs the shown pieces, and a search for blanks."""
        live, room = self._live, _ROWS * self._live.width
        if len(text) <= 2 * room or _BLANKS.search(text):
            pieces = _between_blanks(text)
            shown = [piece for piece in pieces if isinstance(piece, str)]
            if len(pieces) <= _PIECES and sum(map(len, shown)) <= 2 * room:
                rows = sum(len(live.rows(piece)) for piece in shown) + len(pieces) - len(shown)
                if rows <= 2 * _ROWS:
                    return pieces
        head, tail = (live.rows(_BLANKS.sub(" ", end)) for end in (text[:room], text[-room:]))
        told = (len(text), "characters in all, of which the middle is")
        return ["\n".join(head[:_ROWS]), told, "\n".join(tail[-_ROWS:])]

    def _show_call(self, call: ToolCallView) -> bool:
        live = self._live
        told = f"Tool {_named(call.name)} ({_named(call.id)}) with exactly these arguments:"
        live.say(told, "yellow")
        hidden = self._shortened(call.arguments or "{}")
        if not call.valid:
            live.say(f"They are no whole JSON document: {cut(str(call.error or 'the call has not ended'))}", "red")
        return hidden or _is_long(call.name) or _is_long(call.id)

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
            self._live.block(escape_json(verdict.edited_args))
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


def _between_blanks(text: str) -> list[str | tuple[int, str]]:
    """The pieces of a text between long runs of blanks, and the lengths of these."""
    pieces: list[str | tuple[int, str]] = []
    place = 0
    for run in _BLANKS.finditer(text):
        pieces += [text[place : run.start()], (len(run[0]), "blanks")]
        place = run.end()
        if len(pieces) > 2 * _PIECES:
            break
    return [piece for piece in [*pieces, text[place:]] if piece]


def _is_long(name: str) -> bool:
    return len(escape_line(name)) > _FIRST + _LAST or _BLANKS.search(name) is not None


def _named(name: str) -> str:
    """A name or an id: of a long one both ends, in quotes unless it is a word, so that it cannot pass for our words.

    Not `_text.cut`, which hides the end: two tools may differ there, and a person decides on one.
    """
    shown = escape_line(_BLANKS.sub(lambda run: f"[{len(run[0])} blanks]", name[:200]))
    if _is_long(name):
        shown = f"{shown[:_FIRST]}...{escape_line(name[-_LAST:])[-_LAST:]}"
        return f"'{shown}' [{len(name):,} characters]"
    return shown if _WORD(shown) else f"'{shown}'"


class _Unclear(Exception):
    """A line that answers nothing; the text says why."""


def _takes_approval(interrupt: Interrupt) -> bool:
    """Whether an interrupt asks for a yes or a no."""
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
