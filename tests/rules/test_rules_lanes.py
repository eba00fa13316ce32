"""Chunks: which lane they are in, what closes it, and mixing with the explicit form (protocol sections 11.2, 11.3)."""

from __future__ import annotations

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

MADE_BY_F = [msg("assistant", "c", toolCalls=[tool_call("c", "f", "{}")])]

LANES = [
    accept(
        "CHUNK-2 CHUNK-10",
        "lanes are independent",
        run(
            *[text_chunk("m", "1"), text_chunk("a", "2", by="s1"), reason_chunk("q", "3", by="s2")],
            *[text_chunk(delta="4"), text_chunk(delta="5", by="s1"), reason_chunk(delta="6", by="s2")],
        ),
        messages=[
            msg("assistant", "m", "14"),
            msg("assistant", "a", "25", by="s1"),
            msg("reasoning", "q", "36", by="s2"),
        ],
    ),
    accept(
        "CHUNK-11 SUB-9",
        "an untagged chunk with an id finds its lane",
        run(text_chunk("a", "1", by="s1"), text_chunk("a", "2"), text_chunk(delta="3", by="s1")),
        messages=[msg("assistant", "a", "123", by="s1")],
    ),
    accept(
        "CHUNK-11",
        "an untagged chunk with a new id opens in the parent lane",
        run(text_chunk("a", "1", by="s1"), text_chunk("m", "2"), text_chunk("a", "3", by="s1")),
        messages=[msg("assistant", "a", "13", by="s1"), msg("assistant", "m", "2")],
        seen="RUN_STARTED START CONTENT START CONTENT CONTENT END END RUN_FINISHED",
    ),
    accept(
        "CHUNK-11",
        "its kind counts: an id that is open as another kind is a new item",
        run(reason_chunk("q", "1", by="s1"), text_chunk("q2", "2"), reason_chunk("q", "3")),
        messages=[msg("reasoning", "q", "13", by="s1"), msg("assistant", "q2", "2")],
    ),
    accept(
        "CHUNK-12",
        "without an id the parent's stream of the kind comes first",
        run(text_chunk("a", "1", by="s1"), text_chunk("m", "2"), text_chunk(delta="3")),
        messages=[msg("assistant", "a", "1", by="s1"), msg("assistant", "m", "23")],
    ),
    accept(
        "CHUNK-12",
        "else the only one there is",
        run(text_chunk("a", "1", by="s1"), reason_chunk("q", "2"), text_chunk(delta="3")),
        messages=[msg("assistant", "a", "13", by="s1"), msg("reasoning", "q", "2")],
    ),
    accept(
        "CHUNK-12",
        "streams of another kind are no candidates",
        run(text_chunk("a", "1", by="s1"), reason_chunk("q", "2", by="s2"), text_chunk(delta="3")),
        messages=[msg("assistant", "a", "13", by="s1"), msg("reasoning", "q", "2", by="s2")],
    ),
    refuse(
        "CHUNK-12",
        "several candidates, none the parent's",
        ending(text_chunk("a", "1", by="s1"), text_chunk("b", "2", by="s2"), text_chunk(delta="x")),
        says=("messageId", "subagentRunId"),
    ),
    refuse("CHUNK-12 CHUNK-3", "no candidate of the kind", ending(reason_chunk("q", "1"), text_chunk(delta="x"))),
    refuse(
        "CHUNK-13 CHUNK-3",
        "a tagged one, its lane holds another kind",
        ending(reason_chunk("q", "1", by="s1"), text_chunk(delta="x", by="s1")),
    ),
    refuse(
        "CHUNK-14 SUB-8",
        "a tag that is another lane's",
        ending(text_chunk("a", "1", by="s1"), text_chunk("a", "2", by="s2")),
        ids=("a",),
        says=("s1", "s2"),
    ),
    refuse(
        "CHUNK-14 SUB-8",
        "a tag on the parent's stream",
        ending(text_chunk("m", "1"), text_chunk("m", "2", by="s2")),
        ids=("m",),
        says=("s2",),
    ),
    accept(
        "CHUNK-10",
        "the tag rides on all that is synthesized",
        run(text_chunk("a", "1", by="s1")),
        messages=[msg("assistant", "a", "1", by="s1")],
    ),
]

OPENED = text_chunk("m", "Hel")
TAGGED = text_chunk("m", "Hel", by="s1")
HELLO = msg("assistant", "m", "Hello")

