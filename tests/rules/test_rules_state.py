"""State, patches and metadata (protocol sections 12, 13.1, 13.2)."""

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
    custom,
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
    started,
    state,
    text,
    text_end,
    tool_call,
)
from support.rule_cases import Case, accept, check, refuse

STATE = [
    accept("STATE-1", "a snapshot replaces the whole", run(state({"a": 1}), state({"b": 2})), state={"b": 2}),
    *[
        accept("STATE-1 EVT-10", f"a state of {value!r}", run(state(value)), state=value)
        for value in (None, 0, False, "", "x", [], {}, 1.5, [None])
    ],
    accept(
        "STATE-2",
        "the baseline is the input's state",
        run(patch(op("add", "/b", 2))),
        baseline={"a": 1},
        state={"a": 1, "b": 2},
    ),
    accept("STATE-2", "or an empty object", run(patch(op("add", "/b", 2))), state={"b": 2}),
    accept(
        "STATE-4",
        "it persists over runs",
        [*run(state({"a": 1})), started("r2"), patch(op("add", "/b", 2)), finished("r2")],
        state={"a": 1, "b": 2},
    ),
    accept("STATE-4 RUN-22", "also over a failure", ending(state([1]), failed()), state=[1], status="failed"),
    accept(
        "EVT-9",
        "null inside is data",
        run(state({"a": None, "b": [None]}), patch(op("add", "/c", None))),
        state={"a": None, "b": [None], "c": None},
    ),
    refuse("PROC-7 PASS-6", "a snapshot without its value", ending({"type": "STATE_SNAPSHOT"})),
]

BASE = {"a": {"b": [1, 2, 3]}, "n": 1, "": 0, "x/y": 1, "m~n": 2}


def patched(rules: str, title: str, operations: list[Any], after: Any, base: Any = BASE) -> Case:
    return accept(rules, title, run(state(base), patch(*operations)), state=after)


def not_patched(rules: str, title: str, *operations: Any) -> Case:
    """The patch does not apply: the state stays, one warning, and the next snapshot is adopted (PATCH-6)."""
    return accept(rules, title, run(state(BASE), patch(*operations), custom()), state=BASE, warns="PATCH-5")


