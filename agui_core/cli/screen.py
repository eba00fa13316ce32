"""`Screen`: the picture of `agui watch`, with the end of the conversation, the state and the progress of the stream.

Imports `rich`, so only `watch` imports it. A picture costs the text that fits on the screen, a pointer per message, and
the state if that has changed.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.layout import Layout
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from agui_core.cli.escape import escape_json, escape_line
from agui_core.cli.input import RecordedInput
from agui_core.cli.terminal import Style, plural
from agui_core.cli.transcript import Writer
from agui_core.reducer.reducer import Reducer

__all__ = ["Screen"]

_NARROW = 80
"""Columns below which there is no room for the state."""
_FRAME = 4
"""Columns that a panel's border and padding take; its border takes half as many lines."""


class Screen:
    """A context manager over the terminal; `draw` shows the reducer as it is now."""

    def __init__(self, reducer: Reducer, source: RecordedInput, console: Console | None = None) -> None:
        self._reducer = reducer
        self._source = source
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._live = Live(console=self._console, screen=True, auto_refresh=False)
        self._style = Style.always()
        self._began = time.monotonic()
        self.shown = 0.0
        """Bytes of the input whose events are shown."""
        self._state: Any = None
        self._state_lines: list[str] = []

    def __enter__(self) -> Screen:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._live.stop()

    def draw(self) -> None:
        """Show the picture."""
        self._live.update(self.picture(), refresh=True)

    def picture(self) -> Layout:
        """All of it, as large as the terminal."""
        width, height = self._console.size
        body = Layout(name="body")
        state = self._reducer.state
        left = width if width < _NARROW or state in ({}, None) else width * 3 // 5
        conversation = Layout(self._conversation(left - _FRAME, height - 1 - _FRAME // 2), size=left)
        if left < width:
            body.split_row(conversation, Layout(self._document(state, height - 1 - _FRAME // 2)))
        else:
            body.update(conversation)
        whole = Layout()
        whole.split_column(Layout(self._head(), size=1), body)
        return whole

    def _head(self) -> Table:
        source = self._source
        row = Table.grid(expand=True, padding=(0, 1))
        for _ in range(2):
            row.add_column(no_wrap=True, overflow="ellipsis")
        for _ in range(3):
            row.add_column(no_wrap=True, justify="right")
        total = source.size
        row.add_row(
            Text(escape_line(source.name), style="bold"),
            ProgressBar(total=total, completed=self.shown, width=24) if total else Text(""),
            Text(plural(self._reducer.version, "event")),
            Text(f"{time.monotonic() - self._began:.0f} s"),
            Text(self._reducer.status, style="reverse"),
        )
        return row

    def _conversation(self, width: int, height: int) -> Panel:
        """As many of the last lines as fit."""
        writer = Writer(self._reducer, self._style, room=width * height)
        run = [line for text in writer.run() for line in self._wrapped(text, width)]
        lines = run[-height:]
        for message in reversed(self._reducer.messages):
            if len(lines) >= height:
                break
            lines = [line for text in writer.message(message) for line in self._wrapped(text, width)] + lines
        return Panel(Text("\n").join(lines[-height:]), title="conversation", title_align="left")

    def _wrapped(self, line: str, width: int) -> list[Text]:
        # The line is escaped: the only escape sequences in it are those of the style.
        return list(Text.from_ansi(line).wrap(self._console, max(width, 1))) or [Text("")]

    def _document(self, state: Any, height: int) -> Panel:
        if state is not self._state:
            self._state = state
            self._state_lines = escape_json(state).split("\n")
        lines = self._state_lines
        if len(lines) > height:
            lines = [*lines[: height - 1], f"… {plural(len(lines) - height + 1, 'more line')}"]
        return Panel(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), title="state", title_align="left")
