"""Compacting first changes nothing, for any stream (DESIGN 8.3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agui_core as agui
from support.folding import canonical
from support.properties import steady
from support.strategies import Case, mutated_streams, streams

LONG = streams(noise=True, length=60)
LEAVE_OUT = [{}, {"keep_raw": False}, {"keep_custom": False, "keep_raw": False}]

fixed = steady(100)


def seen(reducer: agui.Reducer) -> str:
    """All that compaction keeps."""
    run = reducer.run
    return canonical(
        {
            "messages": agui.to_wire(reducer.messages),
            "state": reducer.state,
            "status": reducer.status,
            "run": [run.thread_id, run.run_id, run.protocol_version, list(run.pending_tool_calls)],
            "result": None if run.result is agui.UNSET else run.result,
            "error": None if run.error is None else agui.to_wire(run.error),
            "ends": [agui.to_wire(run.interrupts), agui.to_wire(run.usage)],
            "calls": [
                [call.id, call.message_id, call.name, call.arguments, call.complete, call.valid, call.metadata]
                for call in reducer.tool_calls.values()
            ],
        }
    )


def replay(case: Case, events: Any, policy: str = "strict", *, end: bool = True) -> agui.Reducer:
    reducer = agui.Reducer(**case["input"], policy=policy)
    for event in events:
        reducer.apply(event)
    if end:
        reducer.end()
    return reducer


def accepted(case: Case) -> Case:
    """The case without what the reducer refuses, should there be anything."""
    reducer = agui.Reducer(**case["input"])
    for index, event in enumerate(case["events"]):
        try:
            reducer.apply(event)
        except agui.AGUIError:
            return {**case, "events": case["events"][:index]}
    return case


@fixed
@given(LONG.map(accepted), st.sampled_from(LEAVE_OUT), st.booleans())
def test_a_compacted_stream_replays_to_the_same(case: Case, options: dict[str, Any], known: bool) -> None:
    if known:
        options = {**options, "state": case["input"]["state"]}
    compacted = list(agui.compact(case["events"], **options))
    assert seen(replay(case, compacted)) == seen(replay(case, case["events"]))
    assert len(compacted) <= len(list(agui.conform(case["events"])))


@fixed
@given(LONG.map(accepted))
def test_it_survives_the_wire_and_a_second_compaction(case: Case) -> None:
    expected = seen(replay(case, case["events"]))
    compacted = [agui.encode(event) for event in agui.compact(case["events"], state=case["input"]["state"])]
    assert seen(replay(case, compacted)) == expected
    again = list(agui.compact(compacted, state=case["input"]["state"]))
    assert seen(replay(case, again)) == expected
    assert len(again) <= len(compacted)


@fixed
@given(LONG.map(accepted), st.integers(0, 200))
def test_truncated_streams_replay_to_the_same_open_items(case: Case, length: int) -> None:
    events = case["events"][:length]
    assert seen(replay(case, agui.compact(events))) == seen(replay(case, events))


@fixed
@given(mutated_streams(length=40))
def test_what_comes_before_a_refusal_is_there(case: Case) -> None:
    plain = agui.Reducer(**case["input"])
    compacted: list[Any] = []
    refusal = None
    try:
        for event in case["events"]:
            plain.apply(event)
    except agui.AGUIError as error:
        refusal = error
    if refusal is None:
        compacted = list(agui.compact(case["events"]))
        assert seen(replay(case, compacted, end=False)) == seen(plain)
        return
    with pytest.raises(type(refusal)) as caught:
        compacted.extend(agui.compact(case["events"]))
    assert str(caught.value) == str(refusal)
    before = replay(case, case["events"][: refusal.index], end=False)  # type: ignore[attr-defined]
    assert seen(replay(case, compacted, end=False)) == seen(before)


@fixed
@given(mutated_streams(length=40))
def test_repaired_streams_replay_to_the_same(case: Case) -> None:
    compacted = list(agui.compact(case["events"], policy="lenient"))
    assert seen(replay(case, compacted, "lenient")) == seen(replay(case, case["events"], "lenient"))
