"""Attacks by cutting: whatever the reads are, the same events are accepted, refused and warned about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agui_core as agui
from support.events import STARTED
from support.properties import examples


def outcome(reducer: agui.Reducer) -> Any:
    error = reducer.error
    return (
        reducer.status,
        None if error is None else (str(error), getattr(error, "index", None), getattr(error, "limit", None)),
        reducer.messages,
        reducer.state,
        reducer.run,
        [(str(warning), warning.index, warning.count) for warning in reducer.warnings],
    )


def read(events: list[Any], sizes: list[int], limits: agui.Limits, policy: Any, form: str) -> Any:
    """The outcome when the bytes come in reads of these sizes, over and over."""
    payloads = [event if isinstance(event, bytes) else json.dumps(event).encode() for event in events]
    framed = [b"data: " + each + b"\n\n" for each in payloads] if form == "sse" else [each + b"\n" for each in payloads]
    data = b"".join(framed)
    reducer = agui.Reducer(limits=limits, policy=policy)
    apply = reducer.apply_sse if form == "sse" else reducer.apply_lines
    start = number = 0
    try:
        while start < len(data):
            size = sizes[number % len(sizes)]
            apply(data[start : start + size])
            start, number = start + size, number + 1
        reducer.end()
    except agui.AGUIError:
        pass
    return outcome(reducer)


def one_by_one(events: list[Any], limits: agui.Limits, policy: Any) -> Any:
    reducer = agui.Reducer(limits=limits, policy=policy)
    try:
        for event in events:
            reducer.apply(event)
        reducer.end()
    except agui.AGUIError:
        pass
    return outcome(reducer)


@pytest.mark.parametrize("size", [1, 7, 49, 50, 61, 1_000, 100_000])
@pytest.mark.parametrize("limits", [agui.Limits(item_characters=60), agui.Limits(characters=60)])
def test_a_long_text_in_small_reads_is_refused(size: int, limits: agui.Limits) -> None:
    events = [
        STARTED,
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x" * 5_000},
    ]
    status, error, messages, *_ = read(events, [size], limits, "strict", "sse")
    assert (status, error[1]) == ("rejected", 2)
    assert messages[0].content == ""


@pytest.mark.parametrize("form", ["sse", "lines"])
def test_half_a_character_that_waits_counts_for_the_limit_of_its_item(form: str) -> None:
    limits = agui.Limits(item_characters=5)
    events = [
        STARTED,
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        b'{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"\\ud83d\\ud83d"}',
        {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "four"},
    ]
    each = one_by_one([event if isinstance(event, bytes) else json.dumps(event) for event in events], limits, "strict")
    assert each[0] == "rejected"
    assert all(read(events, [size], limits, "strict", form) == each for size in (1, 40, 100_000))


@pytest.mark.parametrize("size", [1, 50, 100_000])
def test_ids_and_state_in_small_reads_are_refused_at_the_same_event(size: int) -> None:
    patches = ([{"op": "add", "path": f"/{number}", "value": "x" * 50}] for number in range(40))
    events: list[Any] = [STARTED, *({"type": "STATE_DELTA", "delta": patch} for patch in patches)]
    limits = agui.Limits(characters=600)
    assert read(events, [size], limits, "strict", "sse") == one_by_one(events, limits, "strict")
    assert read(events, [size], limits, "strict", "sse")[0] == "rejected"


TEXTS = st.sampled_from(["", "a", "word ", "x" * 30, "é" * 20, "\u2028\U0001f600"])
IDS = st.sampled_from(["m", "n", "c", "d", "long" * 8])
EVENTS = st.one_of(
    st.builds(lambda i: {"type": "TEXT_MESSAGE_START", "messageId": i}, IDS),
    st.builds(lambda i, t: {"type": "TEXT_MESSAGE_CONTENT", "messageId": i, "delta": t}, IDS, TEXTS),
    st.builds(lambda i, t: {"type": "TEXT_MESSAGE_CHUNK", "messageId": i, "delta": t}, IDS, TEXTS),
    st.builds(lambda i: {"type": "TEXT_MESSAGE_END", "messageId": i}, IDS),
    st.builds(lambda i: {"type": "TOOL_CALL_START", "toolCallId": i, "toolCallName": "f"}, IDS),
    st.builds(lambda i, t: {"type": "TOOL_CALL_ARGS", "toolCallId": i, "delta": t}, IDS, TEXTS),
    st.builds(lambda i: {"type": "TOOL_CALL_END", "toolCallId": i}, IDS),
    st.builds(lambda i, t: {"type": "TOOL_CALL_RESULT", "messageId": i, "toolCallId": "c", "content": t}, IDS, TEXTS),
    st.builds(
        lambda i, t: {
            "type": "TOOL_CALL_RESULT",
            "messageId": i,
            "toolCallId": "c",
            "content": [{"type": "text", "text": t}],
        },
        IDS,
        TEXTS,
    ),
    st.builds(lambda t: {"type": "STATE_SNAPSHOT", "snapshot": {"a": t}}, TEXTS),
    st.builds(lambda t: {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/b", "value": t}]}, TEXTS),
    st.builds(lambda i, t: {"type": "CUSTOM", "name": i, "value": t, "vendor": 1}, IDS, TEXTS),
    st.builds(lambda i: {"type": "STEP_STARTED", "stepName": i, "metadata": {"k": i}}, IDS),
    st.sampled_from(
        [{"type": "UNKNOWN"}, {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}, STARTED, {"type": 5}]
    ),
)
LIMITS = st.builds(
    agui.Limits,
    item_characters=st.sampled_from([20, 60, 1_000]),
    characters=st.sampled_from([60, 200, 5_000]),
    messages=st.sampled_from([2, 100]),
    tool_calls=st.sampled_from([1, 100]),
    open_items=st.sampled_from([1, 100]),
)


@given(
    st.lists(EVENTS, max_size=25),
    st.lists(st.integers(1, 80), min_size=1, max_size=4),
    LIMITS,
    st.sampled_from(["strict", "lenient"]),
    st.sampled_from(["sse", "lines"]),
)
@examples(300)
def test_any_cut_gives_the_same(events: list[Any], sizes: list[int], limits: Any, policy: Any, form: str) -> None:
    events = [STARTED, *events]
    whole = one_by_one(events, limits, policy)
    assert read(events, sizes, limits, policy, form) == whole
    assert read(events, [1_000_000], limits, policy, form) == whole


@pytest.mark.parametrize("form", ["sse", "lines"])
@pytest.mark.parametrize("listening", [False, True])
def test_warnings_come_in_the_order_of_the_events(form: str, listening: bool) -> None:
    result = {"type": "TOOL_CALL_RESULT", "toolCallId": "c", "content": ""}
    odd = [{**result, "messageId": f"m{n}", "vendor": n, **({"more": 1} if n % 3 else {})} for n in range(60)]
    events = [STARTED, *odd, {"type": "CUSTOM", "name": "x", "value": 1, "vendor": 1}]
    orders = set()
    for sizes in ([1_000_000], [1], [50], [700]):
        told: list[Any] = []
        reducer = agui.Reducer(on_warning=told.append if listening else None)
        apply = reducer.apply_sse if form == "sse" else reducer.apply_lines
        frame = (lambda each: b"data: " + each + b"\n\n") if form == "sse" else (lambda each: each + b"\n")
        data = b"".join(frame(json.dumps(event).encode()) for event in events)
        for start in range(0, len(data), sizes[0]):
            apply(data[start : start + sizes[0]])
        orders.add((*map(str, reducer.warnings), *map(str, told)))
    assert len(orders) == 1


CHEATS = [
    [b'{"type":"RAW","event":1},{"type":"RAW","event":2}', b'{"type":"RAW","event":[1', b"2]}"],
    [b'{"type":"RAW","event":{}} , {"type":"RAW","event":2}', b'{"type":"RAW","event":[{}', b"{}]}"],
    [b'{"type":"RAW","event":[{"a":1}', b'{"b":2}]}', b'{"type":"RAW","event":1},\t{"type":"RAW","event":2}'],
    [b'{"type":"RAW","x":1},{"type":"RAW","x":2}', b'{"type":"RAW","x":[1', b"2]}"],
    [b'{"type":"RAW","event":"a', b'b"}', b'{"type":"RAW","event":1},null,{"type":"RAW","event":2}'],
    [b'{"type":"RAW","event":1},null,{"type":"RAW","event":2}', b'{"type":"RAW","event":"a', b'b"}'],
    [b'{"type":"RAW","event":{"a', b'b":[{}]}}', b'{"type":"RAW","event":1}\t,null,\t{"type":"RAW","event":2}'],
    [b'{"type":"RAW","event":1} null null {"type":"RAW","event":2}', b'{"type":"RAW","event":[1,', b",2]}"],
    [b'{"type":"RAW","event":[', b"]}", b'{"type":"RAW","event":1}null null{"type":"RAW","event":2}'],
    [b'{"type":"RAW","event":1}{"type":"RAW","event":2}', b'{"type":"RAW","event":', b"}"],
    [b'{"type":"RAW","event":1}{"type":"RAW","event":2}', b'{"type":"RAW","event":[{"a":1},', b'{"b":2}]}'],
    [b'{"type":"RAW","event":1}{"type":"RAW","event":2}', b'{"type":"RAW","event":"}', b'{"}'],
    [b'{"type":"RAW","event":{"a":{}', b'{"b":{}}}', b'{"type":"RAW","event":1} {"type":"RAW","event":2}'],
]


@pytest.mark.parametrize("lines", CHEATS)
@pytest.mark.parametrize("form", ["sse", "lines"])
@pytest.mark.parametrize("before", [0, 30])
def test_lines_that_make_up_for_each_other_are_refused_whatever_the_reads(lines: Any, form: str, before: int) -> None:
    events = [STARTED, *[{"type": "RAW", "event": [{"a": 1}, {"b": "},{"}], "v": 1}] * before, *lines]
    outcomes = [read(events, [size], agui.Limits(), "strict", form) for size in (1, 20, 60, 1_000_000)]
    assert outcomes[0][0] == "rejected"
    assert outcomes[0][1][1] == before + 1
    assert all(each == outcomes[0] for each in outcomes)
