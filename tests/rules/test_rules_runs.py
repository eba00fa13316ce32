"""Runs, their order and their endings; usage; versions; steps (protocol sections 5, 6, 17, 18, 20)."""

from __future__ import annotations

from typing import Any

import pytest

import agui_core as agui
from support.events import (
    args,
    call,
    call_chunk,
    call_end,
    custom,
    ending,
    failed,
    finished,
    msg,
    raw,
    reason_chunk,
    reason_start,
    result,
    run,
    say,
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
from support.rule_cases import Case, accept, check, refuse

INTERRUPTED = {"type": "interrupt", "interrupts": [{"id": "i1", "reason": "approve", "message": "Really?"}]}
CANCELLED = {"type": "cancelled"}


def second_run(*events: Any) -> list[Any]:
    """The events as a second run, after one that failed in the middle of everything."""
    before = ending(text("m"), call("c"), reason_start("q"), span("s"), step("plan"), subagent("s1"), failed())
    return [*before, started("r2"), *events, finished("r2")]


ORDER = [
    accept("RUN-1 RUN-2", "the smallest run", run(), messages=[], state={}, run={"thread_id": "t", "run_id": "r"}),
    accept("RUN-1 RUN-2", "a failure may open a stream", [failed("no quota")], status="failed"),
    accept("RUN-2", "a run after a failure at the start", [failed(), *run()]),
    accept("RUN-2 RUN-8", "two runs", [*run(), started("r2"), finished("r2")], run={"run_id": "r2"}),
    accept("RUN-6", "a late failure revokes the finish", [*run(), failed("flush")], status="failed"),
    accept("RUN-7", "a new run after a late failure", [*run(), failed(), started("r2"), finished("r2")]),
    accept(
        "RUN-6 RUN-15",
        "a failed run, then a cancelled one",
        [*run(), failed("flush failed"), started("r2"), finished("r2", outcome=CANCELLED)],
        status="cancelled",
        run={"run_id": "r2", "error": None},
    ),
    accept("RUN-17", "a stream without a terminal event", ending(text(), say()), status="truncated"),
    accept("RUN-17", "a stream without events", [], status="idle"),
    accept(
        "PROC-4",
        "events of unknown type are not there: before, between and after runs",
        [{"type": "NEW1"}, started(), {"type": "NEW2"}, finished(), {"type": "NEW3", "x": 1}],
        warns="PROC-4,PROC-4,PROC-4",
    ),
    refuse("RUN-1", "a finish first", [finished()], says=("RUN_STARTED",)),
    refuse("RUN-1", "text first", [text()], says=("RUN_STARTED",)),
    refuse("RUN-1", "text after an unknown event", [{"type": "NEW"}, text()], says=("RUN_STARTED",)),
    refuse("RUN-1 RUN-3", "RAW first", [raw()], says=("RUN_STARTED",)),
    refuse("RUN-1 RUN-3", "CUSTOM first", [custom()], says=("RUN_STARTED",)),
    refuse("RUN-1", "a chunk first", [text_chunk("m", "x")], says=("RUN_STARTED",)),
    refuse("RUN-2", "a nested start", ending(started("r2")), says=("r", "finish")),
    refuse("RUN-2", "the same start twice", ending(started()), says=("r",)),
    refuse("RUN-2", "two finishes", [*run(), finished()], says=("RUN_STARTED",)),
    refuse("RUN-2", "text after the finish", [*run(), text()], says=("RUN_STARTED",)),
    refuse("RUN-2 RUN-3 PASS-3", "RAW after the finish", [*run(), raw()]),
    refuse("RUN-2 RUN-3 PASS-3", "CUSTOM after the finish", [*run(), custom()]),
    refuse("RUN-2", "a chunk after the finish", [*run(), text_chunk("m", "x")]),
    refuse("RUN-2 RUN-7", "a finish after a failure", ending(failed(), finished()), says=("RUN_STARTED",)),
    refuse("RUN-7", "two failures", ending(failed(), failed()), says=("RUN_STARTED",)),
    refuse("RUN-7", "two failures at the start", [failed(), failed()]),
    refuse("RUN-7", "two late failures", [*run(), failed(), failed()]),
    refuse("RUN-5 RUN-7", "an end after the failure", ending(text(), failed(), text_end())),
    refuse("RUN-3 RUN-7", "RAW after a failure", ending(failed(), raw())),
]

OPEN_AT_THE_END = [
    refuse("RUN-4 STR-3", "an open text message", run(text("m")), ids=("m",), says=("close",)),
    refuse("RUN-4 STR-3 TOOL-12", "an open call", run(call("c")), ids=("c",)),
    refuse("RUN-4 STR-3 REAS-5", "an open reasoning message", run(reason_start("q")), ids=("q",)),
    refuse("RUN-4 REAS-3", "an open span", run(span("s")), ids=("s",)),
    refuse("RUN-4 STEP-4", "an open step", run(step("plan")), ids=("plan",)),
    refuse("RUN-4 STEP-4", "an open step of a subagent", run(step("plan", by="s1")), ids=("plan",)),
    refuse("RUN-4 SUB-5", "an announced subagent", run(subagent("s1")), ids=("s1",)),
    refuse(
        "RUN-4 SUB-18",
        "an open item of a subagent that ended",
        run(subagent(), text("m", by="s1"), subagent_end()),
        ids=("m",),
    ),
    refuse("RUN-4", "also when interrupted", ending(text("m"), finished(outcome=INTERRUPTED)), ids=("m",)),
    refuse("RUN-4 TOOL-12", "also when cancelled", ending(call("c"), finished(outcome=CANCELLED)), ids=("c",)),
    accept(
        "RUN-4 CHUNK-20",
        "what chunks opened is closed first",
        run(text_chunk("m", "x"), reason_chunk("q", "y", by="s1")),
        messages=[msg("assistant", "m", "x"), msg("reasoning", "q", "y", by="s1")],
    ),
    accept(
        "RUN-5 SUB-6",
        "a failure abandons all that is open",
        ending(text(), call(), reason_start(), span(), step(), subagent(), failed()),
        status="failed",
    ),
    refuse("RUN-9 STR-2", "a new run forgets open text", second_run(say("m"))[:-1], ids=("m",)),
    refuse("RUN-9 STR-2", "a new run forgets open calls", second_run(args("c"))[:-1], ids=("c",)),
    refuse("RUN-9 REAS-3", "a new run forgets open spans", second_run(span_end("s"))[:-1], ids=("s",)),
    refuse("RUN-9 STEP-3", "a new run forgets open steps", second_run(step_end("plan"))[:-1], ids=("plan",)),
    refuse("RUN-9 SUB-4", "a new run forgets active subagents", second_run(subagent_end("s1"))[:-1], ids=("s1",)),
    accept(
        "RUN-9 SUB-4",
        "all of it may start again in a new run",
        second_run(text("m"), text_end("m"), call("c"), call_end("c"), step(), step_end(), subagent(), subagent_end()),
    ),
]

KEEPS = [
    accept(
        "RUN-9 RUN-11",
        "messages and state outlive the run; a held id appends",
        [*run(text("m"), say("m", "a"), text_end("m"), state(1)), started("r2"), text("m"), say("m", "b")],
        messages=[msg("assistant", "m", "ab")],
        state=1,
        status="truncated",
    ),
    accept(
        "RUN-22",
        "a failed run keeps its partial messages and its state",
        ending(state({"n": 1}), text("m"), say("m", "par"), failed()),
        messages=[msg("assistant", "m", "par")],
        state={"n": 1},
        status="failed",
    ),
    accept(
        "RUN-12 STATE-5 OPEN-2",
        "an echoed input adds the messages that are not held and leaves the state",
        [
            started(
                input={
                    "threadId": "t",
                    "runId": "r",
                    "messages": [msg("user", "u", "other"), msg("user", "v", "new")],
                    "state": {"n": 9},
                }
            ),
            finished(),
        ],
        held=[msg("user", "u", "hi")],
        baseline={"n": 1},
        messages=[msg("user", "u", "hi"), msg("user", "v", "new")],
        state={"n": 1},
    ),
    accept(
        "OPEN-2 RUN-8",
        "the echo of a later run counts as well",
        [*run(), started("r2", input={"threadId": "t", "runId": "r2", "messages": [msg("user", "u", "hi")]})],
        messages=[msg("user", "u", "hi")],
        status="truncated",
    ),
    refuse(
        "OPEN-2 SUB-10",
        "an echoed message has its owner for the run",
        [
            started(input={"threadId": "t", "runId": "r", "messages": [msg("assistant", "m", "x", by="s1")]}),
            text("m", by="s2"),
        ],
        ids=("m",),
    ),
    refuse("RUN-12 PROC-7", "the echo is enforced", [started(input={"threadId": "t", "runId": "r"})]),
    accept(
        "RUN-12 PROC-5",
        "unknown material in the echo is stripped",
        [started(input={"threadId": "t", "runId": "r", "messages": [], "x": 1}), finished()],
        warns="PROC-5 /input/x",
    ),
]

VERDICTS = [
    accept("RUN-13", "no outcome is success", run()),
    accept("RUN-13", "success", ending(finished(outcome={"type": "success"}))),
    accept(
        "RUN-13 PROC-10",
        "an unknown outcome is success",
        ending(finished(outcome={"type": "paused"})),
        warns="PROC-6 /outcome|PROC-9 /outcome|RUN-13 /outcome",
    ),
    accept("RUN-14", "a result", ending(finished(result={"a": None})), run={"result": {"a": None}}),
    accept("RUN-14", "a result of a falsy value", ending(finished(result=0)), run={"result": 0}),
    accept(
        "RUN-14",
        "a cancelled run has no result",
        ending(finished(outcome=CANCELLED, result=1)),
        status="cancelled",
        warns="RUN-14",
    ),
    accept(
        "RUN-15",
        "cancelled keeps what came",
        ending(text(), say(), text_end(), finished(outcome=CANCELLED)),
        status="cancelled",
        messages=[msg("assistant", "m", "x")],
        run={"interrupts": ()},
    ),
    accept(
        "INT-1",
        "interrupted",
        ending(finished(outcome=INTERRUPTED)),
        status="interrupted",
        run={"interrupts": (agui.Interrupt(id="i1", reason="approve", message="Really?"),)},
    ),
    accept(
        "INT-1 OPEN-15",
        "a late failure of an interrupted run",
        ending(finished(outcome=INTERRUPTED), failed()),
        status="failed",
        run={"interrupts": ()},
    ),
    accept(
        "INT-16",
        "only the last run's interrupts are open",
        ending(finished(outcome=INTERRUPTED), started("r2"), finished("r2")),
        run={"interrupts": ()},
    ),
    accept(
        "INT-2",
        "two interrupts of one id",
        ending(finished(outcome={"type": "interrupt", "interrupts": [{"id": "i", "reason": "a"}] * 2})),
        status="interrupted",
        warns="INT-2",
    ),
    accept(
        "INT-3",
        "any reason",
        ending(
            finished(
                outcome={
                    "type": "interrupt",
                    "interrupts": [
                        {
                            "id": "",
                            "reason": "acme.whim",
                            "responseSchema": {"x": None},
                            "expiresAt": "soon",
                            "toolCallId": "c",
                        }
                    ],
                }
            )
        ),
        status="interrupted",
    ),
    accept("OPEN-1 RUN-10", "another runId at the end", [started("r"), finished("other")], warns="OPEN-1|RUN-10"),
    accept(
        "OPEN-1 RUN-10", "another threadId at the end", [started(), finished(thread="other")], warns="OPEN-1|RUN-10"
    ),
    accept(
        "RUN-10",
        "another thread in the next run",
        [*run(), started("r2", thread="t2"), finished("r2", thread="t2")],
        warns="RUN-10",
    ),
    accept("RUN-10 EVT-7", "a runId used again", [*run(), *run()], warns="RUN-10|EVT-7"),
    accept(
        "RUN-18",
        "an open code",
        [failed("m", code="acme.42")],
        status="failed",
        run={"error": agui.events.RunErrorEvent(message="m", code="acme.42")},
    ),
    refuse(
        "PROC-7 PROC-10", "an interrupt outcome without interrupts", ending(finished(outcome={"type": "interrupt"}))
    ),
    refuse(
        "PROC-7 PROC-10 INT-1",
        "an interrupt outcome with none",
        ending(finished(outcome={"type": "interrupt", "interrupts": []})),
    ),
    refuse("PROC-7 PROC-10", "an outcome that is a string", ending(finished(outcome="success"))),
    refuse("PROC-7 PROC-10 PROC-10a", "an outcome without a type", ending(finished(outcome={}))),
    refuse("PROC-7 PROC-10 PROC-10a", "an outcome whose type is a number", ending(finished(outcome={"type": 7}))),
]

USAGE = [
    accept(
        "USE-1",
        "usage of a failure",
        [failed(usage=[{"inputTokens": 3, "outputTokens": 4, "totalTokens": 7}])],
        status="failed",
    ),
    accept(
        "USE-1",
        "a total that does not add up",
        ending(finished(usage=[{"inputTokens": 3, "outputTokens": 4, "totalTokens": 9}])),
        warns="USE-1",
    ),
    accept(
        "USE-2",
        "a total beside an unknown part is no contradiction",
        ending(finished(usage=[{"inputTokens": 3, "totalTokens": 9}, {}])),
    ),
    refuse("USE-5 PROC-7", "a negative count", ending(finished(usage=[{"inputTokens": -1}]))),
    refuse("USE-5 PROC-7", "a fraction", ending(failed(usage=[{"inputTokens": 1.5}]))),
    refuse("USE-5 PROC-7", "a boolean", ending(finished(usage=[{"inputTokens": True}]))),
    refuse("USE-5 PROC-7", "a count beyond the safe integers", ending(finished(usage=[{"inputTokens": 2**53}]))),
    refuse("PROC-7 PROC-10", "usage that is no list", ending(finished(usage={}))),
]

STEPS = [
    accept(
        "STEP-1",
        "two owners may have a step of one name open",
        run(step("p"), step("p", by="s1"), step_end("p"), step_end("p", by="s1")),
    ),
    accept(
        "STEP-5",
        "steps overlap, and a name may come back",
        run(step("a"), step("b"), step_end("a"), step("a"), text(), step_end("b"), text_end(), step_end("a")),
    ),
    refuse("STEP-2", "a step that is open", ending(step("p"), step("p")), ids=("p",)),
    refuse(
        "STEP-2",
        "a step of a subagent that is open",
        ending(step("p", by="s1"), step("p", by="s1")),
        ids=("p",),
        says=("s1",),
    ),
    refuse("STEP-3", "a step that never started", ending(step_end("p")), ids=("p",)),
    refuse("STEP-3", "a step that was finished", ending(step("p"), step_end("p"), step_end("p")), ids=("p",)),
    refuse(
        "STEP-3 OPEN-22 SUB-11",
        "an untagged finish of a tagged step",
        ending(step("p", by="s1"), step_end("p")),
        ids=("p",),
        says=("s1",),
    ),
    refuse(
        "STEP-3 SUB-11", "a tagged finish of an untagged step", ending(step("p"), step_end("p", by="s1")), ids=("p",)
    ),
]

VERSIONS = [
    accept("VER-1", "no version: an old peer", run(), run={"protocol_version": None}),
    accept("VER-1", "our own version", [started(protocolVersion="1.0"), finished()], run={"protocol_version": "1.0"}),
    accept("VER-3", "an older one", [started(protocolVersion="0.9"), finished()]),
    accept("VER-2 VER-3", "a newer minor", [started(protocolVersion="1.10"), finished()], warns="VER-3"),
    accept("VER-3", "a newer major", [started(protocolVersion="2.0"), finished()], warns="VER-3"),
    accept("VER-3", "words", [started(protocolVersion="v-next"), finished()], warns="VER-3"),
    accept("VER-3", "no minor", [started(protocolVersion="1"), finished()], warns="VER-3"),
    accept("VER-3", "an endless number", [started(protocolVersion="1." + "9" * 5000), finished()], warns="VER-3"),
    accept(
        "VER-5",
        "each run declares its own",
        [started(protocolVersion="1.0"), finished(), started("r2"), finished("r2")],
        run={"protocol_version": None},
    ),
    refuse("VER-3 PROC-7", "a version that is a number", [started(protocolVersion=1.0)]),
    refuse("VER-3 PROC-7", "a version that is null", [started(protocolVersion=None)]),
]

ANSWERED = run(call("c"), call_end("c"), call("d"), call_end("d"), result("c"))

PENDING = [
    accept(
        "FT-2",
        "calls without a result, in the order they were made",
        run(call("b"), call_end("b"), call("a"), call_end("a"), call("c"), call_end("c"), result("a")),
        run={"pending_tool_calls": ("b", "c")},
    ),
    accept(
        "FT-2",
        "a result before its call's end counts",
        run(call("c"), result("c"), call_end("c")),
        run={"pending_tool_calls": ()},
    ),
    accept(
        "FT-2",
        "only calls of this run",
        [*ANSWERED, started("r2"), call("e"), call_end("e"), finished("r2")],
        run={"pending_tool_calls": ("e",)},
    ),
    accept("FT-2 CHUNK-1", "calls made by chunks", run(call_chunk("c", "{}", "f")), run={"pending_tool_calls": ("c",)}),
    accept(
        "FT-3",
        "the list, when it is there",
        [*ANSWERED[:-1], finished(outcome={"type": "success", "pendingToolCallIds": ["d"]})],
        run={"pending_tool_calls": ("d",)},
    ),
    accept(
        "FT-3",
        "an empty list means: derive",
        [*ANSWERED[:-1], finished(outcome={"type": "success", "pendingToolCallIds": []})],
        run={"pending_tool_calls": ("d",)},
    ),
    accept(
        "FT-3 OPEN-3 FT-13",
        "a list that disagrees",
        [*ANSWERED[:-1], finished(outcome={"type": "success", "pendingToolCallIds": ["c"]})],
        warns="FT-3|OPEN-3|FT-13",
    ),
    accept(
        "FT-4",
        "an interrupted run derives",
        [*ANSWERED[:-1], finished(outcome=INTERRUPTED)],
        status="interrupted",
        run={"pending_tool_calls": ("d",)},
    ),
    accept(
        "FT-2 SUB-6",
        "calls of subagents count too",
        run(call("c", by="s1"), call_end("c")),
        run={"pending_tool_calls": ("c",)},
    ),
    accept(
        "TOOL-9",
        "a result that never comes is no violation",
        run(call("c"), args("c"), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "f", "{}")])],
    ),
]


