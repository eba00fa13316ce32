"""The targets of the reducer's speed, as ratios within one run. `python benches/reduce.py` prints a table."""

from __future__ import annotations

import sys

import pytest
from measure import Target, minima
from reduce import (
    floor_lines,
    floor_one_by_one,
    memory_growth,
    reduce_lines,
    reduce_one_by_one,
    reduce_sse,
)
from workloads import as_lines, as_sse, payloads, tool_calls

import agui_core as agui

TEXTS = payloads(tool_calls())
LINES = as_lines(TEXTS)


def test_lines_cost_at_most_1_6_of_decoding_them(target: Target) -> None:
    floor, ours = minima(floor_lines(LINES), reduce_lines(LINES), rounds=40)
    target(ours / floor, at_most=1.6)


def test_one_by_one_costs_at_most_twice_decoding_one_by_one(target: Target) -> None:
    floor, ours = minima(floor_one_by_one(TEXTS), reduce_one_by_one(TEXTS), rounds=40)
    target(ours / floor, at_most=2.0)


def test_sse_costs_at_most_half_the_floor_more_than_lines(target: Target) -> None:
    floor, lines, sse = minima(floor_lines(LINES), reduce_lines(LINES), reduce_sse(as_sse(TEXTS)), rounds=40)
    target((sse - lines) / floor, at_most=0.5)


def test_ten_times_the_events_cost_the_same_each(target: Target) -> None:
    long = as_lines(payloads(tool_calls(deltas=2_000)))
    floor, ours, long_floor, long_ours = minima(
        floor_lines(LINES), reduce_lines(LINES), floor_lines(long), reduce_lines(long), rounds=25
    )
    target((long_ours / long_floor) / (ours / floor), at_most=1.15)


@pytest.mark.parametrize("odd", ["unknown fields", "comments"])
def test_what_real_producers_add_costs_at_most_five_times(target: Target, odd: str) -> None:
    if odd == "comments":
        plain, other = minima(reduce_sse(as_sse(TEXTS)), reduce_sse(as_sse(TEXTS, b": keep-alive\n\n")))
    else:
        strange = as_lines(payloads(tool_calls(run_id="run-1", thread_id="thread-1")))
        plain, other = minima(reduce_lines(LINES), reduce_lines(strange))
    target(other / plain, at_most=5)


def test_reading_after_every_event(target: Target) -> None:
    held = tuple(agui.messages.UserMessage(id=f"held-{n}", content="hello") for n in range(1_000))
    once, each, each_with_held = minima(
        reduce_one_by_one(TEXTS),
        reduce_one_by_one(TEXTS, read_each=True),
        reduce_one_by_one(TEXTS, read_each=True, held=held),
        rounds=10,
    )
    target(each / once, at_most=4)
    target(each_with_held / once, at_most=10)


def test_arguments_of_parallel_calls_read_after_every_event(target: Target) -> None:
    """1,000 calls of 2 KB each, interleaved delta by delta."""
    texts = payloads(tool_calls(deltas=100, calls=1_000))
    ids = [text.split(b'"toolCallId":"')[1][:9].decode() if b"toolCallId" in text else None for text in texts]

    def reading() -> None:
        reducer = agui.Reducer()
        calls = reducer.tool_calls
        for text, id in zip(texts, ids, strict=True):
            reducer.apply(text)
            if id is not None:
                calls[id].args  # noqa: B018

    applied, read = minima(reduce_one_by_one(texts), reading, rounds=4)
    target(read / applied, at_most=6)


@pytest.mark.parametrize("times", [2.5] if sys.platform == "linux" else [])
def test_memory_grows_with_the_text(target: Target, times: float) -> None:
    target(memory_growth(), at_most=times)
