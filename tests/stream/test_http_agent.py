"""`HttpAgent` against a server on the loopback that misbehaves in every way, on asyncio and on trio."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.protocol.messages import UserMessage
from agui_core.stream import HttpAgent
from support.clocks import PATIENCE, virtual_time
from support.events import FINISHED, STARTED, say, sse, text, text_run
from support.folding import text_of
from support.loopback import HEAD, Server, beside, chunk, loopback

httpx2 = pytest.importorskip("httpx2")
pytestmark = pytest.mark.anyio

QUICK = 0.001
INPUT = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}], "state": {"n": 1}}
SENT = {**INPUT, "tools": [], "context": [], "forwardedProps": {}}
"""What is sent of it, to whomever (IN-5)."""


def answer(*pieces: bytes, end: bytes = chunk(b""), then: Callable[[], Any] | None = None, linger: bool = False) -> Any:
    """A handler that sends the pieces as an event stream, and then hangs up unless it lingers."""

    async def handler(request: Any, stream: Any) -> None:
        await stream.send(HEAD)
        for piece in pieces:
            await stream.send(chunk(piece))
        if then is not None:
            await then()
        await stream.send(end)
        if linger:
            await anyio.sleep_forever()

    return handler


def plain(status: str, *fields: str, body: bytes = b"") -> Any:
    """A handler that sends an ordinary answer."""

    async def handler(request: Any, stream: Any) -> None:
        head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields, "", ""])
        await stream.send(head.encode() + body)

    return handler


async def finish(run: Any, interval: float = QUICK, statuses: list[str] | None = None) -> None:
    async for update in run.updates(interval):
        if statuses is not None:
            statuses.append(update.status)


async def closed(server: Server) -> None:
    """Wait until the server has no connection left."""
    with anyio.fail_after(PATIENCE):
        while server.open:
            await anyio.sleep(0.001)


# --- the request ---------------------------------------------------------------------------------------------------


async def test_SSE_1_the_request() -> None:
    async with loopback(answer(sse(text_run("Hé")))) as server:
        agent = HttpAgent(server.url, headers={"Authorization": "Bearer x", "Accept": "*/*"})
        async with agent.run(INPUT, headers=[("X-Once", "1")]) as run:
            await finish(run)
    (request,) = server.requests
    assert request.method == "POST"
    assert request.target == "/agent"
    expected = {
        "accept": "text/event-stream",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "authorization": "Bearer x",
        "x-once": "1",
    }
    assert expected.items() <= request.headers.items()
    assert json.loads(request.body) == {**SENT, "protocolVersion": "1.0"}
    assert run.status == "finished"
    assert [message.content for message in run.reducer.messages] == ["hi", "Hé"]
    assert run.reducer.state == {"n": 1}
    assert run.warnings == ()


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_every_event_or_paced(interval: float) -> None:
    data = sse(text_run("a", "b"))
    async with loopback(answer(data[:40], data[40:41], data[41:])) as server:
        async with HttpAgent(server.url).run(INPUT) as run:
            statuses = [update.status async for update in run.updates(interval)]
        await closed(server)
    assert statuses[-1] == "finished"
    assert len(statuses) == 6 or interval


async def test_goes_on_with_a_reducer() -> None:
    reducer = agui.Reducer(messages=[{"id": "u", "role": "user", "content": "hi"}])
    async with loopback(answer(sse(text_run("a")))) as server:
        agent = HttpAgent(server.url)
        for _ in range(2):
            async with agent.run({**INPUT, "runId": "r"}, reducer=reducer) as run:
                assert run.reducer is reducer
                await finish(run)
    assert text_of(reducer) == "hiaa"


async def test_PROC_16_malformed_input_is_not_sent() -> None:
    async with loopback(answer()) as server:
        for bad in ({**INPUT, "messages": [{"id": 3}]}, b"{", {**INPUT, "state": None}):
            with pytest.raises(agui.AGUIError):
                async with HttpAgent(server.url).run(bad):
                    pass
        assert server.requests == []


async def test_what_is_stripped_is_in_the_warnings() -> None:
    value = {**INPUT, "messages": [{"id": "u", "role": "user", "content": "hi", "mood": "good"}]}
    async with (
        loopback(answer(sse([{**STARTED, "surplus": 1}, FINISHED]))) as server,
        HttpAgent(server.url).run(value) as run,
    ):
        await finish(run)
    assert [(warning.rule, warning.path) for warning in run.warnings] == [
        ("PROC-5", "/messages/0/mood"),
        ("PROC-5", "/surplus"),
    ]
    assert json.loads(server.requests[0].body)["messages"] == INPUT["messages"]


async def test_OLD_3_a_pinned_peer() -> None:
    value = {**INPUT, "messages": [{"id": "u", "role": "user", "content": "hi", "subagentRunId": "s"}]}
    tagged = [{**event, "subagentRunId": "s"} for event in text_run("a")[1:-1]]
    events = [STARTED, {"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}, *tagged]
    events += [{"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}, FINISHED]
    data = sse(events)
    async with (
        loopback(answer(data[:99], data[99:])) as server,
        HttpAgent(server.url, max_protocol_version="0.0.57").run(value) as run,
    ):
        await finish(run)
    sent = json.loads(server.requests[0].body)
    assert sent == SENT
    assert run.reducer.messages[0].subagent_run_id == "s"
    assert run.reducer.messages[1].subagent_run_id is agui.UNSET
    assert [warning.rule for warning in run.warnings] == ["OLD-3", "OLD-3"]
    with pytest.raises(ValueError, match="numbers with dots"):
        HttpAgent("http://x", max_protocol_version="latest")


# --- answers that are no event stream ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("handler", "status", "message"),
    [
        (plain("404 Not Found", body=b"no such agent"), 404, "answered 404 Not Found"),
        (plain("500 Oops", body=b"x" * 5000), 500, "answered 500"),
        (plain("204 No Content"), 204, "answered 204"),
        (plain("307 Temporary Redirect", "Location: /other"), 307, "redirects to '/other'"),
        (plain("302 Found", body=b"where?"), 302, "answered 302"),
        (plain("200 OK", "Content-Type: application/json", body=b"{}"), 200, "application/json"),
        (plain("200 OK", "Content-Type: text/event-streams", body=b"\xff"), 200, "text/event-streams"),
        (plain("200 OK", body=b"data: {}"), 200, "no content type"),
    ],
)
async def test_an_answer_that_is_no_event_stream_is_a_transport_error(handler: Any, status: int, message: str) -> None:
    async with loopback(handler) as server, httpx2.AsyncClient() as client:
        with pytest.raises(agui.TransportError, match=message) as caught:
            async with HttpAgent(server.url, client=client).run(INPUT):
                pass
        assert caught.value.status == status
        assert len(caught.value.body) <= 2048
        assert all(connection.is_idle() for connection in client._transport._pool.connections)
        assert len(server.requests) == 1
        assert not client.is_closed


@virtual_time
async def test_an_error_body_that_never_ends() -> None:
    async def handler(request: Any, stream: Any) -> None:
        await stream.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 9999\r\n\r\ntry later")
        await anyio.sleep_forever()

    async with beside(handler) as server:
        with pytest.raises(agui.TransportError) as caught:
            async with HttpAgent(server.url, idle_timeout=0.2).run(INPUT):
                pass
        await closed(server)
    assert caught.value.body == "try later"


async def test_content_types_have_parameters() -> None:
    async def handler(request: Any, stream: Any) -> None:
        body = sse(text_run("a"))
        await stream.send(b"HTTP/1.1 200 OK\r\nContent-Type: Text/Event-Stream; charset=utf-8\r\n\r\n" + body)

    async with loopback(handler) as server, HttpAgent(server.url).run(INPUT) as run:
        await finish(run)
    assert run.status == "finished"


async def test_an_address_without_a_server_cannot_be_reached() -> None:
    async with loopback(answer()) as server:
        url = server.url
    with pytest.raises(agui.TransportError, match=f"{url} cannot be reached"):
        async with HttpAgent(url).run(INPUT):
            pass


async def test_a_server_that_hangs_up() -> None:
    async def handler(request: Any, stream: Any) -> None:
        pass

    async with loopback(handler) as server:
        with pytest.raises(agui.TransportError, match="cannot be reached") as caught:
            async with HttpAgent(server.url).run(INPUT):
                pass
    assert caught.value.status is None


class Failing(httpx2.AsyncBaseTransport):
    """A transport that raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def handle_async_request(self, request: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("error", "is_transport"),
    [
        (httpx2.ConnectTimeout("slow"), True),
        (OSError("no route"), True),
        (anyio.BrokenResourceError("reset"), True),
        (ExceptionGroup("", [ExceptionGroup("", [OSError("v4"), TimeoutError("v6")])]), True),
        (TypeError("a mistake"), False),
        (ValueError("a mistake"), False),
        (ExceptionGroup("", [OSError("v4"), TypeError("a mistake")]), False),
    ],
)
async def test_only_what_the_transport_does_is_its_failure(error: Exception, is_transport: bool) -> None:
    async with httpx2.AsyncClient(transport=Failing(error)) as client:
        with pytest.raises(agui.TransportError if is_transport else type(error)) as caught:
            async with HttpAgent("http://agent/", client=client).run(INPUT):
                pass
    assert is_transport or caught.value is error


