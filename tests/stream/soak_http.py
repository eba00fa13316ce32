"""A soak over loopback HTTP, a stage of its own: `pytest tests/stream/soak_http.py`.

Seeded runs (`AGUI_SOAK_RUNS`, 1,000 if not said; `AGUI_SOAK_SEED`), some at a time: bytes cut anywhere, servers that
hang up without an answer, stop in the middle of an event, cleanly or not, or stall; clients that read everything,
slowly or at every event, break off, raise, or are cancelled. A run is right when it equals the reduction of the bytes
that its transport received, or of a part of them for a client that left, with the status that these events have; and at
the end no task, connection or file descriptor is left.
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
import trio

import agui_core as agui
from agui_core.stream import HttpAgent
from support.clocks import PATIENCE
from support.events import FINISHED, STARTED, say, sse, text, text_end
from support.loopback import HEAD, chunk, loopback

httpx2 = pytest.importorskip("httpx2")

RUNS = int(os.environ.get("AGUI_SOAK_RUNS", "1000"))
SEED = int(os.environ.get("AGUI_SOAK_SEED", "20"))
AT_A_TIME = 16


class Leaving(Exception):
    """What a client raises in its block."""


def stream_of(rng: random.Random) -> bytes:
    """The bytes of one to three runs, with messages and a call that interleave, and patches of the state."""
    events: list[dict[str, Any]] = []
    for number in range(rng.randint(1, 3)):
        events.append({**STARTED, "runId": f"r{number}"})
        names = [f"m{number}-{index}" for index in range(rng.randint(1, 3))]
        call = {"toolCallId": f"c{number}"}
        events += [text(name) for name in names]
        events.append({"type": "TOOL_CALL_START", **call, "toolCallName": "write"})
        events.append({"type": "STATE_SNAPSHOT", "snapshot": {"words": []}})
        for _ in range(rng.randint(0, 30)):
            word = rng.choice(["a", "wörd ", "😀", '"\\', "x" * 500])
            events.append(
                rng.choice(
                    [
                        say(rng.choice(names), word),
                        say(rng.choice(names), word),
                        {"type": "TOOL_CALL_ARGS", **call, "delta": word},
                        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/words/-", "value": word}]},
                    ]
                )
            )
        events += [*(text_end(name) for name in names), {"type": "TOOL_CALL_END", **call}]
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


def drawn(number: str) -> tuple[random.Random, str]:
    """What a run's server does is drawn from the seed and the run."""
    rng = random.Random(f"server {SEED} {number}")
    return rng, rng.choice(["all", "all", "all", "clean stop", "broken", "stall", "no answer"])


async def answer(request: Any, stream: Any) -> None:
    """The server."""
    rng, fate = drawn(request.headers["x-run"])
    if fate == "no answer":
        return
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
    over_there = drawn(str(number))[1]
    patience = rng.random() * 0.02 if fate == "cancel" else 0.3 if over_there == "stall" else 60
    with anyio.move_on_after(patience) as scope:
        try:
            async with agent.run(run_input, reducer=reducer, headers={"X-Run": str(number)}) as run:
                await read(run, rng, fate)
        except Leaving:
            assert fate == "raise"
        except agui.TransportError:
            pass
    received = bytes(transport.received.pop(str(number), b""))
    stayed = fate in ("read", "slow") and not scope.cancelled_caught
    if stayed and over_there == "all":
        assert reducer.status == "finished", f"run {number} of seed {SEED}"
    check(reducer, seen, received, f"run {number} of seed {SEED}", stayed=stayed)
    return str(reducer.status)


def check(reducer: agui.Reducer, seen: list[Any], received: bytes, name: str, *, stayed: bool) -> None:
    """Whether a run is what came of its bytes: of all of them, when the client stayed until the end."""
    events = [json.loads(payload) for payload in agui.SSEDecoder().feed(received)]
    assert agui.to_wire(seen) == events[: len(seen)], f"{name} saw what was not sent"
    expected = agui.Reducer()
    if stayed:
        assert len(seen) == len(events), f"{name} lost events"
        expected.apply_sse(received)
    else:
        for event in seen:
            expected.apply(event)
    expected.end()
    assert reducer.status == expected.status == status_of([event.type for event in seen]), name
    assert agui.encode(reducer.messages) == agui.encode(expected.messages), name
    assert reducer.state == expected.state, name


def status_of(types: list[str]) -> str:
    if not types:
        return "idle"
    return "finished" if types[-1] == "RUN_FINISHED" else "truncated"


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
        # One whose request was cancelled before it was sent is kept by the pool, new, until the client is closed.
        assert [kept for kept in transport.inner._pool.connections if "NEW" not in kept.info()] == []
        await client.aclose()
        with anyio.fail_after(PATIENCE):
            while server.open:
                await anyio.sleep(0.001)
    return statuses


async def soak_and_look_around() -> dict[str, int]:
    descriptors, tasks = _descriptors(), _tasks()
    statuses = await soak()
    assert _descriptors() == descriptors
    assert _tasks() == tasks
    return statuses


def _tasks() -> int:
    try:
        return len(asyncio.all_tasks())
    except RuntimeError:
        return trio.lowlevel.current_statistics().tasks_living


def _descriptors() -> int:
    folder = Path("/proc/self/fd")
    return len(list(folder.iterdir())) if folder.is_dir() else 0


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_many_runs_leave_nothing_behind(backend: str) -> None:
    statuses = anyio.run(soak_and_look_around, backend=backend)
    print(json.dumps(statuses))
    assert sum(statuses.values()) == RUNS
    assert {"finished", "truncated", "idle"} <= statuses.keys()
