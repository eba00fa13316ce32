"""A server, on 127.0.0.1 or in memory, that answers with exactly the bytes that a test writes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute, TaskGroup
from anyio.streams.stapled import StapledObjectStream

httpx2 = pytest.importorskip("httpx2")
httpcore2 = pytest.importorskip("httpcore2")

__all__ = ["HEAD", "Request", "Server", "beside", "chunk", "loopback"]

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


Handler = Callable[[Request, Any], Awaitable[None]]


class Server:
    def __init__(self, handler: Handler) -> None:
        self.handler = handler
        self.url = ""
        self.requests: list[Request] = []
        self.open = 0
        """Connections that nobody has closed."""

    async def connected(self, stream: Any) -> None:
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

    async def _watch(self, stream: Any, tasks: TaskGroup) -> None:
        """Stop the handler when the client has gone."""
        with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            await stream.receive()
        tasks.cancel_scope.cancel()

    async def _read(self, stream: Any) -> Request:
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


Pipe = StapledObjectStream[bytes]


class Wire(httpcore2.AsyncNetworkStream):  # type: ignore[misc]
    """What httpcore2 takes for a connection: one end of a pair of memory streams."""

    def __init__(self, pipe: Pipe) -> None:
        self._pipe = pipe
        self._rest = b""

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._rest:
            try:
                with anyio.fail_after(timeout):
                    self._rest = await self._pipe.receive()
            except TimeoutError as error:
                raise httpcore2.ReadTimeout from error
            except anyio.EndOfStream:
                return b""
        data, self._rest = self._rest[:max_bytes], self._rest[max_bytes:]
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if buffer:
            await self._pipe.send(bytes(buffer))

    async def aclose(self) -> None:
        await self._pipe.aclose()

    def get_extra_info(self, info: str) -> Any:
        return None


class Wires(httpcore2.AsyncNetworkBackend):  # type: ignore[misc]
    """Connects all that httpcore2 connects to one server, in memory."""

    def __init__(self, server: Server, tasks: TaskGroup) -> None:
        self._server = server
        self._tasks = tasks

    async def connect_tcp(self, *args: Any, **options: Any) -> Wire:
        await anyio.lowlevel.checkpoint()
        (send, received), (answer, receive) = (anyio.create_memory_object_stream[bytes](math.inf) for _ in range(2))
        self._tasks.start_soon(self._server.connected, StapledObjectStream(answer, received))
        return Wire(StapledObjectStream(send, receive))


@asynccontextmanager
async def beside(handler: Handler) -> AsyncIterator[Server]:
    """Like `loopback`, for `virtual_time`: what is sent is there at once, and no socket takes its time to deliver it.
    Every client of httpx2 that is made in the block is connected to the server.
    """
    server = Server(handler)
    server.url = "http://127.0.0.1/agent"
    async with anyio.create_task_group() as tasks:

        class Client(httpx2.AsyncClient):  # type: ignore[misc]
            def __init__(self, **options: Any) -> None:
                transport = httpx2.AsyncHTTPTransport()
                transport._pool = httpcore2.AsyncConnectionPool(network_backend=Wires(server, tasks))
                super().__init__(**options, transport=transport)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(httpx2, "AsyncClient", Client)
            yield server
        tasks.cancel_scope.cancel()
