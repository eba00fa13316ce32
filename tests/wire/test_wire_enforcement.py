"""PROC: what is unrecognised is removed by position with a warning, what is malformed is refused, nothing repaired."""

from __future__ import annotations

import copy
import json
from typing import Any

import msgspec
import pytest

from agui_core.errors import DecodeError, ProtocolError
from agui_core.protocol.events import EVENT_TYPES
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire import Decoder, decode, to_wire
from support.events import FINISHED

START = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
RESULT = {"type": "TOOL_CALL_RESULT", "messageId": "m", "toolCallId": "c"}
URL = {"type": "url", "value": "u"}


def snapshot(*messages: Any) -> dict[str, Any]:
    return {"type": "MESSAGES_SNAPSHOT", "messages": list(messages)}


def content(*parts: Any) -> dict[str, Any]:
    return RESULT | {"content": list(parts)}


def delta(*operations: Any) -> dict[str, Any]:
    return {"type": "STATE_DELTA", "delta": list(operations)}


def judge(event: Any) -> tuple[Any, list[ProtocolWarning]]:
    """The event as a wire dict, and the warnings; the same by every way in."""
    found: list[ProtocolWarning] = []
    decoded = decode(json.dumps(event), found.append)
    before = copy.deepcopy(event)
    log = WarningLog()
    from_dict = Decoder(log).to_event(event)
    assert event == before
    assert from_dict == decoded
    assert list(log) == found
    for middle in (Decoder(WarningLog()), Decoder(WarningLog(), policy="lenient")):
        wire = middle.to_dict(event)
        assert wire is not None
        assert middle.enforce(wire) == decoded
    return None if decoded is None else to_wire(decoded), found


FINE = [
    ("EVT-2", START | {"timestamp": -(2**53) + 1, "rawEvent": [None], "metadata": {"k": None}}),
    ("EVT-4", START | {"rawEvent": 0}),
    ("EVT-5", START | {"subagentRunId": ""}),
    ("EVT-6", {"type": "TEXT_MESSAGE_CONTENT", "messageId": "", "delta": ""}),
    ("EVT-9", FINISHED | {"result": {"a": None}}),
    ("EVT-10", {"type": "CUSTOM", "name": "n", "value": None}),
    ("EVT-10", {"type": "RAW", "event": None}),
    ("EVT-10", {"type": "STATE_SNAPSHOT", "snapshot": None}),
    ("EVT-10", delta({"op": "add", "path": "/a", "value": None})),
    ("PATCH-4", delta({"op": "remove", "path": "/a", "value": 1, "x": {}})),
    ("PATCH-7", delta()),
    ("PROC-10", FINISHED | {"outcome": {"type": "cancelled"}}),
    ("TOOL-8", content()),
    ("META-1", START | {"metadata": {"ag-ui": {"x": [1]}}}),
    ("MSGS-8", snapshot()),
    ("ACT-1", {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "a", "content": {}, "replace": False}),
]


@pytest.mark.parametrize(("rule", "event"), FINE)
def test_what_conforms_is_left_as_it_is_without_a_warning(rule: str, event: dict[str, Any]) -> None:
    assert judge(event) == (event, [])


