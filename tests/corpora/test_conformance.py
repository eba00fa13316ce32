"""The public conformance corpus: streams with what a consumer must make of them, documents that fit a shape or do not.

What concerns the outgoing request, and what a client does because it knows that its peer is old, belongs to the HTTP
client and is not looked at here: the keys `request` and `requestAbsentPaths`, and the keys in `WAITS_FOR_CLIENT`.
The corpus names errors and warnings in another client's words; the tables map them to rule ids.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import agui_core as agui
from support.corpora import shared_root
from support.folding import canonical, fold, fold_bytes

ROOT = shared_root()
assert ROOT is not None
STREAMS = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted((ROOT / "conformance/streams").glob("*.json"))
}
SHAPES = json.loads((ROOT / "conformance/shapes.json").read_text("utf-8"))

REFUSALS = {
    "chunk-conflicting-role-fatal": {"CHUNK-7", "CHUNK-8"},
    "content-without-start-fatal": {"STR-2"},
    "first-chunk-missing-id-fatal": {"CHUNK-3"},
    "first-event-not-run-started-fatal": {"RUN-1"},
    "first-tool-chunk-missing-name-fatal": {"CHUNK-3"},
    "malformed-known-field-fatal": {"PROC-7"},
    "open-message-at-run-finished-fatal": {"RUN-4", "STR-3"},
    "reasoning-discipline-verified": {"REAS-5", "STR-2"},
    # PROC-18: the start is dropped because of its role, and its content is then an orphan.
    "reasoning-message-wrong-role-fatal": {"REAS-5", "STR-2"},
    "run-finished-with-active-subagent-fatal": {"RUN-4", "SUB-5"},
    "step-finished-without-start-fatal": {"STEP-3"},
    "subagent-attribution-mismatch-fatal": {"SUB-8"},
    "subagent-finished-unstarted-fatal": {"SUB-4"},
    "subagent-started-missing-name-fatal": {"PROC-7"},
}

WARNINGS = {
    "era-0-0-45-thinking-translated": {"OLD-1"},
    "producer-declares-newer-version-warns": {"VER-3"},
    "state-delta-unappliable-warns-and-keeps": {"PATCH-5"},
    "unknown-event-dropped": {"PROC-4"},
    "unknown-outcome-stripped": {"PROC-6", "PROC-9", "RUN-13"},
}

WAITS_FOR_CLIENT = {
    "era-0-0-39-flattens-content": {"warnings"},
    "era-0-0-57-subagent-dropped-with-warning": {"warnings", "eventTypesAbsent"},
}

SUCCESSFUL_ENDS = {"finished", "interrupted", "cancelled", "failed"}


def _has(actual: Any, expected: Any) -> bool:
    """Whether `expected` is a part of `actual`: members of objects may be missing, everything else is exact."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key in actual and _has(actual[key], item) for key, item in expected.items()
        )
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(_has, actual, expected))
    return canonical(actual) == canonical(expected)


def _follow(events: list[Any], path: str) -> Any:
    """The value at `"<index>.<path>"`, or a KeyError or IndexError."""
    value: Any = events
    for step in path.split("."):
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value


def _absent(events: list[Any], path: str) -> bool:
    try:
        _follow(events, path)
    except (KeyError, IndexError):
        return True
    return False


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_is_consumed_as_the_suite_expects(name: str) -> None:
    fixture = STREAMS[name]
    expect = {key: value for key, value in fixture["expect"].items() if key not in WAITS_FOR_CLIENT.get(name, ())}
    run = fold(fixture["stream"], fixture.get("input"))
    reducer = run.reducer
    rules = {warning.rule for warning in reducer.warnings}

    if expect["outcome"] == "failed":
        assert run.error is not None
        assert run.error.rule in REFUSALS[name], str(run.error)
        assert reducer.status == "rejected"
    else:
        assert run.error is None, str(run.error)
        assert reducer.status in SUCCESSFUL_ENDS
    if expect.get("warnings"):
        assert rules & WARNINGS[name], rules
    if expect.get("noWarnings"):
        assert not rules
    if "messageCount" in expect:
        assert len(reducer.messages) == expect["messageCount"]
    if "messages" in expect:
        assert len(run.messages) >= len(expect["messages"])
        for actual, expected in zip(run.messages, expect["messages"], strict=False):
            assert _has(actual, expected), actual
    if "state" in expect:
        assert _has(reducer.state, expect["state"])
    if "eventTypes" in expect:
        assert run.types == expect["eventTypes"]
    assert not set(expect.get("eventTypesAbsent", ())) & set(run.types)
    events = agui.to_wire(run.events)
    for path, value in expect.get("eventPaths", {}).items():
        assert canonical(_follow(events, path)) == canonical(value)
    for path in expect.get("eventAbsentPaths", ()):
        assert _absent(events, path)
    run_error = reducer.run.error
    assert (None if run_error is None else run_error.message) == expect.get("runError")


@pytest.mark.parametrize("name", STREAMS)
def test_stream_as_bytes(name: str) -> None:
    """PROC-8: the same events give the same verdict whether they come as objects, as SSE or as lines."""
    fixture = STREAMS[name]
    payloads = [json.dumps(event, ensure_ascii=False).encode() for event in fixture["stream"]]
    plain = fold(fixture["stream"], fixture.get("input"))
    for run in (
        fold_bytes([b"data: " + payload + b"\n\n" for payload in payloads], fixture.get("input")),
        fold_bytes([payload + b"\n" for payload in payloads], fixture.get("input"), lines=True),
    ):
        assert str(run.error) == str(plain.error)
        assert canonical(run.messages) == canonical(plain.messages)
        assert canonical(run.reducer.state) == canonical(plain.reducer.state)
        assert run.types == plain.types
        assert [str(item) for item in run.reducer.warnings] == [str(item) for item in plain.reducer.warnings]


