"""Shared ids in `changes`; observers that copy, or end the program; ids that are made up; long numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agui_core as agui
from support.events import FINISHED, STARTED
from support.properties import examples

# --- changes ----------------------------------------------------------------------------------------------------------


def tool(id: str, call: str, content: str = "x") -> dict[str, Any]:
    return {"id": id, "role": "tool", "toolCallId": call, "content": content}


ACTIVITY = {"id": "s", "role": "activity", "activityType": "a", "content": {}}
USER = {"id": "s", "role": "user", "content": "hi"}


@pytest.mark.parametrize(
    ("held", "kept"),
    [
        ([tool("s", "c1"), tool("s", "c2")], [tool("s", "c1")]),
        ([tool("s", "c1"), tool("s", "c2")], [tool("s", "c2")]),
        ([tool("s", "c1"), ACTIVITY], [ACTIVITY]),
        ([USER, tool("s", "c1")], [USER]),
        ([USER, tool("s", "c1")], [tool("s", "c1")]),
    ],
)
def test_a_message_that_goes_while_another_has_its_id_is_told(held: list[Any], kept: list[Any]) -> None:
    reducer = agui.Reducer(messages=held)
    reducer.apply(STARTED)
    data, version = reducer.checkpoint(), reducer.version
    reducer.apply({"type": "MESSAGES_SNAPSHOT", "messages": kept})
    changes = reducer.changes(version)
    assert "s" in {*changes.changed, *changes.added, *changes.removed} or changes.reordered
    assert len(reducer.messages) == 1
    again = agui.Reducer.restore(data, reducer.checkpoint(since=version))
    assert again.messages == reducer.messages
    assert again.changes(version) == changes


MESSAGES = st.lists(
    st.sampled_from([tool("s", "c1"), tool("s", "c2"), tool("t", "c1"), USER, {**USER, "id": "t"}, ACTIVITY]),
    max_size=5,
)


@given(MESSAGES, st.lists(MESSAGES, max_size=3))
@examples(150)
def test_every_message_that_went_or_came_is_told(held: list[Any], snapshots: list[list[Any]]) -> None:
    reducer = agui.Reducer(messages=held, policy="lenient")
    reducer.apply(STARTED)
    for messages in snapshots:
        version, before = reducer.version, list(reducer.messages)
        reducer.apply({"type": "MESSAGES_SNAPSHOT", "messages": messages})
        changes, after = reducer.changes(version), list(reducer.messages)
        told = {*changes.changed, *changes.added, *changes.removed}
        if not changes.reset and not changes.reordered:
            for id in {message.id for message in (*before, *after)} - told:
                assert [m for m in before if m.id == id] == [m for m in after if m.id == id]


# --- observers --------------------------------------------------------------------------------------------------------

STREAM: list[dict[str, Any]] = [
    STARTED,
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "b"},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": "{}"},
    {"type": "STATE_SNAPSHOT", "snapshot": {"x": 1}},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "o", "delta": "\ud83d"},
    {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u", "role": "user", "content": "hi"}]},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "p", "delta": "c"},
    FINISHED,
]


def test_a_copy_made_by_an_observer_goes_on_as_the_reducer_does() -> None:
    copies: list[tuple[int, agui.Reducer]] = []
    reducer = agui.Reducer(on_event=lambda event: copies.append((number, reducer.copy())))
    for number, event in enumerate(STREAM):  # noqa: B007
        reducer.apply(event)
    assert len(copies) > len(STREAM)
    for place, twin in copies:
        for event in STREAM[place + 1 :]:
            twin.apply(event)
        assert (twin.messages, twin.state, twin.run, twin.status) == (
            reducer.messages,
            reducer.state,
            reducer.run,
            reducer.status,
        )
        assert agui.Reducer.restore(twin.checkpoint()).messages == reducer.messages


@pytest.mark.parametrize("stop", range(14))
def test_an_interruption_in_an_observer_leaves_the_event_applied_whole(stop: int) -> None:
    seen: list[Any] = []

    def observe(event: Any) -> None:
        seen.append(event)
        if len(seen) == stop + 1:
            raise KeyboardInterrupt

    reducer = agui.Reducer(on_event=observe)
    for event in STREAM:
        try:
            reducer.apply(event)
        except KeyboardInterrupt:
            reducer.checkpoint()
    whole = agui.reduce(STREAM)
    assert (reducer.messages, reducer.state, reducer.status) == (whole.messages, whole.state, "finished")
    assert agui.Reducer.restore(reducer.checkpoint()).messages == whole.messages


# --- ids that are made up ---------------------------------------------------------------------------------------------

THINKING = [{"type": "THINKING_START"}, {"type": "THINKING_TEXT_MESSAGE_START"}]
PIECES = st.lists(
    st.sampled_from(
        [
            *THINKING,
            {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "hm"},
            {"type": "THINKING_TEXT_MESSAGE_END"},
            {"type": "THINKING_END"},
            STARTED,
            {"type": "RUN_STARTED", "threadId": "t", "runId": "other"},
            FINISHED,
            {"type": "RUN_ERROR", "message": "m"},
        ]
    ),
    max_size=12,
)


@given(PIECES)
@examples(200)
def test_conform_and_compact_make_the_ids_that_the_reducer_makes(events: list[Any]) -> None:
    whole = agui.reduce(events, policy="lenient")
    for make in (agui.conform, agui.compact):
        again = agui.reduce(list(make(events, policy="lenient")), policy="lenient")
        assert again.messages == whole.messages


# --- long numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("digits", "fits"), [(4_299, True), (4_300, True), (4_301, False)])
@pytest.mark.parametrize("sign", [1, -1])
def test_an_integer_fits_or_not_whichever_way_it_comes_in(digits: int, fits: bool, sign: int) -> None:
    fits = fits and (sign > 0 or digits < 4_300)  # the sign counts
    value = sign * (10**digits - 1)
    text = ("-" if sign < 0 else "") + "9" * digits
    event = {"type": "STATE_SNAPSHOT", "snapshot": {"n": value}}
    raw = b'{"type":"STATE_SNAPSHOT","snapshot":{"n":%b}}' % text.encode()
    for given_event in (event, raw, b"data: " + raw + b"\n\n"):
        reducer = agui.Reducer()
        reducer.apply(STARTED)
        apply = (
            reducer.apply_sse if isinstance(given_event, bytes) and given_event.startswith(b"data") else reducer.apply
        )
        if not fits:
            with pytest.raises(agui.AGUIError):
                apply(given_event)
            continue
        apply(given_event)
        assert reducer.state == {"n": value}
        assert agui.Reducer.restore(reducer.checkpoint()).state == {"n": value}
        assert json.loads(agui.encode(agui.events.StateSnapshotEvent(snapshot=reducer.state)))["snapshot"]["n"] == value
