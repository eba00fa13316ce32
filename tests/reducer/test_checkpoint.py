"""Checkpoints: what they hold, what they cost, and what they refuse."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import msgspec
import pytest

import agui_core as agui
from support.events import FINISHED, STARTED, called, result, snapshot, spoken

Wire = dict[str, Any]

HEADER = struct.Struct(">8sHIQI")


def fed(*events: Wire, **options: Any) -> agui.Reducer:
    reducer = agui.Reducer(**options)
    for event in events:
        reducer.apply(event)
    return reducer


def body_of(data: bytes) -> dict[str, Any]:
    body: dict[str, Any] = msgspec.msgpack.decode(data[HEADER.size :])
    return body


def framed(body: Any, version: int = 1) -> bytes:
    packed = msgspec.msgpack.encode(body)
    return HEADER.pack(b"AGUICKPT", version, zlib.crc32(packed, 0), len(packed), 0) + packed


# --- what is held ---------------------------------------------------------------------------------------------------


def test_extra_rides_along() -> None:
    reducer = fed(STARTED)
    assert reducer.extra == b""
    base = reducer.checkpoint(extra=b"\x00mine")
    assert agui.Reducer.restore(base).extra == b"\x00mine"
    assert agui.Reducer.restore(base, reducer.checkpoint(since=1, extra=b"later")).extra == b"later"
    assert agui.Reducer.restore(base, reducer.checkpoint(since=1)).extra == b""


def test_extra_is_bytes() -> None:
    with pytest.raises(TypeError, match="extra is bytes, not str"):
        agui.Reducer().checkpoint(extra="text")  # type: ignore[arg-type]


def test_integers_beyond_64_bits_survive() -> None:
    big = 10**30
    events = [
        STARTED,
        {"type": "STATE_SNAPSHOT", "snapshot": {"n": big, "f": 1.0, "z": -0.0}},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "metadata": {"n": -big}},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "x", "content": {"n": big}},
        {**FINISHED, "result": {"n": big}},
    ]
    restored = agui.Reducer.restore(fed(*events).checkpoint())
    assert agui.encode(restored.messages) == agui.encode(fed(*events).messages)
    assert repr(restored.state) == repr({"n": big, "f": 1.0, "z": -0.0})
    assert restored.run.result == {"n": big}


def test_half_a_character_and_half_an_event_survive() -> None:
    reducer = fed(STARTED, *spoken("m", end=False))
    reducer.apply(b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\\ud83d"}')
    event = b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\\ude00\xc3'
    reducer.apply_sse(event)
    restored = agui.Reducer.restore(reducer.checkpoint())
    restored.apply_sse(b'\xa9"}\n\n')
    assert restored.messages[0].content == "\N{GRINNING FACE}é"


def test_growing_arguments_are_read_on() -> None:
    reducer = fed(STARTED, *called("c", '{"a": [1, "x', end=False))
    assert reducer.tool_calls["c"].args == {"a": [1, "x"]}
    restored = agui.Reducer.restore(reducer.checkpoint())
    assert restored.tool_calls["c"].args == {"a": [1, "x"]}
    for event in called("c", 'y"]}')[1:]:
        restored.apply(event)
    assert restored.tool_calls["c"].valid
    assert restored.tool_calls["c"].args == {"a": [1, "xy"]}


def test_arguments_that_lost_half_a_character_stay_invalid() -> None:
    reducer = fed(STARTED, *called("c", '"\ud83d', '"'))
    assert not reducer.tool_calls["c"].valid
    assert not agui.Reducer.restore(reducer.checkpoint()).tool_calls["c"].valid


def test_a_refusal_stays() -> None:
    reducer = fed(STARTED)
    with pytest.raises(agui.ProtocolError):
        reducer.apply({"type": "TEXT_MESSAGE_END", "messageId": "m"})
    restored = agui.Reducer.restore(reducer.checkpoint())
    assert restored.status == "rejected"
    with pytest.raises(agui.ProtocolError) as caught:
        restored.apply(STARTED)
    assert (str(caught.value), caught.value.rule, caught.value.ids) == (
        str(reducer.error),
        "STR-2",
        ("m",),
    )


def test_limits_and_what_is_left_of_them_stay() -> None:
    reducer = fed(STARTED, *spoken("m", "x" * 900, end=False), limits=agui.Limits(item_characters=1_000))
    restored = agui.Reducer.restore(reducer.checkpoint())
    with pytest.raises(agui.LimitExceeded, match="item_characters"):
        restored.apply(spoken("m", "y" * 200)[1])
    roomy = agui.Reducer.restore(reducer.checkpoint(), limits=agui.Limits())
    roomy.apply(spoken("m", "y" * 200)[1])
    assert len(roomy.messages[0].content) == 1_100


def test_tighter_limits_count_from_the_next_event() -> None:
    reducer = fed(STARTED, *spoken("m", "x" * 900, end=False))
    tight = agui.Reducer.restore(reducer.checkpoint(), limits=agui.Limits(item_characters=1_000))
    with pytest.raises(agui.LimitExceeded, match="item_characters"):
        tight.apply(agui.encode(agui.events.TextMessageContentEvent(message_id="m", delta="y" * 200)))


def test_observers_and_middleware_are_given_anew() -> None:
    def shout(events: Any) -> Any:
        for event in events:
            yield {**event, "delta": event["delta"].upper()} if "delta" in event else event

    seen: list[Any] = []
    data = fed(STARTED, *spoken("m", end=False)).checkpoint()
    restored = agui.Reducer.restore(data, on_event=seen.append, middleware=[shout])
    restored.apply(spoken("m", "a")[1])
    assert restored.messages[0].content == "A"
    assert [event.type for event in seen] == ["TEXT_MESSAGE_CONTENT"]


def test_warnings_are_held_with_their_counts() -> None:
    reducer = fed(*[{**event, "more": 1} for event in (STARTED, *spoken("m", "a", "b", "c"))])
    restored = agui.Reducer.restore(reducer.checkpoint())
    assert restored.warnings == reducer.warnings
    assert max(warning.count for warning in restored.warnings) == 3


def test_the_order_of_calls_and_the_first_result_stay() -> None:
    """The call made last stands in the first message; the result that came first stands last."""
    reducer = fed(
        STARTED,
        result("late", id="r1"),
        *spoken("m1"),
        *spoken("m2"),
        *called("early", parentMessageId="m2"),
        *called("late", parentMessageId="m1"),
        result("late", id="r2"),
    )
    restored = agui.Reducer.restore(reducer.checkpoint())
    for one in (reducer, restored):
        assert list(one.tool_calls) == ["early", "late"]
        assert one.tool_calls["late"].result is not None
        assert one.tool_calls["late"].result.id == "r1"
    assert restored.messages == reducer.messages


def test_an_item_dropped_by_a_snapshot_does_not_take_a_strangers_message() -> None:
    """OPEN-6: its next text makes its message again, whoever has the id meanwhile."""
    reducer = fed(
        STARTED,
        *spoken("m", "a", end=False),
        snapshot(),
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "x", "content": {}},
    )
    restored = agui.Reducer.restore(reducer.checkpoint())
    for one in (reducer, restored):
        one.apply(spoken("m", "b")[1])
    assert restored.messages == reducer.messages
    assert len(restored.messages) == 2


def test_changes_go_on_over_a_restart() -> None:
    reducer = fed(STARTED, *spoken("a", "x"), *spoken("b", "x"))
    version = reducer.version
    restored = agui.Reducer.restore(reducer.checkpoint())
    assert restored.version == version
    assert not restored.changes(version)
    for event in spoken("a", "y"):
        restored.apply(event)
    assert restored.changes(version).changed == ("a",)
    assert restored.changes(0).added == ("b", "a")


def test_a_checkpoint_changes_nothing_and_says_the_same_again() -> None:
    reducer = fed(STARTED, *spoken("m", "a", end=False), {"type": "STATE_SNAPSHOT", "snapshot": [1]})
    first = reducer.messages
    data = reducer.checkpoint()
    assert reducer.messages is first
    assert reducer.checkpoint() == data
    assert agui.Reducer.restore(data).checkpoint() == data


# --- increments -----------------------------------------------------------------------------------------------------


def long_one(messages: int = 500) -> agui.Reducer:
    reducer = fed(STARTED)
    for number in range(messages):
        for event in (
            *spoken(f"m{number}", "words " * 20),
            *called(f"c{number}", '{"a": 1}'),
            result(f"c{number}", id=f"r{number}"),
        ):
            reducer.apply(event)
    reducer.apply({"type": "STATE_SNAPSHOT", "snapshot": list(range(10_000))})
    return reducer


def test_an_increment_costs_what_changed() -> None:
    reducer = long_one()
    whole, version = reducer.checkpoint(), reducer.version
    for event in (*spoken("new", "short"), *called("c", "{}"), result("c", id="r")):
        reducer.apply(event)
    increment = reducer.checkpoint(since=version)
    assert len(increment) < len(whole) / 100
    restored = agui.Reducer.restore(whole, increment)
    assert restored.messages == reducer.messages
    assert restored.run == reducer.run


def test_an_increment_after_a_snapshot_holds_only_the_messages_that_changed() -> None:
    reducer = long_one()
    whole, version = reducer.checkpoint(), reducer.version
    messages = agui.to_wire(reducer.messages)
    messages[700]["content"] = "another"
    del messages[3]
    reducer.apply(snapshot(*messages, {"id": "last", "role": "user", "content": "x"}))
    increment = reducer.checkpoint(since=version)
    assert len(increment) < len(whole) / 5
    restored = agui.Reducer.restore(whole, increment)
    assert restored.messages == reducer.messages
    assert restored.changes(version) == reducer.changes(version)


def test_an_increment_of_a_new_run_does_not_hold_the_earlier_ones() -> None:
    reducer = long_one()
    version = reducer.version
    whole = reducer.checkpoint()
    reducer.apply(FINISHED)
    reducer.apply({**STARTED, "runId": "second"})
    increment = reducer.checkpoint(since=version)
    assert len(increment) < 2_000
    assert agui.Reducer.restore(whole, increment).run == reducer.run


def test_results_find_their_place_in_an_increment() -> None:
    reducer = fed(STARTED, *called("a"), *spoken("m", "x"), *called("b"), *spoken("n", "x"))
    whole, version = reducer.checkpoint(), reducer.version
    for event in (result("b", id="rb"), result("a", id="ra"), *spoken("o", "x"), result("a", id="ra2")):
        reducer.apply(event)
    restored = agui.Reducer.restore(whole, reducer.checkpoint(since=version))
    assert [message.id for message in restored.messages] == ["a", "ra", "ra2", "m", "b", "rb", "n", "o"]


def test_a_restored_reducer_goes_on_with_increments() -> None:
    reducer = fed(STARTED, *spoken("m", "a", end=False))
    pieces = [reducer.checkpoint()]
    for delta in "bcd":
        reducer = agui.Reducer.restore(*pieces)
        reducer.apply(spoken("m", delta)[1])
        pieces.append(reducer.checkpoint(since=reducer.version - 1))
    assert agui.Reducer.restore(*pieces).messages[0].content == "abcd"


def test_a_copy_goes_its_own_way() -> None:
    reducer = fed(STARTED, *spoken("m", "a", end=False))
    whole, version = reducer.checkpoint(), reducer.version
    twin = reducer.copy()
    for one, delta in ((reducer, "b"), (twin, "c")):
        one.apply(spoken("m", delta)[1])
    for one in (reducer, twin):
        assert agui.Reducer.restore(whole, one.checkpoint(since=version)).messages == one.messages
    reducer.apply(spoken("m", "d")[1])
    own = reducer.checkpoint(since=version + 1)
    with pytest.raises(agui.AGUIError, match="continues another checkpoint"):
        agui.Reducer.restore(whole, twin.checkpoint(since=version), own)


def test_increments_have_to_fit() -> None:
    reducer = fed(STARTED)
    whole = reducer.checkpoint()
    increments = []
    for event in spoken("m", "a"):
        since = reducer.version
        reducer.apply(event)
        increments.append(reducer.checkpoint(since=since))
    assert agui.Reducer.restore(whole, *increments).version == 4
    with pytest.raises(agui.AGUIError, match="increment 1 continues another checkpoint"):
        agui.Reducer.restore(whole, *increments[1:])
    with pytest.raises(agui.AGUIError, match="the first checkpoint is an increment on version 1"):
        agui.Reducer.restore(*increments)
    with pytest.raises(agui.AGUIError, match="increment 1 is a whole checkpoint"):
        agui.Reducer.restore(whole, whole)
    with pytest.raises(agui.AGUIError, match="since=99 is not the version of a checkpoint"):
        reducer.checkpoint(since=99)


# --- what is refused ------------------------------------------------------------------------------------------------


def test_what_is_no_checkpoint() -> None:
    for data in (b"", b"{}", b"data: {}\n\n", b"AGUICKPX" + bytes(40)):
        with pytest.raises(agui.AGUIError, match="is no checkpoint"):
            agui.Reducer.restore(data)


def test_what_is_cut_or_damaged() -> None:
    data = fed(STARTED, *spoken("m", "a")).checkpoint()
    for length in (5, 12, HEADER.size, len(data) - 1):
        with pytest.raises(agui.AGUIError, match="is cut short"):
            agui.Reducer.restore(data[:length])
    with pytest.raises(agui.AGUIError, match="is damaged"):
        agui.Reducer.restore(data + b"x")
    with pytest.raises(agui.AGUIError, match="is damaged"):
        agui.Reducer.restore(data[:-3] + b"xyz")


def test_a_newer_format_is_named() -> None:
    newer = framed(body_of(fed(STARTED).checkpoint()), version=2)
    with pytest.raises(agui.AGUIError, match="has format 2, and this version of agui_core reads formats up to 1"):
        agui.Reducer.restore(newer)


def test_the_frame_is_as_documented_here() -> None:
    data = fed(STARTED).checkpoint()
    assert agui.Reducer.restore(framed(body_of(data))).status == "running"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("settings", 0), "generous"),
        (("run", 0), "dancing"),
        (("run", 1), b"{"),
        (("sequence", 0), "sideways"),
        (("state",), b"[1,"),
        (("state",), b"[" * 100_000),
        (("counters", 0), 77),
        (("conversation", 0, 0, 1), b'{"id":"m","role":"nobody"}'),
        (("conversation", 0, 0, 7), [[1, 1, True, False]]),
        (("conversation", 1), [[1, 1], [1, 1]]),
        (("conversation", 1), [[1, 10**18]]),
        (("conversation", 2), [[9, -1]]),
        (("conversation", 8), 0),
        (("sequence", 4, "message_owners"), {}),
        (("sequence", 7, 0, 2), [1, 0]),
        (("sequence", 10), ["span"]),
        (("sequence", 13), [[None, {"family": "text", "id": "m"}], ["s", {"family": "text", "id": "m"}]]),
    ],
)
def test_what_makes_no_sense_is_refused(path: tuple[Any, ...], value: Any) -> None:
    """A checksum can be made by anybody: what is inside is judged as well."""
    body = body_of(fed(STARTED, *spoken("m", "a", end=False)).checkpoint())
    part: Any = body
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    with pytest.raises(agui.AGUIError, match="is damaged"):
        agui.Reducer.restore(framed(body))


def test_none_is_made_in_the_middle_of_an_event() -> None:
    seen: list[str] = []

    def observe(event: Any) -> None:
        with pytest.raises(agui.AGUIError, match="on_event"):
            reducer.checkpoint()
        seen.append(event.type)

    reducer = agui.Reducer(on_event=observe)
    reducer.apply(STARTED)
    assert seen == ["RUN_STARTED"]
    assert not reducer.warnings


def test_what_is_no_json_cannot_be_held() -> None:
    with pytest.raises(agui.ProtocolError, match=r"`/a` is an? object, which is no JSON value"):
        agui.Reducer(state={"a": object()})
