"""Cases from public bug reports: small streams, patches and argument fragments with the right outcome.

`nextRuns` (which next inputs may be sent) is the tool loop's; `linear` is shown by the benches, where time is measured.
"""

from __future__ import annotations

import json
from itertools import chain, repeat
from typing import Any

import pytest

import agui_core as agui
from support.corpora import shared_root
from support.folding import canonical, fold, warnings_in

ROOT = shared_root()
assert ROOT is not None
CASES = {path.stem: json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "cases").glob("*.json"))}
FOLDED = {"reduce", "patch", "verify", "chunks", "stream"}
RUN_OUTCOMES = {"success": "finished", "interrupt": "interrupted", "cancelled": "cancelled"}


def _names(*kinds: str) -> list[str]:
    return [name for name, case in CASES.items() if case["kind"] in kinds]


def _args(reducer: agui.Reducer) -> dict[str, Any]:
    return {call_id: call.args for call_id, call in reducer.tool_calls.items()}


def _open_calls(reducer: agui.Reducer) -> list[str]:
    return [call_id for call_id, call in reducer.tool_calls.items() if not call.complete]


def _broken_calls(reducer: agui.Reducer) -> list[str]:
    return [call_id for call_id, call in reducer.tool_calls.items() if call.complete and not call.valid]


def _check(reducer: agui.Reducer, expect: dict[str, Any]) -> None:
    """What a case expects of a reducer at one point of its stream."""
    seen: dict[str, Any] = {
        "messages": lambda: agui.to_wire(reducer.messages),
        "state": lambda: reducer.state,
        "toolArgs": lambda: _args(reducer),
        "invalidToolArgs": lambda: _broken_calls(reducer),
        "openToolCallIds": lambda: _open_calls(reducer),
        "pendingToolCallIds": lambda: list(reducer.run.pending_tool_calls),
        "pendingInterrupts": lambda: [interrupt.id for interrupt in reducer.run.interrupts],
    }
    for key, look in seen.items():
        if key in expect:
            assert canonical(look()) == canonical(expect[key]), key


@pytest.mark.parametrize("name", _names(*FOLDED))
def test_a_case_ends_as_expected(name: str) -> None:
    case = CASES[name]
    expect = case["expect"]
    run = fold(case["events"], case["input"])
    reducer = run.reducer
    _check(reducer, expect)

    truncated = expect.get("truncated", False)
    assert (expect["outcome"] == "failed") == (run.error is not None or truncated), run.error
    assert (reducer.status == "truncated") == truncated
    if run.error is None and "runOutcome" in expect:
        assert reducer.status == RUN_OUTCOMES[expect["runOutcome"]]
    assert run.index == expect.get("failsAt")
    run_error = reducer.run.error
    assert (None if run_error is None else run_error.message) == expect.get("runError")
    if "eventTypes" in expect:
        assert run.types == expect["eventTypes"]
    warnings = len(warnings_in(reducer))
    assert expect.get("minWarnings", 0) <= warnings <= expect.get("maxWarnings", warnings)


@pytest.mark.parametrize("name", [name for name in _names(*FOLDED) if "after" in CASES[name]["expect"]])
def test_a_case_is_as_expected_in_its_middle(name: str) -> None:
    """`after`: what is seen once so many events were consumed, before the next one exists."""
    case = CASES[name]
    for point in case["expect"]["after"]:
        seen = agui.Reducer(messages=case["input"]["messages"], state=case["input"]["state"])
        for event in case["events"][: point["n"]]:
            seen.apply(event)
        _check(seen, point)


@pytest.mark.parametrize("name", [name for name in _names(*FOLDED) if "after" in CASES[name]["expect"]])
def test_a_case_read_after_every_event_ends_as_expected(name: str) -> None:
    """Reading after every event shows the same as reading once: a view that is looked at does not go stale."""
    case = CASES[name]
    points = {point["n"]: point for point in case["expect"]["after"]}
    reducer = agui.Reducer(messages=case["input"]["messages"], state=case["input"]["state"])
    for count, event in enumerate(case["events"], start=1):
        reducer.apply(event)
        _check(reducer, points.get(count, {}))
        assert len(_args(reducer)) == len(reducer.tool_calls)


def _deltas(case: dict[str, Any]) -> chain[str]:
    return chain.from_iterable(
        repeat(entry["repeat"], entry["times"]) if isinstance(entry, dict) else (entry,) for entry in case["deltas"]
    )


def _whole(value: Any) -> Any:
    """A value with every `{$repeat, times}` written out."""
    if isinstance(value, dict):
        if "$repeat" in value:
            return value["$repeat"] * value["times"]
        return {key: _whole(item) for key, item in value.items()}
    return [_whole(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("name", _names("partial_json"))
def test_partial_json(name: str) -> None:
    case = CASES[name]
    points = {point["n"]: point for point in case.get("after", ())}
    parser = agui.PartialJson()
    for count, delta in enumerate(_deltas(case), start=1):
        parser.feed(delta)
        point = points.get(count)
        if point is None:
            continue
        if "value" in point:
            assert canonical(parser.value) == canonical(_whole(point["value"]))
        assert (parser.error is not None) == bool(point.get("error"))
    parser.close()
    if case["expect"]["outcome"] == "completed":
        assert parser.complete
        assert parser.error is None
        assert canonical(parser.value) == canonical(_whole(case["final"]))
    else:
        assert parser.error is not None


@pytest.mark.parametrize("name", _names("partial_json"))
def test_partial_json_as_arguments(name: str) -> None:
    """The same deltas, streamed as the arguments of a call."""
    case = CASES[name]
    reducer = agui.Reducer()
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    reducer.apply({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"})
    points = {point["n"]: point for point in case.get("after", ())}
    for count, delta in enumerate(_deltas(case), start=1):
        reducer.apply({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": delta})
        if count in points and "value" in points[count]:
            assert canonical(reducer.tool_calls["c"].args) == canonical(_whole(points[count]["value"]))
    reducer.apply({"type": "TOOL_CALL_END", "toolCallId": "c"})
    call = reducer.tool_calls["c"]
    assert call.complete
    assert call.valid is (case["expect"]["outcome"] == "completed")
    if call.valid:
        assert canonical(call.args) == canonical(_whole(case["final"]))
