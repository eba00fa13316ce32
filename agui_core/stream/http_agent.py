"""`HttpAgent`: an AG-UI endpoint over HTTP, one POST and one stream of server-sent events per run (SSE-1..14).

    agent = agui.HttpAgent("https://host/agent")
    async with agent.run(run_input) as run:
        async for update in run.updates():
            ...

Needs the extra `http` (httpx2). The agent itself owns nothing between runs; a run owns its connection, which is
closed at once when its block is left. Nothing is sent twice: a stream that breaks is a truncated run (TR-6).

Without a client of the application's each run has its own (about 0.1 ms); what is trusted over TLS is read once per
process, by the first of them (some 50 ms).
"""

from __future__ import annotations

import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, partial
from ssl import SSLContext
from types import NoneType, TracebackType
from typing import Any, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import anyio

from agui_core._options import SECONDS, TEXT, Option, check_options
from agui_core._text import cut, plain, quoted
from agui_core.errors import TransportError
from agui_core.limits import Limits
from agui_core.protocol.run import RunAgentInput
from agui_core.reducer import Reducer
from agui_core.reducer.state import Middleware, Policy
from agui_core.stream.follow import LiveRun
from agui_core.stream.headers import Fields, Headers, header_fields
from agui_core.stream.source import CLOSING, WireSource
from agui_core.warnings import WarningLog
from agui_core.wire import encode
from agui_core.wire.old_peers import NO_SUBAGENTS, Peer, WithoutSubagents
from agui_core.wire.outgoing import address_input, enforce_input

try:
    import httpx2
except ImportError as missing:
    raise ImportError("HttpAgent needs httpx2: install agui_core[http]") from missing

__all__ = ["HttpAgent", "HttpRun"]

_EXCERPT = 2048
"""Bytes of an unexpected answer that its error shows."""
_PATIENCE = 5.0
"""Seconds that they may take to come."""
_LEFTOVERS = 16
"""Pieces that may be at hand without a wait, where a cancellation has no chance."""
_STREAM = "text/event-stream"
_CODINGS = frozenset({"", "identity", "gzip", "deflate"})
"""What is read without a package of its own; we ask for none of them."""
_TOLD = 3
"""Messages that the error names of an input that was too large."""
_FAILURES = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, httpx2.CookieConflict)
_UNREACHABLE = (httpx2.HTTPError, OSError, anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream)
_FRAMING = (b"content-length", b"transfer-encoding")
"""Headers that describe the body, which only its writer can."""

_OPTIONS = {
    "url": TEXT,
    "client": Option("an httpx2.AsyncClient, or None", (httpx2.AsyncClient, NoneType)),
    "connect_timeout": SECONDS,
    "idle_timeout": SECONDS,
    "event_timeout": SECONDS,
    "limits": Option("Limits, or None", (Limits, NoneType)),
}

Owned: TypeAlias = tuple[httpx2.Response | httpx2.AsyncClient, ...]


