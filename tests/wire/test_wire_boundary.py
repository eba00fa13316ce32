"""The compatibility boundary: OPEN-20 nulls, OLD-1 retired events, OLD-2 legacy parts."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from agui_core.errors import ProtocolError
from agui_core.protocol.events import RunStartedEvent
from agui_core.protocol.messages import Message
from agui_core.protocol.run import RunAgentInput
from agui_core.warnings import WarningLog
from agui_core.wire import Boundary, Decoder, to_wire
from support.events import FINISHED, STARTED

INPUT = {"threadId": "t", "runId": "r", "messages": []}
IMAGE = {"type": "image", "source": {"type": "url", "value": "u"}}
TOOL = {"name": "n", "description": "d"}
RESUME = {"interruptId": "i", "status": "resolved"}


def run(*events: dict[str, Any], policy: Any = "strict") -> tuple[list[Any], list[tuple[str, str]]]:
    log = WarningLog()
    decoder = Decoder(log, policy=policy)
    decoded = []
    for index, event in enumerate(events):
        decoded.append(decoder.decode_one(json.dumps(event), index))
        if isinstance(decoded[-1], RunStartedEvent):
            decoder.boundary.run_id = decoded[-1].run_id
    wire = [None if event is None else to_wire(event) for event in decoded]
    return wire, [(warning.rule, warning.path) for warning in log]


def user(*parts: Any) -> dict[str, Any]:
    return {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "1", "role": "user", "content": list(parts)}]}


NULLS = [
    ({"type": "TEXT_MESSAGE_END", "messageId": "m"}, {"rawEvent": None}, "/rawEvent"),
    (FINISHED, {"result": None}, "/result"),
    (FINISHED, {"outcome": None}, "/outcome"),
    ({"type": "SUBAGENT_FINISHED", "subagentRunId": "s"}, {"result": None}, "/result"),
    (
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"},
        {"parentMessageId": None},
        "/parentMessageId",
    ),
    ({"type": "TOOL_CALL_CHUNK", "toolCallId": "c"}, {"parentMessageId": None}, "/parentMessageId"),
]


@pytest.mark.parametrize(("event", "null", "path"), NULLS)
def test_open_20_nulls_of_events(event: dict[str, Any], null: dict[str, None], path: str) -> None:
    assert run(event | null) == ([event], [("OPEN-20", path)])


def test_open_20_nulls_inside_events() -> None:
    assert run(user(IMAGE | {"metadata": None})) == ([user(IMAGE)], [("OPEN-20", "/messages/0/content/0/metadata")])
    nulls = INPUT | {
        "forwardedProps": None,
        "tools": [TOOL | {"parameters": None}],
        "resume": [RESUME | {"payload": None}],
        "messages": [{"id": "1", "role": "user", "content": [IMAGE | {"metadata": None}]}],
    }
    clean = INPUT | {
        "tools": [TOOL],
        "resume": [RESUME],
        "messages": [{"id": "1", "role": "user", "content": [IMAGE]}],
    }
    wire, warnings = run(STARTED | {"input": nulls})
    assert wire == [STARTED | {"input": clean}]
    assert sorted(warnings) == [
        ("OPEN-20", "/input/forwardedProps"),
        ("OPEN-20", "/input/messages/0/content/0/metadata"),
        ("OPEN-20", "/input/resume/0/payload"),
        ("OPEN-20", "/input/tools/0/parameters"),
    ]


@pytest.mark.parametrize(
    "event",
    [
        {"type": "SUBAGENT_FINISHED", "subagentRunId": "s", "outcome": None},
        STARTED | {"parentRunId": None},
        STARTED | {"input": None},
        STARTED | {"input": INPUT | {"state": None}},
        user({"type": "text", "text": "t", "metadata": None}),
        FINISHED | {"usage": None},
        {"type": "TOOL_CALL_END", "toolCallId": "c", "subagentRunId": None},
    ],
)
def test_open_20_forgives_no_other_null_but_lenient_does(event: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="null"):
        run(event)
    (wire,), ((rule, _),) = run(event, policy="lenient")
    assert wire is not None
    assert rule == "EVT-8"
    assert None not in wire.values()


def test_old_1_becomes_the_reasoning_family() -> None:
    wire, warnings = run(
        STARTED,
        {"type": "THINKING_START", "title": "Working"},
        {"type": "THINKING_TEXT_MESSAGE_START", "timestamp": 5},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "d", "rawEvent": None},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_TEXT_MESSAGE_START"},
        {"type": "THINKING_TEXT_MESSAGE_END", "metadata": {"k": 1}},
        {"type": "THINKING_END"},
        STARTED | {"runId": "r2"},
        {"type": "THINKING_START"},
    )
    assert wire == [
        STARTED,
        {"type": "REASONING_START", "messageId": "r:reasoning:1"},
        {"type": "REASONING_MESSAGE_START", "messageId": "r:reasoning:2", "role": "reasoning", "timestamp": 5},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r:reasoning:2", "delta": "d"},
        {"type": "REASONING_MESSAGE_END", "messageId": "r:reasoning:2"},
        {"type": "REASONING_MESSAGE_START", "messageId": "r:reasoning:3", "role": "reasoning"},
        {"type": "REASONING_MESSAGE_END", "messageId": "r:reasoning:3", "metadata": {"k": 1}},
        {"type": "REASONING_END", "messageId": "r:reasoning:1"},
        STARTED | {"runId": "r2"},
        {"type": "REASONING_START", "messageId": "r2:reasoning:4"},
    ]
    assert ("OLD-1", "/title") in warnings
    assert {rule for rule, _ in warnings} == {"OLD-1", "OPEN-20"}


def test_old_1_continuations_without_an_opener_get_ids_that_nothing_opened() -> None:
    wire, _ = run(
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "d"},
        {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "d"},
        {"type": "THINKING_TEXT_MESSAGE_END"},
        {"type": "THINKING_END"},
    )
    assert len({event["messageId"] for event in wire}) == 4


def test_old_1_malformed_values_are_handed_on() -> None:
    with pytest.raises(ProtocolError, match="/delta"):
        run({"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": 3})
    with pytest.raises(ProtocolError, match="/delta"):
        run({"type": "THINKING_TEXT_MESSAGE_CONTENT"})


def test_the_boundary_can_be_copied_and_stored() -> None:
    decoder = Decoder()
    for event in (STARTED, {"type": "THINKING_START"}, {"type": "THINKING_TEXT_MESSAGE_START"}):
        decoder.to_event(event)
    stored = msgspec.json.decode(msgspec.json.encode(decoder.boundary), type=Boundary)
    twins = [decoder, decoder.copy(WarningLog()), Decoder(boundary=stored)]
    for event in ({"type": "THINKING_TEXT_MESSAGE_END"}, {"type": "THINKING_END"}, {"type": "THINKING_START"}):
        first, *others = [twin.to_event(event) for twin in twins]
        assert others == [first, first]


BINARY = {"type": "binary", "mimeType": "image/png"}


def media(kind: str, source: str, value: str, mime_type: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "source": {"type": source, "value": value, "mimeType": mime_type}} | more


LEGACY = [
    ([BINARY | {"data": "aGk="}], [media("image", "data", "aGk=", "image/png")]),
    ([BINARY | {"url": "u"}], [media("image", "url", "u", "image/png")]),
    ([BINARY | {"url": "u", "data": "d"}], [media("image", "data", "d", "image/png")]),
    ([BINARY | {"url": "u", "mimeType": "audio/mp3"}], [media("audio", "url", "u", "audio/mp3")]),
    ([BINARY | {"url": "u", "mimeType": "video/mp4"}], [media("video", "url", "u", "video/mp4")]),
    ([BINARY | {"url": "u", "mimeType": "imagery"}], [media("document", "url", "u", "imagery")]),
    ([BINARY | {"url": "u", "filename": "f"}], [media("image", "url", "u", "image/png", metadata={"filename": "f"})]),
    ([BINARY | {"url": "u"}, media("image", "url", "u", "image/png")], [media("image", "url", "u", "image/png")]),
    (
        [BINARY | {"url": "u", "filename": "f"}, media("image", "url", "u", "image/png")],
        [media("image", "url", "u", "image/png", metadata={"filename": "f"}), media("image", "url", "u", "image/png")],
    ),
    ([BINARY | {"id": "only"}], []),
]


@pytest.mark.parametrize(("parts", "modern"), LEGACY)
def test_old_2_legacy_parts(parts: list[Any], modern: list[Any]) -> None:
    (wire,), warnings = run(user(*parts))
    assert wire == user(*modern)
    assert ("OLD-2", "/messages/0/content/0") in warnings
    message = {"id": "1", "role": "user", "content": parts}
    log = WarningLog()
    assert to_wire(Decoder(log).to_shape(message, Message))["content"] == modern
    assert message["content"] is parts
    run_input = Decoder(log).to_shape(INPUT | {"messages": [message]}, RunAgentInput)
    assert to_wire(run_input)["messages"][0]["content"] == modern
    assert "OLD-2" in {warning.rule for warning in log}


def test_old_2_malformed_values_are_handed_on() -> None:
    with pytest.raises(ProtocolError, match="/messages/0/content/0/source/value"):
        run(user(BINARY | {"data": 3}))