PATCHES = [
    patched(
        "PATCH-1",
        "in order",
        [op("add", "/q", 1), op("replace", "/q", 2), op("remove", "/n")],
        {**{k: v for k, v in BASE.items() if k != "n"}, "q": 2},
    ),
    patched(
        "PATCH-1",
        "move and copy",
        [op("copy", "/k", **{"from": "/a/b"}), op("move", "/l", **{"from": "/a"}), op("remove", "/k/0")],
        {"n": 1, "": 0, "x/y": 1, "m~n": 2, "k": [2, 3], "l": {"b": [1, 2, 3]}},
    ),
    patched("PATCH-8", "append at -", [op("add", "/a/b/-", 4)], {**BASE, "a": {"b": [1, 2, 3, 4]}}),
    patched("PATCH-8", "insert", [op("add", "/a/b/1", 9)], {**BASE, "a": {"b": [1, 9, 2, 3]}}),
    patched("PATCH-7", "an empty patch", [], BASE),
    patched("PATCH-7", "the whole document", [op("replace", "", [1])], [1]),
    patched("PATCH-7", "removing the whole leaves null", [op("remove", "")], None),
    patched(
        "EVT-6 PATCH-1",
        "the empty key and escapes",
        [op("replace", "/", 1), op("replace", "/x~1y", 2), op("replace", "/m~0n", 3)],
        {**BASE, "": 1, "x/y": 2, "m~n": 3},
    ),
    patched("PATCH-8", "test: 1 equals 1.0", [op("test", "/n", 1.0), op("add", "/q", 1)], {**BASE, "q": 1}),
    patched(
        "PATCH-8",
        "test: order of keys does not count",
        [op("test", "", {"b": 1, "a": 2}), op("remove", "/b")],
        {"a": 2},
        {"a": 2, "b": 1},
    ),
    patched("PATCH-4", "extra members", [{**op("add", "/q", 1), "note": "x", "from": "/n"}], {**BASE, "q": 1}),
    patched(
        "PROC-10 PATCH-4", "a remove with a value", [op("remove", "/n", 5)], {k: v for k, v in BASE.items() if k != "n"}
    ),
    patched(
        "EVT-10",
        "null values",
        [op("add", "/q", None), op("test", "/q", None), op("replace", "/n", None)],
        {**BASE, "q": None, "n": None},
    ),
    not_patched("PATCH-5", "a path that is missing", op("replace", "/zz", 1)),
    not_patched("PATCH-5", "a parent that is missing", op("add", "/zz/y", 1)),
    not_patched("PATCH-5", "an index out of range", op("add", "/a/b/9", 1)),
    not_patched("PATCH-5 PATCH-8", "an index with a leading zero", op("replace", "/a/b/01", 1)),
    not_patched("PATCH-5", "a negative index", op("replace", "/a/b/-1", 1)),
    not_patched("PATCH-5", "- where something must be", op("replace", "/a/b/-", 1)),
    not_patched("PATCH-5", "a step into a number", op("add", "/n/x", 1)),
    not_patched("PATCH-5", "a test that fails", op("test", "/n", 2)),
    not_patched("PATCH-5 PATCH-8", "test: true is not 1", op("test", "/n", True)),
    not_patched("PATCH-5", "a move into its own child", op("move", "/a/b/0", **{"from": "/a"})),
    not_patched(
        "PATCH-5 PATCH-1",
        "atomically: the first operations are taken back",
        op("add", "/q", 1),
        op("add", "/a/b/-", 4),
        op("remove", "/n"),
        op("test", "/n", 1),
    ),
    accept(
        "PATCH-6",
        "after a patch that failed the next patch and snapshot count",
        run(state({}), patch(op("remove", "/zz")), patch(op("add", "/a", 1)), state([1]), patch(op("add", "/-", 2))),
        state=[1, 2],
        warns="PATCH-5",
    ),
    accept(
        "PATCH-3 PROC-9",
        "an unknown operation is dropped, the rest applies",
        run(state({}), patch(op("add", "/a", 1), {"op": "merge", "path": "nope"}, op("add", "/b", 2))),
        state={"a": 1, "b": 2},
        warns="PATCH-3 /delta/1|PROC-6 /delta/1|PROC-9 /delta/1",
    ),
    accept(
        "PATCH-3",
        "nothing but unknown operations",
        run(state({"a": 1}), patch({"op": "merge"})),
        state={"a": 1},
        warns="PATCH-3 /delta/0|PROC-6 /delta/0|PROC-9 /delta/0",
    ),
    *[
        refuse("PATCH-2 PROC-7 PROC-10a PROC-10", title, ending(state(BASE), {"type": "STATE_DELTA", "delta": delta}))
        for title, delta in (
            ("a patch that is an object", {"op": "add", "path": "/q", "value": 1}),
            ("null", None),
            ("an operation that is a string", ["add"]),
            ("no op", [{"path": "/q", "value": 1}]),
            ("an op that is a number", [op(1, "/q", 1)]),  # type: ignore[arg-type]
            ("no path", [{"op": "remove"}]),
            ("add without value", [op("add", "/q")]),
            ("replace without value", [op("replace", "/n")]),
            ("test without value", [op("test", "/n")]),
            ("move without from", [op("move", "/n")]),
            ("copy without from", [op("copy", "/n")]),
            ("a path without its slash", [op("add", "q", 1)]),
            ("a bad escape", [op("add", "/a~2", 1)]),
            ("an escape cut short", [op("add", "/a~", 1)]),
            ("a bad from", [op("copy", "/q", **{"from": "n"})]),
            ("a path that is a number", [op("add", 1, 1)]),  # type: ignore[arg-type]
            ("a from that is null", [op("move", "/q", **{"from": None})]),
            ("a good operation before the bad one", [op("add", "/q", 1), op("add", "r", 1)]),
        )
    ],
]

GATHERED = {"x.u": {"in": 1, "out": 2}, "x.k": "a", "x.l": [1, 2]}
LATER = {"x.u": {"out": 9}, "x.k": None, "x.n": {}}
MERGED = {"x.u": {"out": 9}, "x.k": None, "x.l": [1, 2], "x.n": {}}

