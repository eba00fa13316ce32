"""`conform` and `Conformer`: clean, expanded, verified events and nothing else."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

import ag_ui.core as official
import pytest

import agui_core as agui
from support.events import FINISHED, STARTED

CHUNK = {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "hi"}
STREAM = [
    STARTED,
    {"type": "VENDOR_THING", "x": 1},
    {**CHUNK, "surprise": 1},
    {"type": "TEXT_MESSAGE_CHUNK", "delta": "!"},
    {"type": "THINKING_START"},
    {"type": "THINKING_END"},
    {**FINISHED, "outcome": {"type": "paused"}},
]
CLEAN = [
    "RUN_STARTED",
    *["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END"],
    *["REASONING_START", "REASONING_END", "RUN_FINISHED"],
]
BROKEN = {"type": "TEXT_MESSAGE_END", "messageId": "nobody"}
E = agui.events


def types(events: Any) -> list[str]:
    return [event.type for event in events]


def test_conform_lets_clean_events_pass() -> None:
    warnings: list[agui.ProtocolWarning] = []
    passed = list(agui.conform(STREAM, on_warning=warnings.append))
    assert types(passed) == CLEAN
    assert passed[1:4] == [
        E.TextMessageStartEvent(message_id="m", role="assistant"),
        E.TextMessageContentEvent(message_id="m", delta="hi"),
        E.TextMessageContentEvent(message_id="m", delta="!"),
    ]
    assert passed[-1] == E.RunFinishedEvent(thread_id="t", run_id="r")
    assert [(warning.rule, warning.path) for warning in warnings if warning.rule != "OLD-1"] == [
        ("PROC-4", ""),
        ("PROC-5", "/surprise"),
        ("PROC-9", "/outcome"),
    ]


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda event: json.dumps(event).encode(), id="bytes"),
        pytest.param(lambda event: bytearray(json.dumps(event), "ascii"), id="bytearray"),
        pytest.param(json.dumps, id="str"),
        pytest.param(lambda event: event, id="dict"),
    ],
)
def test_conform_takes_events_as_people_have_them(prepare: Any) -> None:
    assert types(agui.conform(prepare(event) for event in STREAM)) == CLEAN


def test_conform_takes_structs_and_official_events() -> None:
    struct = E.RunStartedEvent(thread_id="t", run_id="r")
    foreign = official.RunFinishedEvent(thread_id="t", run_id="r")
    assert list(agui.conform([struct, foreign])) == [struct, E.RunFinishedEvent(thread_id="t", run_id="r")]


def test_conform_is_lazy() -> None:
    def source() -> Iterator[Any]:
        yield STARTED
        raise AssertionError("read ahead")

    stream = agui.conform(source())
    assert next(stream).type == "RUN_STARTED"


def test_conform_of_what_conform_passed_is_the_same() -> None:
    once = list(agui.conform(STREAM))
    warnings: list[Any] = []
    assert list(agui.conform(once, on_warning=warnings.append)) == once
    assert warnings == []
    assert list(agui.conform(agui.encode(event) for event in once)) == once


def test_conform_raises_after_what_came_before() -> None:
    stream = agui.conform([STARTED, CHUNK, BROKEN, FINISHED])
    assert types(itertools.islice(stream, 3)) == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]
    with pytest.raises(agui.ProtocolError) as refusal:
        next(stream)
    assert (refusal.value.rule, refusal.value.index, refusal.value.type) == ("STR-2", 2, "TEXT_MESSAGE_END")
    assert refusal.value.ids == ("nobody",)


def test_conform_repairs_when_lenient() -> None:
    warnings: list[agui.ProtocolWarning] = []
    content = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}
    passed = list(agui.conform([STARTED, content, BROKEN, FINISHED], policy="lenient", on_warning=warnings.append))
    assert types(passed) == [
        *["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]
    ]
    assert [warning.rule for warning in warnings] == ["STR-2", "STR-2", "RUN-4"]
    assert agui.reduce(passed).warnings == ()


def test_CHUNK_25_conform_makes_nothing_up_at_the_end() -> None:
    assert types(agui.conform([STARTED, CHUNK])) == ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"]


def test_conform_checks_limits() -> None:
    limits = agui.Limits(open_items=1)
    start = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
    for policy in ("strict", "lenient"):
        with pytest.raises(agui.LimitExceeded) as refusal:
            list(agui.conform([STARTED, start, {**start, "messageId": "n"}], limits=limits, policy=policy))  # type: ignore[arg-type]
        assert refusal.value.limit == "open_items"


def test_conformer_pushes() -> None:
    conformer = agui.Conformer()
    fed = [conformer.feed(event) for event in STREAM]
    assert [types(events) for events in fed] == [
        *[["RUN_STARTED"], [], ["TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"], ["TEXT_MESSAGE_CONTENT"]],
        *[["TEXT_MESSAGE_END", "REASONING_START"], ["REASONING_END"], ["RUN_FINISHED"]],
    ]
    assert conformer.close() == []
    assert {warning.rule for warning in conformer.warnings} >= {"PROC-4", "PROC-5", "PROC-9"}


def test_conformer_refuses_alike_for_ever() -> None:
    conformer = agui.Conformer()
    conformer.feed(STARTED)
    with pytest.raises(agui.ProtocolError) as refusal:
        conformer.feed(BROKEN)
    for later in (FINISHED, b"nope", CHUNK):
        with pytest.raises(agui.ProtocolError) as again:
            conformer.feed(later)
        assert again.value is refusal.value


@pytest.mark.parametrize("garbage", [b"nope", "[]", b"5", b"", b"\xff"])
def test_conformer_refuses_bytes_that_are_no_event(garbage: Any) -> None:
    conformer = agui.Conformer()
    conformer.feed(STARTED)
    with pytest.raises(agui.DecodeError) as refusal:
        conformer.feed(garbage)
    assert refusal.value.index == 1


def vendor(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Remembers from one event to the next, swallows, changes and adds."""
    count = 0
    for event in events:
        count += 1
        if event["type"] == "VENDOR_THING":
            yield {"type": "CUSTOM", "name": "x.vendor", "value": count}
        elif event["type"] != "THINKING_END":
            yield event
    yield {"type": "RUN_ERROR", "message": f"after {count}"}


