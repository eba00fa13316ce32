"""Attacks with threads that never come back, and with exceptions that are no `Exception`."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.tools.concurrency import abandoned_threads
from support.call_streams import answer_of, answers, call, kinds, one, run, thread
from support.clocks import PATIENCE, let_pass, still_time, virtual_time

pytestmark = pytest.mark.anyio
TIMEOUT = 0.01


class Hanging:
    """Tools, one of which hangs until the gate is opened."""

    def __init__(self, gate: threading.Event) -> None:
        self.entered = threading.Semaphore(0)
        self.gate = gate
        self.tools = agui.Toolset()
        self.tools.tool(name="hang", timeout=TIMEOUT)(self.hang)
        self.tools.tool(name="quick")(lambda: "quick")
        self.tools.tool(self.flow)

    def hang(self) -> None:
        self.entered.release()
        self.gate.wait(2 * PATIENCE)

    async def flow(self) -> str:
        return "flowed"

    async def answer(self, calls: agui.Calls, *hanging: int) -> tuple[str, ...]:
        """Answer, where first so many calls hang together, then so many, and so on; then each time it gets too late."""
        answered: list[tuple[str, ...]] = []

        async def answer() -> None:
            answered.append(await calls.answer())

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(answer)
            for together in hanging:
                for _ in range(together):
                    if not await anyio.to_thread.run_sync(self.entered.acquire, True, PATIENCE):
                        self.gate.set()
                        pytest.fail("a slot was not free again")
                let_pass(TIMEOUT)
        return answered[0]


@still_time
async def test_threads_that_hang_hold_up_nobody_else(gate: threading.Event) -> None:
    world, before = Hanging(gate), abandoned_threads()
    wanted = [call(f"h{n}", "hang") for n in range(6)]
    calls = thread(world.tools, run("r", *wanted, call("q", "quick"), call("f", "flow")), limit=2, threads=100)
    assert len(await world.answer(calls, 2, 2, 2)) == 8
    assert abandoned_threads() == before + 6
    assert kinds(calls) == {**{f"h{n}": "timeout" for n in range(6)}, "q": "ok", "f": "ok"}
    others = thread(world.tools, run("r", call("q", "quick")), limit=1, threads=100)
    await others.answer()
    assert kinds(others) == {"q": "ok"}, "another object has slots of its own"


@still_time
async def test_where_too_many_never_came_back_sync_tools_are_answered_at_once(gate: threading.Event) -> None:
    world, before = Hanging(gate), abandoned_threads()
    calls = thread(world.tools, run("r", *(call(f"h{n}", "hang") for n in range(3))), limit=3)
    await world.answer(calls, 3)
    left = abandoned_threads()
    assert left == before + 3
    other = thread(world.tools, run("r", call("q", "quick"), call("f", "flow")), threads=left)
    await other.answer()
    said = answers(other)["q"].content
    assert said == f"Not run: {left} earlier calls never came back; try again later."
    assert kinds(other) == {"q": "cancelled", "f": "ok"}
    roomy = thread(world.tools, run("r", call("q", "quick")), threads=left + 1)
    await roomy.answer()
    assert kinds(roomy) == {"q": "ok"}


@still_time
async def test_a_loop_counts_the_same_threads_and_has_slots_for_each_run(gate: threading.Event) -> None:
    world, before = Hanging(gate), abandoned_threads()
    await world.answer(thread(world.tools, run("r", call("h", "hang"))), 1)
    assert abandoned_threads() == before + 1

    async def decide(messages: Any, tools: Any) -> Any:
        return "done" if messages[-1].role == "tool" else {"name": "quick", "arguments": {}}

    said = {}
    for threads in (abandoned_threads(), 1_000):
        loop = agui.ToolLoop(decide, world.tools, limit=1, threads=threads)
        run_input = agui.RunAgentInput(
            thread_id="t", run_id="r", messages=(agui.messages.UserMessage(id="u", content="go"),)
        )
        async with loop.run(run_input) as live:
            async for _ in live:
                pass
        assert live.result is not None
        said[threads] = live.result.tool_results[0].status
    assert list(said.values()) == ["cancelled", "ok"]


async def test_waiting_for_a_slot_is_not_in_the_timeout() -> None:
    tools = agui.Toolset()
    order: list[str] = []
    first = anyio.Event()

    @tools.tool(timeout=None)
    async def slow() -> str:
        await first.wait()
        order.append("slow")
        return "slow"

    @tools.tool(timeout=1e-9)
    async def quick() -> str:
        order.append("quick")
        return "quick"

    calls = thread(tools, run("r", call("a", "slow"), call("b", "quick")), limit=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await anyio.lowlevel.checkpoint()
        first.set()
    assert order == ["slow", "quick"]
    assert kinds(calls) == {"a": "ok", "b": "ok"}


@pytest.mark.parametrize(
    "error", [GeneratorExit, SystemExit, StopIteration, StopAsyncIteration, BaseException, ValueError]
)
@pytest.mark.parametrize("kind", ["async", "sync", "awaitable"])
async def test_any_exception_of_a_tool_is_an_answer(error: type[BaseException], kind: str) -> None:
    async def fail() -> None:
        await anyio.lowlevel.checkpoint()
        raise error("own")

    def fail_at_once() -> None:
        raise error("own")

    calls = one({"async": fail, "sync": fail_at_once, "awaitable": lambda: fail()}[kind])
    answer = await answer_of(calls)
    assert answer.metadata == {"agui_core.answer": "error"}


@virtual_time
async def test_closing_the_task_is_not_taken_for_the_tools_own_exit() -> None:
    closed: list[str] = []

    async def hang() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            closed.append("closed")

    calls = one(hang)
    with anyio.move_on_after(0.01):
        await calls.answer()
    assert closed == ["closed"]
    assert kinds(calls) == {"a": "cancelled"}
