"""Decoding: many payloads at once equal one by one, bad ones stop nothing before them, nothing else ever escapes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_core.errors import AGUIError, DecodeError, LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol.events import Event, RunFinishedEvent, StateSnapshotEvent, TextMessageContentEvent
from agui_core.protocol.messages import Message, UserMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire import Decoder, JSONLinesReader, check_nesting, cut, decode, encode, to_wire
from support.properties import examples

TEXT = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}
GOOD = json.dumps(TEXT).encode()
SURPLUS = json.dumps(TEXT | {"seq": 1, "runtime": "r"}).encode()
UNKNOWN = b'{"type":"NOVEL"}'
MALFORMED = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":1,"delta":"x"}'
HALF = b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\\ud83d"}'
RETIRED = b'{"type":"THINKING_START"}'
FINISHED = b'{"type":"RUN_FINISHED","threadId":"t","runId":"r","result":null,"seq":1}'


def one_by_one(payloads: list[bytes], policy: Any) -> tuple[list[Any], list[Any], str | None]:
    log = WarningLog()
    decoder = Decoder(log, policy=policy)
    events: list[Any] = []
    try:
        for index, payload in enumerate(payloads):
            event = decoder.decode_one(payload, index)
            if event is not None:
                events.append((index, event))
    except AGUIError as error:
        return events, list(log), str(error)
    return events, list(log), None


def whole(event: Any) -> Any:
    """The event of what a batch holds, which may be content in its plain form."""
    return event.full() if hasattr(event, "full") else event


def batched(
    payloads: list[bytes], sizes: list[int], policy: Any, limits: Limits | None = None
) -> tuple[list[Any], list[Any], str | None]:
    log = WarningLog()
    decoder = Decoder(log, policy=policy, limits=limits)
    events: list[Any] = []
    index = 0
    try:
        for size in sizes:
            for first, found in decoder.decode_batch(payloads[index : index + size], index):
                events += enumerate(map(whole, found), first)
            index += size
    except AGUIError as error:
        return events, list(log), str(error)
    return events, list(log), None


payload = st.sampled_from([GOOD, GOOD, SURPLUS, SURPLUS, UNKNOWN, HALF, RETIRED, FINISHED, MALFORMED, b"[", b"{} {}"])


@examples(150)
@given(
    st.lists(payload, max_size=60),
    st.lists(st.integers(1, 30), max_size=60),
    st.sampled_from(["strict", "lenient"]),
)
def test_a_batch_is_the_same_as_one_by_one(payloads: list[bytes], sizes: list[int], policy: str) -> None:
    assert batched(payloads, [*sizes, len(payloads)], policy) == one_by_one(payloads, policy)


def test_most_payloads_with_surplus_members_and_a_bad_one_late() -> None:
    payloads = [SURPLUS] * 50 + [FINISHED, UNKNOWN, GOOD, HALF] + [SURPLUS] * 20 + [MALFORMED] + [SURPLUS] * 5
    for sizes in ([100], [30, 30, 30], [1] * 100):
        assert batched(payloads, sizes, "strict") == one_by_one(payloads, "strict")
        assert batched(payloads, sizes, "lenient") == one_by_one(payloads, "lenient")


def test_who_refuses_an_event_gets_the_warnings_up_to_it() -> None:
    def refused_at(stop: int, size: int) -> list[ProtocolWarning]:
        log = WarningLog()
        decoder = Decoder(log)
        payloads = [SURPLUS] * 60
        for start in range(0, 60, size):
            for first, events in decoder.decode_batch(payloads[start : start + size], start):
                for index, _ in enumerate(events, first):
                    if index == stop:
                        log.settle(index)
                        return list(log)
        raise AssertionError

    for stop in (0, 3, 20, 41, 59):
        (seq, runtime) = refused_at(stop, 60)
        assert seq.count == runtime.count == stop + 1
        assert refused_at(stop, 20) == refused_at(stop, 1) == [seq, runtime]


def test_a_dropped_event_counts_in_the_index() -> None:
    found = list(Decoder().decode_batch([GOOD, UNKNOWN, UNKNOWN, GOOD, GOOD, UNKNOWN], 10))
    assert [(first, len(events)) for first, events in found] == [(10, 1), (13, 2), (16, 0)]


CLOSING = [
    # what one payload leaves open, the next closes
    [b'{"type":"CUSTOM","name":"n","value":[{}', b"{}]}"],
    [b'{"type":"CUSTOM","name":"n","value":{"a":1', b'"b":2}}'],
    [b'{"type":"CUSTOM","name":"n"', b'"value":1}'],
    [b'{"type":"CUSTOM","name":"n","value":"a', b'b"}'],
    [GOOD + b",1,1," + GOOD, b"1"],
    [GOOD + b"],[" + GOOD],
    [GOOD + b"," + GOOD],
    [b"", GOOD],
    [GOOD, b"100"],
]


@pytest.mark.parametrize("payloads", CLOSING)
def test_neighbours_never_repair_a_payload(payloads: list[bytes]) -> None:
    with pytest.raises(DecodeError):
        list(Decoder().decode_batch(payloads, 0))
    lines = JSONLinesReader().take(b"\n".join([GOOD, *payloads, GOOD, b""]))
    assert lines is not None
    if b"" not in payloads:  # which is a blank line
        with pytest.raises(DecodeError):
            list(Decoder().decode_batch(lines, 0))


def test_blank_lines_count_nowhere() -> None:
    batch = JSONLinesReader().take(b"\n".join([GOOD, b"", b" \r", GOOD, b""]))
    assert batch is not None
    found = [(first, len(events)) for first, events in Decoder().decode_batch(batch, 5)]
    assert found == [(5, 2)]


@examples(300)
@given(
    st.binary(max_size=60) | st.text(max_size=60) | st.sampled_from([GOOD, HALF, UNKNOWN]).map(lambda text: text[:-1])
)
def test_no_payload_raises_anything_else(payload: bytes | str) -> None:
    for policy in ("strict", "lenient"):
        try:
            Decoder(policy=policy).decode_one(payload)  # type: ignore[arg-type]
        except AGUIError:
            assert policy == "strict"


JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=10,
)


@examples(300)
@given(
    st.dictionaries(
        st.sampled_from(["messageId", "delta", "role", "snapshot", "patch", "messages", "metadata", "x"]), JSON
    ),
    st.sampled_from(["TEXT_MESSAGE_CHUNK", "STATE_SNAPSHOT", "STATE_DELTA", "MESSAGES_SNAPSHOT", "CUSTOM"]),
)
def test_a_dict_and_its_json_have_one_verdict(members: dict[str, Any], kind: str) -> None:
    event = members | {"type": kind}

    def verdict(way_in: object) -> object:
        log = WarningLog()
        try:
            decoded = Decoder(log).to_event(way_in)
        except ProtocolError as error:
            return error.rule
        return decoded, list(log)

    try:
        text = json.dumps(event, allow_nan=False)
    except ValueError:
        assert verdict(event) == "PROC-7"
    else:
        assert verdict(event) == verdict(text) == verdict(text.encode())


# Nesting, size, numbers, text


def nested(depth: int) -> Any:
    value: Any = 0
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


OPEN = [
    lambda value: {"type": "STATE_SNAPSHOT", "snapshot": value},
    lambda value: TEXT | {"rawEvent": value},
    lambda value: TEXT | {"surplus": value},
    lambda value: {"type": "CUSTOM", "name": "n", "value": value},
]


@pytest.mark.parametrize("make", OPEN)
def test_limit_nesting(make: Any) -> None:
    for limit in (5, 200):
        limits = Limits(nesting=limit)
        for way_in in (json.dumps, lambda event: event, lambda event: json.dumps(event).encode()):
            assert Decoder(limits=limits).to_event(way_in(make(nested(limit)))) is not None
            for policy in ("strict", "lenient"):
                with pytest.raises(LimitExceeded) as caught:
                    Decoder(limits=limits, policy=policy).to_event(way_in(make(nested(limit + 1))), 4)  # type: ignore[arg-type]
                assert (caught.value.limit, caught.value.index) == ("nesting", 4)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"type":"RAW","event":' * 5000, '{"type":"\\ud83d","a":' * 5000])
def test_limit_nesting_beyond_what_any_decoder_follows(text: str) -> None:
    for payload in (text, text.encode()):
        with pytest.raises((LimitExceeded, DecodeError)):
            decode(payload)
        with pytest.raises((LimitExceeded, DecodeError)):
            list(Decoder().decode_batch([GOOD, payload.encode() if isinstance(payload, str) else payload], 0))


def test_limit_nesting_of_structs_and_messages() -> None:
    check_nesting(StateSnapshotEvent(snapshot=nested(200)), 200)
    with pytest.raises(LimitExceeded):
        check_nesting(StateSnapshotEvent(snapshot=nested(201)), 200)
    with pytest.raises(LimitExceeded):
        Decoder().to_event(StateSnapshotEvent(snapshot=nested(201)))
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(LimitExceeded):
        Decoder().to_event({"type": "CUSTOM", "name": "n", "value": endless})
    with pytest.raises(LimitExceeded):
        Decoder().to_event(StateSnapshotEvent(snapshot=endless))
    with pytest.raises(LimitExceeded):
        Decoder().to_shape({"id": "1", "role": "user", "content": "", "metadata": nested(300)}, Message)


@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_limit_event_bytes(policy: Any) -> None:
    limits = Limits(event_bytes=len(GOOD))
    assert Decoder(limits=limits, policy=policy).decode_one(GOOD) is not None
    for payload in (GOOD + b" ", (GOOD + b" ").decode(), SURPLUS, GOOD.decode().replace('"x"', '"é"')):
        with pytest.raises(LimitExceeded, match="event_bytes") as caught:
            Decoder(limits=limits, policy=policy).decode_one(payload, 2)
        assert (caught.value.limit, caught.value.index) == ("event_bytes", 2)
    good = [GOOD, GOOD]
    assert sum(len(found) for _, found in Decoder(limits=limits, policy=policy).decode_batch(good, 0)) == 2
    assert batched([*good, GOOD + b" "], [3], policy, limits)[0] == one_by_one(good, policy)[0]
    assert "event_bytes" in str(batched([*good, GOOD + b" "], [3], policy, limits)[2])


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
@pytest.mark.parametrize("more", ["", ',"delta":"\\ud83d"'])
def test_numbers_out_of_range_are_malformed(number: str, more: str) -> None:
    text = f'{{"type":"CUSTOM","name":"n","value":{number}{more}}}'
    with pytest.raises(ProtocolError) as caught:
        decode(text)
    assert caught.value.rule == "PROC-7"
    log = WarningLog()
    assert Decoder(log, policy="lenient").decode_one(text) is None
    assert [warning.rule for warning in log] == ["PROC-7"]


def test_integers_of_any_size_are_kept() -> None:
    for number in (2**53 + 1, 2**64, -(10**400)):
        event = decode(json.dumps({"type": "CUSTOM", "name": "n", "value": number}))
        assert event.value == number  # type: ignore[union-attr]
        assert str(number).encode() in encode(event)  # type: ignore[arg-type]


NO_JSON: dict[str, object] = {
    "key": {1: 2},
    "set": {1, 2},
    "object": object(),
    "nan": float("nan"),
    "infinity": float("inf"),
    "huge": 10**5000,
    "bytes": b"x",
}


@pytest.mark.parametrize("name", NO_JSON)
def test_a_dict_that_is_no_json_is_malformed(name: str) -> None:
    value = NO_JSON[name]
    with pytest.raises(ProtocolError) as caught:
        Decoder().to_event({"type": "CUSTOM", "name": "n", "value": {"deep": [value]}})
    assert caught.value.rule == "PROC-7"
    assert "`/value/deep/0" in str(caught.value)


def test_what_was_handed_in_is_not_shared() -> None:
    state = {"a": [1]}
    event = Decoder().to_event({"type": "STATE_SNAPSHOT", "snapshot": state})
    state["a"].append(2)
    assert event == StateSnapshotEvent(snapshot={"a": [1]})


def test_halves_of_pairs_stay_in_deltas_only() -> None:
    for kind in ("TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK", "REASONING_MESSAGE_CONTENT"):
        text = f'{{"type":"{kind}","messageId":"m","delta":"a\\ud83d"}}'
        for way_in in (text, text.encode(), json.loads(text)):
            event = Decoder().to_event(way_in)
            assert event.delta == "a\ud83d"  # type: ignore[union-attr]
    log = WarningLog()
    text = (
        '{"type":"CUSTOM","name":"\\ude00\\ud83d","delta":"\\ud83d",'
        '"value":{"\\ud83d":["\\ud83d\\ude00",{"k":"x\\ud83dy"}]}}'
    )
    event = Decoder(log).to_event(text)
    assert to_wire(event) == {  # type: ignore[arg-type]
        "type": "CUSTOM",
        "name": "\ufffd\ufffd",
        "value": {"\ufffd": ["😀", {"k": "x\ufffdy"}]},
    }
    assert {(warning.rule, warning.path) for warning in log} >= {("SSE-9", "/name"), ("SSE-9", "/value/\ufffd/1/k")}
    assert encode(event).decode()  # type: ignore[arg-type]


def test_a_text_of_python_may_hold_halves_as_well() -> None:
    event = decode('{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"\ud83d"}')
    assert event == TextMessageContentEvent(message_id="m", delta="\ud83d")


# Objects of the official package


def test_models_of_the_official_package_are_read() -> None:
    core = pytest.importorskip("ag_ui.core")
    user = core.UserMessage(id="1", role="user", content="hi")
    run_input = core.RunAgentInput(
        thread_id="t", run_id="r", messages=[user], tools=[], context=[], state={"a": None}, forwarded_props={}
    )
    events = [
        core.RunStartedEvent(thread_id="t", run_id="r", input=run_input),
        core.TextMessageStartEvent(message_id="m", role="assistant"),
        core.TextMessageContentEvent(message_id="m", delta="x", metadata={"k": None}),
        core.CustomEvent(name="n", value=None),
        core.StateSnapshotEvent(snapshot={"a": None}),
        core.StateDeltaEvent(delta=[{"op": "add", "path": "/a", "value": None}]),
        core.MessagesSnapshotEvent(messages=[user]),
        core.RunFinishedEvent(thread_id="t", run_id="r"),
    ]
    for event in events:
        wire = json.loads(event.model_dump_json(by_alias=True, exclude_unset=True)) | {"type": event.type.value}
        log = WarningLog()
        assert Decoder(log).to_event(event) == decode(json.dumps(wire))
        assert list(log) == []
    converted = Decoder().to_shape(run_input, RunAgentInput)
    assert converted.messages == (UserMessage(id="1", content="hi"),)
    assert converted.state == {"a": None}


def test_foreign_surplus_is_stripped() -> None:
    core = pytest.importorskip("ag_ui.core")
    log = WarningLog()
    event = Decoder(log).to_event(core.RunFinishedEvent(thread_id="t", run_id="r", surplus=None))
    assert event == RunFinishedEvent(thread_id="t", run_id="r")
    assert [warning.path for warning in log] == ["/surplus"]


# Shapes


def test_a_message_is_read_from_a_dict_text_bytes_or_struct() -> None:
    message = {"id": "1", "role": "user", "content": "x", "novel": 1}
    log = WarningLog()
    decoder = Decoder(log, policy="lenient")
    made = UserMessage(id="1", content="x")
    for value in (message, json.dumps(message), json.dumps(message).encode(), made):
        assert decoder.to_shape(value, Message) == made
    assert [(warning.rule, warning.path, warning.count) for warning in log] == [("PROC-5", "/novel", 3)]
    for bad, rule in ((message | {"role": "critic"}, "PROC-9"), (message | {"content": 1}, "PROC-7"), ({}, "PROC-10a")):
        with pytest.raises(ProtocolError) as caught:
            decoder.to_shape(bad, Message)
        assert caught.value.rule == rule
    with pytest.raises(DecodeError):
        decoder.to_shape("[]", Message)


def test_a_stream_read_in_slices_costs_no_more_than_its_text() -> None:
    data = b"\n".join([GOOD] * 5000)
    reader, decoder, index = JSONLinesReader(), Decoder(), 0

    def events() -> Iterator[Event]:
        nonlocal index
        for piece in cut(data):
            batch = reader.take(piece)
            if batch is not None:
                for first, found in decoder.decode_batch(batch, index):
                    index = first + len(found)
                    yield from found

    assert sum(1 for _ in events()) == 4999
    last = reader.finish()
    assert last is not None
    assert [len(found) for _, found in decoder.decode_batch(last, index)] == [1]
    assert msgspec.json.decode(last.payloads()[0]) == TEXT
