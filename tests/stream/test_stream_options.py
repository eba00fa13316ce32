"""What an application says wrongly is refused where it says it: by agents, conversations, streams and servers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from agui_core.stream import Conversation, EventStream, HttpAgent, serve
from support.asgi import exchange
from support.events import FINISHED, STARTED
from support.watched import Watched

httpx2 = pytest.importorskip("httpx2")

URL = "http://127.0.0.1:1/"
NO_NUMBERS: list[Any] = ["x", b"1", True, [1]]
NO_TIMES = [-1, 0, math.nan, math.inf, -math.inf]
HEADERS: list[Any] = [
    {"a": "b"},
    {b"a": b"b"},
    [("a", "b")],
    [(b"a", b"b")],
    (["A", b" b\t"],),
    httpx2.Headers({"a": "b"}),
    {"a": "b"}.items(),
]


def refused(kind: type[Exception], make: Any, *words: str) -> str:
    with pytest.raises(kind) as caught:
        make()
    assert type(caught.value) is kind
    message = str(caught.value)
    assert all(word in message for word in words), message
    assert "\n" not in message
    assert "\r" not in message
    return message


# --- HttpAgent -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["connect_timeout", "idle_timeout", "event_timeout"])
def test_timeouts_of_an_agent(option: str) -> None:
    for value in NO_NUMBERS:
        refused(TypeError, lambda value=value: HttpAgent(URL, **{option: value}), option, repr(value), "seconds")
    for value in NO_TIMES:
        refused(ValueError, lambda value=value: HttpAgent(URL, **{option: value}), option, repr(value), "seconds")
    for value in (None, 1, 0.5):
        HttpAgent(URL, **{option: value})


@pytest.mark.parametrize("url", [None, 5, b"http://127.0.0.1:1/", httpx2.URL(URL)])
def test_an_address_is_text(url: Any) -> None:
    refused(TypeError, lambda: HttpAgent(url), "url is", "takes text")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "agent",
        "/agent",
        "//host/agent",
        "http://",
        "http:///agent",
        "ftp://host/",
        "host:8000/agent",
        "http://host:99999/",
        "http://host:0/",
        "http://host:port/",
        "http://[::1/",
        "http://a..b/",
        f"http://{'a' * 64}/",
        "http://127.0.0.1:1/\r\nX: y",
        "http://host/\0",
    ],
)
def test_an_address_is_one_of_http(url: str) -> None:
    refused(ValueError, lambda: HttpAgent(url), "url is", "http or https", repr(url)[:50])
    agent = HttpAgent(URL)
    with pytest.raises(ValueError, match="http or https"):
        agent.url = url
    assert agent.url == URL


@pytest.mark.parametrize(
    "url", ["HTTPS://Host/", "http://h", "http://[::1]:8000/a?b#c", "http://b\xfccher.example/\xe9 x", "http://a.b./"]
)
def test_addresses_of_many_forms(url: str) -> None:
    assert HttpAgent(url).url == url


@pytest.mark.anyio
async def test_a_relative_address_needs_a_base() -> None:
    async with httpx2.AsyncClient() as client:
        refused(ValueError, lambda: HttpAgent("/agent", client=client), "'/agent'")
    async with httpx2.AsyncClient(base_url=URL) as client:
        assert HttpAgent("/agent", client=client).url == "/agent"


@pytest.mark.parametrize("client", [5, "client", httpx2.AsyncClient, object()])
def test_a_client_is_a_client(client: Any) -> None:
    refused(TypeError, lambda: HttpAgent(URL, client=client), "client is", "takes an httpx2.AsyncClient")


def test_a_client_that_does_not_wait_is_none() -> None:
    with httpx2.Client() as client:
        refused(TypeError, lambda: HttpAgent(URL, client=client), "client is", "takes an httpx2.AsyncClient")


def test_what_the_reducers_of_an_agent_take() -> None:
    refused(ValueError, lambda: HttpAgent(URL, policy="Lenient"), "policy", "'Lenient'")  # type: ignore[arg-type]
    refused(TypeError, lambda: HttpAgent(URL, limits=5), "limits is 5", "Limits")  # type: ignore[arg-type]


# --- headers -------------------------------------------------------------------------------------------------------


def agent_with(headers: Any) -> Any:
    return HttpAgent(URL, headers=headers)


def run_with(headers: Any) -> Any:
    return HttpAgent(URL).run({}, headers=headers)


def stream_with(headers: Any) -> Any:
    return EventStream(Watched([]), headers=headers)


@pytest.mark.parametrize("make", [agent_with, run_with, stream_with])
def test_headers_that_http_cannot_send_are_refused(make: Any) -> None:
    for headers in (5, "a: b", b"a: b", [5], ["ab"], [("a",)], {"a": 5}, {5: "a"}, {"a": None}, [("a", ["b"])]):
        refused(TypeError, lambda headers=headers: make(headers), "headers")
    for headers in (
        {"": "b"},
        {"a b": "c"},
        {"a:": "b"},
        {"a": "b\r\nc: d"},
        {"a": "\0"},
        {"a": "\u20ac"},
        {"\xe9": "a"},
    ):
        refused(ValueError, lambda headers=headers: make(headers), "header")
    assert "secret" not in refused(ValueError, lambda: make({"a": "secret\n"}), "'a'")
    for headers in (None, (), {}):
        make(headers)


@pytest.mark.parametrize("make", [agent_with, run_with])
def test_the_agent_writes_the_body(make: Any) -> None:
    refused(ValueError, lambda: make({"Content-Length": "3"}), "Content-Length")
    refused(ValueError, lambda: make({"transfer-encoding": "chunked"}), "transfer-encoding")


@pytest.mark.anyio
async def test_headers_of_a_response() -> None:
    for headers in HEADERS:
        made = await exchange(EventStream(Watched([STARTED, FINISHED]), headers=headers))
        assert made.sent[0]["headers"][-1] == (b"a", b"b")
    made = await exchange(EventStream(Watched([STARTED, FINISHED]), headers=iter([("X-Caf", "\xe9")])))
    assert made.sent[0]["headers"][-1] == (b"x-caf", b"\xe9")


# --- EventStream and serve -----------------------------------------------------------------------------------------


def test_a_ping_that_is_no_time_is_refused() -> None:
    for make in (lambda value: EventStream(Watched([]), ping=value), lambda value: serve(Watched, ping=value)):
        for value in NO_NUMBERS:
            refused(TypeError, lambda make=make, value=value: make(value), "ping", repr(value))
        for value in NO_TIMES:
            refused(ValueError, lambda make=make, value=value: make(value), "ping", repr(value))


def test_a_max_body_that_is_no_size_is_refused() -> None:
    for value in ("x", None, 1.5, True):
        refused(
            TypeError, lambda value=value: serve(Watched, max_body=value), "max_body", repr(value), "a whole number"
        )
    for value in (-1, 0):
        refused(
            ValueError, lambda value=value: serve(Watched, max_body=value), "max_body", repr(value), "a whole number"
        )


@pytest.mark.parametrize("policy", ["Lenient", "", 3, ["strict"]])
def test_the_policy_of_a_stream(policy: Any) -> None:
    refused(ValueError, lambda: EventStream(Watched([]), policy=policy), "policy", repr(policy))


# --- Conversation --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("option", "wanted"), [("max_rounds", "whole number"), ("interval", "seconds")])
def test_options_of_a_conversation(option: str, wanted: str) -> None:
    agent = HttpAgent(URL)
    for value in NO_NUMBERS:
        refused(TypeError, lambda value=value: Conversation(agent, **{option: value}), option, repr(value), wanted)
    refused(ValueError, lambda: Conversation(agent, **{option: -1}), option, "-1", wanted)
