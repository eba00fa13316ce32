"""Every event, message and input with every member that it may have; their places; and what may stand there instead."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

__all__ = ["COMMON", "EVENTS", "INPUT", "MESSAGES", "OPENED", "places", "with_odd"]

PARTS = [
    {"type": "text", "text": "a", "id": "p", "metadata": 1},
    {"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}, "metadata": {}},
    {"type": "document", "source": {"type": "file", "value": "f", "provider": "x", "mimeType": "a/b"}},
    {"type": "audio", "source": {"type": "url", "value": "u"}},
    {"type": "binary", "mimeType": "image/png", "data": "QQ==", "filename": "a", "id": "i"},
]
CALL = {"id": "c9", "type": "function", "function": {"name": "f", "arguments": "{}"}, "metadata": {}}
MESSAGES = [
    {"id": "m1", "role": "user", "content": PARTS, "name": "n", "subagentRunId": "s"},
    {"id": "m2", "role": "assistant", "content": "x", "toolCalls": [CALL], "encryptedValue": "E", "metadata": {"k": 1}},
    {"id": "m3", "role": "tool", "toolCallId": "c9", "content": PARTS, "error": "e"},
    {"id": "m4", "role": "activity", "activityType": "a", "content": {"x": 1}},
    {"id": "m5", "role": "reasoning", "content": "hm"},
]
INPUT = {
    "threadId": "t",
    "runId": "r",
    "parentRunId": "p",
    "messages": MESSAGES,
    "tools": [{"name": "f", "description": "d", "parameters": {}, "metadata": {}}],
    "context": [{"description": "d", "value": "v"}],
    "state": {},
    "forwardedProps": {},
    "resume": [{"interruptId": "i", "status": "resolved", "payload": {}, "metadata": {}}],
}
USAGE = [{"provider": "p", "model": "m", "inputTokens": 1}]
INTERRUPT = {
    "id": "i",
    "reason": "r",
    "message": "m",
    "toolCallId": "c",
    "responseSchema": {},
    "expiresAt": "x",
    "metadata": {},
}
PATCH = [
    {"op": "add", "path": "/a", "value": 1},
    {"op": "move", "from": "/a", "path": "/b"},
    {"op": "merge", "path": ""},
]
COMMON = {"timestamp": 1, "rawEvent": {}, "metadata": {"k": 1}, "subagentRunId": "s"}
M, C, R = {"messageId": "m"}, {"toolCallId": "c"}, {"messageId": "x"}
EVENTS: list[dict[str, Any]] = [
    {
        "type": "RUN_STARTED",
        "threadId": "t",
        "runId": "q",
        "protocolVersion": "1.0",
        "parentRunId": "p",
        "input": INPUT,
    },
    {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "result": 1,
        "usage": USAGE,
        "outcome": {"type": "interrupt", "interrupts": [INTERRUPT]},
    },
    {
        "type": "RUN_FINISHED",
        "threadId": "t",
        "runId": "r",
        "outcome": {"type": "success", "pendingToolCallIds": ["c"]},
    },
    {"type": "RUN_ERROR", "message": "m", "code": "c", "usage": USAGE},
    {"type": "STEP_STARTED", "stepName": "s"},
    {"type": "STEP_FINISHED", "stepName": "open"},
    {"type": "TEXT_MESSAGE_START", "messageId": "n", "role": "user", "name": "n"},
    {"type": "TEXT_MESSAGE_CONTENT", **M, "delta": "d"},
    {"type": "TEXT_MESSAGE_END", **M},
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "k", "role": "assistant", "name": "n", "delta": "d"},
    {"type": "TOOL_CALL_START", "toolCallId": "d", "toolCallName": "f", "parentMessageId": "m"},
    {"type": "TOOL_CALL_ARGS", **C, "delta": "{"},
    {"type": "TOOL_CALL_END", **C},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "e", "toolCallName": "f", "parentMessageId": "m", "delta": "{"},
    {"type": "TOOL_CALL_RESULT", "messageId": "q", **C, "content": PARTS, "role": "tool"},
    {"type": "REASONING_START", "messageId": "sp"},
    {"type": "REASONING_END", "messageId": "span"},
    {"type": "REASONING_MESSAGE_START", "messageId": "y", "role": "reasoning"},
    {"type": "REASONING_MESSAGE_CONTENT", **R, "delta": "d"},
    {"type": "REASONING_MESSAGE_END", **R},
    {"type": "REASONING_MESSAGE_CHUNK", "messageId": "z", "delta": "d"},
    {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "m", "encryptedValue": "E"},
    {"type": "STATE_SNAPSHOT", "snapshot": {}},
    {"type": "STATE_DELTA", "delta": PATCH},
    {"type": "MESSAGES_SNAPSHOT", "messages": MESSAGES},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "w", "activityType": "a", "content": {"x": 1}, "replace": False},
    {"type": "ACTIVITY_DELTA", "messageId": "act", "activityType": "a", "patch": PATCH},
    {
        "type": "SUBAGENT_STARTED",
        "subagentRunId": "s2",
        "name": "n",
        "description": "d",
        "parentSubagentRunId": "s",
        "parentToolCallId": "c",
        "parentMessageId": "m",
    },
    {
        "type": "SUBAGENT_FINISHED",
        "subagentRunId": "sub",
        "result": 1,
        "outcome": {"type": "suspended", "interruptIds": ["i"]},
    },
    {"type": "SUBAGENT_ERROR", "subagentRunId": "sub", "message": "m", "code": "c"},
    {"type": "RAW", "event": {}, "source": "s"},
    {"type": "CUSTOM", "name": "on_interrupt", "value": {"a": 1}},
    {"type": "THINKING_START", "title": "t"},
    {"type": "THINKING_TEXT_MESSAGE_CONTENT", "delta": "d"},
]  # fmt: skip
OPENED = [
    {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
    {"type": "TEXT_MESSAGE_START", "messageId": "m"},
    {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f", "parentMessageId": "m"},
    {"type": "REASONING_START", "messageId": "span"},
    {"type": "REASONING_MESSAGE_START", "messageId": "x", "role": "reasoning"},
    {"type": "STEP_STARTED", "stepName": "open"},
    {"type": "SUBAGENT_STARTED", "subagentRunId": "sub", "name": "n"},
    {"type": "ACTIVITY_SNAPSHOT", "messageId": "act", "activityType": "a", "content": {}},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a document."""
    if path:
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(item, (*path, key))


def with_odd(document: Any, path: tuple[Any, ...], odd: Any) -> Any:
    """A copy of a document that has something else in one place."""
    changed = copy.deepcopy(document)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = odd
    return changed
