"""What following a run costs on top of applying the same reads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from measure import Target, minima

import agui_core as agui
from agui_core.stream import follow

READ = 16 * 1024
ROUNDS = 20


def _stream() -> bytes:
    events: list[dict[str, Any]] = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}]
    for number in range(200):
        id = f"msg-{number}"
        events.append({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})
        events += [{"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": f"some words {i} "} for i in range(100)]
        events.append({"type": "TEXT_MESSAGE_END", "messageId": id})
    events.append({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


DATA = _stream()
READS = [DATA[at : at + READ] for at in range(0, len(DATA), READ)]


async def _source() -> AsyncIterator[bytes]:
    for read in READS:
        yield read


def _apply() -> None:
    reducer = agui.Reducer()
    for read in READS:
        reducer.apply_sse(read)


async def _follow(interval: float) -> None:
    async with follow(_source()) as run:
        async for _ in run.updates(interval):
            pass
    assert run.status == "finished"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize(("interval", "bound"), [(1 / 30, 1.5), (0, 4.0)])
def test_following_costs_little_more_than_applying(target: Target, backend: str, interval: float, bound: float) -> None:
    followed, applied = minima(lambda: anyio.run(_follow, interval, backend=backend), _apply, rounds=ROUNDS)
    target(followed / applied, at_most=bound)
