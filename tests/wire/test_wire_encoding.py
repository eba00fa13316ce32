"""Encoding: absent fields are left out, null inside open data stays, and what is no JSON is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agui_core.errors import LimitExceeded, ProtocolError
from agui_core.protocol.base import UNSET
from agui_core.protocol.content import ImagePart, UrlSource
from agui_core.protocol.events import (
    CustomEvent,
    StateDeltaEvent,
    StateSnapshotEvent,
    TextMessageContentEvent,
    TextMessageStartEvent,
)
from agui_core.protocol.messages import AssistantMessage, FunctionCall, ToolCall, UserMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.wire import encode, to_wire, validate


def test_absent_is_left_out_and_null_inside_open_data_stays() -> None:
    event = CustomEvent(name="n", value=None, metadata={"k": None})
    wire = {"type": "CUSTOM", "metadata": {"k": None}, "name": "n", "value": None}
    assert json.loads(encode(event)) == to_wire(event) == wire
    assert json.loads(encode([event, event])) == to_wire((event, event)) == [wire, wire]


def test_to_wire_is_plain_and_shares_nothing() -> None:
    value = {"a": [1]}
    message = UserMessage(id="1", content=(ImagePart(source=UrlSource(value="u"), metadata=value),))
    wire = to_wire(message)
    part = {"type": "image", "source": {"type": "url", "value": "u"}, "metadata": {"a": [1]}}
    assert wire == {"role": "user", "id": "1", "content": [part]}
    wire["content"][0]["metadata"]["a"].append(2)
    assert value == {"a": [1]}
    assert to_wire(StateSnapshotEvent(snapshot=value))["snapshot"] is not value


def test_a_lone_surrogate_is_never_encoded() -> None:
    event = TextMessageContentEvent(message_id="m", delta="a\ud83d")
    assert json.loads(encode(event))["delta"] == to_wire(event)["delta"] == "a\ufffd"
    assert json.loads(encode(TextMessageContentEvent(message_id="m", delta="\ud83d\ude00")))["delta"] == "😀"


def test_what_is_no_json_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for write in (encode, to_wire):
        with pytest.raises(ProtocolError):
            write(StateSnapshotEvent(snapshot=object()))
        with pytest.raises(LimitExceeded):
            write(StateSnapshotEvent(snapshot=endless))


CALL = ToolCall(id="c", type="function", function=FunctionCall(name="n", arguments=""))


@pytest.mark.parametrize(
    "struct",
    [
        TextMessageStartEvent(message_id="m"),
        StateSnapshotEvent(snapshot=None),
        StateDeltaEvent(delta=[{"op": "add", "path": "", "value": None}]),
        AssistantMessage(id="1", tool_calls=(CALL,)),
        AssistantMessage(id="1", tool_calls=[CALL]),  # type: ignore[arg-type]
        RunAgentInput(thread_id="t", run_id="r", messages=(UserMessage(id="1", content=()),)),
        CALL,
    ],
)
def test_validate_accepts_what_conforms(struct: Any) -> None:
    validate(struct)


@pytest.mark.parametrize(
    ("struct", "rule", "words"),
    [
        (TextMessageStartEvent(message_id=1), "PROC-7", "`/messageId`"),  # type: ignore[arg-type]
        (TextMessageStartEvent(message_id="m", name=None), "PROC-7", "null"),  # type: ignore[arg-type]
        (TextMessageStartEvent(message_id="m", role="critic"), "PROC-9", "critic"),  # type: ignore[arg-type]
        (TextMessageContentEvent(message_id="m", delta=UNSET), "PROC-7", "missing"),  # type: ignore[arg-type]
        (TextMessageStartEvent(message_id="m", timestamp=True), "EVT-3", "true"),
        (AssistantMessage(id="1", tool_calls=(3,)), "PROC-7", "`/toolCalls/0`"),  # type: ignore[arg-type]
        (StateSnapshotEvent(snapshot={1, 2}), "PROC-7", "set"),
        (StateSnapshotEvent(snapshot=float("nan")), "PROC-7", "double"),
    ],
)
def test_validate_refuses(struct: Any, rule: str, words: str) -> None:
    with pytest.raises(ProtocolError, match=words) as caught:
        validate(struct)
    assert caught.value.rule == rule
