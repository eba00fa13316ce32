"""Answering calls against a bare anyio task group that runs the same functions.

1,000 async functions that await once, from a finished run to 1,000 tool messages in the conversation.
"""

from __future__ import annotations

import anyio
import anyio.lowlevel
import pytest
from measure import Prepared, Target, minima

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


async def _bare() -> None:
    async with anyio.create_task_group() as tasks:
        for number in range(CALLS):
            tasks.start_soon(look_up, number)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_answering_costs_little_more_than_running(target: Target, backend: str) -> None:
    toolset = Toolset()
    toolset.tool(look_up)
    finished = _finished_run()

    def prepare() -> Calls:
        return Calls(finished.copy(), toolset)

    def answer(calls: Calls) -> None:
        anyio.run(calls.answer, backend=backend)
        assert len(calls.reducer.messages) == CALLS + 1

    ours, bare = minima(Prepared(prepare, answer), lambda: anyio.run(_bare, backend=backend), rounds=ROUNDS)
    target(ours / bare, at_most=2.5)
