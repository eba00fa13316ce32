"""Attacks with values of the wrong type in every place that is looked up somewhere: only our errors come out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import agui_core as agui
from agui_core.warnings import WarningLog
from agui_core.wire.old_peers import Peer, WithoutSubagents
from agui_core.wire.outgoing import address_input, enforce_input

ODD: list[Any] = [[], {}, [[]], {"a": {}}, 5, 1.5, True, None, "", "odd", 10**400, float("inf"), -(2**70)]

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
    changed = copy.deepcopy(document)
    holder = changed
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = odd
    return changed


def variants(document: Any) -> Iterator[Any]:
    for path in places(document):
        for odd in ODD:
            yield with_odd(document, path, odd)


def opened(policy: Any, **options: Any) -> agui.Reducer:
    reducer = agui.Reducer(policy=policy, **options)
    for event in OPENED:
        reducer.apply(event)
    return reducer


def text(event: Any) -> bytes:
    return json.dumps(event).encode()


def into(event: Any, policy: Any) -> None:
    opened(policy).apply(event)


def as_text(event: Any, policy: Any) -> None:
    opened(policy).apply(text(event))


def as_sse(event: Any, policy: Any) -> None:
    reducer = opened(policy)
    reducer.apply_sse(b"data: " + text(event) + b"\n\n")
    reducer.end()


def as_lines(event: Any, policy: Any) -> None:
    reducer = opened(policy)
    reducer.apply_lines(text(event) + b"\n")
    reducer.end()


def behind_middleware(event: Any, policy: Any) -> None:
    opened(policy, middleware=[lambda events: list(events)]).apply(event)


def conformed(event: Any, policy: Any) -> None:
    list(agui.conform([*OPENED, event], policy=policy))


def compacted(event: Any, policy: Any) -> None:
    list(agui.compact([*OPENED, event], policy=policy))


WAYS: list[Callable[[Any, Any], None]] = [
    into,
    as_text,
    as_sse,
    as_lines,
    behind_middleware,
    conformed,
    compacted,
]


@pytest.mark.parametrize("number", range(len(EVENTS)), ids=lambda number: f"{number}-{EVENTS[number]['type']}")
def test_only_our_errors_come_out_of_an_event(number: int) -> None:
    base = EVENTS[number]
    document = base if base["type"].startswith("RUN") or "subagentRunId" in base else {**COMMON, **base}
    for place, event in enumerate(variants(document)):
        way = WAYS[place % len(WAYS)]
        for policy in ("strict", "lenient"):
            try:
                way(event, policy)
            except agui.LimitExceeded:
                pass
            except agui.AGUIError:
                assert policy == "strict" or way is compacted, (way.__name__, event)


def test_the_unhashable_type_of_a_content_part() -> None:
    event = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user", "content": [{"type": []}]}]}
    for way in WAYS:
        with pytest.raises(agui.ProtocolError, match=r"\[PROC-10a\]"):
            way(event, "strict")
        way(event, "lenient")


def test_only_our_errors_come_out_of_a_run_input_or_a_message() -> None:
    for document in variants(INPUT):
        for read in (
            agui.Reducer.from_input,
            lambda value: agui.Reducer.from_input(text(value)),
            lambda value: address_input(enforce_input(value, WarningLog()), WarningLog(), Peer.pinned("0.0.39")),
        ):
            with suppress(agui.AGUIError):
                read(document)
    for message in MESSAGES:
        for document in variants(message):
            for read in (lambda value: agui.Reducer(messages=[value]), lambda value: agui.Reducer().add(value)):
                with suppress(agui.AGUIError):
                    read(document)


def test_only_our_errors_come_out_of_what_an_old_peer_gets_and_sends() -> None:
    for base in EVENTS:
        stage = WithoutSubagents(Peer.pinned("0.0.57"), WarningLog(), agui.Limits())
        for event in variants(base):
            try:
                stage.feed(b"data: " + text(event) + b"\n\n")
            except agui.AGUIError:
                break
