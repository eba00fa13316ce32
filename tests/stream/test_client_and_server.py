"""Our client and our server, over uvicorn and inside Starlette."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.stream import EventStream, HttpAgent, serve
from support.clocks import PATIENCE
from support.events import text_run
from support.folding import text_of
from support.watched import Watched

httpx2 = pytest.importorskip("httpx2")
uvicorn = pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

INPUT = {"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hi"}]}


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[str]:
    """The address of an application, served on the loopback for the time of the block."""
    config = uvicorn.Config(app, port=0, log_level="error", ws="none", timeout_keep_alive=60)
    server = uvicorn.Server(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server._serve)
        while not server.started:
            await anyio.sleep(0.005)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
        server.should_exit = True


async def hello(run_input: agui.RunAgentInput) -> AsyncIterator[Any]:
    for event in text_run(*"hello"):
        yield {**event, "threadId": run_input.thread_id} if event["type"].startswith("RUN") else event


async def run_once(agent: HttpAgent, interval: float = 0.001) -> tuple[str, str]:
    async with agent.run(INPUT) as run:
        async for _ in run.updates(interval):
            pass
    return text_of(run.reducer), run.status


async def test_a_run_is_served_and_read() -> None:
    async with running(serve(hello)) as url:
        assert await run_once(HttpAgent(url)) == ("hihello", "finished")
        assert await run_once(HttpAgent(url), 0) == ("hihello", "finished")


async def test_many_runs_over_one_connection() -> None:
    async with running(serve(hello)) as url, httpx2.AsyncClient() as client:
        agent = HttpAgent(url, client=client)
        for _ in range(5):
            assert await run_once(agent) == ("hihello", "finished")
        assert len(client._transport._pool.connections) == 1


async def test_errors_arrive_as_what_they_are() -> None:
    async def broken(run_input: Any) -> Any:
        raise KeyError("secret")

    failing = Watched(text_run("a")[:3], error=KeyError("secret"))
    async with running(serve(broken)) as url:
        with pytest.raises(agui.TransportError, match="500") as caught:
            await run_once(HttpAgent(url))
        assert "incident" in caught.value.body
    async with running(serve(lambda run_input: failing)) as url:
        assert await run_once(HttpAgent(url)) == ("hia", "failed")


async def test_leaving_cancels_the_handler() -> None:
    source = Watched(text_run("a")[:3], stall=True)
    async with running(serve(lambda run_input: source)) as url:
        async with HttpAgent(url).run(INPUT) as run:
            await anext(run.updates(0))
        with anyio.fail_after(PATIENCE):
            while not source.closed:
                await anyio.sleep(0.005)


async def test_it_is_served_inside_starlette() -> None:
    applications = pytest.importorskip("starlette.applications")
    routing = pytest.importorskip("starlette.routing")

    async def endpoint(request: Any) -> Any:
        await request.body()
        return EventStream(Watched(text_run("own")))

    routes = [
        routing.Route("/route", serve(hello)),
        routing.Mount("/mount", serve(hello)),
        routing.Route("/endpoint", endpoint, methods=["POST"]),
    ]
    async with running(applications.Starlette(routes=routes)) as url:
        assert await run_once(HttpAgent(f"{url}/route")) == ("hihello", "finished")
        assert await run_once(HttpAgent(f"{url}/mount/")) == ("hihello", "finished")
        assert await run_once(HttpAgent(f"{url}/endpoint")) == ("hiown", "finished")
        with pytest.raises(agui.TransportError, match="redirects"):
            await run_once(HttpAgent(f"{url}/mount"))
