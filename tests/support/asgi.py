"""A server for tests: calls an ASGI application and keeps what it sends."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import trio.testing

import agui_core as agui
from support.clocks import PATIENCE

__all__ = ["Exchange", "ask", "exchange"]


class Exchange:
    """One request and what came of it. `leave()` is the client that goes away, as is None among the body's pieces."""

    def __init__(self, method: str, headers: dict[str, str], body: Iterable[bytes | None]) -> None:
        self.scope = {
            "type": "http",
            "method": method,
            "path": "/",
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        pieces = list(body) or [b""]
        self._requests = [
            {"type": "http.disconnect"}
            if piece is None
            else {"type": "http.request", "body": piece, "more_body": number < len(pieces)}
            for number, piece in enumerate(pieces, 1)
        ]
        self._left = anyio.Event()
        self.sent: list[Any] = []
        self.times: list[float] = []
        """When the pieces of the body were sent."""
        self.on_send: Callable[[Any], None] = lambda message: None
        self.returned = False

    def leave(self) -> None:
        self._left.set()

    async def receive(self) -> Any:
        if self._requests:
            return self._requests.pop(0)
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.on_send(message)
        self.sent.append(message)
        if message.get("body"):
            self.times.append(anyio.current_time())
        await anyio.lowlevel.checkpoint()

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.sent[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])

    @property
    def events(self) -> list[Any]:
        return [json.loads(payload) for payload in agui.SSEDecoder().feed(self.body)]

    @property
    def types(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def complete(self) -> bool:
        return bool(self.sent) and not self.sent[-1].get("more_body", False)


async def exchange(
    app: Any,
    body: Any = b"",
    method: str = "POST",
    headers: dict[str, str] | None = None,
    prepare: Callable[[Exchange], None] = lambda _: None,
) -> Exchange:
    """Call the application; a body that is no bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    made = Exchange(method, {"Content-Type": "application/json"} if headers is None else headers, [content])
    prepare(made)
    with anyio.fail_after(PATIENCE):
        await app(made.scope, made.receive, made.send)
    made.returned = True
    return made


def ask(app: Any, pieces: Iterable[bytes | None], method: str = "POST", **headers: str) -> Exchange:
    """Call the application from a test that is not async, on a clock that jumps."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    made = Exchange(method, {"content-type": "application/json", "host": "127.0.0.1", **given}, pieces)

    async def main() -> None:
        await app(made.scope, made.receive, made.send)

    clock = trio.testing.MockClock(autojump_threshold=0)
    anyio.run(main, backend="trio", backend_options={"clock": clock})
    made.returned = True
    return made
