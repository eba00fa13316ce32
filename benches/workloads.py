"""The streams that the benches of the reducer run on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

__all__ = ["as_lines", "as_sse", "payloads", "text_deltas", "tool_calls"]

READ = 16 * 1024
_DELTA = '"some text, 20 char"'[:20]


def tool_calls(deltas: int = 200, calls: int = 64, **extra: Any) -> list[dict[str, Any]]:
    """Interleaved tool calls with 20-character argument deltas, some text and the results: 13,000 events by default."""
    events: list[dict[str, Any]] = [{"type": "RUN_STARTED", "threadId": "thread-1", "runId": "run-1"}]
    events.append({"type": "TEXT_MESSAGE_START", "messageId": "msg-1", "role": "assistant"})
    events += [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "msg-1", "delta": "some words of text. "}] * 50
    events.append({"type": "TEXT_MESSAGE_END", "messageId": "msg-1"})
    ids = [f"call-{call:04}" for call in range(calls)]
    events += [{"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": "search"} for id in ids]
    for number in range(deltas):
        opening, ending = ('{"text": "', "") if number == 0 else ("", '"}') if number == deltas - 1 else ("", "")
        delta = opening + "abcdefghij klmnopqrs"[len(opening) : 20 - len(ending)] + ending
        events += [{"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": delta} for id in ids]
    events += [{"type": "TOOL_CALL_END", "toolCallId": id} for id in ids]
    events += [
        {"type": "TOOL_CALL_RESULT", "messageId": f"result-{id}", "toolCallId": id, "content": "found"} for id in ids
    ]
    events.append({"type": "RUN_FINISHED", "threadId": "thread-1", "runId": "run-1"})
    return [{**event, **extra} for event in events]


def text_deltas(deltas: int, messages: int) -> Iterator[bytes]:
    """Text in 20-character deltas, spread over messages, one event at a time."""
    yield b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}'
    for number in range(messages):
        yield b'{"type":"TEXT_MESSAGE_START","messageId":"m%d"}' % number
    for number in range(deltas):
        yield b'{"type":"TEXT_MESSAGE_CONTENT","messageId":"m%d","delta":"%020d"}' % (number % messages, number)


def payloads(events: list[dict[str, Any]]) -> list[bytes]:
    """Each event as JSON."""
    return [msgspec.json.encode(event) for event in events]


def as_lines(texts: list[bytes]) -> bytes:
    """JSON Lines."""
    return b"".join(text + b"\n" for text in texts)


def as_sse(texts: list[bytes], between: bytes = b"") -> list[bytes]:
    """Reads of 16 KiB of a server-sent event stream; `between` stands before each event."""
    data = b"".join(between + b"data: " + text + b"\n\n" for text in texts)
    return [data[at : at + READ] for at in range(0, len(data), READ)]