INTERRUPT = {"id": "i", "reason": "r"}
REMOVED = [
    # rule, event, what is left, paths of the warnings
    ("PROC-4", {"type": "NEW_THING", "x": 1}, None, [("PROC-4", "")]),
    ("PROC-5", START | {"a/b~c": 1, "d": 2}, START, [("PROC-5", "/a~1b~0c"), ("PROC-5", "/d")]),
    ("EVT-5", FINISHED | {"subagentRunId": "s"}, FINISHED, [("PROC-5", "/subagentRunId")]),
    ("PROC-6", START | {"role": "narrator"}, START, [("PROC-9", "/role")]),
    ("OPEN-14", START | {"role": "tool"}, START, [("PROC-9", "/role")]),
    ("PROC-10", FINISHED | {"outcome": {"type": "paused", "x": 1}}, FINISHED, [("PROC-9", "/outcome")]),
    (
        "PROC-10",
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": {"type": "handed-off"}},
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s"},
        [("PROC-9", "/outcome")],
    ),
    (
        "PROC-10",
        FINISHED | {"outcome": {"type": "success", "interrupts": [INTERRUPT]}},
        FINISHED | {"outcome": {"type": "success"}},
        [("PROC-5", "/outcome/interrupts")],
    ),
    (
        "PROC-9",
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "span", "entityId": "e", "encryptedValue": "v", "x": 1},
        None,
        [("PROC-9", "")],
    ),
    ("PROC-9", snapshot({"id": "1", "role": "critic"}), snapshot(), [("PROC-9", "/messages/0")]),
    ("PROC-9", content({"type": "hologram"}), content(), [("PROC-9", "/content/0")]),
    (
        "PROC-9",
        content({"type": "image", "source": {"type": "ipfs"}, "y": 1}, {"type": "text", "text": "t"}),
        content({"type": "text", "text": "t"}),
        [("PROC-9", "/content/0")],
    ),
    (
        "PROC-9",
        snapshot({"id": "1", "role": "user", "content": [{"type": "image", "source": URL | {"z": 1}}], "q": 1}),
        snapshot({"id": "1", "role": "user", "content": [{"type": "image", "source": URL}]}),
        [("PROC-5", "/messages/0/content/0/source/z"), ("PROC-5", "/messages/0/q")],
    ),
    (
        "PATCH-3",
        delta({"op": "merge", "path": 3}, {"op": "remove", "path": ""}),
        delta({"op": "remove", "path": ""}),
        [("PATCH-3", "/delta/0")],
    ),
    ("PROC-18", RESULT | {"content": "c", "role": "assistant"}, RESULT | {"content": "c"}, [("PROC-9", "/role")]),
    (
        "PROC-18",
        snapshot(
            {
                "id": "1",
                "role": "assistant",
                "toolCalls": [{"id": "c", "type": "x", "function": {"name": "n", "arguments": ""}}],
            }
        ),
        snapshot({"id": "1", "role": "assistant", "toolCalls": []}),
        [("PROC-9", "/messages/0/toolCalls/0")],
    ),
    ("PROC-18", {"type": "REASONING_MESSAGE_START", "messageId": "m", "role": "assistant"}, None, [("PROC-9", "")]),
    (
        "PROC-5",
        snapshot({"id": "1", "role": "activity", "activityType": "a", "content": {}, "encryptedValue": "v"}),
        snapshot({"id": "1", "role": "activity", "activityType": "a", "content": {}}),
        [("PROC-5", "/messages/0/encryptedValue")],
    ),
    (
        "PROC-9",
        {
            "type": "RUN_STARTED",
            "threadId": "t",
            "runId": "r",
            "input": {
                "threadId": "t",
                "runId": "r",
                "messages": [],
                "resume": [{"interruptId": "i", "status": "later"}],
            },
        },
        {
            "type": "RUN_STARTED",
            "threadId": "t",
            "runId": "r",
            "input": {"threadId": "t", "runId": "r", "messages": [], "resume": []},
        },
        [("PROC-9", "/input/resume/0")],
    ),
    (
        "V11-7",
        snapshot({"id": "1", "role": "reasoning", "content": "", "encryptedValueType": "t"}),
        snapshot({"id": "1", "role": "reasoning", "content": ""}),
        [("PROC-5", "/messages/0/encryptedValueType")],
    ),
]


@pytest.mark.parametrize(("rule", "event", "left", "warnings"), REMOVED)
def test_unrecognised_is_removed(rule: str, event: Any, left: Any, warnings: list[tuple[str, str]]) -> None:
    kept, found = judge(event)
    assert kept == left
    assert [(warning.rule, warning.path) for warning in found] == warnings
    assert all(warning.type == event["type"] for warning in found)