async def test_a_closed_client_is_a_mistake() -> None:
    async with httpx2.AsyncClient() as client:
        pass
    with pytest.raises(RuntimeError, match="closed"):
        async with HttpAgent("http://127.0.0.1:1/", client=client).run(INPUT):
            pass


async def test_an_address_may_be_relative_to_that_of_the_client() -> None:
    async with (
        loopback(answer(sse(text_run("a")))) as server,
        httpx2.AsyncClient(base_url=server.url.removesuffix("/agent")) as client,
        HttpAgent("/agent", client=client).run(INPUT) as run,
    ):
        await finish(run)
    assert run.status == "finished"


# --- streams that break --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_SSE_12_a_lost_connection_is_a_truncated_run(interval: float) -> None:
    async with loopback(answer(sse(text_run("a")[:3]), b"data: {", end=b"")) as server:
        async with HttpAgent(server.url).run(INPUT) as run:
            statuses: list[str] = []
            with pytest.raises(agui.TransportError, match="broke"):
                await finish(run, interval, statuses)
            assert statuses[-1] == "truncated"
        assert len(server.requests) == 1  # TR-6
    assert text_of(run.reducer) == "hia"


async def test_RUN_17_a_clean_end_without_a_terminal_event_is_truncated() -> None:
    async with loopback(answer(sse(text_run("a")[:3]))) as server, HttpAgent(server.url).run(INPUT) as run:
        await finish(run)
    assert run.status == "truncated"