# Shapes that are no events are judged where the wire puts them.
CARRIERS: dict[str, Any] = {
    "Interrupt": lambda value: {
        "type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "interrupt", "interrupts": [value]}
    },
    "ResumeEntry": lambda value: _started({"resume": [value]}),
    "RunAgentInput": lambda value: {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": value},
    "Tool": lambda value: _started({"tools": [value]}),
    "ToolMessage": lambda value: {"type": "MESSAGES_SNAPSHOT", "messages": [value]},
    "UserMessage": lambda value: {"type": "MESSAGES_SNAPSHOT", "messages": [value]},
}  # fmt: skip


def _started(members: dict[str, Any]) -> dict[str, Any]:
    run_input = {"threadId": "t", "runId": "r", "messages": [], **members}
    return {"type": "RUN_STARTED", "threadId": "t", "runId": "r", "input": run_input}


# Invalid documents that are not malformed: what is left of the shape after enforcement (PROC-9) or translation
# (OPEN-20, OLD-2). `GONE` says that the shape itself is removed.
GONE = object()
REMAINDERS: dict[tuple[str, str], Any] = {
    ("MessagesSnapshotEvent", "role-shaped-like-an-activity-message"): {"type": "MESSAGES_SNAPSHOT", "messages": []},
    ("MessagesSnapshotEvent", "role-shaped-like-an-assistant-message"): {"type": "MESSAGES_SNAPSHOT", "messages": []},
    ("MessagesSnapshotEvent", "unknown-role"): {"type": "MESSAGES_SNAPSHOT", "messages": []},
    ("ReasoningEncryptedValueEvent", "unknown-subtype"): GONE,
    ("ResumeEntry", "unknown-status"): GONE,
    ("RunFinishedEvent", "outcome-null"): {"type": "RUN_FINISHED", "threadId": "t1", "runId": "r1"},
    ("RunFinishedEvent", "outcome-success-carrying-interrupts"): {
        "type": "RUN_FINISHED", "threadId": "t1", "runId": "r1", "outcome": {"type": "success"}
    },
    ("StateDeltaEvent", "patch-unknown-op"): {"type": "STATE_DELTA", "delta": []},
    ("SubagentFinishedEvent", "outcome-success-carrying-interrupt-ids"): {
        "type": "SUBAGENT_FINISHED", "subagentRunId": "s1", "outcome": {"type": "success"}
    },
    ("TextMessageEndEvent", "unknown-property"): {"type": "TEXT_MESSAGE_END", "messageId": "msg_1"},
    ("ToolCallChunkEvent", "parent-message-id-null"): {"type": "TOOL_CALL_CHUNK", "toolCallId": "c1"},
    ("ToolCallResultEvent", "role-not-tool"): {
        "type": "TOOL_CALL_RESULT", "messageId": "msg_1", "toolCallId": "call_1", "content": "3 results"
    },
    ("ToolCallStartEvent", "parent-message-id-null"): {
        "type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": "search"
    },
    ("UserMessage", "legacy-binary-part"): {
        "id": "1",
        "role": "user",
        "content": [{"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}}],
    },
    ("UserMessage", "part-shaped-like-media-with-unknown-type"): {"id": "1", "role": "user", "content": []},
}  # fmt: skip


def _carried(event: dict[str, Any] | None, definition: str) -> Any:
    """The shape inside its carrier, or `GONE`."""
    if event is None:
        return GONE
    inside: Any = {
        "Interrupt": lambda: event["outcome"]["interrupts"],
        "ResumeEntry": lambda: event["input"]["resume"],
        "RunAgentInput": lambda: [event["input"]],
        "Tool": lambda: event["input"]["tools"],
        "ToolMessage": lambda: event["messages"],
        "UserMessage": lambda: event["messages"],
    }.get(definition, lambda: [event])()
    return inside[0] if inside else GONE


# A valid document of which the boundary takes something away all the same, with a warning (OPEN-20).
FORGIVEN = {("TextMessageEndEvent", "raw-event-null"): {"type": "TEXT_MESSAGE_END", "messageId": "m1"}}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape['definition']}-{shape['name']}")
def test_a_shape_is_judged_as_the_suite_expects(shape: dict[str, Any]) -> None:
    definition, instance = shape["definition"], shape["instance"]
    event = CARRIERS.get(definition, lambda value: value)(instance)
    remainder = (REMAINDERS | FORGIVEN).get((definition, shape["name"]))
    warnings: list[Any] = []
    text = json.dumps(event)
    if not shape["valid"] and remainder is None:
        with pytest.raises(agui.ProtocolError):
            agui.decode(text, on_warning=warnings.append)
        return
    decoded = agui.decode(text, on_warning=warnings.append)
    left = _carried(None if decoded is None else agui.to_wire(decoded), definition)
    expected = instance if remainder is None else remainder
    if expected is GONE:
        assert left is GONE
    else:
        assert canonical(left) == canonical(expected)
    assert bool(warnings) is (remainder is not None)
    if decoded is not None:
        assert canonical(json.loads(agui.encode(decoded))) == canonical(agui.to_wire(decoded))