MALFORMED = [
    # rule of the refusal, event, a piece of its text
    ("PROC-10a", {}, "`type`"),
    ("PROC-10a", {"type": None}, "`/type`"),
    ("PROC-10a", {"type": ["RUN_STARTED"]}, "an array"),
    ("PROC-7", START | {"messageId": 12}, "`/messageId` must be a string, but is the number 12"),
    ("PROC-7", {"type": "TEXT_MESSAGE_START"}, "`/messageId` is missing"),
    ("PROC-7", {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": None}, "`/delta`"),
    ("PROC-7", START | {"name": None}, "null"),
    ("PROC-7", START | {"role": 3}, "`/role`"),
    ("PROC-7", START | {"role": None}, "`/role`"),
    ("EVT-3", START | {"timestamp": 1.5}, "`/timestamp`"),
    ("EVT-3", START | {"timestamp": True}, "true"),
    ("EVT-3", START | {"timestamp": "1"}, "the string '1'"),
    ("EVT-3", START | {"timestamp": 2**53}, "from -9007199254740991 to 9007199254740991"),
    ("META-1", START | {"metadata": None}, "`/metadata`"),
    ("META-1", START | {"metadata": []}, "an array"),
    ("META-1", snapshot({"id": "1", "role": "reasoning", "content": "", "metadata": None}), "`/messages/0/metadata`"),
    ("PROC-7", FINISHED | {"usage": {}}, "`/usage`"),
    ("PROC-7", FINISHED | {"usage": [{"inputTokens": -1}]}, "`/usage/0/inputTokens`"),
    ("PROC-7", FINISHED | {"usage": [{"inputTokens": True}]}, "`/usage/0/inputTokens`"),
    ("PROC-7", FINISHED | {"outcome": "success"}, "`/outcome`"),
    ("PROC-10a", FINISHED | {"outcome": {}}, "`/outcome`"),
    ("PROC-10a", FINISHED | {"outcome": {"type": 7}}, "`/outcome/type`"),
    ("INT-1", FINISHED | {"outcome": {"type": "interrupt", "interrupts": []}}, "`/outcome/interrupts`"),
    ("PROC-7", FINISHED | {"outcome": {"type": "interrupt"}}, "`/outcome/interrupts` is missing"),
    (
        "PROC-7",
        FINISHED | {"outcome": {"type": "success", "pendingToolCallIds": [1]}},
        "`/outcome/pendingToolCallIds/0`",
    ),
    ("PROC-7", {"type": "REASONING_ENCRYPTED_VALUE", "subtype": 1, "entityId": "e", "encryptedValue": "v"}, "/subtype"),
    ("PROC-7", {"type": "REASONING_ENCRYPTED_VALUE", "entityId": "e", "encryptedValue": "v"}, "`/subtype` is missing"),
    (
        "PROC-17",
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "x", "entityId": 1, "encryptedValue": "v"},
        "/entityId",
    ),
    ("PROC-10a", snapshot({"id": "1"}), "`role`"),
    ("PROC-10a", snapshot({"id": "1", "role": 5}), "`/messages/0/role`"),
    ("PROC-7", snapshot({"role": "user", "content": ""}), "`/messages/0/id` is missing"),
    ("PROC-7", snapshot(42), "`/messages/0`"),
    ("PROC-10a", content({"text": "t"}), "`type`"),
    ("PROC-7", content({"type": "image"}), "`/content/0/source` is missing"),
    ("PROC-7", content({"type": "image", "source": {"type": "data", "value": ""}}), "`/content/0/source/mimeType`"),
    ("PROC-10a", content({"type": "image", "source": {"value": ""}}), "`/content/0/source`"),
    ("TOOL-8", RESULT | {"content": {}}, "a string or an array of content parts"),
    ("PATCH-2", {"type": "STATE_DELTA", "delta": {}}, "`/delta`"),
    ("PATCH-2", delta(1), "`/delta/0`"),
    ("PROC-10a", delta({"path": ""}), "`op`"),
    ("PROC-10a", delta({"op": 1, "path": ""}), "`/delta/0/op`"),
    ("PATCH-2", delta({"op": "remove"}), "lacks its `path`"),
    ("PATCH-2", delta({"op": "add", "path": ""}), "lacks its `value`"),
    ("PATCH-2", delta({"op": "move", "path": ""}), "lacks its `from`"),
    ("PATCH-2", delta({"op": "copy", "from": "a", "path": ""}), "`/delta/0/from`"),
    ("PATCH-2", delta({"op": "remove", "path": "a/b"}), "JSON Pointer"),
    ("PATCH-2", delta({"op": "remove", "path": "/a~2"}), "`/delta/0/path`"),
    ("PATCH-2", delta({"op": "remove", "path": None}), "null"),
    ("PROC-7", {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "a", "content": []}, "`/content`"),
    (
        "PROC-7",
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "m", "activityType": "a", "content": {}, "replace": 1},
        "/replace",
    ),
    ("PROC-12", {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": 1}, "`/role`"),
    ("PROC-7", {"type": "CUSTOM", "name": "n"}, "`/value` is missing"),
    ("VER-3", {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": 1}, "`/protocolVersion`"),
]
GENERAL = {"PROC-12", "PROC-17", "TOOL-8", "VER-3"}


@pytest.mark.parametrize(("rule", "event", "words"), MALFORMED)
def test_malformed_is_refused(rule: str, event: dict[str, Any], words: str) -> None:
    for way_in in (json.dumps(event).encode(), event):
        with pytest.raises(ProtocolError) as caught:
            Decoder().to_event(way_in, 7)
        error = caught.value
        assert error.rule == ("PROC-7" if rule in GENERAL else rule)
        assert words in str(error)
        assert error.index == 7
        assert error.type in (None, event.get("type"))


@pytest.mark.parametrize(("rule", "event", "words"), MALFORMED)
def test_malformed_is_skipped_under_lenient(rule: str, event: dict[str, Any], words: str) -> None:
    log = WarningLog()
    decoded = Decoder(log, policy="lenient").to_event(event, 7)
    (warning, *more) = log
    assert warning.index == 7
    if "null" in words or warning.rule == "EVT-8":
        return
    if type(event.get("timestamp")) is float:
        assert to_wire(decoded) == {name: value for name, value in event.items() if name != "timestamp"}  # type: ignore[arg-type]
        return
    assert not more
    if event.get("type") == "STATE_DELTA" and isinstance(event["delta"], list):
        assert to_wire(decoded) == delta()  # type: ignore[arg-type]
        assert warning.path == "/delta"
    else:
        assert decoded is None
        assert words in str(warning)


def test_lenient_takes_nulls_in_optional_fields_for_absent() -> None:
    event = snapshot({"id": "1", "role": "assistant", "content": None, "toolCalls": None, "metadata": None})
    log = WarningLog()
    decoded = Decoder(log, policy="lenient").to_event(event | {"timestamp": None})
    assert to_wire(decoded) == snapshot({"id": "1", "role": "assistant"})  # type: ignore[arg-type]
    assert [(warning.rule, warning.path) for warning in log] == [
        ("EVT-8", "/messages/0/content"),
        ("EVT-8", "/messages/0/toolCalls"),
        ("EVT-8", "/messages/0/metadata"),
        ("EVT-8", "/timestamp"),
    ]


@pytest.mark.parametrize(("number", "kept"), [("1.0", 1), ("1e3", 1000), ("-0.0", 0)])
def test_a_number_with_zero_fraction_is_an_integer(number: str, kept: int) -> None:
    warned: list[ProtocolWarning] = []
    text = f'{{"type":"TEXT_MESSAGE_END","messageId":"m","timestamp":{number}}}'
    event = decode(text, warned.append)
    assert type(event.timestamp) is int  # type: ignore[union-attr]
    assert event.timestamp == kept  # type: ignore[union-attr]
    assert warned == []


NO_EVENT = [b"", b" ", b"nonsense", b"{", b"[]", b"3", b"null", b'"x"', b'{"type":"RAW","event":NaN}', b"{} {}",
            b'{"type":"RAW","event":"\xff"}', b'{"type":"RAW","event":"\xed\xa0\xbd"}', b'{"type":"\x01"}',
            b"\xef\xbb\xbf{}", b'{"type":"RAW","event":"\\ud83d"', b'{"a":01}', b"\xff\xfe{\x00}\x00"]  # fmt: skip


@pytest.mark.parametrize("payload", NO_EVENT)
def test_what_is_no_json_object_is_no_event(payload: bytes) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(payload)
    assert caught.value.rule == "SSE-8"
    log = WarningLog()
    assert Decoder(log, policy="lenient").decode_one(payload, 3) is None
    assert [(warning.rule, warning.index) for warning in log] == [("SSE-8", 3)]


def test_every_event_type_is_in_the_table() -> None:
    for kind, struct in EVENT_TYPES.items():
        with pytest.raises(ProtocolError, match="timestamp"):
            decode(json.dumps({"type": kind, "timestamp": "x"}))
        names = {field.encode_name for field in msgspec.structs.fields(struct)}
        known: list[ProtocolWarning] = []
        log = Decoder(WarningLog(listener=known.append), policy="lenient")
        log.to_event({"type": kind, "surplus": 1} | dict.fromkeys(names))
        assert not any(warning.path.removeprefix("/") in names and warning.rule == "PROC-5" for warning in known)


@pytest.mark.parametrize("payload", [3, None, [], object()])
def test_what_is_no_event_at_all_is_no_json_object_either(payload: object) -> None:
    with pytest.raises(DecodeError, match="struct, a dict, JSON text"):
        Decoder().to_event(payload)
