"""The envelope, enforcement, nulls and retired shapes (protocol sections 2, 3, 4, 27, OPEN-20)."""

from __future__ import annotations

import json
from typing import Any

import pytest

import agui_core as agui
from support.events import (
    activity,
    activity_patch,
    args,
    call,
    call_chunk,
    call_end,
    custom,
    ending,
    event,
    failed,
    finished,
    msg,
    patch,
    raw,
    reason,
    reason_chunk,
    reason_end,
    reason_start,
    result,
    run,
    say,
    sealed,
    snapshot,
    span,
    span_end,
    started,
    state,
    step,
    step_end,
    subagent,
    subagent_end,
    subagent_error,
    text,
    text_chunk,
    text_end,
    tool_call,
)
from support.rule_cases import Case, accept, check, refuse

# Section 3.1: for every event a stream that ends with it, and the strings that it must and may have.
OPEN_ITEMS = [text(), call(), reason_start(), span(), step(), subagent(), activity()]
EVENTS: dict[str, tuple[list[Any], str, str]] = {
    "RUN_STARTED": ([started()], "threadId runId", "protocolVersion parentRunId"),
    "RUN_FINISHED": (run(), "threadId runId", ""),
    "RUN_ERROR": ([failed()], "message", "code"),
    "STEP_STARTED": (ending(step()), "stepName", ""),
    "STEP_FINISHED": (ending(step(), step_end()), "stepName", ""),
    "TEXT_MESSAGE_START": (ending(text()), "messageId", "name role"),
    "TEXT_MESSAGE_CONTENT": (ending(text(), say()), "messageId delta", ""),
    "TEXT_MESSAGE_END": (ending(text(), text_end()), "messageId", ""),
    "TEXT_MESSAGE_CHUNK": (ending(text_chunk("m", "x")), "", "messageId delta name role"),
    "TOOL_CALL_START": (ending(call()), "toolCallId toolCallName", "parentMessageId"),
    "TOOL_CALL_ARGS": (ending(call(), args()), "toolCallId delta", ""),
    "TOOL_CALL_END": (ending(call(), call_end()), "toolCallId", ""),
    "TOOL_CALL_CHUNK": (ending(call_chunk("c", "{}", "f")), "", "toolCallId toolCallName delta parentMessageId"),
    "TOOL_CALL_RESULT": (ending(result()), "messageId toolCallId", "role"),
    "REASONING_START": (ending(span()), "messageId", ""),
    "REASONING_END": (ending(span(), span_end()), "messageId", ""),
    "REASONING_MESSAGE_START": (ending(reason_start()), "messageId role", ""),
    "REASONING_MESSAGE_CONTENT": (ending(reason_start(), reason()), "messageId delta", ""),
    "REASONING_MESSAGE_END": (ending(reason_start(), reason_end()), "messageId", ""),
    "REASONING_MESSAGE_CHUNK": (ending(reason_chunk("q", "x")), "", "messageId delta"),
    "REASONING_ENCRYPTED_VALUE": (ending(text(), sealed("m")), "subtype entityId encryptedValue", ""),
    "STATE_SNAPSHOT": (ending(state({})), "", ""),
    "STATE_DELTA": (ending(patch()), "", ""),
    "MESSAGES_SNAPSHOT": (ending(snapshot()), "", ""),
    "ACTIVITY_SNAPSHOT": (ending(activity()), "messageId activityType", ""),
    "ACTIVITY_DELTA": (ending(activity(), activity_patch("a", "t")), "messageId activityType", ""),
    "SUBAGENT_STARTED": (
        ending(subagent("p"), subagent("s1")),
        "subagentRunId name",
        "description parentSubagentRunId parentToolCallId parentMessageId",
    ),
    "SUBAGENT_FINISHED": (ending(subagent(), subagent_end()), "subagentRunId", ""),
    "SUBAGENT_ERROR": (ending(subagent(), subagent_error()), "subagentRunId message", "code"),
    "RAW": (ending(raw(1)), "", "source"),
    "CUSTOM": (ending(custom()), "name", ""),
}
HIGH, LOW = chr(0xD83D), chr(0xDE00)
"""The two halves of one emoji."""
UNATTRIBUTED = {"RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"}
STATUS = {"RUN_FINISHED": "finished", "RUN_ERROR": "failed"}
FORGIVEN = {("TOOL_CALL_START", "parentMessageId"), ("TOOL_CALL_CHUNK", "parentMessageId")}
"""Optional strings that may be null (OPEN-20)."""


