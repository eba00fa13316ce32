"""`LiveText`: a conversation written line by line while it grows. New text is appended, nothing is written over.

For any output, a terminal or a pipe. When two texts grow at the same time, each piece names the text that it continues.
`transcript` puts results after their calls and shows arguments as JSON; neither can be done for text that still grows.
Everything from the wire is escaped, and text is indented under its heading, so that no message can pretend to be
another. A picture costs what changed, and a pointer per message.
"""

from __future__ import annotations

import shutil
import sys

from agui_core._text import cut
from agui_core.cli.escape import cells_of, escape_block, pretty, wrapped
from agui_core.cli.terminal import Style, is_terminal
from agui_core.cli.transcript import content_text
from agui_core.protocol import messages as m
from agui_core.protocol.base import UNSET
from agui_core.reducer.reducer import Reducer

__all__ = ["LiveText"]

_INDENT = "  "
_NAMED = 28
"""Characters of a name or an id in a heading; with two of them it is one row."""
_NARROW = 20
"""No text is wrapped narrower than so many cells."""


class LiveText:
    """Writes to standard output. `echo`: write what the user said as well."""

    def __init__(self, style: Style, *, echo: bool) -> None:
        self._style = style
        self._echo = echo
        self._since = 0
        self._shown: dict[tuple[str, ...], str] = {}
        """The text that is written, by the thing it belongs to."""
        self._open: tuple[str, ...] | None = None
        """The thing on the last line, which has no end yet."""
        self._used = 0
        """Cells of its row that are taken."""
        self._activities: dict[str, None] = {}
        self._wraps = is_terminal(sys.stdout)
        """Whether rows are ended here, so that they keep their indent; a file gets the lines as they are."""

    def draw(self, reducer: Reducer) -> None:
        """Write what is new."""
        changes = reducer.changes(self._since)
        if not changes:
            return
        self._since = changes.version
        calls = reducer.tool_calls
        ids = {*changes.changed, *changes.added, *(calls[id].message_id for id in changes.calls if id in calls)}
        for message in reducer.messages:
            if changes.reset or message.id in ids:
                self._message(reducer, message)
        sys.stdout.flush()

    def settle(self, reducer: Reducer) -> None:
        """Write what is new, and the activities, which waited. Ends the last line."""
        self.draw(reducer)
        for message in reducer.messages:
            if message.id in self._activities and isinstance(message, m.ActivityMessage):
                heading = f"activity {_name(message.activity_type)}"
                self._write(("activity", message.id), heading, pretty(message.content))
        self._activities = {}
        self.end_line()
        sys.stdout.flush()

    def say(self, text: str = "", look: str | None = None) -> None:
        """A line of our own, which is escaped already."""
        self.end_line()
        print(self._style(look, text) if look else text, flush=True)

    def block(self, text: str) -> None:
        """Text from the wire, escaped, every row of it indented, so that it cannot pass for a line of ours."""
        self.end_line()
        print("\n".join(f"{_INDENT}{row}" for row in self.rows(text)), flush=True)

    def rows(self, text: str) -> list[str]:
        """The rows of such a block, without their indent."""
        width = self.width
        return [row for line in escape_block(text).split("\n") for row in wrapped(line, width)]

    @property
    def width(self) -> int:
        """Cells of a row of a block."""
        return max(shutil.get_terminal_size().columns - len(_INDENT), _NARROW)

    def end_line(self) -> None:
        """End a line that was left open."""
        if self._open is not None:
            sys.stdout.write("\n")
            self._open = None

    def _message(self, reducer: Reducer, message: m.Message) -> None:
        match message:
            case m.AssistantMessage():
                self._write(("text", message.id), _who(message), content_text(message.content))
                for call in message.tool_calls or ():
                    self._call(reducer, call)
            case m.ReasoningMessage():
                self._write(("text", message.id), "reasoning", message.content, "dim")
            case m.ToolMessage():
                self._result(reducer, message)
            case m.ActivityMessage():
                self._activities[message.id] = None  # may change often, so `settle` writes it
            case m.UserMessage() if not self._echo:
                return
            case _:
                self._write(("text", message.id), _who(message), content_text(message.content))

    def _call(self, reducer: Reducer, call: m.ToolCall) -> None:
        heading = f"call {_name(call.function.name) or '(no name)'} ({_name(call.id)})"
        view = reducer.tool_calls[call.id]
        self._write(("call", call.id), heading, call.function.arguments or ("{}" if view.complete else ""))
        if view.complete and not view.valid:
            self._write(("broken", call.id), f"broken arguments of {_name(call.id)}", str(view.error), "red")

    def _result(self, reducer: Reducer, message: m.ToolMessage) -> None:
        call = reducer.tool_calls.get(message.tool_call_id)
        about = f"{_name(call.name if call else '?')} ({_name(message.tool_call_id)})"
        key = ("result", message.id, message.tool_call_id)
        if message.error is UNSET:
            self._write(key, f"result of {about}", content_text(message.content))
        else:
            self._write(key, f"{about} failed", f"{message.error}\n{content_text(message.content)}", "red")

    def _write(self, key: tuple[str, ...], heading: str, text: str, look: str | None = None) -> None:
        """Write the new part of a text, under its heading unless the last line is the text's own."""
        shown = self._shown.get(key, "")
        if text == shown:
            return
        self._shown[key] = text
        is_more = text.startswith(shown)
        piece = escape_block(text[len(shown) :] if is_more else text)
        if not is_more or self._open != key:
            self.end_line()
            mark = "" if not shown else " …" if is_more else " (changed)"
            sys.stdout.write(f"{self._style('bold', heading)}{mark}\n{_INDENT}")
            self._open, self._used = key, 0
        piece = self._folded(piece).replace("\n", f"\n{_INDENT}")
        sys.stdout.write(self._style(look, piece) if look else piece)

    def _folded(self, piece: str) -> str:
        """A piece of the open text with an end for each row, on a terminal."""
        if not self._wraps:
            return piece
        width, rows = self.width, list[str]()
        for line in piece.split("\n"):
            rows += wrapped(line, width, 0 if rows else self._used)
        self._used = cells_of(rows[-1]) + (self._used if len(rows) == 1 else 0)
        return "\n".join(rows)


def _name(text: str) -> str:
    """A name or an id in a heading, which stays in its row."""
    return cut(text, _NAMED)


def _who(message: m.Message) -> str:
    name = getattr(message, "name", UNSET)
    return message.role if name is UNSET else f"{message.role} {_name(name)}"
