"""Text messages, tool calls and their results (protocol sections 7 to 9)."""

from __future__ import annotations

from typing import Any

import pytest

from support.events import (
    activity,
    args,
    call,
    call_end,
    custom,
    ending,
    failed,
    finished,
    msg,
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
    started,
    state,
    text,
    text_end,
    tool_call,
)
from support.rule_cases import Case, accept, check, refuse

FAMILIES: dict[str, Any] = {
    "text": (text, say, text_end),
    "call": (call, args, call_end),
    "reasoning": (reason_start, reason, reason_end),
}


def built(family: str, id: str, content: str) -> Any:
    """The message that an item of the family becomes."""
    if family == "call":
        return msg("assistant", id, toolCalls=[tool_call(id, "f", content)])
    return msg("assistant" if family == "text" else "reasoning", id, content)


TRIADS = [
    case
    for family, (start, content, end) in FAMILIES.items()
    for case in (
        accept("STR-4", f"{family}: no content", run(start("i"), end("i")), messages=[built(family, "i", "")]),
        accept(
            "STR-4 EVT-6",
            f"{family}: deltas in order, an empty one among them",
            run(start("i"), content("i", "a"), content("i", ""), content("i", "b"), end("i")),
            messages=[built(family, "i", "ab")],
        ),
        accept(
            "EVT-6",
            f"{family}: the empty id is an id",
            run(start(""), content("", "a"), end("")),
            messages=[built(family, "", "a")],
        ),
        accept(
            "STR-5",
            f"{family}: items interleave",
            run(start("i"), start("j"), content("i", "1"), content("j", "2"), end("i"), content("j", "3"), end("j")),
            messages=[built(family, "i", "1"), built(family, "j", "23")],
        ),
        accept(
            "STR-6",
            f"{family}: reopened in its run",
            run(start("i"), content("i", "a"), end("i"), start("i"), content("i", "b"), end("i")),
            messages=[built(family, "i", "ab")],
        ),
        accept(
            "STR-6 RUN-9 RUN-11",
            f"{family}: reopened in the next run, also after a failure",
            [
                *ending(start("i"), content("i", "a"), failed()),
                *[started("r2"), start("i"), content("i", "b"), end("i"), finished("r2")],
            ],
            messages=[built(family, "i", "ab")],
        ),
        accept(
            "STR-7",
            f"{family}: what stands alone closes nothing",
            run(
                start("i"),
                *[state({}), patch(), activity("act"), custom(), raw(), sealed("i", subtype="message")],
                content("i", "a"),
                end("i"),
            ),
            messages=[
                {**built(family, "i", "a"), "encryptedValue": "AA"},
                msg("activity", "act", {}, activityType="todo"),
            ],
        ),
        refuse("STR-1", f"{family}: started while open", ending(start("i"), start("i")), ids=("i",), says=("open",)),
        refuse("STR-2", f"{family}: content never opened", ending(content("i")), ids=("i",), says=("start",)),
        refuse("STR-2", f"{family}: end never opened", ending(end("i")), ids=("i",), says=("start",)),
        refuse("STR-2", f"{family}: content after the end", ending(start("i"), end("i"), content("i")), ids=("i",)),
        refuse("STR-2", f"{family}: ended twice", ending(start("i"), end("i"), end("i")), ids=("i",)),
        refuse("STR-2", f"{family}: content for another id", ending(start("i"), content("j")), ids=("j",)),
        refuse("PROC-7", f"{family}: content without a delta", ending(start("i"), {**content("i"), "delta": None})),
        refuse("PROC-7", f"{family}: a delta of numbers", ending(start("i"), content("i", 5))),
    )
]