def with_last(events: list[Any], **fields: Any) -> list[Any]:
    return [*events[:-1], {**events[-1], **event("", **fields), "type": events[-1]["type"]}]


def without(events: list[Any], field: str) -> list[Any]:
    return [*events[:-1], {name: value for name, value in events[-1].items() if name != field}]


def envelope(name: str, events: list[Any], needed: str, may: str) -> list[Case]:
    """What every event takes and refuses, and what each of its strings does."""
    status = STATUS.get(name, "truncated")
    return [
        accept("EVT-2 ROLE-2", f"{name} as it is", events, status=status),
        accept(
            "EVT-2",
            f"{name} with all that is optional on every event",
            with_last(events, timestamp=1, rawEvent={"a": None}, metadata={"x.a": None}),
            status=status,
        ),
        accept("EVT-3", f"{name}: timestamps are no order", with_last(events, timestamp=-(2**53) + 1), status=status),
        accept(
            "PROC-5",
            f"{name} with an unknown property",
            with_last(events, surprise={"a": [1]}),
            status=status,
            warns="PROC-5 /surprise",
        ),
        accept(
            "OPEN-20",
            f"{name}: a rawEvent of null",
            with_last(events, rawEvent=None),
            status=status,
            warns="OPEN-20 /rawEvent|EVT-4 /rawEvent|EVT-8 /rawEvent",
        ),
        refuse("EVT-3 PROC-7", f"{name}: a timestamp of text", with_last(events, timestamp="1"), says=("timestamp",)),
        refuse("META-1 PROC-7", f"{name}: metadata that is a list", with_last(events, metadata=[]), says=("metadata",)),
        *(
            refuse("PROC-7", f"{name} without {field}", without(events, field), says=(field,))
            for field in needed.split()
        ),
        *(
            refuse("PROC-7 PROC-18", f"{name}: {field} is a number", with_last(events, **{field: 12}), says=(field,))
            for field in (needed + " " + may).split()
        ),
        *(
            refuse("PROC-7 EVT-8", f"{name}: {field} is null", with_last(events, **{field: None}), says=(field,))
            for field in (needed + " " + may).split()
            if (name, field) not in FORGIVEN
        ),
        *(
            []
            if name in UNATTRIBUTED
            else [refuse("SUB-1 PROC-7", f"{name}: a tag of null", with_last(events, by=None), says=("subagentRunId",))]
        ),
    ]


ENVELOPE = {name: envelope(name, *row) for name, row in EVENTS.items()}


NUMBERS = [
    accept("EVT-3", "the largest timestamp", run(custom(timestamp=2**53 - 1))),
    accept("EVT-3", "a zero fraction is an integer", run(custom(timestamp=5.0))),
    refuse("EVT-3 PROC-7", "one more", ending(custom(timestamp=2**53))),
    refuse("EVT-3 PROC-7", "one less than the smallest", ending(custom(timestamp=-(2**53)))),
    refuse("EVT-3 PROC-7", "a fraction", ending(custom(timestamp=1.5))),
    refuse("EVT-3 PROC-7", "a boolean", ending(custom(timestamp=True))),
    refuse("EVT-3 PROC-7", "null", ending(custom(timestamp=None))),
    refuse("EVT-3 PROC-7", "a number of twenty digits", ending(custom(timestamp=10**20))),
]

