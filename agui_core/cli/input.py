"""`RecordedInput`: a stream from a file or standard input, read in pieces. Its first character tells the format."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from types import TracebackType
from typing import BinaryIO

from agui_core.limits import Limits
from agui_core.reducer.partial_json.parser import PartialJson
from agui_core.wire import JSONLinesDecoder, SSEDecoder
from agui_core.wire.sniff import BOM, begins_json_lines, first_text

__all__ = ["RecordedInput", "WrongUse", "read_file"]

_PIECE = 64 * 1024
_DATA = re.compile(rb"(?:[\r\n]|\xef\xbb\xbf)data[:\r\n]")


class WrongUse(Exception):
    """The command cannot be done as asked: exit status 2. The text is for the user."""


class RecordedInput:
    """A context manager over the bytes of `path` (`-`: standard input). Holds one piece at a time.

    `json_lines` tells the format once it is entered: `{` comes first in JSON Lines, anything else in SSE. A byte order
    mark is left out.

    Raises: `WrongUse` for a file that cannot be read, and for other formats.
    """

    def __init__(self, path: str) -> None:
        self.name = "<stdin>" if path == "-" else path
        self.json_lines = False
        self.size: int | None = None
        """Bytes in all, where that is known."""
        self.read = 0
        """Bytes so far."""
        self._path = path
        self._file: BinaryIO | None = None
        self._head = b""
        self._tail = b"\n"
        self._holds_data = False

    @property
    def cut_off(self) -> bool:
        """Whether it ends inside a block, which is then discarded: no blank line follows (SSE-12). Known at the end."""
        tail = self._tail.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return self._holds_data and not self.json_lines and bool(tail.strip()) and not tail.endswith(b"\n\n")

    @property
    def format(self) -> str:
        """The format's name."""
        return "JSON Lines" if self.json_lines else "SSE"

    @property
    def no_event(self) -> str:
        """The message about a stream without an event."""
        return f"{self.name} holds no event; it was read as {'JSON Lines' if self.json_lines else 'server-sent events'}"

    def decoder(self, limit: int = Limits().event_bytes) -> JSONLinesDecoder | SSEDecoder:
        """A new reader of this format, for events of at most `limit` bytes."""
        return JSONLinesDecoder(limit) if self.json_lines else SSEDecoder(limit)

    def payloads(self) -> Iterator[list[bytes]]:
        """The payloads of the whole input, read by read. Raises `LimitExceeded` for an event that is too long."""
        decoder = self.decoder()
        for piece in self:
            yield decoder.feed(piece)
        yield decoder.close()

    def __enter__(self) -> RecordedInput:
        self._file = self._open()
        while first_text(self._head) is None and (piece := self._piece()):
            self._head += piece
        self._recognise(first_text(self._head) or b"")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._file is not None and self._path != "-":
            self._file.close()

    def __iter__(self) -> Iterator[bytes]:
        if self._head:
            yield self._head
            self._head = b""
        while piece := self._piece():
            yield piece

    def _open(self) -> BinaryIO:
        if self._path == "-":
            return sys.stdin.buffer
        try:
            file = open(self._path, "rb")  # noqa: SIM115
            self.size = os.fstat(file.fileno()).st_size or None
        except OSError as error:
            raise _unreadable(self.name, error) from None
        return file

    def _piece(self) -> bytes:
        assert self._file is not None
        try:
            piece = self._file.read1(_PIECE)  # type: ignore[attr-defined]
        except OSError as error:
            raise _unreadable(self.name, error) from None
        self.read += len(piece)
        self._holds_data = self._holds_data or _DATA.search(self._tail + piece) is not None
        self._tail = (self._tail + piece)[-8:]
        return bytes(piece)

    def _recognise(self, start: bytes) -> None:
        if self._head.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise WrongUse(f"{self.name} is UTF-16 text; save it as UTF-8")
        self._head = self._head.removeprefix(BOM)
        if start.startswith(b"["):
            raise WrongUse(
                f"{self.name} is one JSON array; events are read as SSE or as JSON Lines, one object on each line"
                " (jq -c '.[]' makes them)"
            )
        self.json_lines = begins_json_lines(start)
        if self.json_lines and _goes_on(*start.split(b"\n", 2)[:2]):
            raise WrongUse(
                f"{self.name} is one JSON document over several lines; JSON Lines has one event on each line"
                " (jq -c . makes one line of a document)"
            )


def _goes_on(line: bytes, following: bytes = b"") -> bool:
    """Whether a JSON document that begins in the one line goes on in the following one."""
    if not following.strip():
        return False
    document = PartialJson()
    document.feed(line.decode(errors="replace"))
    if document.complete or document.error is not None:
        return False
    document.feed("\n" + following.decode(errors="replace"))
    return document.error is None


def read_file(path: str) -> bytes:
    """A whole small file. Raises `WrongUse`."""
    try:
        with open(path, "rb") as file:
            return file.read().removeprefix(BOM)
    except OSError as error:
        raise _unreadable(path, error) from None


def _unreadable(name: str, error: OSError) -> WrongUse:
    return WrongUse(f"cannot read {name}: {error.strerror or error}")