TEXT = [
    *[
        accept("TEXT-1", f"role {role}", run(text(role=role), text_end()), messages=[msg(role, "m", "")])
        for role in ("developer", "system", "assistant", "user")
    ],
    accept(
        "TEXT-1 TEXT-2",
        "id, role, name and owner of the start",
        run(text("m", role="user", name="Ann", by="s1"), say("m", "Hi"), text_end("m")),
        messages=[msg("user", "m", "Hi", name="Ann", by="s1")],
    ),
    accept(
        "TEXT-3",
        "the established role and name stand",
        run(text(role="user", name="Ann"), text_end(), text(role="system", name="Bob"), say(), text_end()),
        messages=[msg("user", "m", "x", name="Ann")],
        warns="TEXT-3|OPEN-5,TEXT-3?",
    ),
    accept(
        "TEXT-3",
        "a start that says nothing disagrees with nothing",
        run(text(name="Ann"), text_end(), text(), say(), text_end()),
        messages=[msg("assistant", "m", "x", name="Ann")],
    ),
    accept(
        "TEXT-3 TEXT-4",
        "a held message keeps its owner in a later run",
        run(text("m", by="s2"), say("m", "b"), text_end("m")),
        held=[msg("assistant", "m", "a", by="s1")],
        messages=[msg("assistant", "m", "ab", by="s1")],
        warns="TEXT-4|TEXT-3?",
    ),
    accept(
        "TEXT-6",
        "a message of calls gets content with its first content event",
        run(text("m"), say("m", "a"), text_end("m")),
        held=[msg("assistant", "m", toolCalls=[tool_call()])],
        messages=[msg("assistant", "m", "a", toolCalls=[tool_call()])],
    ),
    accept(
        "TEXT-6",
        "a start that reopens it adds none",
        run(text("m"), text_end("m")),
        held=[msg("assistant", "m", toolCalls=[tool_call()])],
        messages=[msg("assistant", "m", toolCalls=[tool_call()])],
    ),
    accept(
        "TEXT-6 EVT-6",
        "an empty content event is a content event",
        run(text("m"), say("m", ""), text_end("m")),
        held=[msg("assistant", "m", toolCalls=[tool_call()])],
        messages=[msg("assistant", "m", "", toolCalls=[tool_call()])],
    ),
    accept(
        "OPEN-5",
        "text for an activity is ignored",
        run(text("a"), say("a"), text_end("a")),
        held=[msg("activity", "a", {"n": 1}, activityType="todo")],
        messages=[msg("activity", "a", {"n": 1}, activityType="todo")],
        warns="OPEN-5,OPEN-5?,OPEN-5?",
    ),
    accept(
        "OPEN-5",
        "reasoning for an activity is ignored",
        run(reason_start("a"), reason("a"), reason_end("a")),
        held=[msg("activity", "a", {"n": 1}, activityType="todo")],
        messages=[msg("activity", "a", {"n": 1}, activityType="todo")],
        warns="OPEN-5,OPEN-5?,OPEN-5?",
    ),
    accept(
        "OPEN-5",
        "text for another role is appended",
        run(text("t"), say("t", "b"), text_end("t")),
        held=[msg("tool", "t", "a", toolCallId="c")],
        messages=[msg("tool", "t", "ab", toolCallId="c")],
        warns="OPEN-5",
    ),
    accept(
        "OPEN-5",
        "reasoning for a text message is appended",
        run(reason_start("m"), reason("m", "b"), reason_end("m")),
        held=[msg("system", "m", "a")],
        messages=[msg("system", "m", "ab")],
        warns="OPEN-5",
    ),
    accept(
        "OPEN-5",
        "a list of parts gets one more part",
        run(text("u", role="user"), say("u", "b"), say("u", "c"), text_end("u")),
        held=[msg("user", "u", [{"type": "text", "text": "a"}])],
        messages=[msg("user", "u", [{"type": "text", "text": "a"}, {"type": "text", "text": "bc"}])],
        warns="OPEN-5?",
    ),
    accept(
        "STR-8 OPEN-5",
        "one id in two families is no sequence error",
        run(text("i"), reason_start("i"), say("i", "a"), reason("i", "b"), text_end("i"), reason_end("i")),
        messages=[msg("assistant", "i", "ab")],
        warns="OPEN-5|EVT-7|STR-8",
    ),
]

