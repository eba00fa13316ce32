"""MESSAGES_SNAPSHOT (protocol section 13.3, OPEN-6, OPEN-13)."""

from __future__ import annotations

from typing import Any

import pytest

import agui_core as agui
from support.events import (
    activity,
    activity_patch,
    args,
    call,
    call_end,
    ending,
    finished,
    msg,
    op,
    reason,
    reason_end,
    reason_start,
    result,
    run,
    say,
    snapshot,
    started,
    text,
    text_end,
    tool_call,
)
from support.rule_cases import Case, accept, check, refuse

REPEATED_CALL = "a call id twice in a message: all are kept"
"""The lenient policy drops the second one."""


def held(role: str, id: str, content: str = "old", **fields: Any) -> Any:
    if role == "activity":
        return msg(role, id, {"v": content}, activityType="todo", **fields)
    return msg(role, id, content, **fields)


def shot(rules: str, title: str, before: list[Any], message_list: list[Any], after: list[Any], **more: Any) -> Case:
    return accept(rules, title, run(snapshot(*message_list)), held=before, messages=after, **more)


U1, ACT1, R1, A1, A2 = (
    held("user", "u1"),
    held("activity", "act1"),
    held("reasoning", "r"),
    held("assistant", "a1"),
    held("assistant", "a2"),
)
NEW_U1, NEW_A2, NEW_R1, NEW_ACT1 = (
    held("user", "u1", "new"),
    held("assistant", "a2", "new"),
    held("reasoning", "r", "new"),
    held("activity", "act1", "new"),
)
A3, R9, ACT9 = held("assistant", "a3"), held("reasoning", "r9"), held("activity", "act9")

RECONCILED = [
    shot(
        "MSGS-1 MSGS-2 MSGS-3",
        "the digest's example",
        [U1, ACT1, R1, A1, A2],
        [NEW_A2, NEW_U1, A3, R9],
        [NEW_U1, ACT1, NEW_A2, A3, R9],
    ),
    shot("MSGS-1", "into an empty conversation", [], [U1, A1, R1, ACT1], [U1, A1, R1, ACT1]),
    shot("MSGS-3", "its order never reorders", [U1, A1, A2], [A2, A1, U1], [U1, A1, A2]),
    shot(
        "MSGS-1",
        "new ones at the end, in its order, wherever they stand",
        [U1, A1],
        [A3, U1, R9, A1, A2],
        [U1, A1, A3, R9, A2],
    ),
    shot("MSGS-2", "activities of its own make the set complete", [ACT1, R1, U1], [U1, ACT9], [R1, U1, ACT9]),
    shot("MSGS-2", "reasoning of its own makes the set complete", [ACT1, R1, U1], [U1, R9], [ACT1, U1, R9]),
    shot(
        "MSGS-2",
        "both, by restating them",
        [ACT1, R1, held("activity", "x"), held("reasoning", "y")],
        [NEW_R1, NEW_ACT1],
        [NEW_ACT1, NEW_R1],
    ),
    shot("MSGS-8 MSGS-2", "an empty one", [U1, ACT1, A1, R1, held("tool", "t", toolCallId="c")], [], [ACT1, R1]),
    shot(
        "MSGS-4",
        "whole: nothing of the old copy stays",
        [msg("assistant", "m", "old", name="n", by="s1", meta={"k": 1}, encryptedValue="AA", toolCalls=[tool_call()])],
        [msg("assistant", "m")],
        [msg("assistant", "m")],
    ),
    shot(
        "MSGS-4",
        "the role too",
        [A1],
        [msg("user", "a1", [{"type": "text", "text": "x"}])],
        [msg("user", "a1", [{"type": "text", "text": "x"}])],
    ),
    shot(
        "MSGS-4 MSGS-2",
        "a reasoning message that becomes another role counts as held",
        [R1, U1],
        [held("assistant", "r", "new")],
        [held("assistant", "r", "new")],
    ),
    shot(
        "MSGS-7 PROC-10",
        "an unknown role is dropped before",
        [U1, A1],
        [NEW_U1, msg("critic", "a1", "x"), msg("critic", "k", "x")],
        [NEW_U1],
        warns=",".join(f"PROC-6 {path}|PROC-9 {path}|MSGS-7 {path}" for path in ("/messages/1", "/messages/2")),
    ),
    shot(
        "REAS-12",
        "a copy without the encrypted value withdraws it",
        [held("reasoning", "r", encryptedValue="AA")],
        [NEW_R1],
        [NEW_R1],
    ),
    shot(
        "OPEN-13",
        "a held id twice: the last wins, in the held place",
        [A1, U1],
        [held("assistant", "a1", "x"), U1, held("assistant", "a1", "y")],
        [held("assistant", "a1", "y"), U1],
        warns="OPEN-13",
    ),
    shot(
        "OPEN-13",
        "a new id twice: all are kept",
        [],
        [held("assistant", "n", "x"), U1, held("assistant", "n", "y")],
        [held("assistant", "n", "x"), U1, held("assistant", "n", "y")],
        warns="OPEN-13",
    ),
    shot(
        "OPEN-13",
        REPEATED_CALL,
        [],
        [msg("assistant", "m", toolCalls=[tool_call("c", "f", "1"), tool_call("c", "f", "2")])],
        [msg("assistant", "m", toolCalls=[tool_call("c", "f", "1"), tool_call("c", "f", "2")])],
        warns="OPEN-13",
    ),
    shot(
        "OPEN-13",
        "a call id twice in a snapshot: all are kept",
        [],
        [msg("assistant", "m", toolCalls=[tool_call("c")]), msg("assistant", "n", toolCalls=[tool_call("c")])],
        [msg("assistant", "m", toolCalls=[tool_call("c")]), msg("assistant", "n", toolCalls=[tool_call("c")])],
        warns="OPEN-13",
    ),
    shot(
        "OPEN-12 OPEN-13",
        "tool messages of one id for several calls are several messages",
        [],
        [msg("tool", "t", "1", toolCallId="c"), msg("tool", "t", "2", toolCallId="d")],
        [msg("tool", "t", "1", toolCallId="c"), msg("tool", "t", "2", toolCallId="d")],
        warns="OPEN-13?",
    ),
    shot(
        "OPEN-12 MSGS-1",
        "each is replaced by its own copy",
        [msg("tool", "t", "1", toolCallId="c"), msg("tool", "t", "2", toolCallId="d")],
        [msg("tool", "t", "4", toolCallId="d"), msg("tool", "t", "3", toolCallId="c")],
        [msg("tool", "t", "3", toolCallId="c"), msg("tool", "t", "4", toolCallId="d")],
        warns="OPEN-13?",
    ),
    shot(
        "OPEN-12 MSGS-1",
        "and one alone is dropped",
        [msg("tool", "t", "1", toolCallId="c"), msg("tool", "t", "2", toolCallId="d")],
        [msg("tool", "t", "4", toolCallId="d")],
        [msg("tool", "t", "4", toolCallId="d")],
    ),
    shot(
        "PROC-10",
        "an unknown part is dropped, the list may end empty",
        [],
        [msg("user", "u", [{"type": "hologram", "x": 1}])],
        [msg("user", "u", [])],
        warns="PROC-6 /messages/0/content/0|PROC-9 /messages/0/content/0",
    ),
    shot(
        "PROC-10 IN-12",
        "an unknown source takes its part with it",
        [],
        [
            msg(
                "user",
                "u",
                [{"type": "image", "source": {"type": "ipfs", "value": "x"}}, {"type": "text", "text": "a"}],
            )
        ],
        [msg("user", "u", [{"type": "text", "text": "a"}])],
        warns="PROC-6 /messages/0/content/0|PROC-9 /messages/0/content/0",
    ),
    shot("EVT-6", "empty ids", [msg("user", "", "old")], [msg("user", "", "new")], [msg("user", "", "new")]),
]

