"""A server on 127.0.0.1 that answers with exactly the bytes that a test writes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskGroup

__all__ = ["HEAD", "Request", "Server", "chunk", "loopback"]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
"""The head of an event stream; `chunk` frames its pieces, `chunk(b"")` ends it."""


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Request:
    """One request as it came."""

    def __init__(self, head: bytes, body: bytes) -> None:
        first, *fields = head.decode().split("\r\n")
        self.method, self.target, _ = first.split(" ")
        self.headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
        self.body = body


Handler = Callable[[Request, SocketStream], Awaitable[None]]


class Server:
    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.url = ""
        self.requests: list[Request] = []
        self.open = 0
        """Connections that nobody has closed."""

    async def connected(self, stream: SocketStream) -> None:
        self.open += 1
        try:
            async with stream, anyio.create_task_group() as tasks:
                with suppress(anyio.BrokenResourceError, anyio.EndOfStream):
                    request = await self._read(stream)
                    self.requests.append(request)
                    tasks.start_soon(self._watch, stream, tasks)
                    await self.handler(request, stream)
                tasks.cancel_scope.cancel()
        finally:
            self.open -= 1

    async def _watch(self, stream: SocketStream, tasks: TaskGroup) -> None:
        """Stop the handler when the client has gone."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.receive()
        tasks.cancel_scope.cancel()

    async def _read(self, stream: SocketStream) -> Request:
        data = b""
        while b"\r\n\r\n" not in data:
            data += await stream.receive()
        head, _, body = data.partition(b"\r\n\r\n")
        request = Request(head, b"")
        while len(body) < int(request.headers.get("content-length", 0)):
            body += await stream.receive()
        request.body = body
        return request


@asynccontextmanager
async def loopback(handler: Handler) -> AsyncIterator[Server]:
    """A server for the time of the block; `handler(request, stream)` writes the answer, head and all."""
    server = Server(handler)
    listener: Any = await anyio.create_tcp_listener(local_host="127.0.0.1")
    server.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}/agent"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, server.connected)
        yield server
        tasks.cancel_scope.cancel()