CALLS = [
    accept(
        "TOOL-1 TOOL-2",
        "without a parent a message is made for the call",
        run(call("c", "look"), args("c", '{"a"'), args("c", ":1}"), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "look", '{"a":1}')])],
    ),
    accept(
        "TOOL-2 OPEN-4",
        "a parent that is not held is made",
        run(call("c", parentMessageId="m"), call_end("c"), call("d", parentMessageId="m"), call_end("d")),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c"), tool_call("d")])],
    ),
    accept(
        "TOOL-2",
        "a held parent gets the call, where it is",
        run(call("c", parentMessageId="m"), call_end("c")),
        held=[msg("assistant", "m", "hi", toolCalls=[tool_call("b")]), msg("user", "u", "so?")],
        messages=[msg("assistant", "m", "hi", toolCalls=[tool_call("b"), tool_call("c")]), msg("user", "u", "so?")],
    ),
    accept(
        "TOOL-2 STR-5",
        "text and calls of one message interleave",
        run(text("m"), call("c", parentMessageId="m"), say("m", "a"), args("c"), text_end("m"), call_end("c")),
        messages=[msg("assistant", "m", "a", toolCalls=[tool_call("c", "f", "{}")])],
    ),
    accept(
        "EVT-6 OPEN-4",
        "an empty parent counts as absent",
        run(call("c", parentMessageId=""), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c")])],
    ),
    accept(
        "OPEN-4",
        "a parent that is no assistant's",
        run(call("c", parentMessageId="u"), call_end("c")),
        held=[msg("user", "u", "hi")],
        messages=[msg("user", "u", "hi"), msg("assistant", "c", toolCalls=[tool_call("c")])],
        warns="OPEN-4",
    ),
    accept(
        "OPEN-4",
        "the id to be minted is held: a second one all the same",
        run(call("c"), args("c"), call_end("c")),
        held=[msg("user", "c", "hi")],
        messages=[msg("user", "c", "hi"), msg("assistant", "c", toolCalls=[tool_call("c", "f", "{}")])],
        warns="OPEN-4",
    ),
    accept(
        "OPEN-4",
        "both: no assistant's, and the call's id is held",
        run(call("c", parentMessageId="u"), call_end("c")),
        held=[msg("user", "u", "hi"), msg("assistant", "c", "x")],
        messages=[
            *[msg("user", "u", "hi"), msg("assistant", "c", "x")],
            msg("assistant", "c", toolCalls=[tool_call("c")]),
        ],
        warns="OPEN-4,OPEN-4?",
    ),
    accept(
        "TOOL-3",
        "arguments are text and may be broken",
        run(call("c"), args("c", "{nope"), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "f", "{nope")])],
    ),
    accept(
        "TOOL-6 STR-6",
        "reopening appends arguments",
        run(call("c"), args("c", "[1"), call_end("c"), call("c"), args("c", "]"), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "f", "[1]")])],
    ),
    accept(
        "TOOL-6",
        "another name renames the call",
        run(call("c", "f"), call_end("c"), call("c", "g"), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "g")])],
        warns="TOOL-6",
    ),
    accept(
        "TOOL-6",
        "another parent changes nothing",
        run(
            *[text("n"), text_end("n"), call("c", parentMessageId="m"), call_end("c")],
            *[call("c", parentMessageId="n"), args("c"), call_end("c")],
        ),
        messages=[
            msg("assistant", "n", ""),
            msg("assistant", "m", toolCalls=[tool_call("c", "f", "{}")]),
        ],
        warns="TOOL-6",
    ),
    accept(
        "TOOL-6 EVT-6",
        "a reopening start without a parent agrees, one with an empty parent too",
        run(
            *[call("c", parentMessageId="m"), call_end("c"), call("c"), call_end("c")],
            *[call("c", parentMessageId=""), call_end("c")],
        ),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c")])],
    ),
    accept(
        "TOOL-6",
        "a call of the history is found by its id",
        run(call("c"), args("c", "2]"), call_end("c")),
        held=[msg("assistant", "m", toolCalls=[tool_call("c", "f", "[1,")])],
        messages=[msg("assistant", "m", toolCalls=[tool_call("c", "f", "[1,2]")])],
    ),
    accept(
        "TOOL-14 SUB-12",
        "an untagged start inherits its message's owner",
        run(text("m", by="s1"), call("c", parentMessageId="m"), args("c", by="s1"), call_end("c"), text_end("m")),
        messages=[msg("assistant", "m", "", by="s1", toolCalls=[tool_call("c", "f", "{}")])],
    ),
    accept(
        "TOOL-2 TOOL-14",
        "a message made for a call has the call's owner",
        run(call("c", by="s1"), args("c"), call_end("c", by="s1")),
        messages=[msg("assistant", "c", by="s1", toolCalls=[tool_call("c", "f", "{}")])],
    ),
    refuse(
        "TOOL-14 SUB-12",
        "a start tagged otherwise than its message's owner",
        ending(text("m", by="s1"), call("c", parentMessageId="m", by="s2")),
        ids=("m",),
        says=("s1", "s2"),
    ),
    refuse(
        "TOOL-14 SUB-12",
        "a tagged start in a message of the parent agent",
        ending(text("m"), call("c", parentMessageId="m", by="s1")),
        ids=("m",),
    ),
    refuse(
        "TOOL-6 SUB-10",
        "reopened with another owner",
        ending(call("c", by="s1"), call_end("c"), call("c", by="s2")),
        ids=("c",),
    ),
    refuse(
        "SUB-8 TOOL-14",
        "arguments tagged otherwise than the inherited owner",
        ending(text("m", by="s1"), call("c", parentMessageId="m"), args("c", by="s2")),
        ids=("c",),
    ),
    refuse("PROC-7", "a start without a name", ending({"type": "TOOL_CALL_START", "toolCallId": "c"})),
    refuse("PROC-7 TOOL-4", "arguments that are an object", ending(call("c"), args("c", {}))),
]

