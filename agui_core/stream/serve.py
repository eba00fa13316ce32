"""`serve`: a handler as an AG-UI endpoint, a small ASGI application that needs no framework and mounts into any.

    async def handler(run_input):
        yield {"type": "RUN_STARTED", "threadId": run_input.thread_id, "runId": run_input.run_id}
        ...

    app = agui.serve(handler)                                  # uvicorn module:app
    Starlette(routes=[Route("/agent", agui.serve(handler))])
    fastapi_app.add_route("/agent", agui.serve(handler))       # `mount` would answer under /agent/ only

A bad request is answered before the handler is called, in JSON: 405, 413 and 415 (`asgi.PostEndpoint`), and 422 for an
input that is malformed.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Collection
from typing import Any, TypeAlias

from agui_core._options import COUNT, SECONDS, check_options
from agui_core._text import one_line, place
from agui_core.errors import DecodeError, LimitExceeded
from agui_core.limits import Limits
from agui_core.protocol.run import RunAgentInput
from agui_core.stream.asgi import MAX_BODY, PostEndpoint, Receive, Refused, Scope, Send
from agui_core.stream.event_stream import EventStream
from agui_core.stream.headers import Fields
from agui_core.wire.compat import upgrade_input
from agui_core.wire.malformed import Malformed
from agui_core.wire.sanitize import read_shape
from agui_core.wire.shapes import Findings, Unrecognised

__all__ = ["ServeEndpoint", "Handler", "serve"]

Handler: TypeAlias = Callable[[RunAgentInput], AsyncIterable[object] | Awaitable[AsyncIterable[object]]]

_OPTIONS = {"ping": SECONDS, "max_body": COUNT}
_logger = logging.getLogger("agui_core.serve")


def serve(
    handler: Handler,
    *,
    ping: float | None = 15,
    max_body: int = MAX_BODY,
    allow_origins: Collection[str] = (),
    limits: Limits | None = None,
) -> ServeEndpoint:
    """An ASGI application that answers each POST with the events of `handler(run_input)`.

    The events pass a `Conformer` and are sent by an `EventStream`, which says what becomes of errors. A client that
    leaves cancels the handler. The path is not looked at.

    `handler`: takes a `RunAgentInput` and gives an async iterable of events; it may be a coroutine function.
    `ping`: seconds without an event after which a comment is sent; None for none.
    `max_body`: bytes of a request's body.
    `allow_origins`: the origins, or `"*"`, whose pages may call the endpoint; others get no CORS headers.
    `limits`: of the run input and of the events.

    Refused before the handler is called, with JSON that says why: 405 for anything but POST, 415 for a body that is not
    declared as `application/json`, 413 for one longer than `max_body`, 422 for an input that is malformed.

    Raises: `TypeError` or `ValueError` for an option that does not fit.
    """
    if not callable(handler):
        raise TypeError(f"a handler is a function of a run input, not a {type(handler).__name__}")
    check_options(_OPTIONS, ping=ping, max_body=max_body)
    return ServeEndpoint(handler, ping, max_body, allow_origins, limits or Limits())


class ServeEndpoint(PostEndpoint):
    """The ASGI application that `serve` makes."""

    def __init__(
        self, handler: Handler, ping: float | None, max_body: int, allow_origins: Collection[str], limits: Limits
    ) -> None:
        super().__init__(allow_origins, max_body)
        self._handler = handler
        self._ping = ping
        self._limits = limits

    async def _answer(self, body: bytes, cors: Fields, scope: Scope, receive: Receive, send: Send) -> None:
        events = _Events(self._handler, self._input(body))
        await EventStream(events, self._ping, limits=self._limits, headers=cors)(scope, receive, send)

    def _input(self, body: bytes) -> RunAgentInput:
        """The run input, upgraded and enforced as received data is (PROC-1). Raises `Refused`."""
        findings = Findings()
        try:
            kept = read_shape(
                body, RunAgentInput, self._limits, findings, lambda wire: upgrade_input(wire, findings.note)
            )
        except Malformed as problem:
            raise Refused(422, problem.about("the input"), problem.rule, place(problem.path)) from None
        except (DecodeError, LimitExceeded) as error:
            raise Refused(422, one_line(error.message), error.rule) from None
        if isinstance(kept, Unrecognised):
            raise Refused(422, str(kept), "PROC-9")
        if findings.notes:
            rule, message, _ = findings.notes[0]
            _logger.warning("in a run input: %s [%s], %d in all", one_line(message), rule, len(findings.notes))
        assert isinstance(kept, RunAgentInput)
        return kept


class _Events:
    """The events of a handler, sync or async. The handler is called, and closed, in the task that pulls."""

    def __init__(self, handler: Handler, run_input: RunAgentInput) -> None:
        self._handler = handler
        self._input = run_input
        self._iterator: AsyncIterator[object] | None = None

    def __aiter__(self) -> _Events:
        return self

    async def __anext__(self) -> object:
        if self._iterator is None:
            given: Any = self._handler(self._input)
            if inspect.isawaitable(given):
                given = await given
            if not isinstance(given, AsyncIterable):
                raise TypeError(f"a handler gives an async iterable of events, not a {type(given).__name__}")
            self._iterator = given.__aiter__()
        return await self._iterator.__anext__()

    async def aclose(self) -> None:
        aclose = getattr(self._iterator, "aclose", None)
        if aclose is not None:
            await aclose()
