"""Subagents: their lives and what they own (protocol section 15, OPEN-7, OPEN-18, OPEN-21 to OPEN-24)."""

from __future__ import annotations

import pytest

from support.events import (
    activity,
    activity_patch,
    args,
    call,
    call_end,
    custom,
    ending,
    failed,
    finished,
    msg,
    op,
    patch,
    raw,
    reason,
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
    text_end,
    tool_call,
)
from support.rule_cases import Case, accept, check, refuse

LIVES = [
    accept("SUB-5", "announced and finished", run(subagent(), text(by="s1"), text_end(), subagent_end())),
    accept("SUB-6", "one that failed; the run goes on", run(subagent(), subagent_error(), text(), text_end())),
    accept("SUB-5 SUB-7", "suspended counts as closed", run(subagent(), subagent_end(outcome={"type": "suspended"}))),
    accept(
        "SUB-7",
        "suspended on an interrupt of the run",
        ending(
            subagent(),
            subagent_end(outcome={"type": "suspended", "interruptIds": ["i1"]}),
            finished(outcome={"type": "interrupt", "interrupts": [{"id": "i1", "reason": "x", "subagentRunId": "s1"}]}),
        ),
        status="interrupted",
    ),
    accept(
        "SUB-7",
        "suspended on an interrupt that the run does not raise",
        run(subagent(), subagent_end(outcome={"type": "suspended", "interruptIds": ["i1"]})),
        warns="SUB-7",
    ),
    accept(
        "SUB-7 PROC-5",
        "interruptIds on a success",
        run(subagent(), subagent_end(outcome={"type": "success", "interruptIds": ["i1"]})),
        warns="PROC-5 /outcome/interruptIds",
    ),
    accept(
        "PROC-10",
        "an unknown outcome",
        run(subagent(), subagent_end(outcome={"type": "handed-off"})),
        warns="PROC-6 /outcome|PROC-9 /outcome",
    ),
    accept("SUB-2", "tags that nobody announced", run(text(by="s1"), say(by="s1"), text_end(by="s1"), custom(by="s2"))),
    accept("SUB-3", "announced after its tag", run(custom(by="s1"), subagent("s1"), subagent_end("s1")), warns="SUB-3"),
    accept(
        "SUB-4",
        "an id again in a later run",
        [*run(subagent(), subagent_end()), started("r2"), subagent(), subagent_end(), finished("r2")],
    ),
    accept(
        "SUB-13",
        "a parent that is active, and one that ended",
        run(
            *[subagent("a"), subagent("b", parentSubagentRunId="a"), subagent_end("a"), subagent_end("b")],
            *[subagent("c", parentSubagentRunId="a"), subagent_end("c")],
        ),
    ),
    accept(
        "SUB-14",
        "invocations interleave",
        run(
            *[subagent("a"), subagent("b"), text("m", by="a"), text("n", by="b"), say("m", by="a"), say("n", by="b")],
            *[text_end("n"), subagent_end("b"), say("m", "!", by="a"), text_end("m"), subagent_end("a")],
        ),
        messages=[msg("assistant", "m", "x!", by="a"), msg("assistant", "n", "x", by="b")],
    ),
    accept(
        "SUB-18 OPEN-21",
        "an explicit item outlives its invocation",
        run(subagent(), text("m", by="s1"), subagent_end(), say("m"), text_end("m")),
        messages=[msg("assistant", "m", "x", by="s1")],
    ),
    accept(
        "SUB-18 OPEN-23",
        "a tag after its invocation ended",
        run(subagent(), text("m", by="s1"), subagent_error(), say("m", by="s1"), text_end("m")),
        messages=[msg("assistant", "m", "x", by="s1")],
        warns="SUB-18|OPEN-23",
    ),
    refuse("SUB-4", "started twice", ending(subagent(), subagent()), ids=("s1",)),
    refuse("SUB-4", "started again after its end", ending(subagent(), subagent_end(), subagent()), ids=("s1",)),
    refuse("SUB-4", "finished without a start", ending(subagent_end()), ids=("s1",), says=("SUBAGENT_STARTED",)),
    refuse("SUB-4", "failed without a start", ending(subagent_error()), ids=("s1",)),
    refuse("SUB-4", "finished twice", ending(subagent(), subagent_end(), subagent_end()), ids=("s1",)),
    refuse("SUB-4", "failed after it finished", ending(subagent(), subagent_end(), subagent_error()), ids=("s1",)),
    refuse("SUB-13", "a parent that nobody announced", ending(subagent("b", parentSubagentRunId="a")), ids=("a",)),
    refuse("SUB-13", "its own parent", ending(subagent("a", parentSubagentRunId="a")), ids=("a",)),
    refuse(
        "SUB-13 RUN-9",
        "a parent of an earlier run",
        [*run(subagent("a"), subagent_end("a")), started("r2"), subagent("b", parentSubagentRunId="a")],
        ids=("a",),
    ),
    refuse("SUB-1 EVT-8 PROC-7", "a tag that is null", ending(text(by=None))),
    refuse("PROC-7", "a tag that is a number", ending(text(by=1))),
    refuse("PROC-7", "an announcement without an id", ending({"type": "SUBAGENT_STARTED", "name": "x"})),
    refuse("PROC-7", "an announcement without a name", ending({"type": "SUBAGENT_STARTED", "subagentRunId": "x"})),
]

