"""What ASGI endpoints have in common: requests are read within bounds, bad ones refused, pages of other sites kept out.

`PostEndpoint` answers everything that does not depend on the body; `serve` and `agui serve` add what a body is for.
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from agui_core._text import plain
from agui_core.errors import AGUIError
from agui_core.stream.headers import Fields

__all__ = ["MAX_BODY", "PostEndpoint", "Receive", "Refused", "RequestFields", "Scope", "Send", "respond"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
RequestFields: TypeAlias = Mapping[bytes, bytes]
"""The headers of a request, names in lower case."""

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, where nothing else is said."""
_PREFLIGHT_AGE = b"600"
"""Seconds for which a browser may remember what a preflight was answered."""
_logger = logging.getLogger("agui_core.serve")


class Refused(AGUIError):
    """The request is answered with an error."""

    def __init__(self, status: int, error: str, rule: str | None = None, path: str | None = None) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error}
        if rule is not None:
            self.body["rule"] = rule
        if path is not None:
            self.body["path"] = path

    @property
    def headers(self) -> Fields:
        """Headers that the answer must have."""
        return [(b"allow", b"POST")] if self.status == 405 else []


class PostEndpoint(ABC):
    """An ASGI application that takes JSON by POST, on any path. A subclass says what a body is answered.

    `origins`: the origins, or `"*"`, whose pages may call it; nobody else gets CORS headers. `max_body`: bytes of a
    body. Refused are methods other than POST (405), a body that is not declared as JSON, which keeps forms of other
    sites away, or that has a content encoding (415), and one that is too long (413).
    """

    def __init__(self, origins: Collection[str], max_body: int = MAX_BODY) -> None:
        self._origins = frozenset([origins] if isinstance(origins, str) else origins)
        self._max_body = max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _live(receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1003})
        else:
            try:
                await self._http(scope, receive, send)
            except OSError:
                _logger.debug("the client has gone")

    @abstractmethod
    async def _answer(self, body: bytes, cors: Fields, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a body, with `cors` among the headers. Raises `Refused` before anything is sent."""

    def _check(self, fields: RequestFields) -> None:  # noqa: B027  # nothing to check is the common case
        """Raise `Refused` for a request that is not to be served, whatever it asks for."""

    def _note_refusal(self, refused: Refused) -> None:  # noqa: B027  # as above
        """Called before a refusal is sent."""

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        fields: RequestFields = dict(scope["headers"])
        cors = self._cors(fields)
        try:
            self._check(fields)
            if cors and scope["method"] == "OPTIONS" and b"access-control-request-method" in fields:
                await respond(send, 204, None, [*cors, *_preflight(fields)])
                return
            _check_head(scope["method"], fields, self._max_body)
            body = await _read_body(receive, self._max_body)
            if body is not None:
                await self._answer(body, cors, scope, receive, send)
        except Refused as refused:
            self._note_refusal(refused)
            await respond(send, refused.status, refused.body, [*refused.headers, *cors])

    def _cors(self, fields: RequestFields) -> Fields:
        origin = fields.get(b"origin")
        if origin is None or not self._origins:
            return []
        if "*" in self._origins:
            return [(b"access-control-allow-origin", b"*")]
        vary = [(b"vary", b"origin")]
        if origin.decode("latin-1") in self._origins:
            return [(b"access-control-allow-origin", origin), *vary]
        return vary


async def respond(send: Send, status: int, body: Mapping[str, Any] | None, headers: Fields) -> None:
    """A whole response: JSON, or nothing."""
    content = b"" if body is None else msgspec.json.encode(body)
    fields = [(b"content-length", str(len(content)).encode()), *headers]
    if body is not None:
        fields.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": content})


def _check_head(method: str, fields: RequestFields, max_body: int) -> None:
    """Raise `Refused` unless this is a POST of plain JSON that does not say it is longer than `max_body` bytes."""
    if method != "POST":
        raise Refused(405, f"{plain(method[:20])} is not allowed: a run is a POST")
    media_type = fields.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if media_type != b"application/json":
        raise Refused(415, "the body has to be declared as application/json (SSE-1)")
    if fields.get(b"content-encoding", b"identity").strip().lower() not in (b"identity", b""):
        raise Refused(415, "the body has to be sent as it is, without a content-encoding")
    length = fields.get(b"content-length", b"")
    if length.isdigit() and (len(length) > 18 or int(length) > max_body):
        raise _too_long(max_body)


async def _read_body(receive: Receive, max_body: int) -> bytes | None:
    """The whole body, or None when the client has gone before its end. Raises `Refused` for one that is too long."""
    body = bytearray()
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > max_body:
            raise _too_long(max_body)
    return bytes(body)


def _too_long(max_body: int) -> Refused:
    return Refused(413, f"the body is longer than {max_body} bytes")


def _preflight(fields: RequestFields) -> Fields:
    return [
        (b"access-control-allow-methods", b"POST"),
        (b"access-control-allow-headers", fields.get(b"access-control-request-headers", b"content-type")),
        (b"access-control-max-age", _PREFLIGHT_AGE),
    ]


async def _live(receive: Receive, send: Send) -> None:
    """The server's own start and end, at which there is nothing to do."""
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return
