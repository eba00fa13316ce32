"""Chunks: what they expand to (protocol section 11.1, META-9)."""

from __future__ import annotations

import pytest

import agui_core as agui
from support.events import call_chunk, ending, msg, reason_chunk, run, say, text, text_chunk, text_end, tool_call
from support.rule_cases import Case, accept, check, refuse

MADE_BY_F = [msg("assistant", "c", toolCalls=[tool_call("c", "f", "{}")])]

EXPANSION = [
    accept(
        "CHUNK-1 CHUNK-5 CHUNK-6",
        "text",
        run(text_chunk("m", "Hel"), text_chunk("m", "lo"), text_chunk(delta="!")),
        messages=[msg("assistant", "m", "Hello!")],
        seen="RUN_STARTED START CONTENT CONTENT CONTENT END RUN_FINISHED",
    ),
    accept(
        "CHUNK-1 CHUNK-4",
        "a call",
        run(call_chunk("c", "[", "f", parentMessageId="m"), call_chunk("c", "1"), call_chunk(delta="]")),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c", "f", "[1]")])],
        seen="RUN_STARTED START ARGS ARGS ARGS END RUN_FINISHED",
    ),
    accept(
        "CHUNK-1 REAS-7",
        "reasoning",
        run(reason_chunk("q", "h"), reason_chunk(delta="m")),
        messages=[msg("reasoning", "q", "hm")],
        seen="RUN_STARTED START CONTENT CONTENT END RUN_FINISHED",
    ),
    accept(
        "CHUNK-4",
        "role and name of the first chunk",
        run(text_chunk("m", "a", role="user", name="Ann"), text_chunk("m", "b")),
        messages=[msg("user", "m", "ab", name="Ann")],
    ),
    accept(
        "CHUNK-5",
        "without a delta there is no content event, with an empty one there is",
        run(text_chunk("m"), text_chunk("m", "")),
        messages=[msg("assistant", "m", "")],
        seen="RUN_STARTED START CONTENT END RUN_FINISHED",
    ),
    accept(
        "CHUNK-5",
        "a continuation that says nothing does nothing",
        run(text_chunk("m", "a"), text_chunk("m"), text_chunk()),
        messages=[msg("assistant", "m", "a")],
        seen="RUN_STARTED START CONTENT END RUN_FINISHED",
    ),
    accept(
        "CHUNK-6 CHUNK-20",
        "another id opens another item, after the first was closed",
        run(text_chunk("m", "a"), text_chunk("n", "b")),
        messages=[msg("assistant", "m", "a"), msg("assistant", "n", "b")],
        seen="RUN_STARTED START CONTENT END START CONTENT END RUN_FINISHED",
    ),
    accept(
        "CHUNK-2 CHUNK-20",
        "an item of another kind closes the lane's",
        run(text_chunk("m", "a"), call_chunk("c", "{}", "f"), reason_chunk("q", "h")),
        messages=[msg("assistant", "m", "a"), *MADE_BY_F, msg("reasoning", "q", "h")],
        seen="RUN_STARTED START CONTENT END START ARGS END START CONTENT END RUN_FINISHED",
    ),
    accept(
        "EVT-6",
        "the empty id is an id",
        run(text_chunk("", "a"), text_chunk("", "b")),
        messages=[msg("assistant", "", "ab")],
    ),
    accept(
        "CHUNK-7 CHUNK-8",
        "repeats that agree",
        run(
            *[text_chunk("m", "a", role="user", name="n"), text_chunk("m", "b", role="user", name="n")],
            *[text_chunk("k", "a"), text_chunk("k", "b", role="assistant")],
            *[call_chunk("c", "{", "f", parentMessageId="p"), call_chunk("c", "}", "f", parentMessageId="p")],
        ),
        messages=[
            *[msg("user", "m", "ab", name="n"), msg("assistant", "k", "ab")],
            msg("assistant", "p", toolCalls=[tool_call("c", "f", "{}")]),
        ],
    ),
    accept(
        "EVT-6 CHUNK-7",
        "an empty parent is none, so it conflicts with nothing",
        run(call_chunk("c", "{", "f", parentMessageId=""), call_chunk("c", "}", parentMessageId="")),
        messages=MADE_BY_F,
    ),
    refuse("CHUNK-3 CHUNK-12", "first text chunk without id", ending(text_chunk(delta="x")), says=("messageId",)),
    refuse(
        "CHUNK-3 CHUNK-12", "first reasoning chunk without id", ending(reason_chunk(delta="x")), says=("messageId",)
    ),
    refuse(
        "CHUNK-3 CHUNK-12", "first call chunk without id", ending(call_chunk(delta="x", name="f")), says=("toolCallId",)
    ),
    refuse(
        "CHUNK-3", "first call chunk without name", ending(call_chunk("c", "x")), ids=("c",), says=("toolCallName",)
    ),
    refuse(
        "CHUNK-13 CHUNK-3", "a tagged chunk without id", ending(text_chunk("m", "x"), text_chunk(delta="y", by="s1"))
    ),
    refuse(
        "CHUNK-7",
        "another role",
        ending(text_chunk("m", "a", role="user"), text_chunk("m", "b", role="system")),
        ids=("m",),
        says=("role",),
    ),
    refuse(
        "CHUNK-7",
        "another name",
        ending(text_chunk("m", "a", name="A"), text_chunk("m", "b", name="B")),
        ids=("m",),
        says=("name",),
    ),
    refuse(
        "CHUNK-7",
        "another tool",
        ending(call_chunk("c", "", "f"), call_chunk("c", "", "g")),
        ids=("c",),
        says=("toolCallName",),
    ),
    refuse(
        "CHUNK-7",
        "another parent",
        ending(call_chunk("c", "", "f", parentMessageId="m"), call_chunk("c", "", parentMessageId="n")),
        ids=("c",),
        says=("parentMessageId",),
    ),
    refuse(
        "CHUNK-8 CHUNK-7",
        "a role where the opener meant assistant",
        ending(text_chunk("m", "a"), text_chunk("m", "b", role="user")),
        ids=("m",),
    ),
    refuse(
        "OPEN-9 CHUNK-8 CHUNK-7",
        "a name where the opener had none",
        ending(text_chunk("m", "a"), text_chunk("m", "b", name="n")),
        ids=("m",),
    ),
    refuse(
        "OPEN-9 CHUNK-8 CHUNK-7",
        "a parent where the opener had none",
        ending(call_chunk("c", "", "f"), call_chunk("c", "", parentMessageId="m")),
        ids=("c",),
    ),
    refuse("PROC-12 PROC-7", "a broken role", ending(text_chunk("m", "a", role=3))),
    refuse(
        "PROC-12 PROC-7",
        "a delta that is null",
        ending({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": None}),
    ),
    accept(
        "PROC-12 PROC-9",
        "an unknown role is stripped, as in the plain form",
        run(text_chunk("m", "a", role="narrator")),
        messages=[msg("assistant", "m", "a")],
        warns="PROC-6 /role|PROC-9 /role",
    ),
    accept("PROC-5", "an unknown property of a chunk", run(text_chunk("m", "a", x=1)), warns="PROC-5 /x"),
    accept(
        "STR-6 CHUNK-23",
        "a chunk may reopen an item that was closed explicitly",
        run(text("m", name="A"), say("m", "a"), text_end("m"), text_chunk("m", "b")),
        messages=[msg("assistant", "m", "ab", name="A")],
    ),
]

METADATA = [
    accept(
        "META-9",
        "a first chunk's metadata, without a delta, expands to its start alone",
        run(text_chunk("m", meta={"x.a": 1})),
        messages=[msg("assistant", "m", "", meta={"x.a": 1})],
        seen="RUN_STARTED START END RUN_FINISHED",
    ),
    accept(
        "META-9 META-2",
        "a continuation with only metadata is an empty content event",
        run(text_chunk("m", "a", meta={"x.a": 1, "x.b": 1}), text_chunk("m", meta={"x.b": None})),
        messages=[msg("assistant", "m", "a", meta={"x.a": 1, "x.b": None})],
        seen="RUN_STARTED START CONTENT CONTENT END RUN_FINISHED",
    ),
    accept(
        "META-9",
        "so is one with only a rawEvent",
        run(text_chunk("m", "a"), text_chunk("m", rawEvent={"v": 1})),
        messages=[msg("assistant", "m", "a")],
        seen="RUN_STARTED START CONTENT CONTENT END RUN_FINISHED",
    ),
    accept(
        "META-9 META-3",
        "a call's metadata",
        run(call_chunk("c", "{}", "f", meta={"x.a": 1}), call_chunk("c", meta={"x.b": 2})),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "f", "{}", meta={"x.a": 1, "x.b": 2})])],
    ),
    accept(
        "META-9",
        "reasoning's metadata",
        run(reason_chunk("q", "a"), reason_chunk(meta={"x.b": 2})),
        messages=[msg("reasoning", "q", "a", meta={"x.b": 2})],
    ),
]