async def test_a_refused_stream_closes_the_connection() -> None:
    async with (
        loopback(answer(sse([STARTED, say(delta="x")]), then=anyio.sleep_forever)) as server,
        HttpAgent(server.url).run(INPUT) as run,
    ):
        with pytest.raises(agui.ProtocolError):
            await finish(run)
        await closed(server)
    assert run.status == "rejected"


@virtual_time
async def test_silence_ends_in_the_idle_timeout() -> None:
    async with beside(answer(sse([STARTED, text()]), then=anyio.sleep_forever)) as server:
        async with HttpAgent(server.url, idle_timeout=0.05).run(INPUT) as run:
            with pytest.raises(agui.TransportError, match="idle_timeout"):
                await finish(run)
        await closed(server)
    assert run.status == "truncated"


@virtual_time
@pytest.mark.parametrize("interval", [0, QUICK])
async def test_comments_do_not_hold_off_the_event_timeout(interval: float) -> None:
    """Comments keep the connection busy, and are no events."""

    async def handler(request: Any, stream: Any) -> None:
        await stream.send(HEAD + chunk(sse([STARTED])))
        while True:
            await stream.send(chunk(b":ping\n\n"))
            await anyio.sleep(0.007)  # never in the moment of the timeout

    async with beside(handler) as server:
        async with HttpAgent(server.url, idle_timeout=5, event_timeout=0.05).run(INPUT) as run:
            with pytest.raises(agui.TransportError, match="event_timeout"):
                await finish(run, interval)
        await closed(server)
    assert run.status == "truncated"


@virtual_time
async def test_event_timeout_is_about_waiting() -> None:
    async with (
        beside(answer(*(sse([event]) for event in text_run("a", "b")))) as server,
        HttpAgent(server.url, event_timeout=0.05).run(INPUT) as run,
    ):
        async for _ in run.updates(0):
            await anyio.sleep(0.03)
    assert run.status == "finished"