class HttpAgent:
    """An AG-UI endpoint over HTTP. Makes runs; several may go on at the same time.

    `url`: an http or https address with a host; it may be relative to the `base_url` of the client.
    `headers`: for every request; those of the protocol come after them.
    `client`: an `httpx2.AsyncClient` with proxies, certificates, credentials, cookies; the agent never closes it.
    `connect_timeout`: seconds to reach the host; None for none, as for the next two.
    `idle_timeout`: seconds between any two reads; keep-alive comments count as reads.
    `event_timeout`: seconds of waiting without an event; keep-alive comments do not count.
    `max_protocol_version`: of a peer that is old, such as `"0.0.57"`; the input leaves out, with a warning, what that
    cannot read (OLD-3..5).
    `middleware`, `policy`, `limits`: of the reducers that runs make.

    Raises: `TypeError` for an option of a wrong type, `ValueError` for a value that makes no sense.
    """

    def __init__(
        self,
        url: str,
        *,
        headers: Headers | None = None,
        client: httpx2.AsyncClient | None = None,
        connect_timeout: float | None = 10,
        idle_timeout: float | None = 300,
        event_timeout: float | None = None,
        max_protocol_version: str | None = None,
        middleware: Iterable[Middleware] = (),
        policy: Policy = "strict",
        limits: Limits | None = None,
    ) -> None:
        check_options(
            _OPTIONS,
            url=url,
            client=client,
            connect_timeout=connect_timeout,
            idle_timeout=idle_timeout,
            event_timeout=event_timeout,
            limits=limits,
        )
        self._client = client
        self.url = url
        self._headers = _fields(headers)
        self._timeout = httpx2.Timeout(
            connect=connect_timeout, pool=connect_timeout, read=idle_timeout, write=idle_timeout
        )
        self._event_timeout = event_timeout
        # Reads have a timeout each; what comes a byte at a time, or as 1xx answers without end, needs one for all.
        self._head_timeout = None if idle_timeout is None else idle_timeout + (connect_timeout or 0)
        self._peer = None if max_protocol_version is None else Peer.pinned(max_protocol_version)
        self._options: dict[str, Any] = {"middleware": tuple(middleware), "policy": policy, "limits": limits}
        self._limits = limits or Limits()
        Reducer(**self._options)  # refuses here what the reducers of the runs would refuse

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {_public(self._url)}>"

    @property
    def url(self) -> str:
        """The address of the runs. A new address counts for runs that are entered later."""
        return self._url

    @url.setter
    def url(self, url: str) -> None:
        check_options(_OPTIONS, url=url)
        _check_url(url, self._client)
        self._url = url

    def run(
        self,
        run_input: RunAgentInput | Mapping[str, Any] | bytes | str | object,
        *,
        reducer: Reducer | None = None,
        headers: Headers | None = None,
    ) -> HttpRun:
        """One run: `async with agent.run(run_input) as run`, where `run` is what `follow` gives.

        `run_input`: a struct, a wire dict, JSON, or an object of `ag_ui.core`.
        `reducer`: the reducer to go on with, with its own policy and limits; if not said, a new one starts from the
        messages and the state of the input.
        `headers`: for this request, after those of the agent.

        Raises: on entering the block `ProtocolError` for a malformed input, before anything is sent (PROC-16), and
        `TransportError` if the peer cannot be reached or does not answer with an event stream. In `updates()`
        `TransportError` if the connection breaks or is idle for too long; the run is then truncated.
        """
        return HttpRun(partial(self._begin, run_input, reducer, _fields(headers)))

    async def _begin(self, given: object, reducer: Reducer | None, headers: Fields) -> LiveRun:
        log = WarningLog(self._limits.warnings)
        run_input = enforce_input(given, log, self._limits)
        reducer = reducer or Reducer.from_input(run_input, **self._options)
        peer = self._peer
        pieces, owned = await self._send(address_input(run_input, log, peer), headers)
        stage = WithoutSubagents(peer, log, self._limits) if peer and peer.at_most(NO_SUBAGENTS) else None
        reads = _Reads(pieces, owned, reducer, self._event_timeout, stage)
        return LiveRun(WireSource(reads), reducer, lambda: tuple(log))

    async def _send(self, run_input: RunAgentInput, headers: Fields) -> tuple[AsyncGenerator[bytes, None], Owned]:
        """The pieces of the answer, an open event stream, and the objects to close after them."""
        if self._client is not None:
            response = await self._post(self._client, run_input, headers)
            return response.aiter_bytes(), (response,)
        # One for this run: a pool keeps a connection whose request is cancelled before it is sent, until it is closed.
        client = httpx2.AsyncClient(verify=_trust())
        try:
            response = await self._post(client, run_input, headers)
        except BaseException:
            await _close(client)
            raise
        return response.aiter_bytes(), (response, client)

    async def _post(self, client: httpx2.AsyncClient, run_input: RunAgentInput, headers: Fields) -> httpx2.Response:
        all_headers = httpx2.Headers([*self._headers, *headers])
        all_headers.update({"Content-Type": "application/json", "Accept": _STREAM, "Accept-Encoding": "identity"})
        request = client.build_request(
            "POST", self.url, content=encode(run_input), headers=all_headers, timeout=self._timeout
        )
        try:
            with anyio.fail_after(self._head_timeout), _discreet():
                response = await client.send(request, stream=True, follow_redirects=False)
        except TimeoutError as error:
            told = f"gave no whole head of an answer in {self._head_timeout:g} s; the request was given up"
            raise TransportError(f"{_public(request.url)} {told}") from error
        except Exception as error:  # of any of the layers below
            if not _is_unreachable(error):
                raise
            raise TransportError(f"{_public(request.url)} cannot be reached: {_say(error)}") from error
        try:
            problem = _problem(response)
            if problem is not None:
                if response.status_code == 413:
                    problem = f"{problem}; {_largest(run_input)}"
                raise TransportError(problem, status=response.status_code, body=await _excerpt(response))
        except BaseException:
            await _close(response)
            raise
        return response


