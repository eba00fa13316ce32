"""`EventStream`: events as an ASGI response, server-sent, with comments while nothing happens (SSE-1..10).

The caller's task pulls the events and closes them at the end. A second task watches for the client's leaving, a third
writes a comment when nothing was sent for a while. A slow client holds the events back, as far as the server's `send`
does.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncIterable, MutableMapping
from typing import Any

import anyio
import msgspec

from agui_core._options import SECONDS, check_options
from agui_core.errors import AGUIError
from agui_core.limits import Limits
from agui_core.protocol.events import RunErrorEvent
from agui_core.reducer import Conformer
from agui_core.reducer.state import Policy
from agui_core.stream.applier import WIRE
from agui_core.stream.asgi import Receive, Scope, Send, respond
from agui_core.stream.headers import Fields, Headers, header_fields
from agui_core.stream.source import WireSource, is_foreign_cancellation
from agui_core.wire import encode, encode_sse
from agui_core.wire.framing import as_bytes
from agui_core.wire.pydantic_models import is_model
from agui_core.wire.sse import sse_block

__all__ = ["EventStream"]

_HEADERS: Fields = [
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]
_ENDS = ("RUN_FINISHED", "RUN_ERROR")
_OPTIONS = {"ping": SECONDS}
_EXITS = (SystemExit, KeyboardInterrupt, GeneratorExit)
_PING = b": ping\n\n"
_logger = logging.getLogger("agui_core.serve")


class _Gone(Exception):
    """The client has gone."""


class _Unfinished(AGUIError):
    """The events ended before their run did."""


class _TypeOnly(msgspec.Struct):
    type: str


class EventStream:
    """Events as an ASGI response: `await EventStream(events)(scope, receive, send)`, or what a Starlette endpoint
    returns. Once.

    `events`: an async iterable of structs, wire dicts, objects of `ag_ui.core`, or JSON texts of one event each.
    `ping`: seconds without an event after which a comment is sent, also before the first event; None for none.
    `policy`: of the `Conformer` that the events pass; with None they are sent as they are.
    `limits`: of that `Conformer`.
    `headers`: more headers, a mapping or pairs, of str or bytes.

    An exception of `events`, the refusal of one of them, and an end inside a run are the server's fault. While nothing
    was sent, the answer is HTTP 500; after that, a RUN_ERROR with an incident id and no detail; after a RUN_ERROR,
    nothing. Each is logged, with that id, by the logger `agui_core.serve`. A client that leaves cancels `events`.

    Raises: `TypeError` or `ValueError` for an option that does not fit.
    """

    def __init__(
        self,
        events: AsyncIterable[object],
        ping: float | None = 15,
        *,
        policy: Policy | None = "strict",
        limits: Limits | None = None,
        headers: Headers = (),
    ) -> None:
        check_options(_OPTIONS, ping=ping)
        self._source = WireSource(events)
        self._ping = ping
        self._policy = policy
        self._conformer = None if policy is None else Conformer(policy, limits)
        self._headers = [(name.lower(), value) for name, value in header_fields(headers)]

    def __repr__(self) -> str:
        checked = "unchecked" if self._policy is None else self._policy
        pings = "no pings" if self._ping is None else f"a ping after {self._ping:g} s"
        return f"<{type(self).__name__} {checked}, {pings}>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem: BaseException | None = None
        async with anyio.create_task_group() as tasks:
            delivery = _Delivery(self._source, self._conformer, self._headers, send)
            tasks.start_soon(_watch, receive, tasks.cancel_scope)
            if self._ping is not None:
                tasks.start_soon(delivery.ping, self._ping, tasks.cancel_scope)
            try:
                await delivery.run()
            except _Gone:
                _logger.debug("the client has gone")
            except (Exception, *_EXITS) as error:
                # The server's `send` failed, or the events end the program: a group is not to be made of it.
                problem = error
            finally:
                await _close(self._source)
                tasks.cancel_scope.cancel()
        for warning in () if self._conformer is None else self._conformer.warnings:
            _logger.warning("in the events that were served: %s", warning)
        if problem is not None:
            raise problem


class _Delivery:
    """One response on its way. `run` and `ping` are two tasks, so they take turns in sending."""

    def __init__(self, source: WireSource, conformer: Conformer | None, headers: Fields, send: Send) -> None:
        self._source = source
        self._conformer = conformer
        self._headers = headers
        self._server_send = send
        self._turn = anyio.Lock()
        self._started = anyio.Event()
        self._last = ""
        self._sent_at = anyio.current_time()

    async def run(self) -> None:
        """Send all events and the end; after a failure what the client has to know of it."""
        try:
            await self._send_all()
        except _Gone:
            raise
        except anyio.get_cancelled_exc_class() as error:
            if not is_foreign_cancellation():
                raise
            await self._fail(error)
        except Exception as error:
            await self._fail(error)
        else:
            await self._finish()

    async def ping(self, interval: float, scope: anyio.CancelScope) -> None:
        """Send a comment whenever nothing was sent for a while. The first comment may begin the response."""
        try:
            while True:
                await anyio.sleep_until(self._sent_at + interval)
                if anyio.current_time() >= self._sent_at + interval:
                    await self._write(_PING)
        except _Gone:
            scope.cancel()

    async def _send_all(self) -> None:
        while True:
            try:
                item = await self._source.pull()
            except StopAsyncIteration:
                break
            for kind, block in self._blocks(item):
                await self._write(block)
                self._last = kind
        if self._conformer is not None and self._last not in _ENDS:
            raise _Unfinished("the events ended before their run was finished: send RUN_FINISHED or RUN_ERROR (RUN-17)")

    def _blocks(self, item: object) -> list[tuple[str, bytes]]:
        """The type and the block of each event of an item."""
        if self._conformer is None:
            return [_raw(item)]
        return [(event.type, encode_sse(event)) for event in self._conformer.feed(item)]

    async def _write(self, block: bytes) -> None:
        async with self._turn:
            if not self._started.is_set():
                self._sent_at = anyio.current_time()
                self._started.set()
                await self._send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *self._headers]})
            await self._send({"type": "http.response.body", "body": block, "more_body": True})
            self._sent_at = anyio.current_time()

    async def _finish(self) -> None:
        await self._write(b"")
        async with self._turn:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _fail(self, error: BaseException) -> None:
        incident = secrets.token_hex(6)
        _logger.error("incident %s: the run that is served failed", incident, exc_info=error)
        if not self._started.is_set():
            body = {"error": "internal error", "incident": incident}
            try:
                await respond(self._server_send, 500, body, self._headers)
            except OSError:
                raise _Gone from None
            return
        if self._last != "RUN_ERROR":
            event = RunErrorEvent(message=f"internal error, incident {incident}", code="internal_error")
            await self._write(encode_sse(event))
        await self._finish()

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        try:
            await self._server_send(message)
        except OSError:
            raise _Gone from None


async def _watch(receive: Receive, scope: anyio.CancelScope) -> None:
    """Cancel when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()


async def _close(source: WireSource) -> None:
    try:
        await source.close()
    except Exception as error:
        _logger.error("closing the events that were served failed", exc_info=error)


def _raw(item: object) -> tuple[str, bytes]:
    """The type and the block of an event that is sent as it is."""
    if isinstance(item, WIRE):
        text = as_bytes(item)
    elif isinstance(item, msgspec.Struct):
        text = encode(item)
    elif isinstance(item, dict) or is_model(item):
        text = encode(item)  # type: ignore[arg-type]  # which msgspec writes as well
    else:
        raise TypeError(f"an event is a struct, a dict, JSON text or an ag_ui.core event, not a {type(item).__name__}")
    try:
        kind = msgspec.json.decode(text, type=_TypeOnly).type
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        kind = ""
    return kind, sse_block(text)