TYPES = [
    refuse("EVT-1 PROC-10a PROC-7", "no type", ending({"messageId": "m"})),
    refuse("EVT-1 PROC-10a PROC-7", "a type that is a number", ending({"type": 5})),
    refuse("EVT-1 PROC-10a PROC-7", "a type that is null", ending({"type": None})),
    refuse("EVT-1 PROC-10a PROC-7", "a type that is a list", ending({"type": [], "delta": "x"})),
    refuse("EVT-1 PROC-10a PROC-7", "a type that is an object", ending({"type": {"type": "RAW"}})),
    refuse("EVT-1 PROC-10a PROC-7", "an empty object", ending({})),
    accept("EVT-1 PROC-4", "an unknown type", run({"type": "NEW_THING", "messageId": 5}), warns="PROC-4"),
    accept("EVT-1 PROC-4", "the empty type is unknown", run({"type": ""}), warns="PROC-4"),
    accept("EVT-1 PROC-4", "types are case sensitive", run({"type": "raw"}), warns="PROC-4"),
    *[
        refuse("SSE-8", f"{value!r} is no event", ending(value), error=agui.DecodeError)
        for value in ([], [started()], 5, "x", None, True)
    ],
]

OLD_PART = {"type": "binary", "mimeType": "image/png"}
IMAGE = {"type": "image", "source": {"type": "url", "value": "u"}}
ECHO = {"threadId": "t", "runId": "r", "messages": []}


def parts(rules: str, title: str, before: list[Any], after: list[Any], warns: str = "") -> Case:
    return accept(
        rules, title, run(snapshot(msg("user", "u", before))), messages=[msg("user", "u", after)], warns=warns
    )


STRIPPED = [
    accept(
        "PROC-5",
        "at any depth",
        run(
            snapshot(
                msg(
                    "assistant",
                    "m",
                    "",
                    x=1,
                    toolCalls=[{**tool_call(), "y": 1, "function": {"name": "f", "arguments": "", "z": 1}}],
                )
            )
        ),
        messages=[msg("assistant", "m", "", toolCalls=[tool_call()])],
        warns="PROC-5 /messages/0/x,PROC-5 /messages/0/toolCalls/0/y,PROC-5 /messages/0/toolCalls/0/function/z",
    ),
    accept(
        "PROC-5 SUB-12",
        "a tool call has no tag of its own",
        run(snapshot(msg("assistant", "m", toolCalls=[tool_call(by="s1")]))),
        messages=[msg("assistant", "m", toolCalls=[tool_call()])],
        warns="PROC-5 /messages/0/toolCalls/0/subagentRunId",
    ),
    accept(
        "PROC-5",
        "an activity has no encrypted value",
        run(snapshot(msg("activity", "a", {}, activityType="t", encryptedValue="A"))),
        messages=[msg("activity", "a", {}, activityType="t")],
        warns="PROC-5 /messages/0/encryptedValue",
    ),
    accept(
        "PROC-5",
        "a tool message has no name",
        run(snapshot(msg("tool", "t", "", toolCallId="c", name="n"))),
        messages=[msg("tool", "t", "", toolCallId="c")],
        warns="PROC-5 /messages/0/name",
    ),
    accept(
        "PROC-5",
        "RUN_ERROR has neither thread nor run",
        [failed(threadId="t", runId="r")],
        status="failed",
        warns="PROC-5 /threadId,PROC-5 /runId",
    ),
    accept(
        "PROC-10",
        "interrupts on a success",
        ending(finished(outcome={"type": "success", "interrupts": []})),
        warns="PROC-5 /outcome/interrupts",
    ),
    accept(
        "PROC-10",
        "TEXT_MESSAGE_START.role narrator",
        run(text(role="narrator"), text_end()),
        messages=[msg("assistant", "m", "")],
        warns="PROC-6 /role|PROC-9 /role",
    ),
    accept(
        "OPEN-14",
        "TEXT_MESSAGE_START.role tool",
        run(text(role="tool"), text_end()),
        messages=[msg("assistant", "m", "")],
        warns="PROC-6 /role|PROC-9 /role|OPEN-14 /role",
    ),
    accept(
        "PROC-18 PROC-9",
        "a call of another type",
        run(snapshot(msg("assistant", "m", "x", toolCalls=[{**tool_call(), "type": "mcp"}, tool_call("d")]))),
        messages=[msg("assistant", "m", "x", toolCalls=[tool_call("d")])],
        warns="PROC-6 /messages/0/toolCalls/0|PROC-9 /messages/0/toolCalls/0|PROC-18 /messages/0/toolCalls/0",
    ),
    accept(
        "PROC-9",
        "an answer to an interrupt of unknown status, in the echo",
        [started(input={**ECHO, "resume": [{"interruptId": "i", "status": "postponed"}]}), finished()],
        warns="PROC-6 /input/resume/0|PROC-9 /input/resume/0",
    ),
    accept(
        "PROC-17",
        "an unknown union member is removed unread",
        run(snapshot({"role": "critic", "id": 5}, msg("user", "u", "x"))),
        messages=[msg("user", "u", "x")],
        warns="PROC-6 /messages/0|PROC-9 /messages/0|MSGS-7 /messages/0",
    ),
    refuse("PROC-17 PROC-7", "an unknown enum value has siblings", ending(text(role="narrator", name=5))),
    refuse(
        "PROC-17 PROC-7",
        "a call of another type with a malformed sibling",
        ending(
            snapshot(
                msg("assistant", "m", toolCalls=[{"type": "mcp", "id": 5, "function": {"name": "f", "arguments": ""}}])
            )
        ),
    ),
    parts(
        "PROC-10",
        "an unknown source in the middle",
        [{"type": "text", "text": "a"}, {**IMAGE, "source": {"type": "ipfs"}}, IMAGE],
        [{"type": "text", "text": "a"}, IMAGE],
        "PROC-6 /messages/0/content/1|PROC-9 /messages/0/content/1",
    ),
    parts(
        "EVT-9",
        "any metadata on a part",
        [{**IMAGE, "metadata": 5}, {"type": "text", "text": "a", "id": "", "metadata": {"a": None}}],
        [{**IMAGE, "metadata": 5}, {"type": "text", "text": "a", "id": "", "metadata": {"a": None}}],
    ),
    refuse(
        "EVT-8 PROC-7",
        "null metadata of a text part",
        ending(snapshot(msg("user", "u", [{"type": "text", "text": "a", "metadata": None}]))),
    ),
    *[
        accept("PROC-5", f"open places are never stripped: {title}", run(wire), warns="")
        for title, wire in (
            ("activity content", activity(content={"type": 1, "x": {"y": 1}})),
            ("state", state({"type": "x", "role": "critic"})),
            ("RAW", raw({"type": "NEW"})),
            ("CUSTOM", custom(value={"role": "critic"})),
            ("rawEvent", custom(rawEvent={"type": "NEW", "x": [None]})),
            ("metadata", custom(metadata={"a": {"type": 1}})),
            ("patch operations", patch({"op": "add", "path": "/a", "value": {"role": "x"}, "surprise": 1})),
        )
    ],
]