CLOSERS: dict[str, list[Any]] = {
    "TEXT_MESSAGE_START": [text("n")],
    "TEXT_MESSAGE_CONTENT": [say("n")],
    "TEXT_MESSAGE_END": [text_end("n")],
    "TOOL_CALL_START": [call("d")],
    "TOOL_CALL_ARGS": [args("d")],
    "TOOL_CALL_END": [call_end("d")],
    "TOOL_CALL_RESULT": [result("z")],
    "STEP_STARTED": [step("other")],
    "STEP_FINISHED": [step_end("plan")],
    "STATE_SNAPSHOT": [state(1)],
    "STATE_DELTA": [patch()],
    "CUSTOM": [custom()],
    "REASONING_START": [span("n")],
    "REASONING_END": [span_end("s")],
    "REASONING_MESSAGE_START": [reason_start("n")],
    "REASONING_MESSAGE_CONTENT": [reason("o")],
    "REASONING_MESSAGE_END": [reason_end("o")],
}
NEEDED: dict[str, list[Any]] = {
    "TEXT_MESSAGE_CONTENT": [text("n")],
    "TEXT_MESSAGE_END": [text("n")],
    "TOOL_CALL_ARGS": [call("d")],
    "TOOL_CALL_END": [call("d")],
    "STEP_FINISHED": [step("plan")],
    "REASONING_END": [span("s")],
    "REASONING_MESSAGE_CONTENT": [reason_start("o")],
    "REASONING_MESSAGE_END": [reason_start("o")],
}
HARMLESS: dict[str, list[Any]] = {
    "RAW": [raw()],
    "ACTIVITY_SNAPSHOT": [activity("act")],
    "ACTIVITY_DELTA": [activity("act"), activity_patch("act", "todo")],
    "REASONING_ENCRYPTED_VALUE": [sealed("u")],
    "SUBAGENT_STARTED": [subagent("s9")],
}
USER = [msg("user", "u", "hi")]


def tagged(events: list[Any], tag: str) -> list[Any]:
    return [{**event, "subagentRunId": tag} for event in events]


