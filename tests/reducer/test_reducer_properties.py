"""What holds for every stream: random ones, valid, broken and meaningless, through the public API (DESIGN 8.3)."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import Phase, given
from hypothesis import strategies as st

import agui_core as agui
from support.events import FINISHED, STARTED
from support.folding import canonical, fold, fold_bytes
from support.properties import steady
from support.strategies import (
    Case,
    cut,
    interleaved_items,
    json_documents,
    mutated_streams,
    streams,
    to_lines,
    to_sse,
    wild_events,
)

ANY_STREAM = streams(noise=True) | mutated_streams()
POLICIES = ("strict", "lenient")

fixed = steady(150, phases=[Phase.generate, Phase.shrink])


def _absent_as_none(value: Any) -> Any:
    return None if value is agui.UNSET else value


def _picture(reducer: agui.Reducer, *, status: bool = True) -> str:
    """Everything that can be seen of a reducer, but its warnings and its version."""
    run = reducer.run
    return canonical(
        {
            "messages": agui.to_wire(reducer.messages),
            "state": reducer.state,
            "status": reducer.status if status else None,
            "run": [run.thread_id, run.run_id, _absent_as_none(run.result), _absent_as_none(run.protocol_version)],
            "pending": list(run.pending_tool_calls),
            "error": None if run.error is None else agui.to_wire(run.error),
            "interrupts": agui.to_wire(run.interrupts),
            "calls": {
                name: [call.name, call.arguments, call.complete, call.valid, _absent_as_none(call.metadata)]
                for name, call in reducer.tool_calls.items()
            },
        }
    )


def _said(reducer: agui.Reducer) -> list[str]:
    return [str(warning) for warning in reducer.warnings]


@fixed
@given(st.data(), ANY_STREAM, st.sampled_from(POLICIES), st.booleans())
def test_bytes_may_be_cut_anywhere(data: st.DataObject, case: Case, policy: str, lines: bool) -> None:
    body = to_lines(case["events"]) if lines else to_sse(case["events"])
    whole = fold_bytes([body], case["input"], policy, lines=lines)
    pieces = fold_bytes(data.draw(cut(body)), case["input"], policy, lines=lines)
    assert _picture(pieces.reducer) == _picture(whole.reducer)
    assert str(pieces.error) == str(whole.error)
    assert _said(pieces.reducer) == _said(whole.reducer)
    assert pieces.types == whole.types


@fixed
@given(ANY_STREAM, st.sampled_from(POLICIES))
def test_every_way_in_gives_the_same(case: Case, policy: str) -> None:
    """PROC-8: dicts, one JSON text per event, SSE and JSON Lines are judged alike."""
    plain = fold(case["events"], case["input"], policy)
    others = [
        fold([json.dumps(event) for event in case["events"]], case["input"], policy),
        fold_bytes([to_sse(case["events"])], case["input"], policy),
        fold_bytes([to_lines(case["events"])], case["input"], policy, lines=True),
    ]
    for other in others:
        assert _picture(other.reducer) == _picture(plain.reducer)
        assert str(other.error) == str(plain.error)
        assert _said(other.reducer) == _said(plain.reducer)
        assert other.types == plain.types


@fixed
@given(interleaved_items())
def test_independent_items_may_interleave(items: tuple[list[Any], list[Any]]) -> None:
    in_order, merged = (fold([STARTED, *events, FINISHED]) for events in items)
    assert in_order.error is merged.error is None
    key = {message["id"]: canonical(message) for message in in_order.messages}
    assert {message["id"]: canonical(message) for message in merged.messages} == key
    assert len(merged.messages) == len(in_order.messages)


def _drain(events: Iterator[Any]) -> tuple[list[Any], str | None]:
    """What an iterator gave before its end or its refusal, and the refusal."""
    passed: list[Any] = []
    try:
        for event in events:
            passed.append(event)  # noqa: PERF402  what came before a refusal counts
    except agui.AGUIError as error:
        return passed, str(error)
    return passed, None


def _push(events: list[Any]) -> Iterator[Any]:
    conformer = agui.Conformer()
    for event in events:
        yield from conformer.feed(event)
    conformer.close()


@fixed
@given(ANY_STREAM)
def test_conform_then_reduce_equals_reduce(case: Case) -> None:
    plain = fold(case["events"], case["input"])
    passed, refusal = _drain(agui.conform(case["events"]))
    again = fold(passed, case["input"])
    if plain.error is not None and refusal is None:
        # Whose a message is that a call's start made, only who holds the messages knows.
        assert plain.error.rule in ("SUB-8", "SUB-10", "SUB-12")
        assert again.error is not None
        assert again.error.rule == plain.error.rule
    else:
        assert refusal == (None if plain.error is None else str(plain.error))
        assert again.error is None
        assert again.types == [event.type for event in passed]
    assert canonical(again.messages) == canonical(plain.messages)
    assert canonical(again.reducer.state) == canonical(plain.reducer.state)
    assert again.types == plain.types


@fixed
@given(ANY_STREAM)
def test_conformer_is_conform_pushed(case: Case) -> None:
    assert _drain(_push(case["events"])) == _drain(agui.conform(case["events"]))


@fixed
@given(mutated_streams())
def test_a_refused_event_changes_nothing(case: Case) -> None:
    refused = fold(case["events"], case["input"])
    if refused.index is None:
        return
    accepted = fold(case["events"][: refused.index], case["input"], end=False)
    assert refused.error is not None
    assert refused.error.index == refused.index
    assert refused.reducer.status == "rejected"
    assert _picture(refused.reducer, status=False) == _picture(accepted.reducer, status=False)
    assert refused.types == accepted.types
    with pytest.raises(agui.AGUIError) as again:
        refused.reducer.apply(FINISHED)
    assert str(again.value) == str(refused.error)


@fixed
@given(st.lists(wild_events, max_size=8), st.sampled_from(POLICIES), st.booleans())
def test_nothing_but_our_errors_escapes_from_any_json(events: list[Any], policy: str, started: bool) -> None:
    if started:
        events = [STARTED, *events]
    for run in (fold(map(json.dumps, events), None, policy), fold_bytes([to_sse(events)], None, policy)):
        agui.encode(list(run.reducer.messages)).decode()
        assert isinstance(_picture(run.reducer), str)


@fixed
@given(st.lists(st.binary(max_size=60), max_size=4), st.sampled_from(POLICIES), st.booleans())
def test_nothing_but_our_errors_escapes_from_any_bytes(pieces: list[bytes], policy: str, lines: bool) -> None:
    fold_bytes(pieces, None, policy, lines=lines)


@fixed
@given(st.data(), streams(), st.booleans())
def test_nothing_but_our_errors_escapes_from_damaged_bytes(data: st.DataObject, case: Case, lines: bool) -> None:
    body = bytearray(to_lines(case["events"]) if lines else to_sse(case["events"]))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    for policy in POLICIES:
        fold_bytes([bytes(body)], case["input"], policy, lines=lines)


@fixed
@given(mutated_streams())
def test_lenient_never_refuses(case: Case) -> None:
    assert fold(case["events"], case["input"], "lenient").error is None


def _restate_whole_arguments(case: Case) -> None:
    """Lenient does not take over broken arguments from a snapshot, so that none may be broken where both agree."""
    for event in case["events"]:
        for message in event.get("messages", ()):
            for call in message.get("toolCalls", ()):
                call["function"]["arguments"] = '{"a":1}'


@fixed
@given(streams(noise=True))
def test_lenient_equals_strict_where_nothing_is_wrong(case: Case) -> None:
    _restate_whole_arguments(case)
    strict, lenient = fold(case["events"], case["input"]), fold(case["events"], case["input"], "lenient")
    assert strict.error is None
    assert _picture(lenient.reducer) == _picture(strict.reducer)
    assert _said(lenient.reducer) == _said(strict.reducer)
    assert lenient.types == strict.types


@fixed
@given(streams())
def test_what_was_handed_out_never_changes(case: Case) -> None:
    """Reading at every event equals reading at the end, and leaves earlier readings as they were."""
    watched = agui.Reducer(messages=case["input"]["messages"], state=case["input"]["state"])
    handed_out: list[tuple[Any, str, Any, str]] = []
    for event in case["events"]:
        watched.apply(event)
        messages, state = watched.messages, watched.state
        handed_out.append((messages, canonical(agui.to_wire(messages)), state, canonical(state)))
        _picture(watched)
    for messages, text, state, state_text in handed_out:
        assert canonical(agui.to_wire(messages)) == text
        assert canonical(state) == state_text
    assert _picture(watched) == _picture(fold(case["events"], case["input"]).reducer)


def _is_named(message: Any, event: Any) -> bool:
    """Whether an event speaks of a message or of one of its calls."""
    wire = agui.to_wire(event)
    names = {wire.get(key) for key in ("messageId", "toolCallId", "entityId", "parentMessageId")}
    calls = getattr(message, "tool_calls", agui.UNSET) or ()
    return message.id in names or any(call.id in names for call in calls)


@fixed
@given(streams())
def test_unchanged_messages_keep_their_identity(case: Case) -> None:
    """A reader may compare by identity: only what an event names is built anew."""
    reducer = agui.Reducer(messages=case["input"]["messages"], state=case["input"]["state"])
    before = reducer.messages
    for event in agui.conform(case["events"]):
        reducer.apply(event)
        after = reducer.messages
        if event.type not in ("MESSAGES_SNAPSHOT", "RUN_STARTED"):
            kept = {id(message) for message in after}
            assert all(id(message) in kept or _is_named(message, event) for message in before)
        if event.type in ("STATE_DELTA", "STATE_SNAPSHOT", "CUSTOM", "RAW", "STEP_STARTED", "RUN_FINISHED"):
            assert after is before
        before = after


@fixed
@given(streams(), st.integers(0, 60))
def test_a_copy_goes_its_own_way(case: Case, at: int) -> None:
    reducer = agui.Reducer(messages=case["input"]["messages"], state=case["input"]["state"])
    for event in case["events"][:at]:
        reducer.apply(event)
    other, before = reducer.copy(), _picture(reducer)
    for event in case["events"][at:]:
        other.apply(event)
    assert _picture(reducer) == before
    for event in case["events"][at:]:
        reducer.apply(event)
    assert _picture(reducer) == _picture(other)


@fixed
@given(streams())
def test_input_is_left_alone(case: Case) -> None:
    original = copy.deepcopy(case)
    fold(case["events"], case["input"])
    assert case == original


def _grew(before: Any, after: Any) -> bool:
    """Whether nothing that was shown was taken back."""
    if isinstance(before, dict):
        return isinstance(after, dict) and all(key in after and _grew(item, after[key]) for key, item in before.items())
    if isinstance(before, list):
        return isinstance(after, list) and len(before) <= len(after) and all(map(_grew, before, after))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return canonical(before) == canonical(after)


@fixed
@given(st.data(), json_documents, st.booleans())
def test_partial_values_never_take_back(data: st.DataObject, document: Any, escaped: bool) -> None:
    text = json.dumps(document, ensure_ascii=escaped)
    places = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=10)))
    reducer = agui.Reducer()
    reducer.apply(STARTED)
    reducer.apply({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"})
    shown: list[Any] = []
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        reducer.apply({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": text[start:end]})
        shown.append(copy.deepcopy(reducer.tool_calls["c"].args))
    reducer.apply({"type": "TOOL_CALL_END", "toolCallId": "c"})
    call = reducer.tool_calls["c"]
    assert call.valid
    assert canonical(call.args) == canonical(document)
    partial = [value for value in shown if value is not agui.UNSET]
    assert all(map(_grew, partial, [*partial[1:], call.args]))