@pytest.mark.parametrize("case", [*EXPANSION, *METADATA], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)


def test_PROC_14_what_expansion_carries() -> None:
    chunk = text_chunk("m", "x", by="s1", meta={"x.a": 1}, rawEvent={"v": 1}, timestamp=5, name="n", role="user")
    start, content, end = list(agui.conform(run(chunk)))[1:-1]
    assert isinstance(start, agui.events.TextMessageStartEvent)
    assert isinstance(content, agui.events.TextMessageContentEvent)
    assert isinstance(end, agui.events.TextMessageEndEvent)
    assert (start.role, start.name, start.metadata) == ("user", "n", {"x.a": 1})
    assert content.delta == "x"
    assert {"v": 1} in (start.raw_event, content.raw_event)
    assert [event.subagent_run_id for event in (start, content, end)] == ["s1"] * 3
    assert [event.timestamp for event in (start, content, end)] == [agui.UNSET] * 3


def test_PROC_14_a_continuation_carries_its_raw_event_and_metadata() -> None:
    more = text_chunk(delta="y", meta={"x.b": 2}, rawEvent=[2], timestamp=6)
    content = list(agui.conform(ending(text_chunk("m", "x"), more)))[-1]
    assert content == agui.events.TextMessageContentEvent(message_id="m", delta="y", metadata={"x.b": 2}, raw_event=[2])


def test_CHUNK_10_an_untagged_continuation_is_synthesized_with_its_lane() -> None:
    content = list(agui.conform(ending(text_chunk("m", "x", by="s1"), text_chunk("m", "y"))))[-1]
    assert content == agui.events.TextMessageContentEvent(message_id="m", delta="y", subagent_run_id="s1")
