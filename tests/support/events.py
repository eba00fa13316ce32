"""A builder for each event and message, so that streams are small and readable.

Builders take wire names; `by` stands for `subagentRunId` and `meta` for `metadata`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

__all__ = [
    "FINISHED",
    "STARTED",
    "activity",
    "activity_patch",
    "args",
    "call",
    "call_chunk",
    "call_end",
    "called",
    "custom",
    "ending",
    "event",
    "failed",
    "finished",
    "lines",
    "msg",
    "op",
    "patch",
    "raw",
    "reason",
    "reason_chunk",
    "reason_end",
    "reason_start",
    "result",
    "run",
    "say",
    "sealed",
    "snapshot",
    "span",
    "span_end",
    "spoken",
    "sse",
    "started",
    "state",
    "step",
    "step_end",
    "subagent",
    "subagent_end",
    "subagent_error",
    "text",
    "text_chunk",
    "text_end",
    "text_run",
    "tool_call",
]

Wire = dict[str, Any]
_SHORT = {"by": "subagentRunId", "meta": "metadata"}


def event(type: str, **fields: Any) -> Wire:
    """Any event."""
    return {"type": type, **{_SHORT.get(name, name): value for name, value in fields.items()}}


# --- runs ---------------------------------------------------------------------------------------------------------


def started(run: str = "r", thread: str = "t", **fields: Any) -> Wire:
    return event("RUN_STARTED", threadId=thread, runId=run, **fields)


def finished(run: str = "r", thread: str = "t", **fields: Any) -> Wire:
    return event("RUN_FINISHED", threadId=thread, runId=run, **fields)


def failed(message: str = "boom", **fields: Any) -> Wire:
    return event("RUN_ERROR", message=message, **fields)


STARTED = started()
FINISHED = finished()


def run(*events: Wire) -> list[Wire]:
    """A whole run around the events."""
    return [started(), *events, finished()]


def ending(*events: Wire) -> list[Wire]:
    """A run that has begun; the events are its last."""
    return [started(), *events]


# --- items --------------------------------------------------------------------------------------------------------


def step(name: str = "plan", **fields: Any) -> Wire:
    return event("STEP_STARTED", stepName=name, **fields)


def step_end(name: str = "plan", **fields: Any) -> Wire:
    return event("STEP_FINISHED", stepName=name, **fields)


def text(id: str = "m", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_START", messageId=id, **fields)


def say(id: str = "m", delta: str = "x", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_CONTENT", messageId=id, delta=delta, **fields)


def text_end(id: str = "m", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_END", messageId=id, **fields)


def text_chunk(id: str | None = None, delta: str | None = None, **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_CHUNK", **_given(messageId=id, delta=delta), **fields)


def call(id: str = "c", name: str = "f", **fields: Any) -> Wire:
    return event("TOOL_CALL_START", toolCallId=id, toolCallName=name, **fields)


def args(id: str = "c", delta: str = "{}", **fields: Any) -> Wire:
    return event("TOOL_CALL_ARGS", toolCallId=id, delta=delta, **fields)


def call_end(id: str = "c", **fields: Any) -> Wire:
    return event("TOOL_CALL_END", toolCallId=id, **fields)


def call_chunk(id: str | None = None, delta: str | None = None, name: str | None = None, **fields: Any) -> Wire:
    return event("TOOL_CALL_CHUNK", **_given(toolCallId=id, toolCallName=name, delta=delta), **fields)


def result(call: str = "c", content: Any = "ok", id: str = "t", **fields: Any) -> Wire:
    return event("TOOL_CALL_RESULT", messageId=id, toolCallId=call, content=content, **fields)


def span(id: str = "s", **fields: Any) -> Wire:
    return event("REASONING_START", messageId=id, **fields)


def span_end(id: str = "s", **fields: Any) -> Wire:
    return event("REASONING_END", messageId=id, **fields)


def reason_start(id: str = "q", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_START", messageId=id, role="reasoning", **fields)


def reason(id: str = "q", delta: str = "hm", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_CONTENT", messageId=id, delta=delta, **fields)


def reason_end(id: str = "q", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_END", messageId=id, **fields)


def reason_chunk(id: str | None = None, delta: str | None = None, **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_CHUNK", **_given(messageId=id, delta=delta), **fields)


def sealed(entity: str, value: str = "AA", subtype: str = "message", **fields: Any) -> Wire:
    return event("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=entity, encryptedValue=value, **fields)


def spoken(id: str = "m", *deltas: str, end: bool = True, **fields: Any) -> list[Wire]:
    """A text message in pieces; the fields are those of its start."""
    return [text(id, **fields), *(say(id, delta) for delta in deltas), *([text_end(id)] if end else [])]


def called(id: str = "c", *deltas: str, name: str = "f", end: bool = True, **fields: Any) -> list[Wire]:
    """A tool call whose arguments come in pieces; the fields are those of its start."""
    return [call(id, name, **fields), *(args(id, delta) for delta in deltas), *([call_end(id)] if end else [])]


def text_run(*deltas: str) -> list[Wire]:
    """A whole run with one message."""
    return [STARTED, *spoken("m", *deltas), FINISHED]


# --- standalone ---------------------------------------------------------------------------------------------------


def state(value: Any, **fields: Any) -> Wire:
    return event("STATE_SNAPSHOT", snapshot=value, **fields)


def patch(*operations: Wire, **fields: Any) -> Wire:
    return event("STATE_DELTA", delta=list(operations), **fields)


def op(name: str, path: str, *value: Any, **fields: Any) -> Wire:
    """A patch operation."""
    return {"op": name, "path": path, **({"value": value[0]} if value else {}), **fields}


def snapshot(*messages: Wire, **fields: Any) -> Wire:
    return event("MESSAGES_SNAPSHOT", messages=list(messages), **fields)


def activity(id: str = "a", kind: str = "todo", content: Any = None, **fields: Any) -> Wire:
    return event("ACTIVITY_SNAPSHOT", messageId=id, activityType=kind, content=content or {}, **fields)


def activity_patch(id: str, kind: str, *operations: Wire, **fields: Any) -> Wire:
    return event("ACTIVITY_DELTA", messageId=id, activityType=kind, patch=list(operations), **fields)


def subagent(id: str = "s1", name: str = "helper", **fields: Any) -> Wire:
    return event("SUBAGENT_STARTED", subagentRunId=id, name=name, **fields)


def subagent_end(id: str = "s1", **fields: Any) -> Wire:
    return event("SUBAGENT_FINISHED", subagentRunId=id, **fields)


def subagent_error(id: str = "s1", message: str = "no", **fields: Any) -> Wire:
    return event("SUBAGENT_ERROR", subagentRunId=id, message=message, **fields)


def raw(value: Any = None, **fields: Any) -> Wire:
    return event("RAW", event=value, **fields)


def custom(name: str = "x.tick", value: Any = 1, **fields: Any) -> Wire:
    return event("CUSTOM", name=name, value=value, **fields)


# --- messages -----------------------------------------------------------------------------------------------------


def msg(role: str, id: str, content: Any = None, **fields: Any) -> Wire:
    """A message; `content=None` leaves it out."""
    return {"id": id, "role": role, **_given(content=content), **{_SHORT.get(k, k): v for k, v in fields.items()}}


def tool_call(id: str = "c", name: str = "f", arguments: str = "", **fields: Any) -> Wire:
    """A call inside an assistant message."""
    function = {"name": name, "arguments": arguments}
    return {"id": id, "type": "function", "function": function, **{_SHORT.get(k, k): v for k, v in fields.items()}}


def _given(**fields: Any) -> Wire:
    return {name: value for name, value in fields.items() if value is not None}


# --- bytes --------------------------------------------------------------------------------------------------------


def sse(events: Iterable[Any]) -> bytes:
    """Server-sent events."""
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def lines(events: Iterable[Any]) -> bytes:
    """JSON Lines."""
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)