@pytest.mark.parametrize(
    "case", [*ORDER, *OPEN_AT_THE_END, *KEEPS, *VERDICTS, *USAGE, *STEPS, *VERSIONS, *PENDING], ids=str
)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)


def test_RUN_21_a_refusal_is_not_a_run_error() -> None:
    refused, failing = agui.Reducer(), agui.Reducer()
    refused.apply(started())
    with pytest.raises(agui.ProtocolError):
        refused.apply(started())
    for wire in ending(failed("boom", code="c")):
        failing.apply(wire)
    assert (refused.status, refused.run.error) == ("rejected", None)
    assert isinstance(refused.error, agui.ProtocolError)
    assert (failing.status, failing.error) == ("failed", None)
    assert failing.run.error == agui.events.RunErrorEvent(message="boom", code="c")


def test_USE_2_absent_counts_stay_absent() -> None:
    reducer = agui.reduce(ending(finished(usage=[{"provider": "p", "inputTokens": 0}, {}])))
    first, second = reducer.run.usage
    assert (first.provider, first.input_tokens, first.output_tokens) == ("p", 0, agui.UNSET)
    assert second.total_tokens is agui.UNSET


@pytest.mark.parametrize("type", ["RUN_STARTED", "RUN_FINISHED", "RUN_ERROR", "MESSAGES_SNAPSHOT"])
def test_EVT_5_no_attribution_on_run_events(type: str) -> None:
    events = {
        "RUN_STARTED": [started(by="s1"), finished()],
        "RUN_FINISHED": [started(), finished(by="s1")],
        "RUN_ERROR": [started(), failed(by="s1")],
        "MESSAGES_SNAPSHOT": ending({"type": "MESSAGES_SNAPSHOT", "messages": [], "subagentRunId": "s1"}, finished()),
    }[type]
    check(
        accept(
            "EVT-5", type, events, warns="PROC-5 /subagentRunId", status="failed" if type == "RUN_ERROR" else "finished"
        )
    )
