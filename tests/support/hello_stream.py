"""A run with a message, a call, state and an activity; what a reducer holds after it; and a reducer in its middle."""

from __future__ import annotations

from typing import Any

import agui_core as agui
from support.events import FINISHED, STARTED
from support.folding import canonical

__all__ = ["CALL", "HELLO", "MESSAGES", "QUESTION", "REST", "STATE", "STREAM", "assert_whole", "begin"]

HELLO = [
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "Hé\u2028llo"},
    {"type": "TEXT_MESSAGE_END", "messageId": "m"},
]
CALL = [
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "look", "parentMessageId": "m"},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": '{"q": "a'},
    {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": 'b"}'},
    {"type": "TOOL_CALL_END", "toolCallId": "c"},
]
REST = [
    {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1, "list": []}},
    {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/list/-", "value": None}]},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "k", "delta": "\N{GRINNING FACE}"},
    {"type": "TEXT_MESSAGE_CHUNK", "delta": "!"},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "todo", "content": {"x": [1]}},
]
STREAM = [STARTED, *HELLO, *CALL, *REST, FINISHED]
MESSAGES = [
    {
        "id": "m",
        "role": "assistant",
        "content": "Hé\u2028llo",
        "toolCalls": [{"id": "c", "type": "function", "function": {"name": "look", "arguments": '{"q": "ab"}'}}],
    },
    {"id": "k", "role": "assistant", "content": "\N{GRINNING FACE}!"},
    {"id": "a", "role": "activity", "activityType": "todo", "content": {"x": [1]}},
]
STATE = {"n": 1, "list": [None]}
QUESTION = {"id": "u", "role": "user", "content": "so?"}


def assert_whole(reducer: agui.Reducer) -> None:
    assert canonical(agui.to_wire(reducer.messages)) == canonical(MESSAGES)
    assert reducer.state == STATE
    assert reducer.status == "finished"
    assert reducer.error is None


def begin(*events: Any, **options: Any) -> agui.Reducer:
    """A reducer in the middle of a run."""
    reducer = agui.Reducer(**options)
    for event in (STARTED, *events):
        reducer.apply(event)
    return reducer
