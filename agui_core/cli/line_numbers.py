"""`LineNumbers`: the payloads of a stream, each with the line of the input at which it begins.

The readers of `wire` get the input line by line here, which costs some microseconds a line.
"""

from __future__ import annotations

from collections.abc import Iterator

from agui_core.cli.input import RecordedInput

__all__ = ["LineNumbers"]

_FIELD = b"data"
_ENDS = (b"\n", b"\r")


class LineNumbers:
    """An iterable of (line, payload). Lines count from 1.

    Raises: `LimitExceeded` for an event of more than `limit` bytes.
    """

    def __init__(self, source: RecordedInput, limit: int) -> None:
        self._source = source
        self._decoder = source.decoder(limit)
        self.line = 1
        """The line that is read."""
        self.discarded: int | None = None
        """At the end: the line of a last block that was discarded, as no blank line follows it (SSE-12)."""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        begin: int | None = None
        fresh = True
        for fragment in self._fragments():
            if fresh and begin is None and self._begins(fragment):
                begin = self.line
            for payload in self._decoder.feed(fragment):
                yield begin or self.line, payload
                begin = None
            if fresh and fragment in (b"\n", b"\r", b"\r\n"):
                begin = None
            fresh = fragment.endswith(_ENDS)
            self.line += fresh
        for payload in self._decoder.close():
            yield begin or self.line, payload
            begin = None
        self.discarded = begin

    def _begins(self, line: bytes) -> bool:
        if self._source.json_lines:
            return bool(line.strip())
        return line.startswith(_FIELD) and line[4:5] in (b":", b"\r", b"\n", b"")

    def _fragments(self) -> Iterator[bytes]:
        """Whole lines with their ends; a long one in several pieces, the first of which shows what field it is."""
        held = b""
        for piece in self._source:
            lines = self._split(held + piece)
            last = lines[-1]
            # A CR may be the first half of a CRLF.
            short = len(last) <= len(_FIELD) and not last.endswith(b"\n")
            held = lines.pop() if short or last.endswith(b"\r") else b""
            yield from lines
        if held:
            yield held

    def _split(self, text: bytes) -> list[bytes]:
        if not self._source.json_lines:
            return text.splitlines(keepends=True)
        *lines, rest = text.split(b"\n")
        return [line + b"\n" for line in lines] + ([rest] if rest else [])
