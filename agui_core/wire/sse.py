"""Server-sent events: the reader of `text/event-stream` bytes, and the encoder of one event.

A conforming producer writes `data: <json>`, LF, LF. The bytes between two such blocks cannot stand in a JSON text, so a
read is taken apart in one go. Only unusual pieces (comments, other fields, data of several lines) are read line by
line. CR and CRLF become LF first, also when a CRLF is cut in two. U+2028 and its like are not line ends.
"""

from __future__ import annotations

import msgspec

from agui_core.limits import Limits
from agui_core.protocol.events import Event
from agui_core.wire.batch import OBJECTS, Batch, join
from agui_core.wire.encode import encode
from agui_core.wire.framing import BufferState, RecordReader

__all__ = ["SSEReader", "encode_sse", "sse_block"]

_FIELD = b"data: "
_HEADS = (b"data: {", b"data:{")
"""The beginning of a block that holds one object and nothing else."""
_LF, _CR = b"\n\r"  # as integers, which are found several times as fast as bytes

_LINE_ENDS = ((b"\r", b" "), (b"\n", b" "))
"""Between the values of a JSON text they are white space; inside its strings they cannot stand."""
_LINE_SEPARATORS = ((b"\xe2\x80\xa8", b"\\u2028"), (b"\xe2\x80\xa9", b"\\u2029"), (b"\xc2\x85", b"\\u0085"))
"""Line ends to some readers. They stand in strings only, where an escape means the same."""


def encode_sse(event: Event | msgspec.Struct) -> bytes:
    """One SSE block: `data: <json>` and a blank line, LF only, absent fields left out (SSE-7).

    U+2028, U+2029 and U+0085, which end a line for some readers, are escaped. Raises: as `encode` does.
    """
    text = encode(event)
    return b"data: %b\n\n" % text if text.isascii() else sse_block(text)


def sse_block(text: bytes) -> bytes:
    """The block of a JSON text. Nothing in it ends a line or begins another event."""
    for found, instead in _LINE_ENDS:
        if found in text:
            text = text.replace(found, instead)
    if not text.isascii():
        for found, instead in _LINE_SEPARATORS:
            text = text.replace(found, instead)
    return b"data: %b\n\n" % text


def _looks_like_json(text: bytes) -> bool:
    """Whether a line begins with a bracket."""
    return text.startswith((b"{", b"[")) or b"\n{" in text or b"\n[" in text


def _payload(block: bytes) -> bytes | None:
    """The data of one block, its lines joined with LF (SSE-4); None when it has none and so dispatches nothing."""
    values: list[bytes] = []
    for line in block.split(b"\n"):
        if line.startswith(b"data:"):
            values.append(line[6:] if line.startswith(_FIELD) else line[5:])
        elif line == b"data":
            values.append(b"")
    return b"\n".join(values) if values else None


def _payloads(region: bytes) -> list[bytes]:
    """The payloads of whole blocks; `region` lacks the blank line of its last block."""
    payloads: list[bytes] = []
    first, *pieces = (b"\n\n" + region).split(b"\n\ndata: ")
    for block in first.split(b"\n\n"):
        payload = _payload(block)
        if payload is not None:
            payloads.append(payload)
    for piece in pieces:
        line, _, rest = piece.partition(b"\n")
        if not rest or (rest.startswith(b"\n:") and rest.rfind(b"\n") == 0):
            payloads.append(line)  # one line of data, with at most one comment after it
            continue
        for block in (_FIELD + piece).split(b"\n\n"):
            payload = _payload(block)
            if payload is not None:
                payloads.append(payload)
    return payloads


class SSEReader(RecordReader):
    """Reads the blocks of server-sent events; their payloads are the JSON texts of their data.

    `event:`, `id:`, `retry:`, comments and unknown fields are ignored (SSE-5).
    """

    __slots__ = ("_after_cr", "_after_lf", "_skipped")

    def __init__(self, limit: int = Limits().event_bytes) -> None:
        super().__init__(limit)
        self._after_cr = False
        self._after_lf = False
        self._skipped = False

    @property
    def skipped_json(self) -> bool:
        """Whether lines that begin like JSON were skipped or are left: perhaps these are JSON Lines."""
        return self._skipped or _looks_like_json(b"".join(self._held))

    def pause(self) -> BufferState:
        """What the reader holds, for another one to `resume` with."""
        return msgspec.structs.replace(
            super().pause(), after_cr=self._after_cr, after_lf=self._after_lf, skipped=self._skipped
        )

    def resume(self, held: BufferState) -> None:
        """Go on where another reader paused."""
        super().resume(held)
        self._after_cr, self._after_lf, self._skipped = held.after_cr, held.after_lf, held.skipped

    def close(self) -> list[bytes]:
        """Nothing: a last block without its blank line is discarded (SSE-12). Raises as `check` does."""
        self.check()
        self._release()
        return []

    def _complete(self, text: bytes) -> Batch | None:
        if self._after_cr or _CR in text:
            text = self._lf_only(text)
        region = self._whole_blocks(text)
        if not region:
            return None
        if len(region) >= self._limit:
            blocks = [block.strip(b"\n") for block in region.split(b"\n\n")]
            if not self._fits(blocks, framing=1):
                region = b"\n\n".join(blocks)
        for head in _HEADS:
            if region.startswith(head):
                pieces = region[len(head) - 1 :].split(b"}\n\n" + head)
                text = OBJECTS.join(pieces)
                if _LF not in text:
                    return Batch(text, len(pieces), region, _payloads, OBJECTS)
        self._skipped = self._skipped or _looks_like_json(region)
        payloads = _payloads(region)
        return join(payloads) if payloads else None

    def _lf_only(self, text: bytes) -> bytes:
        """`text` with every line end as LF; a CR that ends a read is one, and the LF that may follow it is none."""
        if self._after_cr and text.startswith(b"\n"):
            text = text[1:]
        self._after_cr = text.endswith(b"\r")
        return text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _whole_blocks(self, text: bytes) -> bytes:
        """Everything up to the last blank line, without it; the rest is held. Empty when there is no blank line.

        Surplus blank lines are dropped, so that the length of a block does not depend on where they are cut.
        """
        end = text.rfind(b"\n\n")
        if end >= 0:
            region, rest = text[:end], text[end + 2 :]
            if self._held:
                region = self._release() + region
        elif self._after_lf and text.startswith(b"\n"):
            region, rest = self._release()[:-1], text[1:]
        else:
            region, rest = b"", text
        if rest or region:
            self._after_lf = rest.endswith(b"\n")
        if rest:
            self._hold(rest if self._held else rest.lstrip(b"\n"))
        return region.strip(b"\n")
