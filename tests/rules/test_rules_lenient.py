"""The lenient policy: its repairs, and that everything else is skipped with a warning and raises nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
import test_rules_activity as activities
import test_rules_chunks as chunks
import test_rules_items as items
import test_rules_lanes as lanes
import test_rules_processing as processing
import test_rules_reasoning as reasoning
import test_rules_runs as runs
import test_rules_snapshots as snapshots
import test_rules_state as states
import test_rules_subagents as subagents

import agui_core as agui
from support.events import (
    activity,
    activity_patch,
    args,
    call,
    call_chunk,
    call_end,
    ending,
    failed,
    finished,
    msg,
    op,
    patch,
    reason,
    reason_end,
    reason_start,
    result,
    run,
    say,
    snapshot,
    span,
    span_end,
    started,
    state,
    step,
    step_end,
    subagent,
    subagent_end,
    text,
    text_chunk,
    text_end,
    tool_call,
)
from support.rule_cases import Case, accept, check


def repaired(rules: str, title: str, events: list[Any], **expected: Any) -> Case:
    expected.setdefault("warns", rules.split()[0])
    return accept(rules, title, events, policy="lenient", **expected)


def made(id: str, name: str, arguments: str, **fields: Any) -> Any:
    return msg("assistant", id, toolCalls=[tool_call(id, name, arguments)], **fields)


ITEMS = [
    repaired(
        "PROC-7",
        "a result without an id",
        run(call(), call_end(), {k: v for k, v in result().items() if k != "messageId"}),
        messages=[made("c", "f", ""), msg("tool", "c:result", "ok", toolCallId="c")],
    ),
    repaired(
        "STR-2",
        "text never opened",
        run(say("m", "a"), say("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "ab")],
    ),
    repaired(
        "STR-2",
        "with the owner that it names",
        run(say("m", "a", by="s1"), text_end("m")),
        messages=[msg("assistant", "m", "a", by="s1")],
    ),
    repaired(
        "STR-2",
        "with its metadata",
        run(say("m", "a", meta={"k": 1}), text_end("m")),
        messages=[msg("assistant", "m", "a", meta={"k": 1})],
    ),
    repaired(
        "STR-2",
        "arguments never opened",
        run(args("c", "[1"), args("c", "]"), call_end("c")),
        messages=[made("c", "", "[1]")],
    ),
    repaired(
        "STR-2", "reasoning never opened", run(reason("q", "a"), reason_end("q")), messages=[msg("reasoning", "q", "a")]
    ),
    repaired(
        "STR-2",
        "text already closed",
        run(text("m"), say("m", "a"), text_end("m"), say("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "ab")],
    ),
    repaired(
        "STR-2",
        "arguments already closed keep their call's name",
        run(
            call("c"),
            args("c", "["),
            call_end("c"),
            call("d"),
            args("c", "]"),
            args("d", "1"),
            call_end("d"),
            call_end("c"),
        ),
        messages=[made("c", "f", "[]"), made("d", "f", "1")],
    ),
    repaired(
        "STR-2",
        "arguments already closed keep their call's place and owner",
        run(
            text("m", by="s1"),
            call("c", parentMessageId="m"),
            args("c", "["),
            call_end("c"),
            text_end("m"),
            args("c", "]"),
            call_end("c"),
        ),
        messages=[msg("assistant", "m", "", by="s1", toolCalls=[tool_call("c", "f", "[]")])],
    ),
    repaired(
        "STR-2",
        "reopened and left open",
        run(call("c"), call_end("c"), args("c", "{}")),
        messages=[made("c", "f", "{}")],
        warns="STR-2,RUN-4",
    ),
    repaired("STR-2", "an end without a start", run(text_end("m")), messages=[]),
    repaired("STR-2", "a call's end without a start", run(call_end("c")), messages=[]),
    repaired(
        "STR-2", "ended twice", run(text("m"), text_end("m"), text_end("m")), messages=[msg("assistant", "m", "")]
    ),
    repaired(
        "STR-1",
        "a start of an open text: only its metadata counts",
        run(
            text("m", name="A", meta={"a": 1}),
            say("m", "x"),
            text("m", role="user", name="B", meta={"b": 2}),
            say("m", "y"),
            text_end("m"),
        ),
        messages=[msg("assistant", "m", "xy", name="A", meta={"a": 1, "b": 2})],
    ),
    repaired(
        "STR-1",
        "a start of an open call",
        run(call("c", "f"), args("c", "["), call("c", "g", meta={"b": 2}), args("c", "]"), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "f", "[]", meta={"b": 2})])],
    ),
    repaired(
        "STR-1",
        "a start of open reasoning",
        run(reason_start("q"), reason_start("q"), reason("q"), reason_end("q")),
        messages=[msg("reasoning", "q", "hm")],
    ),
    repaired("REAS-3", "a span that is open", run(span(), span(), span_end()), messages=[]),
    repaired("REAS-3", "the end of no span", run(span_end()), messages=[]),
    repaired("STEP-2", "a step that is open", run(step(), step(), step_end())),
    repaired("STEP-3", "the end of no step", run(step_end())),
    repaired("SUB-4", "a subagent that ended", run(subagent(), subagent_end(), subagent_end())),
    repaired(
        "SUB-8",
        "another's tag: skipped",
        run(text("m", by="s1"), say("m", "a", by="s2"), say("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "b", by="s1")],
    ),
]

CHUNKS = [
    repaired(
        "STR-1",
        "a chunk for what is open explicitly adds to it",
        run(text("m"), say("m", "a"), text_chunk("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "ab")],
    ),
    repaired(
        "STR-1",
        "a call's chunk likewise",
        run(call("c"), args("c", "["), call_chunk("c", "]", "f"), call_end("c")),
        messages=[made("c", "f", "[]")],
    ),
    repaired(
        "STR-2",
        "an explicit continuation of chunks",
        run(text_chunk("m", "a"), say("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "ab")],
    ),
    repaired(
        "STR-2",
        "an explicit end of chunks",
        run(text_chunk("m", "a"), text_end("m")),
        messages=[msg("assistant", "m", "a")],
    ),
    repaired(
        "CHUNK-3",
        "a closed call's chunk without its name",
        run(call_chunk("c", "[", "f"), state(1), call_chunk("c", "]")),
        messages=[made("c", "f", "[]")],
        warns="CHUNK-3|CHUNK-23",
    ),
    repaired(
        "CHUNK-3",
        "a call's chunk that never names a tool",
        run(call_chunk("c", "["), call_chunk("c", "]")),
        messages=[made("c", "", "[]")],
    ),
    repaired(
        "CHUNK-3",
        "no id at all: skipped",
        run(text_chunk(delta="a"), text_chunk("m", "b")),
        messages=[msg("assistant", "m", "b")],
        warns="CHUNK-3|CHUNK-12",
    ),
    repaired(
        "CHUNK-12",
        "ambiguous: skipped",
        run(text_chunk("a", "1", by="s1"), text_chunk("b", "2", by="s2"), text_chunk(delta="x")),
        messages=[msg("assistant", "a", "1", by="s1"), msg("assistant", "b", "2", by="s2")],
    ),
    repaired(
        "CHUNK-7",
        "a conflict: skipped",
        run(text_chunk("m", "a"), text_chunk("m", "b", role="user"), text_chunk("m", "c")),
        messages=[msg("assistant", "m", "ac")],
        warns="CHUNK-7|CHUNK-8",
    ),
]

RUNS = [
    repaired("RUN-4", "an open text is closed", run(text("m"), say("m", "a")), messages=[msg("assistant", "m", "a")]),
    repaired(
        "RUN-4",
        "an open call is closed",
        run(call("c"), args("c", "{}")),
        messages=[made("c", "f", "{}")],
        run={"pending_tool_calls": ("c",)},
    ),
    repaired(
        "RUN-4", "all kinds at a time", run(subagent(), text(), call(), reason_start(), span(), step(), step(by="s1"))
    ),
    repaired(
        "RUN-1",
        "events before the run",
        [text("m"), say("m", "a"), text_end("m"), finished()],
        messages=[msg("assistant", "m", "a")],
        warns="RUN-1,OPEN-1|RUN-10?,OPEN-1|RUN-10?",
    ),
    repaired(
        "RUN-1",
        "a state before the run",
        [state({"n": 1}), started(), text("m"), text_end("m"), finished()],
        state={"n": 1},
        messages=[msg("assistant", "m", "")],
        warns="RUN-1,RUN-2?,OPEN-1|RUN-10?,OPEN-1|RUN-10?",
    ),
    repaired("RUN-1", "a finish alone", [finished()]),
    repaired(
        "RUN-1", "a chunk alone", [text_chunk("m", "a")], status="truncated", messages=[msg("assistant", "m", "a")]
    ),
    repaired(
        "RUN-2",
        "events after the run are applied to it",
        [*run(), text("m"), say("m", "a"), text_end("m")],
        messages=[msg("assistant", "m", "a")],
        warns="RUN-2",
    ),
    repaired(
        "RUN-2",
        "its status stays",
        [*ending(finished(outcome={"type": "cancelled"})), state(1)],
        state=1,
        status="cancelled",
    ),
    repaired(
        "RUN-7",
        "also that of a failure",
        [*ending(failed()), state(1), text("m"), text_end("m")],
        state=1,
        status="failed",
        messages=[msg("assistant", "m", "")],
    ),
    repaired(
        "RUN-2",
        "the next run begins all the same",
        [*run(), state(1), started("r2"), text("m"), text_end("m"), finished("r2")],
        run={"run_id": "r2"},
        messages=[msg("assistant", "m", "")],
    ),
    repaired("RUN-2", "a late failure comes after them", [*run(), state(1), failed()], status="failed"),
    repaired(
        "RUN-2",
        "a second start is ignored",
        ending(text("m"), started("r2"), say("m", "a"), text_end("m"), finished()),
        run={"run_id": "r"},
        messages=[msg("assistant", "m", "a")],
    ),
    repaired(
        "RUN-7",
        "a finish after a failure is ignored",
        ending(failed(), finished()),
        status="failed",
        warns="RUN-7|RUN-2",
    ),
    repaired(
        "RUN-7",
        "two failures",
        ending(failed("a"), failed("b")),
        status="failed",
        run={"error": agui.events.RunErrorEvent(message="a")},
    ),
    repaired("RUN-2", "two finishes", [*run(), finished(outcome={"type": "cancelled"})]),
]

VALUES = [
    repaired(
        "EVT-8",
        "null in optional fields is absent",
        run(text(name=None, role=None, timestamp=None, metadata=None, rawEvent=None, subagentRunId=None), text_end()),
        messages=[msg("assistant", "m", "")],
        warns=",".join(
            f"EVT-8 /{name}|OPEN-20 /{name}|PROC-7 /{name}"
            for name in ("name", "role", "timestamp", "metadata", "rawEvent", "subagentRunId")
        ),
    ),
    repaired(
        "EVT-8",
        "in messages too",
        run(snapshot({"id": "m", "role": "assistant", "content": None, "toolCalls": None, "name": None})),
        messages=[msg("assistant", "m")],
        warns=",".join(
            f"EVT-8 /messages/0/{name}|OPEN-20 /messages/0/{name}|PROC-7 /messages/0/{name}"
            for name in ("content", "toolCalls", "name")
        ),
    ),
    repaired(
        "PROC-7",
        "null in a required field skips the event",
        run(text(), say(delta=None), say(delta="a"), text_end()),  # type: ignore[arg-type]
        messages=[msg("assistant", "m", "a")],
        warns="PROC-7|PROC-7 /delta",
    ),
    repaired(
        "PROC-7",
        "a malformed value skips its event",
        run(text(), say(delta=5), say(delta="a"), text_end()),  # type: ignore[arg-type]
        messages=[msg("assistant", "m", "a")],
        warns="PROC-7|PROC-7 /delta",
    ),
    repaired(
        "PROC-7",
        "a malformed message skips its snapshot",
        run(snapshot({"id": 5, "role": "user", "content": ""}, msg("user", "u", "x"))),
        messages=[],
        warns="PROC-7|PROC-7 /messages/0/id",
    ),
    repaired(
        "PROC-10a",
        "an event without a type",
        run({"messageId": "m"}),
        messages=[],
        warns="PROC-10a|EVT-1|PROC-7|PROC-10a /type",
    ),
    repaired(
        "PATCH-2",
        "a malformed operation skips its patch",
        run(patch(op("add", "/a", 1), {"op": "add", "path": "/b"})),
        state={},
        warns="PATCH-2|PROC-7|PATCH-2 /delta/1/value|PROC-7 /delta/1/value|PATCH-2 /delta/1|PROC-7 /delta/1",
    ),
    repaired(
        "PATCH-2",
        "and the next patch applies",
        run(patch(op("add", "b", 1)), patch(op("add", "/b", 1))),
        state={"b": 1},
        warns="PATCH-2|PROC-7|PATCH-2 /delta/0/path|PROC-7 /delta/0/path",
    ),
    repaired(
        "PATCH-2",
        "an activity's patch likewise",
        run(activity("a", content={"n": 1}), activity_patch("a", "todo", op("add", "b", 1))),
        messages=[msg("activity", "a", {"n": 1}, activityType="todo")],
        warns="PATCH-2|PROC-7|PATCH-2 /patch/0/path|PROC-7 /patch/0/path",
    ),
    repaired(
        "OPEN-13",
        "a call repeated within a message is dropped",
        run(
            snapshot(
                msg("assistant", "m", toolCalls=[tool_call("c", "f", "1"), tool_call("c", "f", "2"), tool_call("d")])
            )
        ),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c", "f", "1"), tool_call("d")])],
    ),
    repaired(
        "MSGS-4",
        "arguments that are no JSON do not replace held ones that are",
        run(
            call("c", parentMessageId="m"),
            args("c", '{"a":1}'),
            call_end("c"),
            snapshot(msg("assistant", "m", "x", toolCalls=[tool_call("c", "g", '{"a"')])),
        ),
        messages=[msg("assistant", "m", "x", toolCalls=[tool_call("c", "g", '{"a":1}')])],
        warns="MSGS-4|MSGS-1|TOOL-3",
    ),
    repaired(
        "MSGS-4",
        "arguments that are JSON do",
        run(
            call("c", parentMessageId="m"),
            args("c", '{"a":1}'),
            call_end("c"),
            snapshot(msg("assistant", "m", toolCalls=[tool_call("c", "f", "2")])),
        ),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c", "f", "2")])],
        warns="",
    ),
    repaired(
        "MSGS-4",
        "so do broken ones when the held ones are broken too",
        run(
            call("c", parentMessageId="m"),
            args("c", "{"),
            call_end("c"),
            snapshot(msg("assistant", "m", toolCalls=[tool_call("c", "f", "[")])),
        ),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c", "f", "[")])],
        warns="",
    ),
]


@pytest.mark.parametrize("case", [*ITEMS, *CHUNKS, *RUNS, *VALUES], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)


STRICT = [
    *[
        *runs.ORDER,
        *runs.OPEN_AT_THE_END,
        *runs.KEEPS,
        *runs.VERDICTS,
        *runs.USAGE,
        *runs.STEPS,
        *runs.VERSIONS,
        *runs.PENDING,
    ],
    *[*items.TRIADS, *items.TEXT, *items.CALLS, *items.RESULTS, *states.STATE, *states.PATCHES, *states.METADATA],
    *[*chunks.EXPANSION, *chunks.METADATA, *lanes.LANES, *lanes.CLOSING, *lanes.MIXING],
    *[*subagents.LIVES, *subagents.OWNERSHIP, *subagents.OTHERS, *snapshots.RECONCILED, *snapshots.STREAMED],
    *[*activities.ACTIVITIES, *activities.PASSTHROUGH, *reasoning.SPANS, *reasoning.SEALED],
    *[
        *(case for cases in processing.ENVELOPE.values() for case in cases),
        *processing.NUMBERS,
        *processing.TYPES,
        *processing.STRIPPED,
        *processing.NULLS,
        *processing.OLD,
    ],
]


def test_what_strict_accepts_lenient_takes_alike() -> None:
    for case in STRICT:
        if not case.refused and case.title != snapshots.REPEATED_CALL:
            check(case._replace(options={**case.options, "policy": "lenient"}))


def test_what_strict_refuses_lenient_reports_and_goes_on() -> None:
    for case in STRICT:
        if not case.refused:
            continue
        reducer = agui.Reducer(**{**case.options, "policy": "lenient"})
        for wire in [*case.events, failed(), started("later"), text("later")]:
            reducer.apply(json.dumps(wire))
        reported = {warning.rule for warning in reducer.warnings if warning.index == len(case.events) - 1}
        assert reported & {*case.rules.split(), "EVT-8"}, f"{case}: {reducer.warnings}"
        assert reducer.error is None, case
        assert reducer.messages[-1].id == "later", case


@pytest.mark.parametrize("garbage", [b"nope", b"\xff\xfe", b"[1]", b'"x"', b'{"type":', b"null", b"{} {}"])
def test_SSE_8_what_is_no_event_is_skipped(garbage: bytes) -> None:
    for feed in ("apply", "apply_sse", "apply_lines"):
        reducer = agui.Reducer(policy="lenient")
        frame = {"apply": b"%s", "apply_sse": b"data: %s\n\n", "apply_lines": b"%s\n"}[feed]
        for payload in (json.dumps(started()).encode(), garbage, json.dumps(finished()).encode()):
            getattr(reducer, feed)(frame % payload)
        assert reducer.status == "finished", feed
        (warning,) = reducer.warnings
        assert warning.rule in ("SSE-8", "SSE-9"), feed
        assert warning.index == 1


def test_a_run_is_assumed_with_the_ids_of_the_input() -> None:
    run_input = {"threadId": "t9", "runId": "r9", "messages": []}
    reducer = agui.Reducer.from_input(run_input, policy="lenient")
    reducer.apply(text())
    assert (reducer.run.thread_id, reducer.run.run_id) == ("t9", "r9")


def test_a_call_that_nobody_opened_has_no_name() -> None:
    reducer = agui.reduce(run(args("c", "{}"), call_end("c")), policy="lenient")
    view = reducer.tool_calls["c"]
    assert (view.name, view.complete, view.args) == ("", True, {})
