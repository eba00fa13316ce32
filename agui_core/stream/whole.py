"""Where a whole JSON object ends a read of JSON Lines without a line end behind it.

Sources whose items are the JSON texts of whole events write no line ends. An object that is closed cannot go on, so
the end of such an item counts as the end of its line, and its event needs not wait for the next item.

Costs: one search for the last line end of a read, and one pass over what stands behind it, at the speed of `split`;
linear in the length, however a record is cut.
"""

from __future__ import annotations

import re

__all__ = ["OpenLine"]

_ESCAPE = re.compile(rb"\\.", re.DOTALL)


class OpenLine:
    """How far the last line of a stream has come: its open braces, and whether it stands inside a string."""

    __slots__ = ("_depth", "_escape", "_quoted")

    _depth: int
    _escape: bytes
    _quoted: int

    def __init__(self) -> None:
        self._restart()

    def closes(self, read: bytes) -> bool:
        """Whether `read`, the next piece of the stream, ends with the last brace of an object; then a new line begins.

        A brace inside a string is none. For what is no JSON the answer means nothing: it is refused either way.
        """
        tail = read[read.rfind(b"\n") + 1 :]
        if len(tail) < len(read):
            self._restart()
        if not tail:
            return False
        text = self._escape + tail
        if b"\\" in text:
            text = _ESCAPE.sub(b"", text)
            self._escape = b"\\" if text.endswith(b"\\") else b""
            text = text.removesuffix(b"\\")
        parts = text.split(b'"')
        outside = b" ".join(parts[self._quoted :: 2])
        self._quoted = (self._quoted + len(parts) - 1) % 2
        self._depth += outside.count(b"{") - outside.count(b"}")
        if self._depth or self._quoted or not outside.rstrip().endswith(b"}"):
            return False
        self._restart()
        return True

    def _restart(self) -> None:
        self._depth = 0
        self._quoted = 0
        self._escape = b""