class HttpRun:
    """A run over HTTP that is not yet begun: an async context manager, to be entered once, that yields a `LiveRun`."""

    def __init__(self, begin: Callable[[], Awaitable[LiveRun]]) -> None:
        self._begin = begin
        self._live: LiveRun | None = None

    async def __aenter__(self) -> LiveRun:
        if self._live is not None:
            raise RuntimeError("a run can be entered once; agent.run(...) makes another")
        self._live = await self._begin()
        return await self._live.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._live is not None
        await self._live.__aexit__(kind, error, traceback)


def _problem(response: httpx2.Response) -> str | None:
    """The problem of a response that is not an event stream; None for an event stream."""
    status, url = response.status_code, _public(response.url)
    if response.has_redirect_location:
        target = quoted(_public(response.headers["location"]))
        return f"{url} redirects to {target} ({status}), which is not followed: give the agent that address"
    if status != 200:
        return f"{url} answered {status} {plain(response.reason_phrase)}: no run was started".rstrip()
    media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != _STREAM:
        return f"{url} answered with {quoted(media_type or 'no content type')} where {_STREAM} is expected (SSE-2)"
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in _CODINGS:
        return f"{url} answered with content-encoding {quoted(coding)}, which is not read: send the stream as it is"
    return None


def _public(url: object) -> str:
    """An address for a message: without user and password, query and fragment, which may be secret."""
    try:
        parts = urlsplit(str(url))
    except ValueError:  # brackets that hold no address
        return "an address that cannot be read"
    if not parts.netloc:
        return plain(parts.path.rpartition("@")[2])
    host = parts.netloc.rpartition("@")[2]
    return plain(urlunsplit((parts.scheme, host, parts.path, "", "")))


_ours: ContextVar[bool] = ContextVar("agui_core.stream.http_agent", default=False)
"""Whether a request of ours is being sent."""


