"""State deltas against the `jsonpatch` package, and against themselves on a smaller state.

Ratios of minima over interleaved rounds, from the bytes of the event to the new document. `-s` shows the
figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jsonpatch
import msgspec

from agui_core.protocol.events import StateDeltaEvent
from agui_core.reducer.json_patch import Document

ROUNDS = 25
DELTAS = 10_000
NODES_OF_AN_ITEM = 8


def _state(nodes: int) -> dict[str, Any]:
    count = nodes // NODES_OF_AN_ITEM
    return {"items": [{"id": n, "name": f"item {n}", "done": False, "v": 0, "tags": ["a", "b"]} for n in range(count)]}


def _deltas(nodes: int) -> list[bytes]:
    """Single operations, all over the state."""
    places = [n * 7919 % (nodes // NODES_OF_AN_ITEM) for n in range(DELTAS)]
    patches = [[{"op": "replace", "path": f"/items/{place}/v", "value": n}] for n, place in enumerate(places)]
    return [json.dumps({"type": "STATE_DELTA", "delta": patch}).encode() for patch in patches]


def _ours(nodes: int) -> Callable[[], float]:
    """Seconds a delta, when nobody reads in between."""
    state, deltas, decoder = _state(nodes), _deltas(nodes), msgspec.json.Decoder(StateDeltaEvent)

    def run() -> float:
        document = Document(state)
        start = perf_counter()
        for data in deltas:
            document.apply(decoder.decode(data).delta)
        return (perf_counter() - start) / DELTAS

    return run


def _jsonpatch(nodes: int) -> Callable[[], float]:
    state, delta = _state(nodes), json.dumps([{"op": "replace", "path": "/items/5/v", "value": 1}])

    def run() -> float:
        start = perf_counter()
        jsonpatch.apply_patch(state, delta)
        return perf_counter() - start

    return run


def _minima(*runs: Callable[[], float]) -> list[float]:
    rounds = [[run() for run in runs] for _ in range(ROUNDS)]
    return [min(column) for column in zip(*rounds, strict=True)]


def test_a_delta_is_5000_times_as_fast_as_the_copying_peer() -> None:
    ours, theirs = _minima(_ours(100_000), _jsonpatch(100_000))
    print(f"\n100,000 nodes: {ours * 1e6:.2f} us a delta, jsonpatch {theirs * 1e3:.1f} ms: {theirs / ours:,.0f} times")
    assert theirs / ours >= 5_000


def test_a_delta_costs_about_the_same_on_a_large_state() -> None:
    small, large = _minima(_ours(1_000), _ours(100_000))
    print(f"\n1,000 nodes: {small * 1e6:.2f} us a delta, 100,000 nodes: {large * 1e6:.2f} us: {large / small:.2f}")
    assert large / small <= 1.5