NULLS = [
    accept(
        "OPEN-20",
        "result of RUN_FINISHED",
        ending(finished(result=None)),
        warns="OPEN-20 /result|EVT-8 /result",
        run={"result": agui.UNSET},
    ),
    accept(
        "OPEN-20", "outcome of RUN_FINISHED", ending(finished(outcome=None)), warns="OPEN-20 /outcome|EVT-8 /outcome"
    ),
    accept(
        "OPEN-20",
        "result of SUBAGENT_FINISHED",
        run(subagent(), subagent_end(result=None)),
        warns="OPEN-20 /result|EVT-8 /result",
    ),
    accept(
        "OPEN-20",
        "parentMessageId of TOOL_CALL_START",
        run(call(parentMessageId=None), call_end()),
        messages=[msg("assistant", "c", toolCalls=[tool_call()])],
        warns="OPEN-20 /parentMessageId|EVT-8 /parentMessageId",
    ),
    accept(
        "OPEN-20",
        "parentMessageId of TOOL_CALL_CHUNK",
        run(call_chunk("c", "", "f", parentMessageId=None)),
        messages=[msg("assistant", "c", toolCalls=[tool_call()])],
        warns="OPEN-20 /parentMessageId|EVT-8 /parentMessageId",
    ),
    parts(
        "OPEN-20",
        "metadata of a media part",
        [{**IMAGE, "metadata": None}],
        [IMAGE],
        "OPEN-20 /messages/0/content/0/metadata|EVT-8 /messages/0/content/0/metadata",
    ),
    accept(
        "OPEN-20",
        "forwardedProps, parameters and payload in the echo",
        [
            started(
                input={
                    **ECHO,
                    "forwardedProps": None,
                    "tools": [{"name": "f", "description": "", "parameters": None}],
                    "resume": [{"interruptId": "i", "status": "resolved", "payload": None}],
                }
            ),
            finished(),
        ],
        warns=",".join(
            f"OPEN-20 /input/{path}|EVT-8 /input/{path}"
            for path in ("forwardedProps", "tools/0/parameters", "resume/0/payload")
        ),
    ),
    *[
        refuse("PROC-7 EVT-8 IN-6", f"{field} in the echo", [started(input={**ECHO, field: None})])
        for field in ("state", "tools", "context", "resume", "parentRunId", "protocolVersion")
    ],
    refuse("PROC-7 EVT-8", "outcome of SUBAGENT_FINISHED", ending(subagent(), subagent_end(outcome=None))),
    refuse("PROC-7 EVT-8", "usage", ending(finished(usage=None))),
    refuse("PROC-7 EVT-8", "name of a message", ending(snapshot(msg("user", "u", "x", name=None)))),
    refuse("PROC-7 EVT-8", "the role of a text", ending(text(role=None))),
    accept(
        "EVT-9",
        "null inside a result is data",
        ending(finished(result=[None, {"a": None}])),
        run={"result": [None, {"a": None}]},
    ),
]