# --- leaving -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["break", "cancel", "raise", "nothing", "refuse to read"])
@pytest.mark.parametrize("interval", [0, QUICK])
async def test_leaving_closes_the_connection_at_once(how: str, interval: float) -> None:
    async def block(client: Any, scope: anyio.CancelScope) -> None:
        async with HttpAgent(server.url, client=client).run(INPUT) as run:
            updates = run.updates(interval)
            if how != "refuse to read":
                await anext(updates)
            if how == "cancel":
                scope.cancel()
                await anyio.sleep_forever()
            if how == "raise":
                raise KeyError

    async with (
        loopback(answer(sse(text_run("a")[:3]), then=anyio.sleep_forever)) as server,
        httpx2.AsyncClient() as client,
    ):
        with anyio.CancelScope() as scope:
            try:
                await block(client, scope)
            except KeyError:
                assert how == "raise"
        assert client._transport._pool.connections == []
        await closed(server)


async def test_cancelling_while_the_answer_is_waited_for() -> None:
    async def handler(request: Any, stream: Any) -> None:
        scope.cancel()
        await anyio.sleep_forever()

    async with loopback(handler) as server, httpx2.AsyncClient() as client:
        with anyio.CancelScope() as scope:
            async with HttpAgent(server.url, client=client).run(INPUT):
                pass
        assert scope.cancelled_caught
        assert client._transport._pool.connections == []
        assert not client.is_closed
        await closed(server)


async def test_cancelling_at_any_step_leaves_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also between connecting and sending, where a pool keeps the connection until its client is closed."""
    steps: list[str] = []
    last = 0

    async def trace(name: str, info: Any) -> None:
        steps.append(name)
        if len(steps) == last:
            scope.cancel()

    build = httpx2.AsyncClient.build_request

    def build_traced(client: Any, *args: Any, **options: Any) -> Any:
        return build(client, *args, extensions={"trace": trace}, **options)

    monkeypatch.setattr(httpx2.AsyncClient, "build_request", build_traced)
    async with loopback(answer(sse(text_run("a")))) as server:
        agent = HttpAgent(server.url)
        while len(steps) >= last:
            steps.clear()
            last += 1
            with anyio.CancelScope() as scope:
                async with agent.run(INPUT) as run:
                    await finish(run)
            await closed(server)
    assert "connection.connect_tcp.complete" in steps
    assert last > 10
    assert run.status == "finished"


async def test_the_certificates_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """They take long, and each run has a client of its own."""
    async with loopback(answer(sse(text_run("a")))) as server:
        async with HttpAgent(server.url).run(INPUT) as run:
            await finish(run)
        monkeypatch.setattr("ssl.SSLContext.__new__", None)
        async with HttpAgent(server.url).run(INPUT) as run:
            await finish(run)
    assert run.status == "finished"


async def test_an_application_client_keeps_its_connections() -> None:
    async with httpx2.AsyncClient() as client:
        async with loopback(answer(sse(text_run("a")), linger=True)) as server:
            async with HttpAgent(server.url, client=client).run(INPUT) as run:
                await finish(run)
            assert len(client._transport._pool.connections) == 1
        assert not client.is_closed


async def test_parallel_runs() -> None:
    async def one(agent: HttpAgent, done: list[str]) -> None:
        async with agent.run(INPUT) as run:
            await finish(run)
        done.append(run.status)

    done: list[str] = []
    async with loopback(answer(sse(text_run("a")))) as server:
        agent = HttpAgent(server.url)
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(one, agent, done)
        await closed(server)
    assert done == ["finished"] * 20


async def test_a_run_is_entered_once() -> None:
    async with loopback(answer(sse(text_run("a")))) as server:
        run = HttpAgent(server.url).run(INPUT)
        async with run:
            pass
        with pytest.raises(RuntimeError, match="entered once"):
            async with run:
                pass


async def test_structs_are_inputs() -> None:
    value = agui.RunAgentInput(thread_id="t", run_id="r", messages=(UserMessage(id="u", content="hi"),))
    async with loopback(answer(sse(text_run("a")))) as server, HttpAgent(server.url).run(value) as run:
        await finish(run)
    assert text_of(run.reducer) == "hia"
    assert "state" not in json.loads(server.requests[0].body)


def test_an_agent_outlives_an_event_loop() -> None:
    """It owns nothing between runs, so nothing is left in the loop that ended."""
    agent = HttpAgent("http://unset/")

    async def once() -> str:
        async with loopback(answer(sse(text_run("a")), linger=True)) as server:
            agent.url = server.url
            async with agent.run(INPUT) as run:
                await finish(run)
            await closed(server)
        return str(run.status)

    for backend in ("asyncio", "trio", "asyncio"):
        assert anyio.run(once, backend=backend) == "finished"