@contextmanager
def _discreet() -> Iterator[None]:
    """In this block the log records of httpx2 hold no secrets of the address."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


def _hide_secrets(record: logging.LogRecord) -> bool:
    if _ours.get() and isinstance(record.args, tuple):
        record.args = tuple(_public(value) if isinstance(value, httpx2.URL) else value for value in record.args)
    return True


logging.getLogger("httpx2").addFilter(_hide_secrets)


def _largest(run_input: RunAgentInput) -> str:
    """The largest messages of an input that was too large."""
    sizes = sorted(((len(encode(message)), message) for message in run_input.messages), key=lambda pair: -pair[0])
    told = ", ".join(f"{quoted(message.id)} ({message.role}, {size:,} bytes)" for size, message in sizes[:_TOLD])
    return f"its largest messages: {told}" if told else "it has no messages"


async def _excerpt(response: httpx2.Response) -> str:
    """The beginning of the body, as far as it comes within `_PATIENCE`."""
    body = b""
    with anyio.move_on_after(_PATIENCE):
        with suppress(*_FAILURES):
            pieces = response.aiter_bytes()
            async for piece in pieces:
                body += piece[: _EXCERPT - len(body)]
                if len(body) >= _EXCERPT:
                    await _end(pieces)
                    break
    return body.decode("utf-8", "replace")


async def _end(pieces: AsyncGenerator[bytes, None]) -> None:
    """End an iterator in the middle. Closing it would leave generators inside httpx2 to the garbage collector, of which
    trio complains; a cancellation ends them all, one after the other.
    """
    with suppress(*_FAILURES):
        with anyio.CancelScope() as scope:
            scope.cancel()
            for _ in range(_LEFTOVERS):
                if await anext(pieces, None) is None:
                    break
        await pieces.aclose()


async def _close(*owned: httpx2.Response | httpx2.AsyncClient) -> None:
    """Close each, shielded, for at most a second; then abandon it."""
    for it in owned:
        with anyio.move_on_after(CLOSING, shield=True):
            with suppress(*_FAILURES):
                await it.aclose()


@cache
def _trust() -> SSLContext:
    """The certificates that are trusted: those of httpx2, or of the environment where it names others."""
    return httpx2.create_ssl_context()


class _Reads:
    """The body of a response, read by read."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        owned: Owned,
        reducer: Reducer,
        event_timeout: float | None,
        stage: WithoutSubagents | None,
    ) -> None:
        self._pieces = pieces
        self._owned = owned
        self._reducer = reducer
        self._event_timeout = event_timeout
        self._stage = stage
        self._version = -1
        self._waited = 0.0

    def __aiter__(self) -> _Reads:
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await (anext(self._pieces) if self._event_timeout is None else self._in_time(self._event_timeout))
        except httpx2.ReadTimeout as error:
            raise TransportError("nothing came for longer than idle_timeout; the connection was given up") from error
        except _FAILURES as error:
            raise TransportError(f"the connection broke: {_say(error)}") from error
        return piece if self._stage is None else self._stage.feed(piece)

    async def aclose(self) -> None:
        """Close the connection."""
        await _end(self._pieces)
        await _close(*self._owned)

    async def _in_time(self, timeout: float) -> bytes:
        """The next piece. Raises `TransportError` when events were waited for too long; only time of waiting counts."""
        if self._reducer.version != self._version:
            self._version = self._reducer.version
            self._waited = 0.0
        started = anyio.current_time()
        try:
            with anyio.fail_after(timeout - self._waited):
                return await anext(self._pieces)
        except TimeoutError as error:
            raise TransportError(
                f"no event came for {timeout:g} s (event_timeout); the connection was given up"
            ) from error
        finally:
            self._waited += anyio.current_time() - started


def _check_url(url: str, client: httpx2.AsyncClient | None) -> None:
    """Refuse a wrong address. The client completes an address without scheme and host, if it has a `base_url`."""
    # If a password holds a slash or the like, the secret part of the text cannot be told.
    told = "not shown, since it may hold a password" if "@" in url else quoted(re.split("[?#]", url)[0])
    problem = f"url is {told}, but takes an http or https address with a host, such as 'http://127.0.0.1:8000/'"
    try:
        urlsplit(url)  # ours reads less than httpx2 does, and is what shows it
        address = httpx2.URL(url)
        if address.is_relative_url and client is not None:
            address = client.base_url
        address.raw_host.decode("ascii").encode("idna")  # as it is done to look the host up
    except (httpx2.InvalidURL, ValueError):  # their texts may hold the secrets of the address
        raise ValueError(problem) from None
    port_fits = address.port is None or 0 < address.port < 65_536
    if address.scheme not in ("http", "https") or not address.host or not port_fits:
        raise ValueError(problem)


def _fields(headers: Headers | None) -> Fields:
    fields = header_fields(headers)
    for name, _ in fields:
        if name.lower() in _FRAMING:
            raise ValueError(f"headers: {name.decode()} is not the application's to say, as the agent writes the body")
    return fields


def _is_unreachable(error: Exception) -> bool:
    """Whether it is a failure of the transport, alone or in a group. Other errors are mistakes, which would repeat."""
    if isinstance(error, ExceptionGroup):
        return all(map(_is_unreachable, error.exceptions))
    return isinstance(error, _UNREACHABLE)


def _say(error: Exception) -> str:
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    text = cut(str(error), 200)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
