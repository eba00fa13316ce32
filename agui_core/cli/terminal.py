"""Emphasis and progress for a person's terminal. A file or a pipe gets neither."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import TextIO

from agui_core.cli.input import RecordedInput

__all__ = ["Progress", "Style", "is_terminal", "plural", "speaks_unicode"]

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def is_terminal(stream: TextIO) -> bool:
    """Whether a person is looking at `stream`."""
    return stream is not None and stream.isatty()


def speaks_unicode(stream: TextIO) -> bool:
    """Whether any character can be written to `stream`."""
    return (stream.encoding or "").lower().replace("-", "").startswith("utf")


def plural(count: int, noun: str) -> str:
    """`1 event`, `2,000 events`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class Style:
    """Emphasis, where `stream` is a terminal that understands it (and NO_COLOR is not set)."""

    def __init__(self, stream: TextIO) -> None:
        understood = os.name != "nt" or "WT_SESSION" in os.environ
        dumb = os.environ.get("TERM") == "dumb"
        self.on = understood and not dumb and not os.environ.get("NO_COLOR") and is_terminal(stream)

    @classmethod
    def always(cls) -> Style:
        """Emphasis for any output, for a caller that reads the codes itself."""
        style = cls.__new__(cls)
        style.on = True
        return style

    def __call__(self, look: str, text: str) -> str:
        """`text`, which is escaped already, in one of the looks: bold, dim, red, green, yellow, cyan."""
        return f"\x1b[{_CODES[look]}m{text}\x1b[0m" if self.on and text else text


class Progress:
    """The progress of a read of more than a second, on standard error if that is a terminal."""

    def __init__(
        self, source: RecordedInput, events: Callable[[], int], after: float = 1.0, every: float = 0.2
    ) -> None:
        self._source = source
        self._events = events
        self._every = every
        self._next = time.monotonic() + after if is_terminal(sys.stderr) else float("inf")
        self._width = 0

    def tick(self) -> None:
        """Show the progress, at most once every `every` seconds."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every
        source = self._source
        of = f" of {source.size / 1e6:,.1f} MB ({source.read / source.size:.0%})" if source.size else " MB"
        self._show(f"{source.read / 1e6:,.1f}{of}, {plural(self._events(), 'event')}")

    def clear(self) -> None:
        """Take the line away, before other output."""
        if self._width:
            self._show("")
            sys.stderr.write("\r")
            sys.stderr.flush()

    def _show(self, text: str) -> None:
        sys.stderr.write(f"\r{text:{self._width}}")
        sys.stderr.flush()
        self._width = len(text)