def test_PROC_3_middleware_sees_the_whole_stream_before_it_is_judged() -> None:
    seen: list[str] = []

    def look(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in events:
            seen.append(event["type"])
            yield {name: value for name, value in event.items() if name != "surprise"}

    warnings: list[agui.ProtocolWarning] = []
    passed = list(agui.conform(STREAM, middleware=[look, vendor], on_warning=warnings.append))
    assert seen == [
        *["RUN_STARTED", "VENDOR_THING", "TEXT_MESSAGE_CHUNK", "TEXT_MESSAGE_CHUNK"],
        *["REASONING_START", "REASONING_END", "RUN_FINISHED"],
    ]
    assert types(passed) == [
        *["RUN_STARTED", "CUSTOM", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CONTENT"],
        *["TEXT_MESSAGE_END", "REASONING_START", "REASONING_END", "RUN_FINISHED", "RUN_ERROR"],
    ]
    assert passed[1] == E.CustomEvent(name="x.vendor", value=2)
    assert passed[-1] == E.RunErrorEvent(message="after 7")
    assert {warning.rule for warning in warnings} - {"OLD-1"} == {"PROC-9"}


def test_what_middleware_makes_is_judged() -> None:
    def spoil(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in events:
            yield event
            yield event

    stream = agui.conform([STARTED, FINISHED], middleware=[spoil])
    assert next(stream).type == "RUN_STARTED"
    with pytest.raises(agui.ProtocolError) as refusal:
        next(stream)
    assert refusal.value.rule == "RUN-2"


def test_a_conformer_with_middleware() -> None:
    def double(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in events:
            yield event
            if event["type"] == "CUSTOM":
                yield event

    conformer = agui.Conformer(middleware=[double])
    fed = [conformer.feed(event) for event in (STARTED, {"type": "CUSTOM", "name": "x", "value": 1}, FINISHED)]
    assert [types(events) for events in fed] == [["RUN_STARTED"], ["CUSTOM", "CUSTOM"], ["RUN_FINISHED"]]


def test_a_policy_is_one_of_two() -> None:
    for make in (agui.Reducer, agui.Conformer, lambda policy: next(agui.compact([], policy=policy))):
        with pytest.raises(ValueError, match='policy must be "strict" or "lenient", not \'Lenient\''):
            make(policy="Lenient")  # type: ignore[operator]
