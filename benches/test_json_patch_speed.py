"""State deltas against the `jsonpatch` package, and against themselves on a smaller state.

From the bytes of the event to the new document.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import jsonpatch
import msgspec
from measure import Prepared, Target, minima

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


def _ours(nodes: int) -> Prepared:
    """All deltas, when nobody reads in between."""
    state, deltas, decoder = _state(nodes), _deltas(nodes), msgspec.json.Decoder(StateDeltaEvent)

    def run(document: Document) -> None:
        for data in deltas:
            document.apply(decoder.decode(data).delta)

    return Prepared(lambda: Document(state), run)


def _jsonpatch(nodes: int) -> Callable[[], object]:
    """One delta."""
    state, delta = _state(nodes), json.dumps([{"op": "replace", "path": "/items/5/v", "value": 1}])
    return lambda: jsonpatch.apply_patch(state, delta)


def test_a_delta_is_5000_times_as_fast_as_the_copying_peer(target: Target) -> None:
    ours, theirs = minima(_ours(100_000), _jsonpatch(100_000), rounds=ROUNDS)
    target(theirs / (ours / DELTAS), at_least=5_000)


def test_a_delta_costs_about_the_same_on_a_large_state(target: Target) -> None:
    small, large = minima(_ours(1_000), _ours(100_000), rounds=ROUNDS)
    target(large / small, at_most=1.5)
