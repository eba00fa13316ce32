"""What every ASGI endpoint here has in common: reading a request within bounds, and whole answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any, TypeAlias

import msgspec

from agui_core._text import plain
from agui_core.errors import AGUIError
from agui_core.stream.headers import Fields

__all__ = ["MAX_BODY", "Receive", "Refused", "Scope", "Send", "check_head", "read_body", "respond"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY = 16 * 1024 * 1024
"""Bytes of a request's body, where nothing else is said."""


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
        """What has to stand in the answer."""
        return [(b"allow", b"POST")] if self.status == 405 else []


def check_head(method: str, fields: Mapping[bytes, bytes], max_body: int) -> None:
    """Raise `Refused` unless this is a POST of JSON as it is, of no more than `max_body` bytes as far as it says."""
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


async def read_body(receive: Receive, max_body: int) -> bytes | None:
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


async def respond(send: Send, status: int, body: Mapping[str, Any] | None, headers: Fields) -> None:
    """A whole response: JSON, or nothing."""
    content = b"" if body is None else msgspec.json.encode(body)
    fields = [(b"content-length", str(len(content)).encode()), *headers]
    if body is not None:
        fields.append((b"content-type", b"application/json"))
    await send({"type": "http.response.start", "status": status, "headers": fields})
    await send({"type": "http.response.body", "body": content})


def _too_long(max_body: int) -> Refused:
    return Refused(413, f"the body is longer than {max_body} bytes")
