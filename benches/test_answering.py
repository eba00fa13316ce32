"""Answering calls against a bare anyio task group that runs the same functions.

Ratios of minima over interleaved rounds: 1,000 async functions that await once, from a finished run to 1,000 tool
messages in the conversation. `-s` shows the figures.
"""

from __future__ import annotations

from time import perf_counter

import anyio
import anyio.lowlevel
import pytest

from agui_core.reducer import Reducer
from agui_core.tools import Calls, Toolset

CALLS = 1_000
ROUNDS = 15


async def look_up(number: int) -> str:
    """Look something up."""
    await anyio.lowlevel.checkpoint()
    return f"value {number}"


def _finished_run() -> Reducer:
    reducer = Reducer()
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    for number in range(CALLS):
        call = f"call-{number}"
        reducer.apply(
            {"type": "TOOL_CALL_START", "toolCallId": call, "toolCallName": "look_up", "parentMessageId": "m"}
        )
        reducer.apply({"type": "TOOL_CALL_ARGS", "toolCallId": call, "delta": f'{{"number": {number}}}'})
        reducer.apply({"type": "TOOL_CALL_END", "toolCallId": call})
    reducer.apply({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
    return reducer


async def _bare() -> float:
    start = perf_counter()
    async with anyio.create_task_group() as tasks:
        for number in range(CALLS):
            tasks.start_soon(look_up, number)
    return perf_counter() - start


async def _answered(reducer: Reducer, toolset: Toolset) -> float:
    calls = Calls(reducer.copy(), toolset)
    start = perf_counter()
    answered = await calls.answer()
    seconds = perf_counter() - start
    assert len(answered) == CALLS
    assert len(calls.reducer.messages) == CALLS + 1
    return seconds


async def _ratio() -> float:
    toolset = Toolset()
    toolset.tool(look_up)
    finished = _finished_run()
    ours, bare = [], []
    for _ in range(ROUNDS):
        bare.append(await _bare())
        ours.append(await _answered(finished, toolset))
    print(f"bare {min(bare) / CALLS * 1e6:.1f} us a call, answered {min(ours) / CALLS * 1e6:.1f} us", end=", ")
    return min(ours) / min(bare)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_answering_costs_little_more_than_running(backend: str) -> None:
    ratio = anyio.run(_ratio, backend=backend)
    print(f"{backend}: {ratio:.2f} times a bare task group")
    assert ratio <= 2.5
