"""Attacks on the consumer's transport: heads without end, bodies that are no stream, streams of another kind."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

import agui_core as agui
from support.clocks import virtual_time
from support.events import FINISHED, STARTED

httpx2 = pytest.importorskip("httpx2")

INPUT = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}]}


def sse(*events: Any) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def answering(body: bytes, status: int = 200, **headers: str) -> Any:
    fields = {"content-type": "text/event-stream", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return httpx2.MockTransport(lambda request: httpx2.Response(status, headers=fields, stream=Raw(body)))


class Raw(httpx2.AsyncByteStream):  # type: ignore[misc]
    def __init__(self, body: bytes) -> None:
        self.body = body

    async def __aiter__(self) -> Any:
        yield self.body


async def talk(transport: Any, **options: Any) -> agui.Conversation:
    async with httpx2.AsyncClient(transport=transport) as client:
        agent = agui.HttpAgent("http://user:pass@example.org/agent?token=secret#x", client=client)
        async with agui.Conversation(agent, **options) as chat:
            await chat.send("hi").wait()
            return chat


# --- a run that is none -----------------------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize("policy", ["strict", "lenient"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b": keep-alive\n\n" * 3,
        sse({"type": "TOTALLY_NEW"}, {"type": "NEWER"}),
        b"\x8b\x07\x80\x01\n\n\xff\xfe\n\n",
        b"<html>not found</html>\n\n",
    ],
)
async def test_a_stream_without_a_run_is_no_success(policy: Any, body: bytes) -> None:
    with pytest.raises(agui.TransportError, match=r"ended before a run began"):
        await talk(answering(body), reducer=agui.Reducer(policy=policy))


@pytest.mark.anyio
async def test_the_error_says_what_was_dropped() -> None:
    with pytest.raises(agui.TransportError, match="TOTALLY_NEW"):
        await talk(answering(sse({"type": "TOTALLY_NEW"})))


@pytest.mark.anyio
@pytest.mark.parametrize("coding", ["br", "zstd", "compress"])
async def test_an_encoding_that_is_not_read_is_named(coding: str) -> None:
    with pytest.raises(agui.TransportError, match=f"content-encoding '{coding}'"):
        await talk(answering(b"\x8b\x07", content_encoding=coding))


# --- what errors tell -------------------------------------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_history_that_is_too_large_is_told_with_its_largest_messages() -> None:
    messages = [{"id": f"m{n}", "role": "user", "content": "x" * n * 1_000} for n in range(1, 6)]
    with pytest.raises(agui.TransportError, match="413") as raised:
        await talk(answering(b"", 413), reducer=agui.Reducer(messages=messages))
    assert raised.value.status == 413
    assert "its largest messages: 'm5' (user, 5,0" in str(raised.value)
    assert "'m4' (user, 4,0" in str(raised.value)
    assert "'m2'" not in str(raised.value)


@pytest.mark.anyio
@pytest.mark.parametrize("status", [200, 404, 500, 302])
async def test_errors_hold_neither_credentials_nor_query(status: int) -> None:
    headers = {"content_type": "text/html", "location": "http://user:pass@other.example/x?token=secret"}
    with pytest.raises(agui.TransportError) as raised:
        await talk(answering(b"", status, **headers))
    text = str(raised.value)
    assert "http://example.org/agent" in text
    assert not [secret for secret in ("pass", "secret", "user:") if secret in text]


# --- a head without end -----------------------------------------------------------------------------------------------


@virtual_time
@pytest.mark.anyio
@pytest.mark.parametrize("drip", [b"HTTP/1.1 100 Continue\r\n\r\n", b"X"])
async def test_a_head_that_never_ends_is_given_up(drip: bytes) -> None:
    from support.loopback import beside

    async def serve(request: Any, stream: Any) -> None:
        if drip == b"X":
            await stream.send(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        while True:
            await stream.send(drip)
            await anyio.sleep(0.007)  # never in the moment of the timeout

    async with beside(serve) as server:
        agent = agui.HttpAgent(server.url, idle_timeout=0.2, connect_timeout=0.1)
        with pytest.raises(agui.TransportError, match=r"no whole head of an answer in 0.3 s"):
            async with agent.run(INPUT):
                pass


# --- streams of another kind ------------------------------------------------------------------------------------------

LINES = b"".join(json.dumps(event).encode() + b"\n" for event in (STARTED, FINISHED))


@pytest.mark.parametrize("data", [LINES, b"[1]\n\n" + sse(STARTED, FINISHED), b": x\n\n" + LINES + b"\n"])
@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_json_lines_given_to_the_reader_of_sse_are_warned_about(data: bytes, cut: int) -> None:
    reducer = agui.Reducer()
    for start in range(0, len(data), cut):
        reducer.apply_sse(data[start : start + cut])
    reducer.end()
    assert any("apply_lines" in str(warning) for warning in reducer.warnings)


@pytest.mark.parametrize(
    "data", [b"", b": ping\n\n", b"retry: 5\n\n", b"event: x\nid: 1\n\n", sse(STARTED, FINISHED), b"\n\n\n"]
)
def test_what_is_usual_is_not_warned_about(data: bytes) -> None:
    reducer = agui.Reducer()
    reducer.apply_sse(data)
    reducer.end()
    assert reducer.warnings == ()


@pytest.mark.parametrize(
    ("payload", "hint"),
    [
        (b'data: {"type":"RAW"}', "apply_sse"),
        (b"event: message", "apply_sse"),
        (b"[DONE]", r"end mark of another protocol, \[DONE\]"),
        (b" [DONE] ", r"end mark of another protocol, \[DONE\]"),
    ],
)
def test_errors_say_what_it_may_be_instead(payload: bytes, hint: str) -> None:
    with pytest.raises(agui.DecodeError, match=hint):
        agui.Reducer().apply_lines(payload + b"\n")
    lenient = agui.Reducer(policy="lenient")
    lenient.apply_lines(payload + b"\n")
    assert lenient.warnings


def test_a_fraction_in_a_timestamp_costs_the_timestamp_only() -> None:
    reducer = agui.Reducer(policy="lenient")
    reducer.apply({**STARTED, "timestamp": 1.5})
    assert reducer.status == "running"
    assert [warning.rule for warning in reducer.warnings] == ["EVT-3"]
    with pytest.raises(agui.ProtocolError, match="EVT-3"):
        agui.Reducer().apply({**STARTED, "timestamp": 1.5})
