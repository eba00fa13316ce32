"""A thousand parallel calls with seeded delays, failures, timeouts, denials and edits: one answer each, in order."""

from __future__ import annotations

import random
import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agui_core.tools import ApprovalRequest, Calls, ToolError, Toolset, Verdict
from agui_core.tools.concurrency import abandoned_threads
from support.call_streams import answers, call, kinds, run, thread
from support.clocks import PATIENCE

pytestmark = pytest.mark.anyio

CALLS = 1_000
EXPECTED = {
    "quick": "ok",
    "threaded": "ok",
    "failing": "error",
    "raising": "error",
    "slow": "timeout",
    "stuck": "timeout",
    "misfit": "invalid",
    "broken": "invalid",
    "approved": "ok",
    "edited": "ok",
    "refused": "denied",
    "ruled_out": "denied",
}
WEIGHTS = dict.fromkeys(EXPECTED, 20) | {"slow": 2, "stuck": 1, "quick": 60}


class World:
    """Tools that count what they did."""

    def __init__(self, gate: threading.Event, seed: int) -> None:
        self.gate = gate
        self.delays = random.Random(seed)
        self.ran: dict[str, int] = {}
        self.lock = threading.Lock()
        self.tools = tools = Toolset()
        tools.tool(name="quick")(self.quick)
        tools.tool(name="threaded")(self.note)
        tools.tool(name="failing")(self.failing)
        tools.tool(name="raising")(self.raising)
        tools.tool(name="slow", timeout=0.01)(self.slow)
        tools.tool(name="stuck", timeout=0.01)(self.stuck)
        tools.tool(name="misfit")(self.note)
        tools.tool(name="broken")(self.note)
        for name in ("approved", "edited", "refused"):
            tools.tool(name=name, effects=True)(self.quick)
        tools.tool(name="ruled_out", approval=lambda arguments: "deny")(self.note)

    def note(self, id: str) -> str:
        with self.lock:
            self.ran[id] = self.ran.get(id, 0) + 1
        return f"did {id}"

    async def quick(self, id: str) -> str:
        for _ in range(self.delays.randrange(4)):
            await anyio.lowlevel.checkpoint()
        return self.note(id)

    async def failing(self, id: str) -> str:
        await anyio.lowlevel.checkpoint()
        self.note(id)
        raise ToolError("no luck")

    def raising(self, id: str) -> str:
        self.note(id)
        raise TimeoutError("mine")

    def stuck(self, id: str) -> None:
        self.gate.wait(PATIENCE)

    async def slow(self, id: str) -> None:
        self.note(id)
        await anyio.sleep_forever()


def story(seed: int) -> list[tuple[str, str]]:
    """Ids and tools."""
    chance = random.Random(seed)
    names = chance.choices(list(WEIGHTS), list(WEIGHTS.values()), k=CALLS)
    return [(f"c{number}", name) for number, name in enumerate(names)]


def events(plot: list[tuple[str, str]]) -> list[dict[str, Any]]:
    groups = []
    for number, (id, name) in enumerate(plot):
        arguments = {"misfit": '{"id": 5}', "broken": '{"id": '}.get(name, f'{{"id": "{id}"}}')
        groups.append(call(id, name, arguments, parent=f"m{number // 7}"))
    return run("r", *groups)


async def confirm(request: ApprovalRequest) -> bool | Verdict:
    await anyio.lowlevel.checkpoint()
    if request.tool_name == "edited":
        return Verdict(approved=True, edited_args={"id": f"{request.call_id}-edited"})
    return request.tool_name == "approved"


def check_world(calls: Calls, world: World, plot: list[tuple[str, str]]) -> None:
    """Nothing ran twice, and nothing that must not run ran."""
    for id, name in plot:
        times = world.ran.get(f"{id}-edited" if name == "edited" else id, 0)
        assert times == (0 if EXPECTED[name] in ("invalid", "denied") or name == "stuck" else 1), (id, name)
    made_by_call = answers(calls)
    made = {message.id: message for message in calls.reducer.messages if message.role == "assistant"}
    assert len(made) == (CALLS + 6) // 7
    for number, (id, _) in enumerate(plot):
        assert id in made_by_call
        assert calls.reducer.tool_calls[id].message_id == f"m{number // 7}"


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_thousand_parallel_calls(gate: threading.Event, seed: int) -> None:
    plot = story(seed)
    assert {name for _, name in plot} == set(EXPECTED)
    world = World(gate, seed)
    calls = thread(world.tools, events(plot), limit=64, threads=CALLS)
    before = abandoned_threads()
    threads = threading.active_count()
    answered = await calls.answer(confirm)
    assert list(answered) == [id for id, _ in plot]
    assert kinds(calls) == {id: EXPECTED[name] for id, name in plot}
    check_world(calls, world, plot)
    left_behind = sum("in the background" in str(answer.content) for answer in answers(calls).values())
    assert abandoned_threads() == before + left_behind
    # One that is given up before it began is not left behind, but has had its thread all the same.
    assert threading.active_count() <= threads + 64 + sum(name == "stuck" for _, name in plot)
    gate.set()
    while abandoned_threads() > before:
        await anyio.sleep(0.001)
    assert calls.waiting().who == "agent"
    assert calls.ready()
    assert await calls.answer(confirm) == ()
    assert len(calls.next_input().messages) == CALLS + (CALLS + 6) // 7


@pytest.mark.parametrize("seed", [3, 4])
async def test_a_thousand_parallel_calls_cancelled_again_and_again(gate: threading.Event, seed: int) -> None:
    plot = story(seed)
    world = World(gate, seed)
    calls = thread(world.tools, events(plot), limit=16, threads=CALLS)
    chance = random.Random(seed)
    passes = []
    while calls.waiting().who != "agent":
        with anyio.CancelScope() as scope:

            async def pull_the_plug(scope: anyio.CancelScope = scope) -> None:
                for _ in range(chance.randrange(150)):
                    await anyio.lowlevel.checkpoint()
                scope.cancel()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pull_the_plug)
                tasks.start_soon(calls.answer, confirm)
        passes.append(list(answers(calls)))
        gate.set()
    assert len(passes) > 2
    for id, kind in kinds(calls).items():
        expected = EXPECTED[plot[int(id[1:])][1]]
        assert kind in (expected, "cancelled", "ok" if plot[int(id[1:])][1] == "stuck" else expected)
        assert world.ran.get(id, 0) <= 1
        assert world.ran.get(f"{id}-edited", 0) <= 1
    assert len(answers(calls)) == CALLS
