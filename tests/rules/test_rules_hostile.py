"""Nothing but `AGUIError` escapes, whatever the wire brings; a refused event changes nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from test_rules_processing import EVENTS

import agui_core as agui
from support.folding import canonical

HOSTILE = [
    "null",
    "true",
    "false",
    "0",
    "-1",
    "1.5",
    "-0.0",
    "1e308",
    "9007199254740992",
    "-9223372036854775808",
    "1000000000000000000000000000000",
    '""',
    '"x"',
    '"\\u0000"',
    '"m"',
    '"a"',
    '"c"',
    '"/"',
    '"~"',
    '"/-"',
    '"/a~2"',
    '"\\ud83d"',
    '"\\ude00x"',
    '"\\ud83d\\ude00"',
    '"TEXT_MESSAGE_START"',
    "[]",
    "{}",
    "[[]]",
    "[null]",
    '{"":null}',
    '{"type":"text"}',
    '{"type":5}',
    '{"role":"user"}',
    '{"op":"add","path":"","value":1}',
    '[{"op":"add","path":"","value":{}}]',
    '[{"op":"copy","from":"","path":"/x"}]',
    '[{"op":"move","from":"/x","path":"/x/y"}]',
    '[{"op":"test","path":"/0","value":[]}]',
    '[{"id":"a","role":"activity","activityType":"","content":{}}]',
    '[{"id":"m","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"","arguments":"{"}}]}]',
    '{"a":{"b":{"c":[1,{"d":null}]}}}',
    '{"type":"interrupt","interrupts":[{}]}',
    '{"type":"success","pendingToolCallIds":[""]}',
    '{"threadId":"","runId":"","messages":[{"id":"m","role":"user","content":[{"type":"binary","mimeType":""}]}]}',
]
"""JSON texts that may stand anywhere."""
FIELDS = [
    *[
        "type",
        "timestamp",
        "rawEvent",
        "metadata",
        "subagentRunId",
        "messageId",
        "toolCallId",
        "toolCallName",
        "delta",
        "role",
    ],
    *[
        "parentMessageId",
        "content",
        "snapshot",
        "messages",
        "patch",
        "activityType",
        "replace",
        "outcome",
        "result",
        "usage",
    ],
    *["input", "value", "event", "name", "entityId", "subtype", "encryptedValue", "stepName", "surprise", "", "title"],
]
POOL = [wire for stream, _, _ in EVENTS.values() for wire in stream]
POOL += [
    {"type": f"THINKING_{kind}", "delta": "x"}
    for kind in ("START", "END", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT")
]


def mutated(random_: random.Random, wire: dict[str, Any]) -> Any:
    """The event with up to three of its members gone, changed or added, at any depth."""
    wire = json.loads(json.dumps(wire))
    for _ in range(random_.randrange(4)):
        target: Any = wire
        while True:
            inner = [
                value
                for value in (target.values() if isinstance(target, dict) else target)
                if isinstance(value, dict | list)
            ]
            if not inner or random_.random() < 0.5:
                break
            target = random_.choice(inner)
        value = json.loads(random_.choice(HOSTILE))
        if isinstance(target, list):
            target.insert(random_.randint(0, len(target)), value)
        elif target and random_.random() < 0.5:
            name = random_.choice(list(target))
            if random_.random() < 0.3:
                del target[name]
            else:
                target[name] = value
        else:
            target[random_.choice(FIELDS)] = value
    return wire


def feed(reducer: agui.Reducer, wire: Any, way: int) -> None:
    if way == 0:
        reducer.apply(wire)
    elif way == 1:
        reducer.apply(json.dumps(wire).encode())
    elif way == 2:
        reducer.apply_sse(b"data: " + json.dumps(wire).encode() + b"\n\n")
    else:
        reducer.apply_lines(json.dumps(wire).encode() + b"\n")


@pytest.mark.parametrize("policy", ["strict", "lenient"])
@pytest.mark.parametrize("seed", range(20))
def test_mutated_events_raise_only_our_errors(seed: int, policy: Any) -> None:
    random_ = random.Random(seed)
    for _ in range(8):
        reducer = agui.Reducer(policy=policy, on_event=agui.encode)
        stream = [POOL[0], *(mutated(random_, random_.choice(POOL)) for _ in range(12))]
        way = random_.randrange(4)
        before = ""
        for wire in stream:
            error = refusal(lambda: feed(reducer, wire, way))  # noqa: B023
            if error is not None:
                assert str(error)
                assert shown(reducer) == before
                break
            before = shown(reducer)
        assert not any(warning.rule == "OBSERVER" for warning in reducer.warnings)
        assert all(str(warning) for warning in reducer.warnings)
        for view in reducer.tool_calls.values():
            assert [view.args, view.valid, view.error, view.result, view.metadata]
        reducer.copy().end()
        reducer.end()


def refusal(action: Callable[[], object]) -> agui.AGUIError | None:
    """What the action was refused with; other exceptions pass."""
    try:
        action()
    except agui.AGUIError as error:
        return error
    return None


def shown(reducer: agui.Reducer) -> str:
    """All that a reader sees; it can be encoded, which no lone surrogate could."""
    agui.encode(reducer.messages)
    return canonical([agui.to_wire(reducer.messages), reducer.state, list(reducer.tool_calls)])


JSON_THAT_PYTHON_WRITES = ["NaN", "Infinity", "-Infinity", "1e400", "-1e999", "1" * 300, "0." + "1" * 5_000]


@pytest.mark.parametrize("number", JSON_THAT_PYTHON_WRITES)
def test_numbers_that_are_none(number: str) -> None:
    """A number outside the range of a double is malformed; an integer of any size is kept."""
    for place in (
        '{"type":"STATE_SNAPSHOT","snapshot":%s}',
        '{"type":"CUSTOM","name":"x","value":[%s]}',
        '{"type":"RAW","event":1,"timestamp":%s}',
    ):
        data = (place % number).encode()
        for name, frame in (("apply", b"%s"), ("apply_sse", b"data:%s\n\n"), ("apply_lines", b"%s\n")):
            reducer = agui.Reducer()
            reducer.apply(POOL[0])
            kept = number.isdigit() or number.startswith("0.")
            if kept and "timestamp" not in place:
                getattr(reducer, name)(frame % data)
                agui.encode(reducer.state)
            else:
                with pytest.raises(agui.AGUIError) as refusal:
                    getattr(reducer, name)(frame % data)
                assert isinstance(refusal.value, agui.DecodeError | agui.ProtocolError)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_are_none_in_dicts(value: float) -> None:
    for wire in (
        {"type": "STATE_SNAPSHOT", "snapshot": {"a": [value]}},
        {"type": "CUSTOM", "name": "x", "value": value},
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": value}]},
        {"type": "TEXT_MESSAGE_START", "messageId": "m", "metadata": {"a": value}},
        {"type": "RAW", "event": 1, "timestamp": value},
    ):
        reducer = agui.Reducer()
        reducer.apply(POOL[0])
        with pytest.raises(agui.ProtocolError):
            reducer.apply(wire)


def test_a_number_that_python_hardly_reads() -> None:
    for data in (
        b'{"type":"RAW","event":' + b"1" * 100_000 + b"}",
        b'{"type":"RAW","event":1,"x":' + b"1" * 100_000 + b"}",
    ):
        reducer = agui.Reducer()
        reducer.apply(POOL[0])
        refusal(lambda: reducer.apply(data))  # noqa: B023
        assert reducer.status in ("running", "rejected")


def test_integers_of_any_size_are_kept() -> None:
    reducer = agui.Reducer()
    big = 10**50
    for wire in (POOL[0], {"type": "STATE_SNAPSHOT", "snapshot": [big, -big, 2**64]}):
        reducer.apply(json.dumps(wire))
    assert reducer.state == [big, -big, 2**64]


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":"TEXT_MESSAGE_START","type":"RAW","messageId":"m"}',
        b'{"type":"RAW","event":"\\ud83d"}',
        b'{"type":"STATE_SNAPSHOT","snapshot":{"\\ude00":"\\ud83d"}}',
        b'{"type":"TEXT_MESSAGE_START","messageId":"\\ud83d"}',
        b'{"type":"CUSTOM","name":"x","value":1,"\\ud83d":1}',
        b'{"type":"\\ud83d"}',
        b'\xef\xbb\xbf{"type":"RAW","event":1}',
        b'{"type":"RAW","event":"\x00"}',
        b'{"type":"RAW","event":"\xed\xa0\xbd"}',
        b'{"type":"RAW","event":1}\x00',
        b'{"type":"RAW","event":01}',
        b'{"type":"RAW","event":1,}',
        b"{'type':'RAW','event':1}",
        '{"type":"RAW","event":1}'.encode("utf-16"),
        b"",
        b" ",
    ],
)
def test_odd_payloads_raise_only_our_errors(payload: bytes) -> None:
    for policy in ("strict", "lenient"):
        for name, frame in (("apply", b"%s"), ("apply_sse", b"data:%s\n\n"), ("apply_lines", b"%s\n")):
            reducer = agui.Reducer(policy=policy)  # type: ignore[arg-type]
            reducer.apply(POOL[0])
            error = refusal(lambda: getattr(reducer, name)(frame % payload))  # noqa: B023
            assert policy == "strict" or error is None, error
            shown(reducer)
            assert all(str(warning).encode() for warning in reducer.warnings)


def test_a_str_that_no_bytes_can_hold() -> None:
    for payload in ('{"type":"RAW","event":"' + chr(0xD83D) + '"}', chr(0xDE00), '{"type":"NEW' + chr(0xD83D) + '"}'):
        for policy in ("strict", "lenient"):
            reducer = agui.Reducer(policy=policy)  # type: ignore[arg-type]
            reducer.apply(POOL[0])
            error = refusal(lambda: reducer.apply(payload))  # noqa: B023
            assert policy == "strict" or error is None, error
            str(error).encode()