HELD = [msg("assistant", "m", toolCalls=[tool_call("c"), tool_call("d")]), msg("user", "u", "so?")]
PARTS = [{"type": "text", "text": "a"}, {"type": "image", "source": {"type": "url", "value": "https://x"}}]


def answer(call: str, content: Any = "ok", id: str = "t", **fields: Any) -> Any:
    return msg("tool", id, content, toolCallId=call, **fields)


RESULTS = [
    accept(
        "TOOL-7",
        "right behind its call's message and the tool messages there",
        run(result("c", id="t"), result("d", id="t2")),
        held=HELD,
        messages=[HELD[0], answer("c", id="t"), answer("d", id="t2"), HELD[1]],
    ),
    accept(
        "TOOL-7",
        "tool messages further down do not count",
        run(result("c", id="t")),
        held=[*HELD, answer("z", id="t9")],
        messages=[HELD[0], answer("c", id="t"), HELD[1], answer("z", id="t9")],
    ),
    accept(
        "TOOL-7",
        "metadata and owner come along",
        run(result("c", id="t", by="s1", meta={"x.k": None})),
        held=HELD,
        messages=[HELD[0], answer("c", id="t", by="s1", metadata={"x.k": None}), HELD[1]],
    ),
    accept(
        "TOOL-7",
        "a result neither closes nor reopens the call",
        run(call("c"), args("c", "{"), result("c"), args("c", "}"), call_end("c")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "f", "{}")]), answer("c")],
    ),
    refuse(
        "TOOL-7 STR-2", "the call stays closed", ending(call("c"), call_end("c"), result("c"), args("c")), ids=("c",)
    ),
    accept(
        "TOOL-7 TOOL-10",
        "a result for an unknown call goes to the end",
        run(result("z")),
        held=HELD,
        messages=[*HELD, answer("z")],
    ),
    accept(
        "TOOL-10",
        "a result for a call of an earlier run",
        [*run(call("c"), call_end("c"), text("m"), text_end("m")), started("r2"), result("c"), finished("r2")],
        messages=[msg("assistant", "c", toolCalls=[tool_call("c")]), answer("c"), msg("assistant", "m", "")],
    ),
    accept(
        "TOOL-8",
        "parts are stored as they were sent",
        run(result("c", PARTS)),
        held=HELD,
        messages=[HELD[0], answer("c", PARTS), HELD[1]],
    ),
    accept("TOOL-8", "no parts", run(result("z", [])), messages=[answer("z", [])]),
    accept("EVT-6", "empty content and ids", run(result("", "", id="")), messages=[answer("", "", id="")]),
    accept(
        "OPEN-12",
        "a second result with another id: both are kept, in order",
        run(result("c", "a", id="t"), result("c", "b", id="t2")),
        held=HELD,
        messages=[HELD[0], answer("c", "a", id="t"), answer("c", "b", id="t2"), HELD[1]],
        warns="OPEN-12",
    ),
    accept(
        "OPEN-12",
        "a second result with the same id: both are kept",
        run(result("c", "a"), result("c", "b")),
        held=HELD,
        messages=[HELD[0], answer("c", "a"), answer("c", "b"), HELD[1]],
        warns="OPEN-12",
    ),
    accept(
        "OPEN-12",
        "results of several calls may share an id",
        run(result("c", "a"), result("d", "b")),
        held=HELD,
        messages=[HELD[0], answer("c", "a"), answer("d", "b"), HELD[1]],
    ),
    accept(
        "OPEN-12",
        "a second result for a call that the history answered",
        run(result("c", "b", id="t2")),
        held=[HELD[0], answer("c", "a", id="t"), HELD[1]],
        messages=[HELD[0], answer("c", "a", id="t"), answer("c", "b", id="t2"), HELD[1]],
        warns="OPEN-12",
    ),
    accept(
        "EVT-7",
        "the id of a message that is no tool's",
        run(result("c", id="u")),
        held=HELD,
        messages=[HELD[0], answer("c", id="u"), HELD[1]],
        warns="EVT-7",
    ),
    accept(
        "PROC-18 PROC-10",
        "a foreign role is stripped",
        run(result("c", role="user")),
        messages=[answer("c")],
        warns="PROC-6 /role|PROC-9 /role|PROC-18 /role",
    ),
    accept("PROC-18", "the role that it has", run(result("c", role="tool")), messages=[answer("c")]),
    refuse("PROC-7 PROC-18", "a role that is a number", ending(result("c", role=5))),
    refuse("TOOL-8 PROC-7", "an object as content", ending(result("c", {"a": 1}))),
    refuse("TOOL-8 PROC-7", "a number as content", ending(result("c", 5))),
    refuse("TOOL-8 PROC-7", "null as content", ending(result("c", None))),
    refuse("TOOL-8 PROC-7", "strings as parts", ending(result("c", ["a"]))),
    refuse(
        "PROC-7",
        "no messageId",
        ending({"type": "TOOL_CALL_RESULT", "toolCallId": "c", "content": "x"}),
        says=("messageId",),
    ),
    refuse("PROC-7", "no content", ending({"type": "TOOL_CALL_RESULT", "toolCallId": "c", "messageId": "x"})),
    accept(
        "TOOL-7 MSGS-1",
        "a result right after a snapshot",
        run(snapshot(*HELD), result("d")),
        messages=[HELD[0], answer("d"), HELD[1]],
    ),
]


@pytest.mark.parametrize("case", [*TRIADS, *TEXT, *CALLS, *RESULTS], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)
