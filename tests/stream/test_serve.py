"""`serve` and `EventStream`: requests that are wrong, handlers that fail, clients that leave. On asyncio and trio."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.stream import EventStream, serve
from support.asgi import Exchange, exchange
from support.clocks import virtual_time
from support.events import FINISHED, STARTED, say, text, text_end, text_run
from support.watched import Watched

pytestmark = pytest.mark.anyio

INPUT = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}]}
RUN_ERROR = {"type": "RUN_ERROR", "message": "mine"}


async def hello(run_input: agui.RunAgentInput) -> AsyncIterator[Any]:
    for event in text_run(str(run_input.messages[0].content)):
        yield event


def giving(*events: Any, error: BaseException | None = None, stall: bool = False) -> Any:
    """A handler that gives these events, whatever it is asked."""
    return lambda run_input: Watched(events, error=error, stall=stall)


# --- the good case -------------------------------------------------------------------------------------------------


async def test_a_run_is_served() -> None:
    made = await exchange(serve(hello), INPUT)
    assert made.status == 200
    assert made.headers["content-type"].startswith("text/event-stream")
    assert made.headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in made.headers
    assert made.events == text_run("hi")
    assert made.complete
    assert made.body.startswith(b'data: {"type":"RUN_STARTED"')


async def test_each_event_is_sent_when_it_comes() -> None:
    made = await exchange(serve(hello), INPUT)
    assert [message["body"].count(b"data:") for message in made.sent[1:]] == [1, 1, 1, 1, 1, 0, 0]


async def test_handlers_come_in_several_forms() -> None:
    from ag_ui import core

    async def coroutine(run_input: Any) -> Any:
        return hello(run_input)

    structs = giving(*[agui.decode(json.dumps(event)) for event in text_run("hi")])
    models = giving(core.RunStartedEvent(thread_id="t", run_id="r"), core.RunFinishedEvent(thread_id="t", run_id="r"))
    for handler in (coroutine, structs):
        assert (await exchange(serve(handler), INPUT)).events == text_run("hi")
    assert (await exchange(serve(models), INPUT)).types == ["RUN_STARTED", "RUN_FINISHED"]
    with pytest.raises(TypeError, match="handler is a function"):
        serve(3)  # type: ignore[arg-type]


async def test_the_handler_gets_the_input_enforced(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Any] = []

    async def handler(run_input: Any) -> Any:
        seen.append(run_input)
        return Watched([STARTED, FINISHED])

    await exchange(serve(handler), {**INPUT, "surplus": 1, "forwardedProps": None})
    assert agui.to_wire(seen[0]) == INPUT
    assert "surplus" in caplog.text or "forwardedProps" in caplog.text


async def test_chunks_are_expanded() -> None:
    chunk = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"}
    made = await exchange(serve(giving(STARTED, chunk, FINISHED)), INPUT)
    assert made.types == [event["type"] for event in text_run("a")]


# --- wrong requests ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
async def test_a_method_other_than_post_is_405(method: str) -> None:
    made = await exchange(serve(hello), INPUT, method)
    assert (made.status, made.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "content_type",
    [None, "text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/jsonx"],
)
async def test_415_so_that_forms_of_other_sites_do_not_reach_the_handler(content_type: str | None) -> None:
    made = await exchange(
        serve(giving()), INPUT, headers={} if content_type is None else {"Content-Type": content_type}
    )
    assert made.status == 415
    assert "application/json" in made.json["error"]


async def test_content_types_have_parameters() -> None:
    made = await exchange(serve(hello), INPUT, headers={"Content-Type": "Application/JSON; charset=utf-8"})
    assert made.status == 200


async def test_a_body_that_is_too_large_is_413() -> None:
    app = serve(hello, max_body=100)
    declared = await exchange(app, b"", headers={"Content-Type": "application/json", "Content-Length": "101"})
    actual = await exchange(app, b" " * 101)
    assert [declared.status, actual.status] == [413, 413]
    assert "100" in actual.json["error"]
    assert serve(hello)._max_body == 16 * 1024 * 1024


@pytest.mark.parametrize(
    ("body", "rule", "path"),
    [
        (b"", "SSE-8", None),
        (b"{", "SSE-8", None),
        (b"[]", "SSE-8", None),
        (b"\xff", "SSE-8", None),
        ({}, "PROC-7", "/threadId"),
        ({**INPUT, "runId": 3}, "PROC-7", "/runId"),
        ({**INPUT, "messages": [{"id": "u", "role": "user", "content": 3}]}, "PROC-7", "/messages/0/content"),
        ({**INPUT, "messages": [{"id": "u"}]}, "PROC-10a", None),
        (b'{"threadId":' + b"[" * 300 + b"]" * 300 + b"}", "Limits.nesting", None),
        (b'{"threadId": 1e999}', "PROC-7", None),
    ],
)
async def test_422_names_the_field(body: Any, rule: str, path: str | None) -> None:
    made = await exchange(serve(giving()), body)
    assert made.status == 422
    assert made.headers["content-type"] == "application/json"
    assert made.json["rule"] == rule
    assert path is None or made.json["path"] == path
    assert path is None or path in made.json["error"]


async def test_a_client_that_leaves_while_it_sends() -> None:
    def prepare(made: Exchange) -> None:
        made._requests = [{"type": "http.request", "body": b"{", "more_body": True}]
        made.leave()

    assert (await exchange(serve(hello), INPUT, prepare=prepare)).sent == []


async def test_a_lifespan_is_acknowledged_and_a_websocket_closed() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message["type"])

    def receiving(*types: str) -> Any:
        left = list(types)

        async def receive() -> Any:
            return {"type": left.pop(0)}

        return receive

    app = serve(hello)
    await app({"type": "lifespan"}, receiving("lifespan.startup", "lifespan.shutdown"), send)
    await app({"type": "websocket"}, receiving("websocket.connect"), send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete", "websocket.close"]


# --- CORS ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("allowed", "origin", "expected"),
    [
        ((), "https://a", None),
        (["https://a"], "https://a", "https://a"),
        ("https://a", "https://a", "https://a"),
        (["https://a"], "https://b", None),
        (["*"], "https://b", "*"),
        (["https://a"], None, None),
    ],
)
async def test_cors_headers_are_only_for_those_who_are_named(allowed: Any, origin: str | None, expected: Any) -> None:
    app = serve(hello, allow_origins=allowed)
    headers = {"Content-Type": "application/json", **({} if origin is None else {"Origin": origin})}
    good = await exchange(app, INPUT, headers=headers)
    bad = await exchange(app, {}, headers=headers)
    failed = await exchange(serve(giving(error=KeyError()), allow_origins=allowed), INPUT, headers=headers)
    assert [made.status for made in (good, bad, failed)] == [200, 422, 500]
    for made in (good, bad, failed):
        assert made.headers.get("access-control-allow-origin") == expected


async def test_a_preflight_is_answered_for_allowed_origins() -> None:
    asked = {
        "Origin": "https://a",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    made = await exchange(serve(hello, allow_origins=["https://a"]), b"", "OPTIONS", asked)
    assert made.status == 204
    assert made.headers["access-control-allow-origin"] == "https://a"
    assert made.headers["access-control-allow-methods"] == "POST"
    assert made.headers["access-control-allow-headers"] == "authorization,content-type"
    refused = await exchange(serve(hello), b"", "OPTIONS", asked)
    assert refused.status == 405


# --- handlers that fail --------------------------------------------------------------------------------------------


async def failing(run_input: Any) -> Any:
    raise KeyError("secret")


def crashing(run_input: Any) -> Any:
    raise KeyError("secret")


@pytest.mark.parametrize(
    "handler",
    [
        failing,
        crashing,
        giving(error=KeyError("secret")),
        giving(),
        giving(say(delta="early")),
        giving(3),
        lambda run_input: 3,
        giving({"type": "UNKNOWN"}),
    ],
)
async def test_before_the_first_event_it_is_http_500(handler: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = await exchange(serve(handler), INPUT)
    assert made.status == 500
    assert set(made.json) == {"error", "incident"}
    assert b"secret" not in made.body
    assert made.json["incident"] in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    "handler",
    [
        giving(*text_run("a")[:3], error=KeyError("secret")),
        giving(*text_run("a")[:3]),
        giving(*text_run("a")[:3], say("unopened", "secret")),
        giving(*text_run("a")[:3], FINISHED),
        giving(*text_run("a")[:3], {"type": "CUSTOM", "name": "x", "value": float("nan")}),
    ],
)
async def test_after_it_it_is_a_run_error_without_detail(handler: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = await exchange(serve(handler), INPUT)
    assert made.complete
    assert made.events[:3] == text_run("a")[:3]
    (error,) = made.events[3:]
    assert error["type"] == "RUN_ERROR"
    incident = error["message"].rpartition(" ")[2]
    assert f"incident {incident}" in caplog.text
    assert b"secret" not in made.body
    assert agui.reduce(made.events).status == "failed"


async def test_after_a_finished_run_the_failure_is_late() -> None:
    made = await exchange(serve(giving(*text_run("a"), error=KeyError())), INPUT)
    assert made.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
    assert agui.reduce(made.events).status == "failed"


async def test_after_a_run_error_there_is_only_a_log_line(caplog: pytest.LogCaptureFixture) -> None:
    made = await exchange(serve(giving(STARTED, RUN_ERROR, error=KeyError())), INPUT)
    assert made.events == [STARTED, RUN_ERROR]
    assert made.complete
    assert "incident" in caplog.text


async def test_what_the_conformer_warns_of_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    made = await exchange(serve(giving({**STARTED, "mood": 1}, FINISHED)), INPUT)
    assert made.events == [STARTED, FINISHED]
    assert "/mood" in caplog.text


async def test_closing_that_fails_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Closing:
        async def aclose(self) -> None:
            raise KeyError("closing")

        def __aiter__(self) -> Any:
            self.events = iter([STARTED, FINISHED])
            return self

        async def __anext__(self) -> Any:
            for event in self.events:
                return event
            raise StopAsyncIteration

    made = await exchange(serve(lambda run_input: Closing()), INPUT)
    assert made.complete
    assert "closing" in caplog.text


# --- clients that leave --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 3])
async def test_a_client_that_leaves_cancels_the_handler(after: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    source = Watched(text_run("a")[:after], stall=True)

    def prepare(made: Exchange) -> None:
        def leave(message: Any) -> None:
            if b"data:" in message.get("body", b"") and len(made.sent) == after:
                made.leave()

        made.on_send = leave
        if not after:
            made.leave()

    made = await exchange(EventStream(source), prepare=prepare)
    assert not made.complete
    assert source.closed or not source.pulled_in
    assert source.closed_in in (source.pulled_in or {None})
    assert caplog.text == ""


@pytest.mark.parametrize("at", [0, 1, 2])
async def test_an_os_error_of_send_counts_as_leaving(at: int, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    source = Watched(text_run("a"), stall=True)

    def prepare(made: Exchange) -> None:
        def refuse(message: Any) -> None:
            if len(made.sent) == at:
                raise ConnectionResetError

        made.on_send = refuse

    await exchange(EventStream(source), prepare=prepare)
    assert source.closed
    assert caplog.text == ""


async def test_an_os_error_while_an_error_is_answered(caplog: pytest.LogCaptureFixture) -> None:
    def prepare(made: Exchange) -> None:
        def refuse(message: Any) -> None:
            raise ConnectionResetError

        made.on_send = refuse

    for app, body in ((serve(hello), {}), (serve(failing), INPUT)):
        await exchange(app, body, prepare=prepare)


async def test_an_os_error_of_the_handler_is_its_failure() -> None:
    made = await exchange(serve(giving(STARTED, error=OSError())), INPUT)
    assert made.types == ["RUN_STARTED", "RUN_ERROR"]


async def test_what_else_send_raises_leaves_as_itself() -> None:
    def prepare(made: Exchange) -> None:
        def refuse(message: Any) -> None:
            raise RuntimeError("server")

        made.on_send = refuse

    with pytest.raises(RuntimeError, match="server"):
        await exchange(serve(hello), INPUT, prepare=prepare)


async def test_cancelling_the_server_cancels_the_handler() -> None:
    source = Watched([STARTED], stall=True)
    made = Exchange("POST", {}, [b""])
    with anyio.CancelScope() as scope:
        made.on_send = lambda message: scope.cancel() if message.get("body") else None
        await EventStream(source)(made.scope, made.receive, made.send)
    assert scope.cancelled_caught
    assert source.closed
    assert made.types == ["RUN_STARTED"]


# --- EventStream ---------------------------------------------------------------------------------------------------


@virtual_time
async def test_pings_while_idle() -> None:
    async def slow() -> AsyncIterator[Any]:
        yield STARTED
        await anyio.sleep(0.1)
        yield FINISHED

    made = await exchange(EventStream(slow(), ping=0.02))
    assert made.body.count(b": ping\n\n") >= 2
    assert made.types == ["RUN_STARTED", "RUN_FINISHED"]
    silent = await exchange(EventStream(slow(), ping=None))
    assert b"ping" not in silent.body


@virtual_time
async def test_no_pings_while_events_flow() -> None:
    async def busy() -> AsyncIterator[Any]:
        yield STARTED
        yield text()
        for _ in range(20):
            await anyio.sleep(0.005)
            yield say(delta="x")
        yield text_end()
        yield FINISHED

    made = await exchange(EventStream(busy(), ping=0.5))
    assert b"ping" not in made.body


@virtual_time
async def test_a_client_that_is_gone_when_it_is_pinged() -> None:
    source = Watched([STARTED], stall=True)

    def prepare(made: Exchange) -> None:
        def refuse(message: Any) -> None:
            if b"ping" in message.get("body", b""):
                raise BrokenPipeError

        made.on_send = refuse

    await exchange(EventStream(source, ping=0.01), prepare=prepare)
    assert source.closed


async def test_events_as_they_are() -> None:
    odd = [say(delta="early"), b'{"type":"UNKNOWN", "n": 1.0}', '{"type":"RUN_ERROR","message":"x"}']
    made = await exchange(EventStream(Watched(odd, error=KeyError()), policy=None))
    assert made.events == [odd[0], {"type": "UNKNOWN", "n": 1.0}, {"type": "RUN_ERROR", "message": "x"}]
    assert b'"n": 1.0' in made.body
    lines = await exchange(EventStream(Watched([b"{\n}", b"no json", agui.decode(json.dumps(STARTED))]), policy=None))
    assert agui.SSEDecoder().feed(lines.body) == [
        b"{ }",
        b"no json",
        json.dumps(STARTED, separators=(",", ":")).encode(),
    ]
    assert (await exchange(EventStream(Watched([]), policy=None))).status == 200
    assert (await exchange(EventStream(Watched([3]), policy=None))).status == 500


async def test_a_lenient_stream_is_repaired_as_it_is_sent() -> None:
    made = await exchange(EventStream(Watched([say(delta="a")]), policy="lenient"))
    assert made.types[:3] == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]


async def test_a_stream_is_an_async_iterable() -> None:
    with pytest.raises(TypeError, match="async iterable"):
        EventStream([STARTED])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="seconds above 0"):
        EventStream(Watched([]), ping=0)
    with pytest.raises(ValueError, match="seconds above 0"):
        serve(hello, ping=-1)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt, GeneratorExit])
@pytest.mark.parametrize("events", [(), (STARTED,)])
async def test_what_ends_the_program_leaves_as_itself(kind: type[BaseException], events: Any) -> None:
    source = Watched(events, error=kind())
    with pytest.raises(kind):
        await exchange(serve(lambda run_input: source), INPUT)
    assert source.closed
