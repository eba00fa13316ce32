"""`SSEDecoder` and `JSONLinesDecoder`: bytes cut anywhere become JSON payloads. What users hold of a reader."""

from __future__ import annotations

from agui_core.limits import Limits
from agui_core.wire.framing import Bytes, RecordReader
from agui_core.wire.json_lines import JSONLinesReader
from agui_core.wire.sse import SSEReader

__all__ = ["JSONLinesDecoder", "SSEDecoder"]


class _PayloadDecoder:
    __slots__ = ("_reader",)

    def __init__(self, reader: RecordReader) -> None:
        self._reader = reader

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {self.held_bytes} bytes held>"

    def feed(self, data: Bytes) -> list[bytes]:
        """The JSON payloads of the records that `data` completes, in order; `data` may be cut anywhere.

        Raises `LimitExceeded` (`event_bytes`) for a record longer than the limit: at once, or, when whole records
        before it have to be handed out first, with the next call.
        """
        return self._reader.feed(data)

    def close(self) -> list[bytes]:
        """The stream has ended: a last JSON line without its newline, if it is not blank; a last server-sent block
        without its blank line is discarded (SSE-12). Raises what `feed` held back.
        """
        return self._reader.close()

    @property
    def held_bytes(self) -> int:
        """Bytes of records that are not complete."""
        return self._reader.held_bytes


class SSEDecoder(_PayloadDecoder):
    """Bytes cut anywhere become the JSON payloads of SSE blocks, in linear time; `limit` bounds the bytes of a block.

    `event:`, `id:`, `retry:`, comments and unknown fields are ignored (SSE-5).
    """

    __slots__ = ()

    def __init__(self, limit: int = Limits().event_bytes) -> None:
        super().__init__(SSEReader(limit))


class JSONLinesDecoder(_PayloadDecoder):
    """Bytes cut anywhere become JSON payloads, one per line, in linear time; `limit` bounds the bytes of a line."""

    __slots__ = ()

    def __init__(self, limit: int = Limits().event_bytes) -> None:
        super().__init__(JSONLinesReader(limit))
