"""A conversation over HTTP: `HttpAgent` on one side, `serve` on the other, with a tool, an approval and a stop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.stream import HttpAgent, serve
from support.chats import call, finish, interrupted, say, settle, texts, tools

httpx2 = pytest.importorskip("httpx2")
uvicorn = pytest.importorskip("uvicorn")
pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[str]:
    """The address of an application, served on the loopback for the time of the block."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", ws="none", timeout_keep_alive=60))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(server._serve)
        while not server.started:
            await anyio.sleep(0.005)
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
        server.should_exit = True


async def handler(run_input: agui.RunAgentInput) -> AsyncIterator[Any]:
    """An agent that looks a word up, asks for an approval, and then stalls."""
    ids = {"threadId": run_input.thread_id, "runId": run_input.run_id}
    yield {"type": "RUN_STARTED", **ids}
    last = run_input.messages[-1]
    if run_input.resume:
        steps = [*say(str(agui.to_wire(run_input.resume[0])["payload"]), "m2"), finish()]
    elif last.role == "tool":
        steps = [*say(f"It is {last.content}.", "m1"), interrupted({"id": "i", "reason": "tool_call"})]
    elif last.content == "look":
        steps = [*call("c", "look_up", '{"word": "rain"}'), finish()]
    else:
        steps = [*say("wait", "m3"), anyio.sleep_forever]
    for step in steps:
        if callable(step):
            await step()
        else:
            yield {**step, **ids} if step["type"] == "RUN_FINISHED" else step


async def test_a_conversation_over_http() -> None:
    async def confirm(request: Any) -> bool:
        return True

    async with running(serve(handler)) as url, httpx2.AsyncClient() as client:
        agent = HttpAgent(url, client=client)
        async with agui.Conversation(agent, tools, confirm=confirm, interval=0.001) as chat:
            assert await chat.send("look").wait() == "done"
            assert [text for _, text in texts(chat)][2:] == ["about rain", "It is about rain.", "{'approved': True}"]
            turn = chat.send("stall")
            await settle(lambda: texts(chat)[-1] == ("assistant", "wait"))
            chat.stop()
            assert await turn.wait() == "stopped"
            assert (chat.status, chat.usage.runs) == ("truncated", 4)
        assert client._transport._pool.connections == []


async def test_an_endpoint_that_refuses() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 503, "headers": []})
            await send({"type": "http.response.body", "body": b"later"})

    async with running(app) as url, agui.Conversation(HttpAgent(url)) as chat:
        with pytest.raises(agui.TransportError, match="503") as caught:
            await chat.send("hello").wait()
        assert caught.value.body == "later"
        assert texts(chat) == [("user", "hello")]
