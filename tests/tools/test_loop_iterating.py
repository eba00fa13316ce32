"""A run of the tool loop as an iterator: leaving it, cancelling it, serving it, and using it wrongly."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.stream import serve
from agui_core.tools import Toolset
from agui_core.tools.loop import ToolLoop
from support.clocks import PATIENCE, virtual_time
from support.loop_runs import adding, call, given, go, scripted

pytestmark = pytest.mark.anyio

# --- an iterator that is a class ----------------------------------------------------------------------------------


async def test_leaving_early_stops_it() -> None:
    tools, sums = adding()
    async with ToolLoop(scripted(call(a=1), "done"), tools).run(given()) as run:
        async for event in run:
            if event.type == "TOOL_CALL_END":
                break
    assert sums == [], "nothing runs ahead of the reader"
    assert run.result is None
    assert [event async for event in run] == []


@virtual_time
async def test_cancelled_in_a_tool_it_ends() -> None:
    tools = Toolset()
    ended: list[str] = []

    @tools.tool
    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("wait")

    async with ToolLoop(scripted(call("wait"), "done"), tools).run(given()) as run:
        with anyio.move_on_after(0.05) as scope:
            async for _ in run:
                pass
        assert scope.cancelled_caught
        assert ended == ["wait"]
        assert [event async for event in run] == []
    assert run.result is None


async def test_cancelled_while_a_sync_decide_blocks_it_does_not_wait_for_it(gate: threading.Event) -> None:
    entered, went_on = threading.Event(), threading.Event()

    def decide(messages: Any, tools: Any) -> Any:
        entered.set()
        gate.wait(PATIENCE)
        went_on.set()
        return "late"

    async def cancel_in_the_middle(scope: anyio.CancelScope) -> None:
        await anyio.to_thread.run_sync(entered.wait)
        scope.cancel()

    try:
        async with ToolLoop(decide, Toolset()).run(given()) as run:
            async with anyio.create_task_group() as tasks:
                with anyio.CancelScope() as scope:
                    tasks.start_soon(cancel_in_the_middle, scope)
                    async for _ in run:
                        pass
            assert scope.cancelled_caught
            assert not went_on.is_set()
    finally:
        gate.set()
    assert went_on.wait(PATIENCE)


async def test_an_exception_of_the_block_leaves_it_as_itself() -> None:
    async def fail() -> None:
        async with ToolLoop(scripted("done"), Toolset()).run(given()) as run:
            async for _ in run:
                raise KeyError

    with pytest.raises(KeyError):
        await fail()


async def test_two_tasks_in_one_iterator_are_an_error() -> None:
    tools = Toolset()

    @tools.tool
    async def wait() -> None:
        await anyio.sleep_forever()

    async def drain(run: Any) -> None:
        async for _ in run:
            pass

    async with ToolLoop(scripted(call("wait")), tools).run(given()) as run, anyio.create_task_group() as tasks:
        tasks.start_soon(drain, run)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.BusyResourceError):
            await anext(run)
        tasks.cancel_scope.cancel()


async def test_one_loop_serves_many_runs_at_a_time() -> None:
    tools, _ = adding()

    def decide(messages: Any, tools: Any) -> Any:
        question, last = int(messages[0].content), messages[-1]
        return call(a=question) if last.role == "user" else f"{question}: {last.content}"

    loop = ToolLoop(decide, tools)
    answers: dict[int, Any] = {}

    async def one(number: int) -> None:
        went = await go(loop, given(question=str(number), run_id=f"r{number}"))
        answers[number] = went.result.final_output

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(one, number)
    assert answers == {number: f"{number}: {number}" for number in range(50)}


async def test_an_endpoint_serves_it() -> None:
    tools, _ = adding()
    app = serve(ToolLoop(scripted(call(a=1), "done"), tools).run)
    body = json.dumps({"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "go"}]})
    requests = [{"type": "http.request", "body": body.encode(), "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if requests:
            return requests.pop()
        return await anyio.sleep_forever()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    with anyio.fail_after(PATIENCE):
        await app({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive, send)
    reducer = agui.Reducer()
    reducer.apply_sse(b"".join(message.get("body", b"") for message in sent))
    assert reducer.status == "finished"
    assert reducer.messages[-1].content == "done"


# --- wrong use ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"max_tool_calls": 0}, {"limit": 0}, {"timeout": 0}, {"timeout": float("nan")}])
async def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(ValueError):
        ToolLoop(scripted("x"), Toolset(), **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"decide": "decide"}, "decide is 'decide', but takes a function of messages and tools"),
        ({"toolset": 5}, "toolset is 5, but takes a Toolset"),
        ({"max_tool_calls": "8"}, "max_tool_calls is '8', but takes a whole number, 1 at least"),
        ({"limit": 1.5}, "limit is 1.5, but takes a whole number"),
        ({"timeout": "x"}, "timeout is 'x', but takes seconds above 0, or None"),
        ({"expose_errors": "false"}, "expose_errors is 'false', but takes True or False"),
    ],
)
async def test_options_of_a_wrong_type(options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        ToolLoop(**{"decide": scripted("x"), "toolset": Toolset(), **options})


async def test_what_is_no_input() -> None:
    with pytest.raises(TypeError):
        ToolLoop(scripted("x"), Toolset()).run({"threadId": "t"})  # type: ignore[arg-type]
