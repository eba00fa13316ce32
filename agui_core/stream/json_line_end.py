"""Whether a read of JSON Lines ends with a whole JSON object, and so ends its line though no line end follows.

Sources whose items are the JSON texts of whole events write no line ends. A closed object cannot go on, so the end of
such an item ends its line, and its event does not wait for the next item.

Costs: one search for the last line end of a read. When a read ends with a brace, also one pass over the new text after
that line end, at the speed of `split`. So the cost is linear, however a record is cut.
"""

from __future__ import annotations

import re

__all__ = ["JsonLineEnd"]

_ESCAPE = re.compile(rb"\\.", re.DOTALL)


class JsonLineEnd:
    """How far the last line of a stream has come: its open braces, and whether it stands inside a string."""

    __slots__ = ("_depth", "_escape", "_quoted", "_unseen")

    _depth: int
    _escape: bytes
    _quoted: int
    _unseen: list[bytes]
    """Pieces after the text that the other fields count."""

    def __init__(self) -> None:
        self._restart()

    def closes(self, read: bytes) -> bool:
        """Whether `read`, the next piece of the stream, ends with the last brace of an object; then a new line begins.

        Braces inside strings do not count. For text that is not JSON the answer means nothing: it is refused anyway.
        """
        begin = read.rfind(b"\n") + 1
        if begin:
            self._restart()
        tail = read[begin:]
        if not tail:
            return False
        self._unseen.append(tail)
        if not tail.rstrip().endswith(b"}"):
            return False
        self._look()
        if self._depth or self._quoted:
            return False
        self._restart()
        return True

    def _look(self) -> None:
        text = self._escape + b"".join(self._unseen)
        self._unseen.clear()
        if b"\\" in text:
            text = _ESCAPE.sub(b"", text)
            self._escape = b"\\" if text.endswith(b"\\") else b""
            text = text.removesuffix(b"\\")
        parts = text.split(b'"')
        outside = b"".join(parts[self._quoted :: 2])
        self._quoted = (self._quoted + len(parts) - 1) % 2
        self._depth += outside.count(b"{") - outside.count(b"}")

    def _restart(self) -> None:
        self._depth = 0
        self._quoted = 0
        self._escape = b""
        self._unseen = []