STREAMED = [
    accept(
        "MSGS-6 MSGS-9",
        "it closes no explicit item; deltas append to its copy",
        run(text("m"), say("m", "a"), snapshot(msg("assistant", "m", "A")), say("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "Ab")],
    ),
    accept(
        "MSGS-9",
        "arguments append to its copy of the call",
        run(
            call("c", parentMessageId="m"),
            args("c", "{"),
            snapshot(msg("assistant", "m", toolCalls=[tool_call("c", "f", "[")])),
            args("c", "]"),
            call_end("c"),
        ),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c", "f", "[]")])],
    ),
    accept(
        "MSGS-9",
        "reasoning appends to its copy",
        run(reason_start("q"), snapshot(msg("reasoning", "q", "A")), reason("q", "b"), reason_end("q")),
        messages=[msg("reasoning", "q", "Ab")],
    ),
    accept(
        "MSGS-9 TEXT-6",
        "a copy without content gets some",
        run(text("m"), say("m", "a"), snapshot(msg("assistant", "m")), say("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "b")],
    ),
    accept(
        "OPEN-6",
        "what it dropped while open comes back at the end, with role, name and owner",
        run(
            text("m", role="user", name="Ann", by="s1"),
            say("m", "a"),
            snapshot(msg("user", "u", "hi")),
            say("m", "b"),
            text_end("m"),
        ),
        messages=[msg("user", "u", "hi"), msg("user", "m", "b", name="Ann", by="s1")],
        warns="OPEN-6",
    ),
    accept(
        "OPEN-6",
        "an end alone brings nothing back",
        run(text("m"), say("m", "a"), snapshot(), text_end("m")),
        messages=[],
        warns="OPEN-6?",
    ),
    accept(
        "OPEN-6",
        "a call that it dropped comes back",
        run(
            call("c", parentMessageId="m"),
            args("c", "{"),
            snapshot(msg("user", "u", "hi")),
            args("c", "}"),
            call_end("c"),
        ),
        messages=[msg("user", "u", "hi"), msg("assistant", "m", toolCalls=[tool_call("c", "f", "}")])],
        warns="OPEN-6",
    ),
    accept(
        "OPEN-6",
        "a call dropped from a message that stays comes back there",
        run(
            call("c", parentMessageId="m"),
            args("c", "{"),
            snapshot(msg("assistant", "m", "x")),
            args("c", "}"),
            call_end("c"),
        ),
        messages=[msg("assistant", "m", "x", toolCalls=[tool_call("c", "f", "}")])],
        warns="OPEN-6",
    ),
    accept(
        "OPEN-6 MSGS-2",
        "open reasoning is kept like other reasoning",
        run(reason_start("q"), reason("q", "a"), snapshot(), reason("q", "b"), reason_end("q")),
        messages=[msg("reasoning", "q", "ab")],
    ),
    accept(
        "MSGS-2 ACT-5",
        "a kept activity takes deltas",
        run(activity("a", content={"n": 1}), snapshot(), activity_patch("a", "todo", op("replace", "/n", 2))),
        messages=[msg("activity", "a", {"n": 2}, activityType="todo")],
    ),
    accept(
        "TOOL-7",
        "a result goes behind the snapshot's call",
        run(snapshot(msg("assistant", "m", toolCalls=[tool_call("c")]), msg("user", "u", "hi")), result("c")),
        messages=[
            msg("assistant", "m", toolCalls=[tool_call("c")]),
            msg("tool", "t", "ok", toolCallId="c"),
            msg("user", "u", "hi"),
        ],
    ),
    accept(
        "TEXT-5",
        "only a reopening changes it afterwards",
        run(snapshot(msg("assistant", "m", "A")), text("m"), say("m", "b"), text_end("m")),
        messages=[msg("assistant", "m", "Ab")],
    ),
    refuse(
        "STR-2 MSGS-6",
        "a message in a snapshot is not open",
        ending(snapshot(msg("assistant", "m", "A")), say("m")),
        ids=("m",),
    ),
    accept(
        "FT-2",
        "calls in a snapshot were not started in the run",
        run(snapshot(msg("assistant", "m", toolCalls=[tool_call("c")]))),
        run={"pending_tool_calls": ()},
    ),
    refuse("PROC-7 PROC-10 PROC-10a", "a message without a role", ending(snapshot({"id": "m", "content": "x"}))),
    refuse(
        "PROC-7 PROC-10 PROC-10a", "a role that is a number", ending(snapshot({"id": "m", "role": 5, "content": "x"}))
    ),
    refuse("PROC-7", "a message without an id", ending(snapshot({"role": "user", "content": "x"}))),
    refuse("PROC-7", "a user's message without content", ending(snapshot({"id": "u", "role": "user"}))),
    refuse("PROC-7 EVT-8", "content that is null", ending(snapshot({"id": "u", "role": "assistant", "content": None}))),
    refuse("PROC-7", "messages that are an object", ending({"type": "MESSAGES_SNAPSHOT", "messages": {}})),
    refuse("PROC-7 PROC-10", "an image without a source", ending(snapshot(msg("user", "u", [{"type": "image"}])))),
    refuse(
        "PROC-7 PROC-10",
        "data without a mimeType",
        ending(snapshot(msg("user", "u", [{"type": "image", "source": {"type": "data", "value": "AA"}}]))),
    ),
    refuse("PROC-7 PROC-10a", "a part without a type", ending(snapshot(msg("user", "u", [{"text": "a"}])))),
]


@pytest.mark.parametrize("case", [*RECONCILED, *STREAMED], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)


def test_OPEN_13_the_first_of_several_is_found_by_id() -> None:
    twice = snapshot(held("assistant", "n", "x"), held("assistant", "n", "y"))
    reducer = agui.reduce(run(twice, text("n"), say("n", "!"), text_end("n")))
    assert [message.content for message in reducer.messages] == ["x!", "y"]


def test_OPEN_13_the_first_of_several_calls_is_found_by_id() -> None:
    calls = [tool_call("c", "f", "1"), tool_call("c", "g", "2")]
    reducer = agui.reduce(run(snapshot(msg("assistant", "m", toolCalls=calls))))
    assert (reducer.tool_calls["c"].name, reducer.tool_calls["c"].arguments) == ("f", "1")
    assert list(reducer.tool_calls) == ["c"]


def test_MSGS_1_the_snapshot_is_not_kept_by_reference() -> None:
    content = {"n": 1}
    shot = snapshot(msg("activity", "a", content, activityType="todo"))
    reducer = agui.Reducer()
    for wire in (started(), shot, activity_patch("a", "todo", op("replace", "/n", 2)), finished()):
        reducer.apply(wire)
    assert content == {"n": 1}
    assert agui.to_wire(reducer.messages)[0]["content"] == {"n": 2}
