"""Streams of events as hypothesis strategies: valid ones of every kind, broken ones, and what they are cut into."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from support.stream_author import ACTIONS, Author
from support.stream_ledger import DELTAS, EVERY_ID, STATES, TAGS, Draw, Wire, below

__all__ = [
    "Case",
    "cut",
    "interleaved_items",
    "json_documents",
    "mutated_streams",
    "streams",
    "to_lines",
    "to_sse",
    "wild_events",
]

Json = Any
Case = dict[str, Any]
"""`{"input": {"messages": [...], "state": ...}, "events": [...]}`, all plain JSON."""


@st.composite
def streams(draw: Draw, *, noise: bool = False, length: int = 24) -> Case:
    """Valid streams of one to three runs. With `noise`, unknown properties and events are among them."""
    author = Author(draw, noise)
    messages = author.history()
    state = author.pick(STATES[:3])
    for _ in range(author.pick([1, 1, 1, 2, 3])):
        author.run(ACTIONS, length)
    return {"input": {"messages": messages, "state": state}, "events": author.events}


ID_KEYS = ("messageId", "toolCallId", "entityId", "parentMessageId", "stepName")
BAD_VALUES: list[Any] = [None, 3, "elsewhere", [], {}, True, 1.5, [42]]


def _mutate(author: Author, events: list[Wire]) -> list[Wire]:
    """One event is lost, doubled, moved, renamed, retagged or damaged, or the stream ends early."""
    if not events:
        return events
    at = author.pick(range(len(events)))
    event = dict(events[at])
    before, after = events[:at], events[at + 1 :]
    kind = author.pick(["drop", "double", "swap", "cut", "tag", "id", "value", "missing", "unknown", "repeat later"])
    if kind == "drop":
        return before + after
    if kind == "double":
        return [*before, event, event, *after]
    if kind == "swap":
        return [*before, *after[:1], event, *after[1:]]
    if kind == "cut":
        return [*before, event]
    if kind == "repeat later":
        return [*events, event]
    keys = [key for key in event if key != "type"]
    if kind == "tag":
        if event.pop("subagentRunId", None) is None or author.chance(2):
            event["subagentRunId"] = author.pick([*TAGS, "stranger"])
    elif kind == "id":
        present = [key for key in ID_KEYS if key in event]
        if present:
            event[author.pick(present)] = author.pick(EVERY_ID)
    elif kind == "unknown" or not keys:
        event["type"] = "FUTURE_EVENT"
    elif kind == "value":
        event[author.pick(keys)] = author.pick(BAD_VALUES)
    else:
        del event[author.pick(keys)]
    return [*before, event, *after]


@st.composite
def mutated_streams(draw: Draw, *, length: int = 16) -> Case:
    """Streams with one or two faults in them; some of them happen to be valid all the same."""
    author = Author(draw, noise=False)
    messages = author.history()
    for _ in range(author.pick([1, 1, 2])):
        author.run(ACTIONS, length)
    events = author.events
    for _ in range(author.pick([1, 1, 2])):
        events = _mutate(author, events)
    return {"input": {"messages": messages, "state": {}}, "events": events}


def _items(draw: Draw) -> list[list[Wire]]:
    """Scripts of items that have nothing to do with each other, so that they may be merged in any way."""
    scripts: list[list[Wire]] = []
    for number in range(draw(below(5)) + 1):
        kind = draw(below(3))
        deltas = [DELTAS[draw(below(len(DELTAS)))] for _ in range(draw(below(4)))]
        tag = {"subagentRunId": f"s{number}"} if draw(below(2)) else {}
        opener, key, extra = (
            ("TEXT_MESSAGE", "messageId", {}),
            ("TOOL_CALL", "toolCallId", {"toolCallName": "f"}),
            ("REASONING_MESSAGE", "messageId", {"role": "reasoning"}),
        )[kind]
        content = f"{opener}_{'ARGS' if kind == 1 else 'CONTENT'}"
        name = {key: f"item-{number}"}
        scripts.append(
            [
                {"type": f"{opener}_START", **name, **extra, **tag},
                *({"type": content, **name, "delta": delta, "metadata": {"n": at}} for at, delta in enumerate(deltas)),
                {"type": f"{opener}_END", **name},
            ]
        )
    return scripts


@st.composite
def interleaved_items(draw: Draw) -> tuple[list[Wire], list[Wire]]:
    """The same independent items twice: one after the other, and interleaved."""
    scripts = _items(draw)
    in_order = [event for script in scripts for event in script]
    merged: list[Wire] = []
    rest = [list(script) for script in scripts]
    while rest:
        script = rest[draw(below(len(rest)))]
        merged.append(script.pop(0))
        rest = [script for script in rest if script]
    return in_order, merged


_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
json_documents: st.SearchStrategy[Any] = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)

EVENT_MEMBERS = (
    "messageId", "delta", "toolCallId", "toolCallName", "role", "subagentRunId", "metadata", "content", "patch",
    "snapshot", "messages", "stepName", "subtype", "entityId", "outcome", "threadId", "runId", "input",
    "activityType", "name", "value",
)  # fmt: skip
EVENT_NAMES = (
    "RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_CHUNK",
    "TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_CHUNK", "TOOL_CALL_RESULT", "STATE_SNAPSHOT", "STATE_DELTA",
    "MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT", "ACTIVITY_DELTA", "REASONING_ENCRYPTED_VALUE", "THINKING_START",
    "THINKING_TEXT_MESSAGE_CONTENT", "SUBAGENT_STARTED", "SUBAGENT_FINISHED", "STEP_STARTED", "RAW", "CUSTOM",
    "UNHEARD_OF",
)  # fmt: skip
wild_events: st.SearchStrategy[Any] = json_documents | st.builds(
    lambda name, members: {"type": name, **members},
    st.sampled_from(EVENT_NAMES),
    st.dictionaries(st.sampled_from(EVENT_MEMBERS), json_documents | st.sampled_from(["t0", "c0", "s1"]), max_size=5),
)
"""Anything that JSON can say, often with the name and the members of an event."""


def to_sse(events: Sequence[Json]) -> bytes:
    """The events as an SSE body."""
    return b"".join(b"data: " + _encode(event) + b"\n\n" for event in events)


def to_lines(events: Sequence[Json]) -> bytes:
    """The events as JSON Lines."""
    return b"".join(_encode(event) + b"\n" for event in events)


def _encode(event: Json) -> bytes:
    """UTF-8, with escapes only where text holds half of a surrogate pair."""
    text = json.dumps(event, ensure_ascii=False)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return json.dumps(event).encode()


@st.composite
def cut(draw: Draw, data: bytes) -> list[bytes]:
    """The bytes in pieces, cut anywhere."""
    places = sorted(draw(st.lists(below(len(data) + 1), max_size=8)))
    ends = [*places, len(data)]
    return [data[start:end] for start, end in zip([0, *places], ends, strict=True)]
