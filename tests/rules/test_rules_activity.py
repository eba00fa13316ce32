"""Activities and passthrough (protocol sections 14, 16, OPEN-10, OPEN-11)."""

from __future__ import annotations

from typing import Any

import pytest

from support.events import (
    activity,
    activity_patch,
    custom,
    ending,
    event,
    finished,
    msg,
    op,
    raw,
    run,
    say,
    started,
    text,
    text_end,
)
from support.rule_cases import Case, accept, check, refuse


def shown(content: Any, kind: str = "todo", id: str = "a", **fields: Any) -> Any:
    return msg("activity", id, content, activityType=kind, **fields)


FIRST = activity("a", "todo", {"n": 1}, by="s1", meta={"x.a": 1})

ACTIVITIES = [
    accept(
        "ACT-1",
        "unseen: appended",
        run(text(), text_end(), FIRST, text("z"), text_end("z")),
        messages=[msg("assistant", "m", ""), shown({"n": 1}, by="s1", meta={"x.a": 1}), msg("assistant", "z", "")],
    ),
    accept(
        "ACT-1",
        "whatever replace says",
        run(activity("a", content={"n": 1}, replace=False)),
        messages=[shown({"n": 1})],
    ),
    accept(
        "ACT-2",
        "replaced in its place",
        run(FIRST, text(), text_end(), activity("a", "done", {"k": None}, by="s2")),
        messages=[shown({"k": None}, "done", by="s2", meta={"x.a": 1}), msg("assistant", "m", "")],
    ),
    accept(
        "ACT-2",
        "replace: true is what absent means",
        run(FIRST, activity("a", "done", {}, replace=True)),
        messages=[shown({}, "done", meta={"x.a": 1})],
    ),
    accept(
        "ACT-2 META-4",
        "an absent tag takes the owner away, metadata merges",
        run(FIRST, activity("a", "done", {}, meta={"x.b": 2})),
        messages=[shown({}, "done", meta={"x.a": 1, "x.b": 2})],
    ),
    accept(
        "ACT-3",
        "declined: content, type and owner stand",
        run(FIRST, activity("a", "other", {"n": 9}, replace=False)),
        messages=[shown({"n": 1}, by="s1", meta={"x.a": 1})],
    ),
    accept(
        "ACT-3",
        "declined: another tag is reported",
        run(FIRST, activity("a", "other", {"n": 9}, replace=False, by="s2")),
        messages=[shown({"n": 1}, by="s1", meta={"x.a": 1})],
        warns="ACT-3",
    ),
    accept(
        "OPEN-10",
        "declined: metadata is merged all the same",
        run(FIRST, activity("a", "x", {}, replace=False, meta={"x.b": 2})),
        messages=[shown({"n": 1}, by="s1", meta={"x.a": 1, "x.b": 2})],
    ),
    accept(
        "ACT-4",
        "any type, an empty one too",
        run(activity("a", "acme.$weird", {}), activity("b", "", {})),
        messages=[shown({}, "acme.$weird"), shown({}, "", "b")],
    ),
    accept(
        "ACT-5",
        "a delta patches the content and sets the type",
        run(FIRST, activity_patch("a", "list", op("replace", "/n", 2), op("add", "/k", [None]))),
        messages=[shown({"n": 2, "k": [None]}, "list", by="s1", meta={"x.a": 1})],
    ),
    accept(
        "ACT-5 PATCH-7",
        "an empty patch sets the type",
        run(FIRST, activity_patch("a", "list")),
        messages=[shown({"n": 1}, "list", by="s1", meta={"x.a": 1})],
    ),
    accept(
        "ACT-5",
        "an activity of the history",
        run(activity_patch("a", "list", op("add", "/k", 1))),
        held=[shown({"n": 1}, by="s1")],
        messages=[shown({"n": 1, "k": 1}, "list", by="s1")],
    ),
    accept(
        "ACT-6",
        "a delta without its activity",
        run(activity_patch("a", "todo", op("add", "/k", 1))),
        messages=[],
        warns="ACT-6",
    ),
    accept(
        "ACT-6",
        "a delta for another kind of message",
        run(text("a"), text_end("a"), activity_patch("a", "todo", op("add", "/k", 1), meta={"k": 1})),
        messages=[msg("assistant", "a", "")],
        warns="ACT-6",
    ),
    accept(
        "ACT-7 PATCH-5",
        "a patch that does not apply: metadata is merged, content and type stay",
        run(FIRST, activity_patch("a", "list", op("add", "/k", 1), op("remove", "/zz"), meta={"x.b": 2})),
        messages=[shown({"n": 1}, by="s1", meta={"x.a": 1, "x.b": 2})],
        warns="PATCH-5|ACT-7",
    ),
    accept(
        "PATCH-6",
        "the next delta and snapshot count",
        run(FIRST, activity_patch("a", "x", op("remove", "/zz")), activity_patch("a", "y", op("remove", "/n"))),
        messages=[shown({}, "y", by="s1", meta={"x.a": 1})],
        warns="PATCH-5|ACT-7",
    ),
    *[
        accept(
            "ACT-8",
            f"content that would become {value!r}",
            run(FIRST, activity_patch("a", "list", op("replace", "", value))),
            messages=[shown({"n": 1}, by="s1", meta={"x.a": 1})],
            warns="ACT-8|PATCH-5|ACT-7",
        )
        for value in ([], None, 1, "x")
    ],
    accept(
        "ACT-8",
        "the whole content by another object",
        run(FIRST, activity_patch("a", "list", op("replace", "", {"k": 1}))),
        messages=[shown({"k": 1}, "list", by="s1", meta={"x.a": 1})],
    ),
    accept(
        "PATCH-3",
        "an unknown operation is dropped",
        run(FIRST, activity_patch("a", "list", {"op": "merge"}, op("remove", "/n"))),
        messages=[shown({}, "list", by="s1", meta={"x.a": 1})],
        warns="PATCH-3 /patch/0|PROC-6 /patch/0|PROC-9 /patch/0",
    ),
    accept(
        "OPEN-11",
        "a snapshot for another role's id",
        run(text("a"), say("a"), text_end("a"), FIRST),
        messages=[msg("assistant", "a", "x")],
        warns="OPEN-11",
    ),
    accept(
        "ACT-1 ACT-2 ACT-3 ACT-5",
        "the digest's example",
        run(
            FIRST,
            activity("a", "other", {"n": 9}, replace=False, by="s1"),
            activity_patch("a", "list", op("replace", "/n", 2)),
            activity("a", "done", {}, meta={"x.b": 2}),
        ),
        messages=[shown({}, "done", meta={"x.a": 1, "x.b": 2})],
    ),
    accept("EVT-9", "null in content is data", run(activity("a", content={"k": None})), messages=[shown({"k": None})]),
    accept(
        "ACT-1 RUN-9",
        "it outlives its run",
        [*run(FIRST), started("r2"), finished("r2")],
        messages=[shown({"n": 1}, by="s1", meta={"x.a": 1})],
    ),
    refuse(
        "ACT-11 PROC-7",
        "content that is a list",
        ending(event("ACTIVITY_SNAPSHOT", messageId="a", activityType="t", content=[])),
    ),
    refuse(
        "ACT-11 PROC-7", "content that is missing", ending(event("ACTIVITY_SNAPSHOT", messageId="a", activityType="t"))
    ),
    refuse("ACT-11 PROC-7", "no type", ending(event("ACTIVITY_SNAPSHOT", messageId="a", content={}))),
    refuse("ACT-11 PROC-7", "replace that is a string", ending(activity("a", replace="no"))),
    refuse("ACT-11 PROC-7", "replace that is null", ending(activity("a", replace=None))),
    refuse(
        "ACT-11 PROC-7 PATCH-2",
        "a patch that is an object",
        ending(FIRST, event("ACTIVITY_DELTA", messageId="a", activityType="t", patch={})),
    ),
    refuse(
        "ACT-11 PROC-7", "a delta without its type", ending(FIRST, event("ACTIVITY_DELTA", messageId="a", patch=[]))
    ),
    refuse(
        "PROC-7",
        "a delta with its patch under another name",
        ending(FIRST, event("ACTIVITY_DELTA", messageId="a", activityType="t", delta=[])),
    ),
]

PASSTHROUGH = [
    accept(
        "PASS-1",
        "RAW changes nothing",
        run(text(), raw({"type": "TEXT_MESSAGE_END", "messageId": "m"}), say(), text_end()),
        messages=[msg("assistant", "m", "x")],
    ),
    accept("PASS-1", "RAW of null, with a source", run(raw(None, source="x")), messages=[]),
    accept(
        "PASS-2",
        "unknown names are no reason to warn",
        run(custom("acme.$x", {"a": None}), custom("", None)),
        messages=[],
    ),
    refuse("PASS-6 PROC-7", "CUSTOM without a name", ending(event("CUSTOM", value=1))),
    refuse("PASS-6 PROC-7", "CUSTOM without a value", ending(event("CUSTOM", name="x"))),
    refuse("PASS-6 PROC-7", "RAW without an event", ending(event("RAW"))),
]


@pytest.mark.parametrize("case", [*ACTIVITIES, *PASSTHROUGH], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)
