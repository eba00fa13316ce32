"""A refused event changes nothing: not what can be read, and not what a checkpoint holds."""

from __future__ import annotations

from typing import Any

import pytest

import agui_core as agui
from agui_core.reducer.checkpoint.format import read
from support.events import FINISHED, STARTED
from support.full_documents import COMMON, EVENTS, OPENED

LIMITS = [
    agui.Limits(messages=2),
    agui.Limits(tool_calls=1),
    agui.Limits(tool_calls_per_message=1),
    agui.Limits(open_items=4),
    agui.Limits(subagents=1),
    agui.Limits(lanes=1),
    agui.Limits(item_characters=1),
    agui.Limits(characters=3),
    agui.Limits(characters=200),
    agui.Limits(nodes=1),
    agui.Limits(nesting=1),
    agui.Limits(patch_operations=1),
]
CHANGES: list[dict[str, Any]] = [
    {},
    {"runId": "other", "threadId": "other"},
    {"metadata": {"deep": [[[1]]]}, "subagentRunId": "new"},
]
CHUNKS = [
    {"type": "TEXT_MESSAGE_CHUNK", "messageId": "k1", "delta": "", "subagentRunId": "sub"},
    {"type": "TOOL_CALL_CHUNK", "toolCallId": "k2", "toolCallName": "f", "delta": ""},
]


def shown(reducer: agui.Reducer) -> Any:
    run = reducer.run
    return (
        reducer.messages,
        reducer.state,
        run,
        {id: (c.name, c.arguments, c.complete) for id, c in reducer.tool_calls.items()},
    )


def kept(reducer: agui.Reducer) -> Any:
    """What a checkpoint holds of the stream, without the refusal itself."""
    whole = read(reducer.checkpoint(), ())
    part = whole.last.sequence
    return (
        whole.tables,
        sorted(whole.run_answered),
        (part.phase, part.thread_id, part.run_id, sorted(part.activity_owners.items())),
        sorted((each.start, each.owner, each.half) for each in (*part.texts, *part.calls, *part.reasonings)),
        (part.spans, part.steps, part.subagents, sorted(part.lanes, key=repr)),
    )


@pytest.mark.parametrize("lanes", [False, True])
@pytest.mark.parametrize("number", range(len(EVENTS)), ids=lambda number: f"{number}-{EVENTS[number]['type']}")
def test_nothing_of_a_refused_event_is_applied(number: int, lanes: bool) -> None:
    refused = 0
    for limits in LIMITS:
        for change in (
            {},
            {"runId": "other", "threadId": "other"},
            {"metadata": {"deep": [[[1]]]}, "subagentRunId": "new"},
        ):
            event = {
                **EVENTS[number],
                **{key: value for key, value in change.items() if key in {**EVENTS[number], **COMMON}},
            }
            for finished in (False, True):
                whole = agui.Reducer()
                for before in (*OPENED, *(CHUNKS if lanes else ())):
                    whole.apply(before)
                if finished:
                    whole.apply({"type": "RUN_ERROR", "message": "m"})
                reducer = agui.Reducer.restore(whole.checkpoint(), limits=limits)
                expected = shown(reducer), kept(reducer)
                try:
                    reducer.apply(event)
                except agui.AGUIError:
                    refused += 1
                    assert (shown(reducer), kept(reducer)) == expected, (limits, event)
    assert refused


@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_a_run_that_is_refused_for_a_limit_leaves_the_pending_calls(policy: Any) -> None:
    reducer = agui.Reducer(policy=policy, limits=agui.Limits(messages=2))
    ids = {"threadId": "t", "runId": "r"}
    for event in (
        {"type": "RUN_STARTED", **ids},
        {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"},
        {"type": "TOOL_CALL_END", "toolCallId": "c"},
        {"type": "RUN_FINISHED", **ids},
    ):
        reducer.apply(event)
    messages = [{"id": f"u{n}", "role": "user", "content": "x"} for n in range(5)]
    with pytest.raises(agui.LimitExceeded):
        reducer.apply({"type": "RUN_STARTED", **ids, "runId": "r2", "input": {**ids, "messages": messages}})
    assert reducer.run.run_id == "r"
    assert reducer.run.pending_tool_calls == ("c",)
    assert agui.Reducer.restore(reducer.checkpoint()).run.pending_tool_calls == ("c",)


@pytest.mark.parametrize(
    ("limits", "events"),
    [
        (agui.Limits(open_items=0), [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}]),
        (agui.Limits(messages=0), [{"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}]),
        (
            agui.Limits(item_characters=3),
            [STARTED, {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "four"}],
        ),
        (agui.Limits(nodes=1), [{"type": "STATE_SNAPSHOT", "snapshot": [1, 2, 3]}]),
        (agui.Limits(nodes=1), [{"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/a", "value": [1]}]}]),
        (
            agui.Limits(messages=1),
            [STARTED, FINISHED, {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"}],
        ),
    ],
)
def test_nothing_of_a_repair_that_is_refused_is_applied(limits: agui.Limits, events: list[Any]) -> None:
    reducer = agui.Reducer([{"id": "u", "role": "user", "content": "x"}], policy="lenient", limits=limits)
    for event in events[:-1]:
        reducer.apply(event)
    expected = shown(reducer), kept(reducer)
    with pytest.raises(agui.LimitExceeded):
        reducer.apply(events[-1])
    assert (shown(reducer), kept(reducer)) == expected


@pytest.mark.parametrize(
    "last",
    [
        {"type": "TOOL_CALL_CHUNK", "delta": "\udc00" + "x" * 50},
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "n", "delta": "x" * 50},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": str(n), "role": "user", "content": "x"} for n in range(9)]},
    ],
)
def test_half_a_character_waits_as_before_when_an_event_is_refused(last: dict[str, Any]) -> None:
    reducer = agui.Reducer(limits=agui.Limits(messages=5, item_characters=20))
    reducer.apply(STARTED)
    reducer.apply({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": "a\ud83d"})
    expected = shown(reducer), kept(reducer)
    with pytest.raises(agui.LimitExceeded):
        reducer.apply(last)
    assert (shown(reducer), kept(reducer)) == expected