ITEMS = {
    "text": (text("i"), say("i"), text_end("i")),
    "call": (call("i"), args("i"), call_end("i")),
    "reasoning": (reason_start("i"), reason("i"), reason_end("i")),
}


def tag(event: dict[str, object], by: str | None) -> dict[str, object]:
    return event if by is None else {**event, "subagentRunId": by}


OWNERSHIP = [
    case
    for family, (start, content, end) in ITEMS.items()
    for case in (
        accept("SUB-8", f"{family}: the opener's tag", run(*(tag(event, "s1") for event in (start, content, end)))),
        accept("SUB-9", f"{family}: untagged continuations", run(tag(start, "s1"), content, end)),
        refuse(
            "SUB-8",
            f"{family}: content of another",
            ending(tag(start, "s1"), tag(content, "s2")),
            ids=("i",),
            says=("s1", "s2"),
        ),
        refuse(
            "SUB-8",
            f"{family}: end of another",
            ending(tag(start, "s1"), tag(end, "s2")),
            ids=("i",),
            says=("s1", "s2"),
        ),
        refuse(
            "SUB-8",
            f"{family}: a tag where the opener had none",
            ending(start, tag(content, "s1")),
            ids=("i",),
            says=("s1",),
        ),
        refuse("SUB-8 EVT-6", f"{family}: the empty tag is a tag", ending(start, tag(content, "")), ids=("i",)),
        refuse(
            "SUB-10 TEXT-4",
            f"{family}: reopened by another",
            ending(tag(start, "s1"), end, tag(start, "s2")),
            ids=("i",),
        ),
        refuse("SUB-10 TEXT-4", f"{family}: reopened with a tag", ending(start, end, tag(start, "s1")), ids=("i",)),
        accept(
            "OPEN-7 SUB-10",
            f"{family}: reopened without a tag",
            run(tag(start, "s1"), end, start, tag(content, "s1"), end),
        ),
        refuse(
            "OPEN-7 SUB-8",
            f"{family}: reopened without a tag, the owner stands",
            ending(tag(start, "s1"), end, start, tag(content, "s2")),
            ids=("i",),
        ),
        accept(
            "SUB-16 RUN-9",
            f"{family}: another run forgets owners",
            [*run(tag(start, "s1"), end), started("r2"), tag(start, "s2"), end, finished("r2")],
            warns="TEXT-4|SUB-10|TEXT-3|TOOL-6|SUB-16?",
        ),
    )
]