CLOSING = [
    *[
        refuse(
            "CHUNK-20 CHUNK-23 CHUNK-12 CHUNK-3",
            f"{name} closes the parent's stream",
            ending(*NEEDED.get(name, []), OPENED, *closing, text_chunk(delta="lo")),
        )
        for name, closing in CLOSERS.items()
    ],
    *[
        accept(
            "CHUNK-22",
            f"a tagged {name} leaves the parent's stream alone",
            ending(
                *tagged(NEEDED.get(name, []), "s1"), OPENED, *tagged(closing, "s1"), text_chunk(delta="lo"), failed()
            ),
            status="failed",
        )
        for name, closing in CLOSERS.items()
    ],
    *[
        refuse(
            "CHUNK-20 CHUNK-13 CHUNK-3",
            f"a tagged {name} closes the stream in its lane",
            ending(
                *tagged(NEEDED.get(name, []), "s1"),
                TAGGED,
                *tagged(closing, "s1"),
                text_chunk(delta="lo", by="s1"),
            ),
        )
        for name, closing in CLOSERS.items()
    ],
    *[
        accept(
            "CHUNK-20 PASS-1 ACT-12 REAS-14",
            f"{name} closes nothing",
            run(OPENED, *harmless, text_chunk(delta="lo"))[: None if name != "SUBAGENT_STARTED" else -1],
            held=USER,
            status="truncated" if name == "SUBAGENT_STARTED" else "finished",
        )
        for name, harmless in HARMLESS.items()
    ],
    accept(
        "PROC-4 CHUNK-20",
        "an unknown event closes nothing",
        run(OPENED, {"type": "NEW"}, text_chunk(delta="lo")),
        messages=[HELLO],
        warns="PROC-4",
    ),
    accept(
        "PROC-9 CHUNK-20",
        "an event that enforcement drops closes nothing",
        run(OPENED, {**sealed("u"), "subtype": "x"}, text_chunk(delta="lo")),
        messages=[HELLO],
        warns="PROC-6|PROC-9|PROC-6 /subtype|PROC-9 /subtype",
    ),
    refuse(
        "CHUNK-20 CHUNK-23 CHUNK-12 CHUNK-3",
        "MESSAGES_SNAPSHOT closes the parent's",
        ending(OPENED, snapshot(), text_chunk(delta="x")),
    ),
    refuse(
        "CHUNK-20 MSGS-6 CHUNK-13 CHUNK-3",
        "MESSAGES_SNAPSHOT closes every lane",
        ending(TAGGED, snapshot(), text_chunk(delta="x", by="s1")),
    ),
    accept(
        "CHUNK-20 CHUNK-21",
        "RUN_FINISHED closes every lane, before itself",
        run(text_chunk("a", "1", by="s1"), call_chunk("c", "{}", "f")),
        seen="RUN_STARTED START CONTENT START ARGS END END RUN_FINISHED",
    ),
    accept(
        "CHUNK-26",
        "RUN_ERROR closes the lanes",
        ending(call_chunk("c", "{", "f"), failed()),
        status="failed",
        seen="RUN_STARTED START ARGS END RUN_ERROR",
    ),
    accept(
        "CHUNK-25 RUN-17",
        "a truncated stream closes nothing",
        ending(call_chunk("c", "{", "f")),
        status="truncated",
        seen="RUN_STARTED START ARGS",
    ),
    accept(
        "CHUNK-21",
        "the end comes before what caused it",
        run(OPENED, state(1)),
        seen="RUN_STARTED START CONTENT END STATE_SNAPSHOT RUN_FINISHED",
    ),
    *[
        refuse(
            "CHUNK-20 CHUNK-13 CHUNK-3",
            f"{type_} closes the lane of its invocation",
            ending(subagent("s1"), TAGGED, closing("s1"), text_chunk(delta="x", by="s1")),
        )
        for type_, closing in (("SUBAGENT_FINISHED", subagent_end), ("SUBAGENT_ERROR", subagent_error))
    ],
    accept(
        "CHUNK-22 SUB-14",
        "a subagent that ends leaves other lanes, its child's too",
        run(
            subagent("s1"),
            subagent("s2", parentSubagentRunId="s1"),
            OPENED,
            text_chunk("a", "1", by="s2"),
            subagent_end("s1"),
            text_chunk(delta="lo"),
            text_chunk(delta="2", by="s2"),
            subagent_end("s2"),
        ),
        messages=[HELLO, msg("assistant", "a", "12", by="s2")],
    ),
    accept(
        "CHUNK-23 STR-6",
        "text that names its id again reopens",
        run(OPENED, state(1), text_chunk("m", "lo")),
        messages=[HELLO],
        seen="RUN_STARTED START CONTENT END STATE_SNAPSHOT START CONTENT END RUN_FINISHED",
    ),
    accept(
        "CHUNK-23",
        "a call that names id and tool again reopens",
        run(call_chunk("c", "{", "f"), state(1), call_chunk("c", "}", "f")),
        messages=MADE_BY_F,
    ),
    refuse(
        "CHUNK-23 CHUNK-3",
        "a call that names only its id does not",
        ending(call_chunk("c", "{", "f"), state(1), call_chunk("c", "}")),
        ids=("c",),
        says=("toolCallName",),
    ),
    refuse(
        "CHUNK-23 SUB-10",
        "reopened in another lane than its own",
        ending(TAGGED, state(1, by="s1"), text_chunk("m", "x", by="s2")),
        ids=("m",),
    ),
    accept(
        "OPEN-7 CHUNK-11",
        "an untagged chunk that reopens a subagent's item agrees",
        run(TAGGED, state(1, by="s1"), text_chunk("m", "lo")),
        messages=[msg("assistant", "m", "Hello", by="s1")],
    ),
]

