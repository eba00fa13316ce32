"""Copies, readers and compaction in the middle of a run: what was said before a call stays before it."""

from __future__ import annotations

import json
from typing import Any

import pytest

import agui_core as agui
from support.events import FINISHED, STARTED

IDS = {"threadId": "t", "runId": "r"}
TALKING: list[dict[str, Any]] = [
    STARTED,
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "I look it up."},
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
    {"type": "TOOL_CALL_END", "toolCallId": "c"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    FINISHED,
]


@pytest.mark.parametrize("place", range(len(TALKING)))
def test_a_copy_knows_what_was_said_before_a_call(place: int) -> None:
    reducer = agui.Reducer()
    for number, event in enumerate(TALKING):
        reducer.apply(event)
        if number == place:
            reducer = reducer.copy()
    assert reducer.run.last_calls == ("c",)


def test_compacting_leaves_what_was_said_before_a_call_before_it() -> None:
    fewer = [*agui.compact(TALKING)]
    assert agui.reduce(fewer).run == agui.reduce(TALKING).run


SNAPSHOT = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u", "role": "user", "content": "hi"}]}
ECHO = {**STARTED, "input": {**IDS, "messages": SNAPSHOT["messages"]}}


@pytest.mark.parametrize("before", [[STARTED, SNAPSHOT], [ECHO]])
def test_an_observer_may_copy_whatever_was_restated(before: list[Any]) -> None:
    copies: list[agui.Reducer] = []
    reducer = agui.Reducer(on_event=lambda event: copies.append(reducer.copy()))
    for event in [*before, {"type": "CUSTOM", "name": "x", "value": 1}]:
        reducer.apply(event)
    assert len(copies) == len(before) + 1
    assert not reducer.warnings


ANSWERED = [
    {
        "id": "a",
        "role": "assistant",
        "toolCalls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}],
    },
    {"id": "b", "role": "tool", "toolCallId": "c", "content": "done"},
]


@pytest.mark.parametrize("reading", ["bytes", "text", "versions"])
def test_a_call_that_the_input_answers_is_reused_whoever_reads_meanwhile(reading: str) -> None:
    reducer = agui.Reducer()
    for event in [
        {**STARTED, "input": {**IDS, "messages": ANSWERED}},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        FINISHED,
    ]:
        text = json.dumps(event)
        reducer.apply(text if reading == "text" else text.encode())
        if reading == "versions":
            assert reducer.version
    assert [warning.rule for warning in reducer.warnings] == ["EVT-7"]
    assert reducer.run.reused_calls == ("c",)


@pytest.mark.parametrize("place", range(1, 7))
def test_an_increment_tells_that_a_text_part_has_ended(place: int) -> None:
    part = {"type": "text", "text": "hi"}
    reducer = agui.Reducer([{"id": "u", "role": "user", "content": [part]}])
    text = [
        {"type": "TEXT_MESSAGE_START", "messageId": "u", "role": "user"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "u", "delta": "there"},
        {"type": "TEXT_MESSAGE_END", "messageId": "u"},
    ]
    checkpoints, since = [reducer.checkpoint()], reducer.version
    for number, event in enumerate([STARTED, *text, *text]):
        reducer.apply(event)
        if number <= place:
            checkpoints.append(reducer.checkpoint(since=since))
            since = reducer.version
        if number == place:
            reducer = agui.Reducer.restore(*checkpoints)
    assert len(reducer.messages[0].content) == 3


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("place", range(7))
def test_a_checkpoint_changes_nothing_of_a_call_that_begins_anew(place: int, dropped: bool) -> None:
    call = [
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
    ]
    reducer = agui.Reducer()
    for number, event in enumerate([STARTED, *call, *TALKING[1:3], TALKING[-2], *call, FINISHED]):
        if number == 3 and dropped:
            reducer.apply({"type": "MESSAGES_SNAPSHOT", "messages": []})
        reducer.apply(event)
        if number == place:
            reducer.checkpoint()
    assert reducer.run.last_calls == ("c",)


def calling(message: str, name: str) -> dict[str, Any]:
    function = {"name": name, "arguments": ""}
    return {"id": message, "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "function": function}]}


def test_changes_tell_that_a_shared_call_id_stands_for_another_call() -> None:
    reducer = agui.Reducer([calling("a", "f"), calling("b", "g")])
    reducer.apply(STARTED)
    data, since = reducer.checkpoint(), reducer.version
    assert reducer.tool_calls["c"].name == "f"
    reducer.apply({"type": "MESSAGES_SNAPSHOT", "messages": [calling("b", "g")]})
    assert reducer.tool_calls["c"].name == "g"
    changes = reducer.changes(since)
    assert changes.calls == ("c",)
    assert agui.Reducer.restore(data, reducer.checkpoint(since=since)).changes(since) == changes