OTHERS = [
    accept(
        "SUB-15 STATE-3",
        "tags of state events are provenance only",
        run(state({"n": 1}, by="s1"), patch(op("add", "/m", 2), by="s2"), raw(by="s3"), custom(by="s4")),
        state={"n": 1, "m": 2},
    ),
    accept("SUB-11 STEP-1", "steps repeat their tag", run(step(by="s1"), step_end(by="s1"))),
    refuse(
        "ACT-9 SUB-8",
        "an activity's delta of another",
        ending(activity("a", by="s1"), activity_patch("a", "todo", by="s2")),
        ids=("a",),
        says=("s1", "s2"),
    ),
    refuse(
        "ACT-9 SUB-8",
        "a tagged delta of the parent's activity",
        ending(activity("a"), activity_patch("a", "todo", by="s2")),
        ids=("a",),
    ),
    accept("ACT-9 SUB-9", "an untagged delta", run(activity("a", by="s1"), activity_patch("a", "todo"))),
    refuse(
        "ACT-9 ACT-2",
        "the latest replacing snapshot sets the owner",
        ending(activity("a", by="s1"), activity("a", by="s2"), activity_patch("a", "todo", by="s1")),
        ids=("a",),
    ),
    refuse(
        "ACT-9 ACT-3",
        "a declined snapshot does not",
        ending(activity("a", by="s1"), activity("a", replace=False, by="s2"), activity_patch("a", "todo", by="s2")),
        ids=("a",),
    ),
    accept(
        "OPEN-24",
        "an activity of an earlier run",
        [
            *run(activity("a", by="s1", content={"n": 1})),
            started("r2"),
            activity_patch("a", "todo", op("replace", "/n", 2), by="s2"),
            finished("r2"),
        ],
        messages=[msg("activity", "a", {"n": 2}, activityType="todo", by="s1")],
        warns="OPEN-24",
    ),
    refuse(
        "SUB-8",
        "an encrypted value of another",
        ending(text("m", by="s1"), text_end("m"), sealed("m", by="s2")),
        ids=("m",),
    ),
    refuse(
        "SUB-8",
        "a tagged encrypted value for the parent's message",
        ending(text("m"), text_end("m"), sealed("m", by="s2")),
        ids=("m",),
    ),
    refuse(
        "SUB-8 TOOL-14",
        "an encrypted value for another's call",
        ending(call("c", by="s1"), call_end("c"), sealed("c", subtype="tool-call", by="s2")),
        ids=("c",),
    ),
    accept(
        "SUB-9",
        "an untagged encrypted value",
        run(text("m", by="s1"), text_end("m"), sealed("m")),
        messages=[msg("assistant", "m", "", by="s1", encryptedValue="AA")],
    ),
    accept(
        "SUB-8",
        "an encrypted value of the owner",
        run(reason_start("q", by="s1"), reason_end("q"), sealed("q", by="s1")),
        messages=[msg("reasoning", "q", "", by="s1", encryptedValue="AA")],
    ),
    refuse(
        "REAS-1 SUB-8",
        "one id for a span and a message of two producers",
        ending(span("q", by="s1"), reason_start("q", by="s2")),
        ids=("q",),
    ),
    refuse("REAS-1 SUB-8", "the other way round", ending(reason_start("q", by="s1"), span("q", by="s2")), ids=("q",)),
    refuse("OPEN-18 SUB-8", "a span's end of another", ending(span("s", by="s1"), span_end("s", by="s2")), ids=("s",)),
    accept("OPEN-18 SUB-9", "an untagged span's end", run(span("s", by="s1"), span_end("s"))),
    accept(
        "SUB-16 MSGS-5",
        "a snapshot sets owners",
        ending(
            text("m", by="s1"),
            text_end("m"),
            snapshot(msg("assistant", "m", "x", by="s2")),
            text("m", by="s2"),
            say("m", "y", by="s2"),
            failed(),
        ),
        messages=[msg("assistant", "m", "xy", by="s2")],
        status="failed",
    ),
    refuse(
        "SUB-16 MSGS-5 SUB-10",
        "and takes them away",
        ending(text("m", by="s1"), text_end("m"), snapshot(msg("assistant", "m", "x")), text("m", by="s1")),
        ids=("m",),
    ),
    refuse(
        "SUB-16 MSGS-5 SUB-10",
        "of messages that were not held before",
        ending(snapshot(msg("assistant", "m", "x", by="s2")), text("m", by="s1")),
        ids=("m",),
    ),
    refuse(
        "SUB-16 MSGS-5 SUB-8",
        "of items that are open",
        ending(text("m", by="s1"), snapshot(msg("assistant", "m", "x", by="s2")), say("m", by="s1")),
        ids=("m",),
    ),
    accept(
        "SUB-16 SUB-8",
        "an item that a snapshot gave to another goes on with its new owner",
        run(text("m", by="s1"), snapshot(msg("assistant", "m", "x", by="s2")), say("m", "y", by="s2"), text_end("m")),
        messages=[msg("assistant", "m", "xy", by="s2")],
    ),
    refuse(
        "SUB-16 SUB-12 SUB-10",
        "of the calls inside",
        ending(snapshot(msg("assistant", "m", by="s2", toolCalls=[tool_call("c")])), call("c", by="s1")),
        ids=("c",),
    ),
    refuse(
        "ACT-9 SUB-16",
        "of activities",
        ending(snapshot(msg("activity", "a", {}, activityType="todo", by="s2")), activity_patch("a", "todo", by="s1")),
        ids=("a",),
    ),
    accept(
        "SUB-2",
        "results may carry any tag",
        run(call("c", by="s1"), call_end("c"), result("c", by="s2")),
        messages=[
            msg("assistant", "c", by="s1", toolCalls=[tool_call("c")]),
            msg("tool", "t", "ok", toolCallId="c", by="s2"),
        ],
    ),
]


@pytest.mark.parametrize("case", [*LIVES, *OWNERSHIP, *OTHERS], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)
