"""A soak over loopback HTTP, a stage of its own: `pytest tests/stream/soak_http.py`.

Seeded runs (`AGUI_SOAK_RUNS`, 1,000 if not said; `AGUI_SOAK_SEED`), some at a time: bytes cut anywhere, servers that
stop in the middle of an event, cleanly or not, or stall; clients that read everything, slowly or at every event,
break off, raise, or are cancelled. A run is right when it equals the reduction of the bytes that its transport
received, with the status that this has; and at the end no task, connection or file descriptor is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from loopback import HEAD, chunk, loopback
from watched import FINISHED, STARTED, content, end, sse, start

import agui_core as agui
from agui_core.stream import HttpAgent

httpx2 = pytest.importorskip("httpx2")

RUNS = int(os.environ.get("AGUI_SOAK_RUNS", "1000"))
SEED = int(os.environ.get("AGUI_SOAK_SEED", "20"))
AT_A_TIME = 16


class Leaving(Exception):
    """What a client raises in its block."""


def stream_of(rng: random.Random) -> bytes:
    """The bytes of one to three runs with several messages that interleave."""
    events: list[dict[str, Any]] = []
    for number in range(rng.randint(1, 3)):
        events.append({**STARTED, "runId": f"r{number}"})
        names = [f"m{number}-{index}" for index in range(rng.randint(1, 3))]
        events += [start(name) for name in names]
        for _ in range(rng.randint(0, 30)):
            events.append(content(rng.choice(["a", "wörd ", "😀", '"\\', "x" * 500]), rng.choice(names)))
        events += [end(name) for name in names]
        events.append({**FINISHED, "runId": f"r{number}"})
    return sse(events)


def cut(rng: random.Random, data: bytes) -> list[bytes]:
    places = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randint(0, 12)))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True) if a < b]


class Recorded(httpx2.AsyncBaseTransport):  # type: ignore[misc]
    """A transport that keeps what each response delivered."""

    def __init__(self) -> None:
        self.inner = httpx2.AsyncHTTPTransport(limits=httpx2.Limits(max_keepalive_connections=0))
        self.received: dict[str, bytearray] = {}

    async def handle_async_request(self, request: Any) -> Any:
        response = await self.inner.handle_async_request(request)
        received = self.received[request.headers["x-run"]] = bytearray()
        response.stream = _Tee(response.stream, received)
        return response

    async def aclose(self) -> None:
        await self.inner.aclose()


class _Tee(httpx2.AsyncByteStream):  # type: ignore[misc]
    def __init__(self, stream: Any, received: bytearray) -> None:
        self.stream = stream
        self.received = received

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self.stream:
            self.received += piece
            yield piece

    async def aclose(self) -> None:
        await self.stream.aclose()


async def answer(request: Any, stream: Any) -> None:
    """The server: its fate is drawn from the seed of the run."""
    rng = random.Random(f"server {SEED} {request.headers['x-run']}")
    fate = rng.choice(["all", "all", "all", "clean stop", "broken", "stall"])
    data = stream_of(rng)
    if fate != "all":
        data = data[: rng.randrange(len(data))]
    await stream.send(HEAD)
    for piece in cut(rng, data):
        await stream.send(chunk(piece))
        if rng.random() < 0.3:
            await anyio.sleep(rng.random() * 0.002)
    if fate == "stall":
        await anyio.sleep_forever()
    if fate != "broken":
        await stream.send(chunk(b""))


async def read(run: Any, rng: random.Random, fate: str) -> None:
    """The client: reads at its pace until its fate."""
    patience = rng.randint(1, 20)
    async for update in run.updates(rng.choice([0, 0, 0.0005, 0.003])):
        if rng.random() < 0.5:
            assert update.status == run.status
        if fate == "slow":
            await anyio.sleep(rng.random() * 0.002)
        patience -= 1
        if not patience and fate == "break":
            return
        if not patience and fate == "raise":
            raise Leaving


async def one_run(agent: HttpAgent, transport: Recorded, number: int) -> str:
    rng = random.Random(f"client {SEED} {number}")
    fate = rng.choice(["read", "read", "slow", "break", "raise", "cancel"])
    seen: list[Any] = []
    reducer = agui.Reducer(on_event=seen.append)
    run_input = {"threadId": "t", "runId": str(number), "messages": []}
    # A stalled server would be waited for, so everybody is cancelled some day.
    with anyio.move_on_after(rng.random() * 0.02 if fate == "cancel" else 0.3) as scope:
        try:
            async with agent.run(run_input, reducer=reducer, headers={"X-Run": str(number)}) as run:
                await read(run, rng, fate)
        except Leaving:
            assert fate == "raise"
        except agui.TransportError:
            pass
    received = bytes(transport.received.pop(str(number), b""))
    payloads = agui.SSEDecoder().feed(received)
    known = [event for payload in payloads if (event := agui.decode(payload)) is not None]
    assert seen == known[: len(seen)], f"run {number} of seed {SEED}"
    expected = agui.reduce(known[: len(seen)])
    assert reducer.status == expected.status, f"run {number} of seed {SEED}"
    assert agui.encode(reducer.messages) == agui.encode(expected.messages), f"run {number} of seed {SEED}"
    if fate in ("read", "slow") and not scope.cancelled_caught:
        assert len(seen) == len(known), f"run {number} of seed {SEED} lost events"
    return str(reducer.status)


async def soak() -> dict[str, int]:
    statuses: dict[str, int] = {}
    waiting = list(range(RUNS))
    transport = Recorded()

    async def worker(agent: HttpAgent) -> None:
        while waiting:
            status = await one_run(agent, transport, waiting.pop())
            statuses[status] = statuses.get(status, 0) + 1

    async with loopback(answer) as server, httpx2.AsyncClient(transport=transport) as client:
        agent = HttpAgent(server.url, client=client)
        async with anyio.create_task_group() as tasks:
            for _ in range(AT_A_TIME):
                tasks.start_soon(worker, agent)
        assert transport.inner._pool.connections == []
        with anyio.fail_after(5):
            while server.open:
                await anyio.sleep(0.001)
    return statuses


async def soak_and_look_around() -> dict[str, int]:
    descriptors = _descriptors()
    statuses = await soak()
    assert _descriptors() == descriptors
    if _library() == "asyncio":
        assert len(asyncio.all_tasks()) == 1
    return statuses


def _library() -> str:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return "trio"
    return "asyncio"


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_soak(backend: str) -> None:
    statuses = anyio.run(soak_and_look_around, backend=backend)
    print(json.dumps(statuses))
    assert sum(statuses.values()) == RUNS
    assert {"finished", "truncated", "idle"} <= statuses.keys()
