"""The base of the SSE and the JSON Lines reader: pieces cut anywhere become whole records, in linear time.

Operations: append a piece; find the end of the last whole record in it; hand out all records up to there. Only the new
piece is searched, and held pieces are joined once, when their record ends. So a record that arrives byte by byte costs
time in proportion to its length. `limit` bounds the held bytes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Self, TypeAlias

import msgspec

from agui_core.errors import LimitExceeded
from agui_core.limits import Limits
from agui_core.wire.batch import Batch
from agui_core.wire.sniff import BOM, opens_bom

__all__ = ["BufferState", "Bytes", "RecordReader", "as_bytes", "cut"]

Bytes: TypeAlias = bytes | bytearray | memoryview | str
"""A piece of the wire, or one JSON text. Text stands for its UTF-8."""

_SLICE = 64 * 1024


def cut(data: Bytes, size: int = _SLICE) -> Iterable[Bytes]:
    """`data` in slices of `size` bytes. Decoding a slice at a time keeps memory small and caches warm."""
    if len(data) <= size:
        return (data,)
    if isinstance(data, memoryview):
        data = data.cast("B") if data.c_contiguous else data.tobytes()
    return (data[start : start + size] for start in range(0, len(data), size))


def as_bytes(data: Bytes) -> bytes:
    """A piece of the wire as bytes."""
    if isinstance(data, bytes):
        return data
    if isinstance(data, str):
        # A lone surrogate in a text can only stand inside a JSON string, where its escape means the same.
        return data.encode("utf-8", "backslashreplace")
    return bytes(data)


class BufferState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The state of a reader between two reads: the beginning of a record, and its place in the framing."""

    text: bytes = b""
    head: bytes | None = b""
    """The beginning of a byte order mark; None after the start of the stream."""
    after_cr: bool = False
    after_lf: bool = False
    refused: bool = False
    skipped: bool = False


class RecordReader(ABC):
    """The base of both readers: `feed`, `take`, `check`. A subclass finds where records end."""

    __slots__ = ("_error", "_head", "_held", "_limit", "_size")

    def __init__(self, limit: int = Limits().event_bytes) -> None:
        self._limit = limit
        self._held: list[bytes] = []
        self._size = 0
        self._head: bytes | None = b""
        self._error: LimitExceeded | None = None

    def feed(self, data: Bytes) -> list[bytes]:
        """The payloads of the records that `data` completes, as `SSEDecoder.feed` says."""
        batch = self.take(data)
        return [] if batch is None else batch.payloads()

    def take(self, data: Bytes) -> Batch | None:
        """Like `feed`, as a batch for `Decoder.decode_batch`; None when nothing was completed."""
        if self._error is not None:
            raise self._error
        text = data if type(data) is bytes else as_bytes(data)
        if self._head is not None:
            text = self._start(text, self._head)
        if not text:
            return None
        batch = self._complete(text)
        if batch is None and self._error is not None:
            raise self._error
        return batch

    def copy(self) -> Self:
        """An independent reader in the same state."""
        twin = type(self)(self._limit)
        twin.resume(self.pause())
        return twin

    @property
    def held_bytes(self) -> int:
        """Bytes of records that are not complete."""
        return self._size

    def check(self) -> None:
        """Raise the error that `feed` or `take` held back to hand out the records before it."""
        if self._error is not None:
            raise self._error

    def pause(self) -> BufferState:
        """The state of the reader, for another one to `resume` with."""
        return BufferState(text=b"".join(self._held), head=self._head, refused=self._error is not None)

    def resume(self, held: BufferState) -> None:
        """Go on where another reader paused."""
        self._head = held.head
        self._hold(held.text)
        if held.refused:
            self._refuse()

    @abstractmethod
    def close(self) -> list[bytes]:
        """What is left at the end of the stream. Raises what `feed` held back."""

    @abstractmethod
    def _complete(self, text: bytes) -> Batch | None:
        """The records that `text` completes; the rest is held."""

    def _start(self, data: bytes, head: bytes) -> bytes:
        """`data` without the byte order mark that may open the stream, itself cut anywhere."""
        data = head + data
        if opens_bom(data):
            self._head = data
            return b""
        self._head = None
        return data.removeprefix(BOM)

    def _hold(self, piece: bytes) -> None:
        if piece:
            self._held.append(piece)
            self._size += len(piece)
            if self._size > self._limit:
                self._refuse()

    def _release(self) -> bytes:
        held = b"".join(self._held)
        self._held.clear()
        self._size = 0
        return held

    def _fits(self, records: list[bytes], framing: int = 0) -> bool:
        """Whether all records, each with `framing` bytes more, keep the limit; else they are cut before the first."""
        for position, record in enumerate(records):
            if len(record) + framing > self._limit:
                del records[position:]
                self._refuse()
                return False
        return True

    def _refuse(self) -> None:
        self._held.clear()
        self._size = 0
        self._error = LimitExceeded(
            f"an event of more than {self._limit} bytes; raise Limits.event_bytes if the source is trusted",
            limit="event_bytes",
        )