OLD = [
    parts(
        "OLD-2",
        "data becomes a data source",
        [{**OLD_PART, "data": "QQ=="}],
        [{"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}}],
        "OLD-2?",
    ),
    parts(
        "OLD-2",
        "a url becomes a url source",
        [{**OLD_PART, "url": "https://x"}],
        [{"type": "image", "source": {"type": "url", "value": "https://x", "mimeType": "image/png"}}],
        "OLD-2?",
    ),
    parts(
        "OLD-2",
        "data wins over url",
        [{**OLD_PART, "data": "QQ==", "url": "https://x"}],
        [{"type": "image", "source": {"type": "data", "value": "QQ==", "mimeType": "image/png"}}],
        "OLD-2?",
    ),
    *[
        parts(
            "OLD-2",
            f"{mime} is {kind}",
            [{"type": "binary", "mimeType": mime, "url": "u"}],
            [{"type": kind, "source": {"type": "url", "value": "u", "mimeType": mime}}],
            "OLD-2?",
        )
        for mime, kind in (
            ("audio/mpeg", "audio"),
            ("video/mp4", "video"),
            ("application/pdf", "document"),
            ("x", "document"),
        )
    ],
    parts(
        "OLD-2",
        "a filename goes to the metadata",
        [{**OLD_PART, "url": "u", "filename": "a.png"}],
        [
            {
                "type": "image",
                "source": {"type": "url", "value": "u", "mimeType": "image/png"},
                "metadata": {"filename": "a.png"},
            }
        ],
        "OLD-2?",
    ),
    parts(
        "OLD-2",
        "one that mirrors a modern part is dropped",
        [{"type": "image", "source": {"type": "url", "value": "u", "mimeType": "image/png"}}, {**OLD_PART, "url": "u"}],
        [{"type": "image", "source": {"type": "url", "value": "u", "mimeType": "image/png"}}],
        "OLD-2?",
    ),
    parts(
        "OLD-2 PROC-9",
        "with only an id it cannot be converted",
        [{**OLD_PART, "id": "f1"}, {"type": "text", "text": "a"}],
        [{"type": "text", "text": "a"}],
        "OLD-2,PROC-6 /messages/0/content/0|PROC-9 /messages/0/content/0?",
    ),
]


@pytest.mark.parametrize("case", [*NUMBERS, *TYPES, *STRIPPED, *NULLS, *OLD], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("type", EVENTS)
def test_the_envelope_and_the_fields_of(type: str) -> None:
    for case in ENVELOPE[type]:
        try:
            check(case)
        except Exception as error:
            error.add_note(str(case))
            raise


def old(kind: str, **fields: Any) -> Any:
    return event(f"THINKING_{kind}", **fields)


WHOLE_THOUGHT = [
    *[old("START"), old("TEXT_MESSAGE_START"), old("TEXT_MESSAGE_CONTENT", delta="h")],
    *[old("TEXT_MESSAGE_CONTENT", delta="m"), old("TEXT_MESSAGE_END"), old("END")],
]


@pytest.mark.parametrize("encode", [lambda wire: wire, json.dumps, lambda wire: json.dumps(wire).encode()])
def test_OLD_1_thinking_becomes_reasoning(encode: Any) -> None:
    seen: list[str] = []
    reducer = agui.Reducer(on_event=lambda event: seen.append(event.type))
    for wire in run(*WHOLE_THOUGHT, *WHOLE_THOUGHT):
        reducer.apply(encode(wire))
    thought = [
        *["REASONING_START", "REASONING_MESSAGE_START", "REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"],
        *["REASONING_MESSAGE_END", "REASONING_END"],
    ]
    assert seen == ["RUN_STARTED", *thought, *thought, "RUN_FINISHED"]
    first, second = reducer.messages
    assert (first.content, second.content) == ("hm", "hm")
    assert first.id != second.id
    assert all(message.id.startswith("r:reasoning:") for message in (first, second))


def test_OLD_1_ids_are_unique_over_runs() -> None:
    reducer = agui.reduce([*run(*WHOLE_THOUGHT), started("r2"), *WHOLE_THOUGHT, finished("r2")])
    assert len({message.id for message in reducer.messages}) == 2


def test_OLD_1_ids_are_deterministic() -> None:
    once, again = agui.reduce(run(*WHOLE_THOUGHT)), agui.reduce(run(*WHOLE_THOUGHT))
    assert once.messages == again.messages


def test_OLD_1_a_title_is_lost_with_a_warning() -> None:
    reducer = agui.reduce(run(old("START", title="Plan"), old("END")))
    assert [warning.rule for warning in reducer.warnings if "title" in str(warning)] == ["OLD-1"]


@pytest.mark.parametrize(
    ("wire", "rules"),
    [
        (old("TEXT_MESSAGE_CONTENT", delta="x"), {"STR-2"}),
        (old("TEXT_MESSAGE_END"), {"STR-2"}),
        (old("END"), {"REAS-3"}),
        (old("TEXT_MESSAGE_CONTENT"), {"PROC-7"}),
        (old("TEXT_MESSAGE_CONTENT", delta=5), {"PROC-7"}),
    ],
)
def test_OLD_1_continuations_without_an_opener_are_refused(wire: Any, rules: set[str]) -> None:
    reducer = agui.reduce(ending())
    reducer = agui.Reducer()
    reducer.apply(started())
    with pytest.raises(agui.ProtocolError) as refusal:
        reducer.apply(wire)
    assert refusal.value.rule in rules
    assert refusal.value.index == 1


def test_PROC_17_a_missing_tag_of_what_was_dropped() -> None:
    """An event of unknown type may hold anything."""
    reducer = agui.reduce(run({"type": "NEW", "subagentRunId": None, "timestamp": "x", "metadata": 5}))
    assert reducer.status == "finished"


def test_SSE_9_halves_of_a_pair_in_two_deltas_meet() -> None:
    stream = run(text(), say(delta="a" + HIGH), say(delta=LOW + "b"), text_end())
    for events in (stream, [json.dumps(wire).encode() for wire in stream]):
        reducer = agui.reduce(events)
        assert agui.to_wire(reducer.messages) == [msg("assistant", "m", "a\N{GRINNING FACE}b")]
        assert reducer.warnings == ()


@pytest.mark.parametrize("deltas", [[HIGH], [HIGH, ""], [LOW], [HIGH, HIGH], [LOW, HIGH]])
def test_a_half_that_stays_alone_becomes_a_replacement_character(deltas: list[str]) -> None:
    reducer = agui.reduce(run(text(), *(say(delta=delta) for delta in deltas), text_end()))
    (message,) = reducer.messages
    assert set(message.content) == {"\N{REPLACEMENT CHARACTER}"}
    assert reducer.warnings
    agui.encode(reducer.messages)


def test_a_half_that_stays_alone_makes_arguments_invalid() -> None:
    reducer = agui.reduce(run(call(), args(delta='"' + HIGH), args(delta='"'), call_end()))
    view = reducer.tool_calls["c"]
    assert (view.complete, view.valid) == (True, False)
    agui.encode(reducer.messages)