METADATA = [
    accept(
        "META-2 META-3",
        "text",
        run(text(meta=GATHERED), say(meta={}), text_end(meta=LATER)),
        messages=[msg("assistant", "m", "x", meta=MERGED)],
    ),
    accept(
        "META-2 META-3",
        "reasoning",
        run(reason_start(meta=GATHERED), reason(), reason_end(meta=LATER)),
        messages=[msg("reasoning", "q", "hm", meta=MERGED)],
    ),
    accept(
        "META-2 META-3",
        "a call, not its message",
        run(call(meta=GATHERED), args(meta={"x.m": 0}), call_end(meta=LATER)),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", "f", "{}", meta={**MERGED, "x.m": 0})])],
    ),
    accept(
        "META-3",
        "a result",
        run(result(meta=GATHERED)),
        messages=[msg("tool", "t", "ok", toolCallId="c", meta=GATHERED)],
    ),
    accept(
        "META-2 META-3 META-4",
        "activities",
        run(activity(meta=GATHERED), activity_patch("a", "todo", meta={"x.m": 0}), activity(meta=LATER)),
        messages=[msg("activity", "a", {}, activityType="todo", meta={**MERGED, "x.m": 0})],
    ),
    accept(
        "META-2",
        "by content in the middle, last write wins",
        run(text(meta={"k": 1}), say(meta={"k": 2}), say(meta={"k": 3}), text_end()),
        messages=[msg("assistant", "m", "xx", meta={"k": 3})],
    ),
    accept(
        "META-6",
        "an event without metadata changes nothing",
        run(text(meta={"k": 1}), say(), text_end()),
        messages=[msg("assistant", "m", "x", meta={"k": 1})],
    ),
    accept(
        "META-6",
        "reopening goes on gathering",
        run(text(meta={"k": 1}), text_end(), text(meta={"l": 2}), text_end()),
        messages=[msg("assistant", "m", "", meta={"k": 1, "l": 2})],
    ),
    accept(
        "META-5",
        "a snapshot replaces it",
        run(text("m", meta={"k": 1}), text_end("m"), snapshot(msg("assistant", "m", "", meta={"l": 2}))),
        messages=[msg("assistant", "m", "", meta={"l": 2})],
    ),
    accept(
        "META-5",
        "or takes it away",
        run(text("m", meta={"k": 1}), text_end("m"), snapshot(msg("assistant", "m", ""))),
        messages=[msg("assistant", "m", "")],
    ),
    accept(
        "META-5 MSGS-9",
        "and later events merge into the snapshot's",
        run(text("m", meta={"k": 1}), snapshot(msg("assistant", "m", "", meta={"l": 2})), text_end("m", meta={"n": 3})),
        messages=[msg("assistant", "m", "", meta={"l": 2, "n": 3})],
    ),
    accept(
        "META-1",
        "any key is kept, the protocol's own too",
        run(text(meta={"ag-ui": {"x": None}, "": 1, "a b": []}), text_end()),
        messages=[msg("assistant", "m", "", meta={"ag-ui": {"x": None}, "": 1, "a b": []})],
    ),
    accept(
        "META-3",
        "run, step, state, custom and raw events have no target",
        [started(meta={"k": 1}), state({}, meta={"k": 1}), custom(meta={"k": 1}), finished(meta={"k": 1})],
        messages=[],
        state={},
    ),
    accept("META-1", "empty metadata", run(text(meta={}), text_end())),
    refuse("META-1 PROC-7", "null", ending(text(meta=None))),
    refuse("META-1 PROC-7", "a list", ending(text(meta=[]))),
    refuse("META-1 PROC-7", "a string", ending(custom(meta="x"))),
    refuse("META-1 PROC-7", "on a message", ending(snapshot(msg("assistant", "m", "", meta=5)))),
]


@pytest.mark.parametrize("case", [*STATE, *PATCHES, *METADATA], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)


def test_PATCH_5_the_warning_says_what_failed_and_why() -> None:
    reducer = agui.reduce(run(patch(op("add", "/a", 1), op("remove", "/zz"))))
    (warning,) = reducer.warnings
    assert warning.rule == "PATCH-5"
    assert warning.index == 1
    assert "/zz" in str(warning)


def test_PATCH_7_what_was_handed_out_never_changes() -> None:
    given = {"deep": {"list": [1]}}
    reducer = agui.Reducer(state=given)
    seen = [reducer.state]
    kept = [agui.encode(reducer.state)]
    events = [
        started(),
        patch(op("add", "/deep/list/-", 2)),
        state({"deep": {"list": [5]}}),
        patch(op("add", "/deep/list/0", 4)),
        patch(op("copy", "/deep/copy", **{"from": "/deep/list"})),
        patch(op("add", "/deep/copy/-", 9)),
    ]
    for wire in events:
        reducer.apply(wire)
        seen.append(reducer.state)
        kept.append(agui.encode(reducer.state))
    assert [agui.encode(value) for value in seen] == kept
    assert given == {"deep": {"list": [1]}}
    assert events[2]["snapshot"] == {"deep": {"list": [5]}}
    assert reducer.state == {"deep": {"list": [4, 5], "copy": [4, 5, 9]}}
