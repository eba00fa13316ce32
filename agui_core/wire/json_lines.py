"""JSON Lines: one JSON text per line. Blank lines, CRLF and one byte order mark are tolerated.

A read costs one search for its last line end and one replacement of its line ends (see `batch`).
"""

from __future__ import annotations

from agui_core.wire.batch import NULLS, Batch, join
from agui_core.wire.framing import RecordReader

__all__ = ["JSONLinesReader"]


def _payloads(region: bytes) -> list[bytes]:
    if b"\r" in region:
        region = region.replace(b"\r\n", b"\n").removesuffix(b"\r")
    return [line for line in region.split(b"\n") if line and not line.isspace()]


class JSONLinesReader(RecordReader):
    """Reads lines; each is a payload."""

    __slots__ = ()

    def close(self) -> list[bytes]:
        """The last line, when it has no line end and is not blank. Raises the error that `feed` held back."""
        batch = self.finish()
        return [] if batch is None else batch.payloads()

    def finish(self) -> Batch | None:
        """Like `close`, as a batch."""
        self.check()
        head, self._head = self._head, None
        payloads = _payloads((head or b"") + self._release())
        return join(payloads) if payloads else None

    def _complete(self, text: bytes) -> Batch | None:
        end = text.rfind(b"\n")
        if end < 0:
            self._hold(text)
            return None
        region = self._release() + text[:end] if self._held else text[:end]
        if end + 1 < len(text):
            self._hold(text[end + 1 :])
        if len(region) > self._limit and not self._fits(lines := region.split(b"\n")):
            region = b"\n".join(lines)
        if not region:
            return None
        joined = region.replace(b"\n", NULLS)
        count = (len(joined) - len(region)) // (len(NULLS) - 1) + 1
        return Batch(joined, count, region, _payloads)
