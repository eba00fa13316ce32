"""`Keyboard`: lines that a person types, or that come through a pipe, while an event loop runs.

A thread reads, since a read of standard input cannot be cancelled. It is a daemon and reads past Python's buffer, so
that the end of the program does not wait for it. Early lines are kept in order.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import sys
import threading
from collections.abc import Callable
from math import inf
from typing import Any

import anyio
from anyio import EndOfStream, WouldBlock, create_memory_object_stream

__all__ = ["Keyboard"]

_PIECE = 64 * 1024


class Keyboard:
    """The lines of standard input. Made inside an asyncio event loop; `close` it after the last read."""

    def __init__(self) -> None:
        self.interactive = sys.stdin.isatty()
        """Whether a person types the lines, one after the other."""
        self._sender, self._lines = create_memory_object_stream[str](inf)
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._read, args=(_reader(),), name="agui keyboard", daemon=True).start()

    async def line(self) -> str | None:
        """The next line without its end; None when there are no more."""
        try:
            return await self._lines.receive()
        except EndOfStream:
            return None

    def forget(self) -> None:
        """Drop the lines that were typed too early. Lines of a pipe stay: they are always early."""
        if self.interactive:
            try:
                while True:
                    self._lines.receive_nowait()
            except (WouldBlock, EndOfStream):
                return

    def close(self) -> None:
        """Take no more lines."""
        self._lines.close()
        self._sender.close()

    def _read(self, read: Callable[[], bytes]) -> None:
        """In the thread."""
        decoder = codecs.getincrementaldecoder(sys.stdin.encoding or "utf-8")("replace")
        held = ""
        try:
            while piece := read():
                *lines, held = (held + decoder.decode(piece)).split("\n")
                for line in lines:
                    self._loop.call_soon_threadsafe(self._send, line.removesuffix("\r"))
            if held:
                self._loop.call_soon_threadsafe(self._send, held)
            self._loop.call_soon_threadsafe(self._sender.close)
        except RuntimeError:
            return  # the loop is closed: nobody listens

    def _send(self, line: str) -> None:
        try:
            self._sender.send_nowait(line)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return


def _reader() -> Callable[[], bytes]:
    """A function that reads a piece of standard input, `b""` at its end."""
    try:
        descriptor = sys.stdin.fileno()
    except (OSError, ValueError):
        buffer: Any = sys.stdin.buffer
        return lambda: bytes(buffer.read1(_PIECE))

    def read() -> bytes:
        try:
            return os.read(descriptor, _PIECE)
        except OSError:
            return b""

    return read
