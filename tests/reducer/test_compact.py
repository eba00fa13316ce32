"""What compaction makes of typical streams."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import agui_core as agui
from support.events import FINISHED, STARTED, patch, run, say, spoken, text, text_end
from support.folding import canonical

Wire = dict[str, Any]


def put(path: str, value: Any) -> Wire:
    return {"op": "replace", "path": path, "value": value}


def compacted(events: list[Wire], **options: Any) -> list[Wire]:
    return [agui.to_wire(event) for event in agui.compact(events, **options)]


def same(events: list[Wire], result: list[Wire], **start: Any) -> None:
    before, after = agui.reduce(events, **start), agui.reduce(result, **start)
    assert agui.to_wire(after.messages) == agui.to_wire(before.messages)
    assert canonical(after.state) == canonical(before.state)
    assert after.status == before.status
    assert after.run == before.run


# --- text ---------------------------------------------------------------------------------------------------------


def test_a_message_keeps_one_content_event() -> None:
    events = run(*spoken("m", "a", "b", "c"))
    assert compacted(events) == run(*spoken("m", "abc"))


def test_parallel_calls_keep_one_content_event_each() -> None:
    events: list[Wire] = [{"type": "TOOL_CALL_START", "toolCallId": f"c{n}", "toolCallName": "f"} for n in range(5)]
    events += [{"type": "TOOL_CALL_ARGS", "toolCallId": f"c{n % 5}", "delta": str(n)} for n in range(50)]
    events += [{"type": "TOOL_CALL_END", "toolCallId": f"c{n}"} for n in range(5)]
    result = compacted(run(*events))
    assert [event["type"] for event in result].count("TOOL_CALL_ARGS") == 5
    same(run(*events), result)


def test_chunks_come_out_as_triads() -> None:
    chunks = [{"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": delta} for delta in "abc"]
    assert [event["type"] for event in compacted(run(*chunks))] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]


def test_metadata_of_merged_content_is_merged() -> None:
    events = run(
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a", "metadata": {"x": 1, "y": 1}},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "b"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "c", "metadata": {"x": {"z": 2}}, "rawEvent": 1},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    )
    result = compacted(events)
    assert result[2] == {
        "type": "TEXT_MESSAGE_CONTENT",
        "messageId": "m",
        "delta": "abc",
        "metadata": {"x": {"z": 2}, "y": 1},
    }
    same(events, result)


def test_a_single_event_passes_as_it_is() -> None:
    events = run(text("m"), say("m", "a", rawEvent={"seq": 1}, timestamp=5), text_end("m"))
    assert compacted(events) == events


def test_a_message_dropped_while_open_comes_back_where_it_did() -> None:
    """OPEN-6: the first content behind the snapshot makes the message again, before the one that comes after it."""
    events = run(
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "lost"},
        {"type": "MESSAGES_SNAPSHOT", "messages": []},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "new"},
        *spoken("n", "other"),
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "er"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    )
    result = compacted(events)
    same(events, result)
    assert [message.id for message in agui.reduce(result).messages] == ["m", "n"]


def test_text_and_reasoning_of_one_id_stay_in_order() -> None:
    events = run(
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "reasoning"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "1"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "2"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "3"},
        {"type": "REASONING_MESSAGE_END", "messageId": "m"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
    )
    result = compacted(events)
    assert agui.reduce(result).messages[0].content == "123"


def test_truncated_streams_keep_their_open_items() -> None:
    events = run(*spoken("m", "a", "b"))[:-2]
    result = compacted(events)
    assert result == [STARTED, {"type": "TEXT_MESSAGE_START", "messageId": "m"}, spoken("m", "ab")[1]]
    assert agui.reduce(result).status == "truncated"


def test_merged_events_keep_the_limit_of_an_event() -> None:
    limits = agui.Limits(event_bytes=2_000)
    events = run(*spoken("m", *["\x01" * 50] * 100))
    result = list(agui.compact(events, limits=limits))
    assert 3 < len(result) < 50
    reducer = agui.Reducer(limits=limits)
    for event in result:
        reducer.apply_sse(agui.encode_sse(event))
    assert reducer.messages[0].content == "\x01" * 5_000


# --- state --------------------------------------------------------------------------------------------------------


def test_patches_join_a_snapshot_that_waits() -> None:
    events = run(
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 0}},
        patch(put("/a", 1)),
        *spoken("m", "x"),
        patch({"op": "add", "path": "/b", "value": [2**70]}),
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 5, "b": []}},
        patch({"op": "add", "path": "/b/-", "value": 10**30}),
    )
    result = compacted(events)
    assert [event for event in result if event["type"].startswith("STATE")] == [
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 5, "b": [10**30]}}
    ]
    same(events, result)


def test_patches_of_an_unknown_state_stay_single() -> None:
    """PATCH-5: where it is not known which of them apply, one may take the others down."""
    events = run(patch(put("/a", 1)), patch(put("/b", 1)))
    assert compacted(events) == events
    same(events, compacted(events), state={"a": 0})


def test_patches_of_a_known_state_become_one() -> None:
    events = run(
        patch({"op": "add", "path": "/a", "value": 1}),
        patch(put("/missing", 1), put("/a", 9)),
        patch({"op": "add", "path": "/b", "value": 2}),
        patch(put("/b", 3)),
    )
    result = compacted(events, state={})
    assert result == run(patch({"op": "add", "path": "/a", "value": 1}, {"op": "add", "path": "/b", "value": 3}))
    same(events, result, state={})


def test_a_state_known_from_an_earlier_run_needs_no_snapshot() -> None:
    events = [
        *run({"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}),
        *run(patch(put("/a", 2)), patch(put("/nope", 0)), patch({"op": "add", "path": "/b", "value": 1})),
    ]
    result = compacted(events)
    assert result[4] == patch(put("/a", 2), {"op": "add", "path": "/b", "value": 1})
    same(events, result)


def test_a_snapshot_takes_the_place_of_longer_patches() -> None:
    events = run(*(patch(put(f"/{key}", number)) for number in range(200) for key in "ab"))
    start = {"a": 0, "b": 0}
    result = compacted(events, state=start)
    assert result == run({"type": "STATE_SNAPSHOT", "snapshot": {"a": 199, "b": 199}})


def test_a_small_change_of_a_large_state_stays_small() -> None:
    start = {"large": ["x" * 50] * 1_000, "a": 0}
    result = compacted(run(*(patch(put("/a", number)) for number in range(500))), state=start)
    assert result == run(patch(put("/a", 499)))


def test_a_value_copied_over_and_over_costs_no_more_than_its_operations() -> None:
    """A copy makes much of little, so no snapshot is made of it."""
    copies = [patch({"op": "copy", "from": "/a", "path": "/b/-"}) for _ in range(200)]
    start = {"a": "x" * 10_000, "b": []}
    events = run({"type": "STATE_SNAPSHOT", "snapshot": start}, *copies)
    result = compacted(events)
    assert len(json.dumps(result)) < 40_000
    same(events, result)


def test_what_exceeds_the_limits_is_left_for_the_reducer_to_refuse() -> None:
    limits = agui.Limits(nodes=10)
    events = run(
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}},
        patch(put("/a", 2)),
        patch({"op": "add", "path": "/b", "value": list(range(20))}),
        patch(put("/a", 3)),
    )
    reducer = agui.Reducer(limits=limits)
    result = list(agui.compact(events, limits=limits))
    for event in result[:2]:
        reducer.apply(event)
    with pytest.raises(agui.LimitExceeded, match="nodes"):
        reducer.apply(result[2])
    assert reducer.state == {"a": 2}


# --- activities ---------------------------------------------------------------------------------------------------


def activity(**more: Any) -> Wire:
    return {"type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "plan", "content": {"n": 0}, **more}


def advance(*operations: Wire, **more: Any) -> Wire:
    return {"type": "ACTIVITY_DELTA", "messageId": "p", "activityType": "plan", "patch": list(operations), **more}


def test_patches_of_an_activity_become_one() -> None:
    events = run(
        activity(),
        advance(put("/n", 1)),
        *spoken("m", "x"),
        advance(put("/nope", 1), metadata={"tried": True}),
        advance({"op": "add", "path": "/m", "value": 1}, activityType="other", metadata={"done": 1}),
    )
    result = compacted(events)
    assert result[5] == advance(
        put("/n", 1),
        {"op": "add", "path": "/m", "value": 1},
        activityType="other",
        metadata={"tried": True, "done": 1},
    )
    same(events, result)


def test_an_activity_keeps_its_place_among_the_messages() -> None:
    events = run(activity(), *spoken("m", "x"), activity(content={"n": 7}), advance(put("/n", 8)))
    result = compacted(events)
    assert [event["type"] for event in result].count("ACTIVITY_SNAPSHOT") == 2
    same(events, result)


def test_a_result_that_hides_an_activity_hides_only_what_comes_later() -> None:
    """OPEN-12: the result stands behind its call, before the activity, and is what the id finds from then on."""
    events = run(
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        activity(),
        advance(put("/n", 1)),
        advance(put("/n", 2)),
        {"type": "TOOL_CALL_RESULT", "messageId": "p", "toolCallId": "c", "content": "r"},
        advance(put("/n", 3)),
    )
    same(events, compacted(events))


# --- what is kept, and how ------------------------------------------------------------------------------------------


def test_raw_and_custom_events_are_kept_unless_told_otherwise() -> None:
    raw, custom = {"type": "RAW", "event": 1}, {"type": "CUSTOM", "name": "x", "value": None}
    events = run(raw, *spoken("m", "a"), custom)
    assert compacted(events) == events
    assert compacted(events, keep_raw=False) == run(*spoken("m", "a"), custom)
    assert compacted(events, keep_raw=False, keep_custom=False) == run(*spoken("m", "a"))


def test_it_is_lazy() -> None:
    pulled: list[str] = []

    def source() -> Iterator[Wire]:
        for event in run(*spoken("m", "a", "b")):
            pulled.append(event["type"])
            yield event

    result = agui.compact(source())
    assert next(result).type == "RUN_STARTED"
    assert pulled == ["RUN_STARTED"]
    assert [event.type for event in result] == [event["type"] for event in run(*spoken("m", "ab"))][1:]


def test_what_waits_goes_out_before_an_error() -> None:
    events = [*run(*spoken("m", "a", "b"))[:4], {"type": "TEXT_MESSAGE_END", "messageId": "other"}]
    seen: list[Any] = []
    with pytest.raises(agui.ProtocolError, match="STR-2"):
        seen.extend(agui.compact(events))
    assert agui.to_wire(seen[-1])["delta"] == "ab"


def test_a_source_that_fails_is_not_hidden() -> None:
    def source() -> Iterator[Wire]:
        yield from run(*spoken("m", "a", "b"))[:4]
        raise OSError("gone")

    seen: list[Any] = []
    with pytest.raises(OSError, match="gone"):
        seen.extend(agui.compact(source()))
    assert agui.to_wire(seen[-1])["delta"] == "ab"


def test_middleware_and_warnings_are_those_of_conform() -> None:
    warnings: list[Any] = []

    def shout(events: Iterator[Wire]) -> Iterator[Wire]:
        for event in events:
            yield {**event, "delta": event["delta"].upper()} if "delta" in event else event

    events = run(text("m"), say("m", "a", unknown=1), say("m", "b", unknown=1), text_end("m"))
    result = list(agui.compact(events, middleware=[shout], on_warning=warnings.append))
    assert agui.reduce(result).messages[0].content == "AB"
    assert {warning.rule for warning in warnings} == {"PROC-5"}


def test_lenient_streams_replay_leniently() -> None:
    events = [
        STARTED,
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "b"},
        FINISHED,
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "late"},
    ]
    result = compacted(events, policy="lenient")
    before, after = agui.reduce(events, policy="lenient"), agui.reduce(result, policy="lenient")
    assert after.messages == before.messages
    assert after.messages[0].content == "ablate"