MIXING = [
    refuse("CHUNK-24 STR-2", "content", ending(OPENED, say("m")), ids=("m",)),
    refuse("CHUNK-24 STR-2", "an end", ending(OPENED, text_end("m")), ids=("m",)),
    refuse("CHUNK-24 STR-2", "arguments", ending(call_chunk("c", "{", "f"), args("c")), ids=("c",)),
    refuse("CHUNK-24 STR-2", "a call's end", ending(call_chunk("c", "{", "f"), call_end("c")), ids=("c",)),
    refuse("CHUNK-24 STR-2", "reasoning content", ending(reason_chunk("q", "h"), reason("q")), ids=("q",)),
    refuse("CHUNK-24 STR-2", "a reasoning end", ending(reason_chunk("q", "h"), reason_end("q")), ids=("q",)),
    refuse("CHUNK-24 STR-2", "untagged, for a subagent's item", ending(TAGGED, say("m")), ids=("m",)),
    refuse("CHUNK-24 STR-2", "untagged end, for a subagent's item", ending(TAGGED, text_end("m")), ids=("m",)),
    refuse(
        "CHUNK-24 STR-2",
        "untagged end, for a subagent's call",
        ending(call_chunk("c", "{", "f", by="s1"), call_end("c")),
        ids=("c",),
    ),
    accept(
        "CHUNK-24",
        "a start reopens what the chunks had open",
        run(OPENED, text("m"), say("m", "lo"), text_end("m")),
        messages=[HELLO],
        seen="RUN_STARTED START CONTENT END START CONTENT END RUN_FINISHED",
    ),
    accept(
        "CHUNK-24 OPEN-7",
        "also an untagged start, in a subagent's lane",
        run(TAGGED, text("m"), say("m", "lo"), text_end("m")),
        messages=[msg("assistant", "m", "Hello", by="s1")],
    ),
    accept(
        "CHUNK-24 TOOL-6",
        "a call's start as well",
        run(call_chunk("c", "{", "f"), call("c"), args("c", "}"), call_end("c")),
        messages=MADE_BY_F,
    ),
    refuse(
        "CHUNK-24 STR-1 CHUNK-9",
        "a chunk for what is open explicitly",
        ending(text("m"), text_chunk("m", "x")),
        ids=("m",),
    ),
    refuse("CHUNK-24 STR-1", "a call chunk likewise", ending(call("c"), call_chunk("c", "x", "f")), ids=("c",)),
    refuse(
        "CHUNK-24 STR-1", "a reasoning chunk likewise", ending(reason_start("q"), reason_chunk("q", "x")), ids=("q",)
    ),
    refuse(
        "CHUNK-24 CHUNK-3", "a call chunk without a name, for an explicit call", ending(call("c"), call_chunk("c", "x"))
    ),
    refuse(
        "CHUNK-12 CHUNK-3",
        "an id-less chunk has no explicit item to go on with",
        ending(text("m"), text_chunk(delta="x")),
    ),
    accept(
        "CHUNK-9 OPEN-8",
        "an explicit item beside a chunk stream in another lane",
        run(text("m"), text_chunk("a", "1", by="s1"), say("m", "x"), text_chunk(delta="2", by="s1"), text_end("m")),
        messages=[msg("assistant", "m", "x"), msg("assistant", "a", "12", by="s1")],
    ),
    accept(
        "OPEN-8",
        "an untagged event for a subagent's explicit item closes the parent's stream only",
        run(
            text("x", by="s1"),
            text_chunk("a", "1", by="s2"),
            OPENED,
            say("x", "?"),
            text_chunk(delta="2", by="s2"),
            text_end("x"),
        ),
        seen="RUN_STARTED START START CONTENT START CONTENT END CONTENT CONTENT END END RUN_FINISHED",
    ),
    accept(
        "CHUNK-20",
        "the digest's first example but its last event",
        run(OPENED, activity("act"), text_chunk(delta="lo"), state({"n": 1}), text_chunk("m", "!"), custom()),
        messages=[msg("assistant", "m", "Hello!"), msg("activity", "act", {}, activityType="todo")],
        state={"n": 1},
    ),
    refuse(
        "CHUNK-23 CHUNK-12 CHUNK-3",
        "the digest's first example",
        ending(
            OPENED,
            activity("act"),
            text_chunk(delta="lo"),
            state({"n": 1}),
            text_chunk("m", "!"),
            custom(),
            text_chunk(delta="?"),
        ),
    ),
]


@pytest.mark.parametrize("case", [*LANES, *CLOSING, *MIXING], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)


def test_CHUNK_25_a_truncated_call_is_not_complete() -> None:
    reducer = agui.reduce(ending(call_chunk("c", "{}", "f")))
    assert not reducer.tool_calls["c"].complete
    assert reducer.status == "truncated"


def test_a_refused_chunk_is_refused_whole() -> None:
    reducer = agui.Reducer()
    for wire in ending(text_chunk("m", "x"), text("n")):
        reducer.apply(wire)
    with pytest.raises(agui.ProtocolError):
        reducer.apply(text_chunk("n", "y"))  # would close m, and then start what is open
    with pytest.raises(agui.ProtocolError):
        reducer.apply(started())
    assert agui.to_wire(reducer.messages) == [msg("assistant", "m", "x"), msg("assistant", "n", "")]


def test_CHUNK_25_26_ends_of_runs() -> None:
    for last, complete in ((failed(), True), (finished(), True)):
        reducer = agui.reduce(ending(call_chunk("c", "{", "f"), last))
        assert reducer.tool_calls["c"].complete is complete
