"""`Limits`: each bound holds in both policies and every way in; what no bound names does not grow either."""

from __future__ import annotations

import contextlib
import json
import tracemalloc
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

import agui_core as agui
from support import events
from support.events import (
    FINISHED,
    STARTED,
    args,
    patch,
    reason,
    reason_start,
    say,
    snapshot,
    span,
    state,
    step,
    subagent,
    subagent_end,
    text,
    text_chunk,
)
from support.folding import canonical

Wire = dict[str, Any]


def chunk(id: str, by: str | None = None, delta: str = "x") -> Wire:
    return text_chunk(id, delta, **({} if by is None else {"by": by}))


def call(id: str, parent: str | None = None) -> Wire:
    return events.call(id, **({} if parent is None else {"parentMessageId": parent}))


def call_chunk(id: str, delta: str) -> Wire:
    return events.call_chunk(id, delta, "f")


def result(id: str, call: str = "c", content: Any = "x") -> Wire:
    return events.result(call, content, id)


def activity(id: str, content: Any = None) -> Wire:
    return events.activity(id, "t", content)


def activity_patch(id: str, *operations: Wire) -> Wire:
    return events.activity_patch(id, "t", *operations)


def custom(value: Any) -> Wire:
    return events.custom("x", value)


def put(path: str, value: Any) -> Wire:
    return {"op": "add", "path": path, "value": value}


def copy(source: str, path: str) -> Wire:
    return {"op": "copy", "from": source, "path": path}


def user(id: str, content: Any = "") -> Wire:
    return {"id": id, "role": "user", "content": content}


def assistant(id: str, *calls: str) -> Wire:
    function = {"name": "f", "arguments": ""}
    return {
        "id": id,
        "role": "assistant",
        "toolCalls": [{"id": call, "type": "function", "function": function} for call in calls],
    }


def apply_all(reducer: agui.Reducer, events: Iterable[object]) -> None:
    for event in events:
        reducer.apply(event)


def repeat(action: Callable[[], object], times: int = 100) -> None:
    for _ in range(times):
        action()


def nested(depth: int, leaf: Any = 1) -> Any:
    for _ in range(depth):
        leaf = [leaf]
    return leaf


class Bound(NamedTuple):
    """A limit, a stream that just keeps it, and the event that is too much."""

    limit: str
    value: int
    events: list[Wire]
    excess: Wire

    def __str__(self) -> str:
        return f"{self.limit}: {self.excess['type']}"


TEN = "0123456789"
BOUNDS = [
    Bound("messages", 2, [text("a"), text("b")], text("c")),
    Bound("messages", 2, [text("a"), reason_start("b")], reason_start("c")),
    Bound("messages", 2, [text("a"), call("b")], call("c")),
    Bound("messages", 2, [text("a"), call("b", "a"), call("d", "n")], call("c", "z")),
    Bound("messages", 2, [text("a"), result("b")], result("c")),
    Bound("messages", 2, [text("a"), result("b")], result("b")),
    Bound("messages", 2, [text("a"), activity("b"), activity("b")], activity("c")),
    Bound("messages", 2, [chunk("a"), chunk("b"), chunk("a")], chunk("c")),
    Bound("messages", 2, [snapshot(user("a"), user("b"))], snapshot(user("a"), user("b"), user("c"))),
    Bound("messages", 2, [activity("b"), snapshot(user("a"))], snapshot(user("a"), user("c"))),
    Bound("tool_calls", 2, [call("a"), call("b", "m")], call("c", "m")),
    Bound("tool_calls", 2, [call_chunk("a", ""), call_chunk("b", "")], call_chunk("c", "")),
    Bound(
        "tool_calls", 2, [snapshot(assistant("m", "a", "b"))], snapshot(assistant("m", "a"), assistant("n", "b", "c"))
    ),
    Bound("tool_calls_per_message", 2, [call("a", "m"), call("b", "m"), call("d", "n")], call("c", "m")),
    Bound("tool_calls_per_message", 2, [snapshot(assistant("m", "a", "b"))], snapshot(assistant("m", "a", "b", "c"))),
    Bound("open_items", 2, [text("a"), text("b")], text("c")),
    Bound("open_items", 2, [text("a"), call("b")], call("c")),
    Bound("open_items", 2, [text("a"), reason_start("b")], reason_start("c")),
    Bound("open_items", 2, [text("a"), span("b")], span("c")),
    Bound("open_items", 2, [text("a"), step("b")], step("c")),
    Bound("open_items", 2, [text("a"), text("b")], chunk("c")),
    Bound("lanes", 2, [chunk("a"), chunk("b", "s1"), chunk("d")], chunk("c", "s2")),
    Bound("subagents", 2, [subagent("a"), subagent("b")], subagent("c")),
    Bound("subagents", 2, [subagent("a"), subagent_end("a"), subagent("b"), subagent_end("b")], subagent("c")),
    Bound("item_characters", 10, [text("m"), say("m", TEN)], say("m", "x")),
    Bound("item_characters", 10, [text("m"), *[say("m", "x")] * 10], say("m", "x")),
    Bound("item_characters", 10, [text("m"), say("m", "é" * 10), text("n"), say("n", TEN)], say("m", "x")),
    Bound("item_characters", 10, [text("m")], say("m", TEN + "x")),
    Bound("item_characters", 10, [call("c"), args("c", TEN), call("d"), args("d", TEN)], args("c", "x")),
    Bound("item_characters", 10, [reason_start("q"), reason("q", TEN)], reason("q", "x")),
    Bound("item_characters", 10, [chunk("m", delta=TEN)], chunk("m")),
    Bound("item_characters", 10, [call_chunk("c", TEN)], call_chunk("c", "x")),
    Bound("item_characters", 10, [result("t", content=TEN)], result("u", content=TEN + "x")),
    Bound("item_characters", 10, [snapshot(user("a", TEN))], snapshot(user("a", TEN + "x"))),
    Bound("characters", 20, [text("m"), say("m", TEN), text("n"), say("n", TEN)], say("n", "x")),
    Bound("characters", 20, [text("m"), say("m", TEN), call("c"), *[args("c", "x")] * 10], args("c", "x")),
    Bound("characters", 20, [reason_start("q"), reason("q", TEN), chunk("m", delta=TEN)], chunk("m")),
    Bound("characters", 20, [result("t", content=TEN), result("u", content=TEN)], result("v")),
    Bound("characters", 20, [snapshot(user("a", TEN), user("b", TEN))], snapshot(user("a", TEN), user("b", TEN + "x"))),
    Bound("nodes", 10, [state(list(range(9)))], state(list(range(10)))),
    Bound("nodes", 10, [state([0] * 8), patch(put("/-", 1))], patch(put("/-", 1))),
    Bound("nodes", 10, [state({"a": [0] * 3}), patch(copy("/a", "/b"))], patch(copy("/a", "/c"))),
    Bound("nodes", 10, [activity("a", {"l": [0] * 8})], activity("a", {"l": [0] * 9})),
    Bound("nodes", 10, [activity("a", {"l": [0] * 8})], activity_patch("a", put("/l/-", 1))),
    Bound("nodes", 10, [], snapshot({"id": "a", "role": "activity", "activityType": "t", "content": {"l": [0] * 9}})),
    Bound("patch_operations", 2, [patch(put("/a", 1), put("/b", 1))], patch(put("/a", 1), put("/b", 1), put("/c", 1))),
    Bound("patch_operations", 2, [activity("a")], activity_patch("a", put("/a", 1), put("/b", 1), put("/c", 1))),
    Bound("nesting", 10, [custom(nested(5))], custom(nested(15))),
    Bound("nesting", 10, [state(nested(5))], state(nested(15))),
    Bound("nesting", 10, [state(nested(5)), patch(put("/0", nested(4)))], patch(put("/0/0/0/0", nested(8)))),
    Bound("nesting", 10, [activity("a", {"x": nested(4)})], activity("a", {"x": nested(15)})),
    Bound("nesting", 10, [activity("a", {"x": nested(4)})], activity_patch("a", put("/x/0/0/0/0", nested(8)))),
    Bound("event_bytes", 300, [custom("x" * 100)], custom("x" * 300)),
]


def one_by_one(prepare: Callable[[Wire], object]) -> Callable[[agui.Reducer, list[Wire]], None]:
    def feed(reducer: agui.Reducer, events: list[Wire]) -> None:
        for event in events:
            reducer.apply(prepare(event))

    return feed


def in_sse(reducer: agui.Reducer, events: list[Wire]) -> None:
    reducer.apply_sse(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events))


def in_lines(reducer: agui.Reducer, events: list[Wire]) -> None:
    reducer.apply_lines(b"".join(json.dumps(event).encode() + b"\n" for event in events))


WAYS: dict[str, Callable[[agui.Reducer, list[Wire]], None]] = {
    "dicts": one_by_one(lambda event: event),
    "bytes": one_by_one(lambda event: json.dumps(event).encode()),
    "text": one_by_one(json.dumps),
    "sse": in_sse,
    "lines": in_lines,
}


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_what_just_keeps_a_limit_passes_and_one_more_is_refused(bound: Bound) -> None:
    """What just keeps it is accepted; one more is refused, names the limit, and changes nothing."""
    limits = agui.Limits(**{bound.limit: bound.value})
    for way, feed in WAYS.items():
        if way == "dicts" and bound.limit == "event_bytes":
            continue  # a dict has no bytes
        for policy in ("strict", "lenient"):
            reducer = agui.Reducer(limits=limits, policy=policy)  # type: ignore[arg-type]
            feed(reducer, [STARTED, *bound.events])
            assert reducer.status == "running", (way, policy)
            before = canonical([agui.to_wire(reducer.messages), reducer.state])
            with pytest.raises(agui.LimitExceeded) as refusal:
                feed(reducer, [bound.excess])
            error = refusal.value
            assert error.limit == bound.limit, (way, policy, str(error))
            assert error.rule == f"Limits.{bound.limit}"
            assert f"[Limits.{bound.limit}]" in str(error)
            assert error.index == len(bound.events) + 1, (way, policy)
            assert f"event {error.index}" in str(error)
            assert (reducer.status, reducer.error) == ("rejected", error), (way, policy)
            assert canonical([agui.to_wire(reducer.messages), reducer.state]) == before, (way, policy)
            with pytest.raises(agui.LimitExceeded) as again:
                reducer.apply(FINISHED)
            assert again.value is error


@pytest.mark.parametrize("bound", BOUNDS, ids=str)
def test_bound_in_one_read(bound: Bound) -> None:
    """The same when the event that is too much comes in one read with those before it."""
    for feed in (in_sse, in_lines):
        reducer = agui.Reducer(limits=agui.Limits(**{bound.limit: bound.value}))
        apart = agui.Reducer()
        one_by_one(lambda event: event)(apart, [STARTED, *bound.events])
        with pytest.raises(agui.LimitExceeded) as refusal:
            feed(reducer, [STARTED, *bound.events, bound.excess, FINISHED])
        assert (refusal.value.limit, refusal.value.index) == (bound.limit, len(bound.events) + 1)
        assert canonical([agui.to_wire(reducer.messages), reducer.state]) == canonical(
            [agui.to_wire(apart.messages), apart.state]
        )


def test_the_echo_of_a_run_input_counts() -> None:
    messages = [user("a"), user("b"), assistant("m", "c", "d")]
    echo = {**STARTED, "input": {"threadId": "t", "runId": "r", "messages": messages}}
    for limit, value in (("messages", 2), ("tool_calls", 1)):
        reducer = agui.Reducer(limits=agui.Limits(**{limit: value}))
        with pytest.raises(agui.LimitExceeded) as refusal:
            reducer.apply(echo)
        assert refusal.value.limit == limit
        assert (reducer.messages, reducer.status) == ((), "rejected")


def test_limits_of_one_run_start_anew_in_the_next() -> None:
    reducer = agui.Reducer(limits=agui.Limits(subagents=1, open_items=1))
    for _ in range(3):
        for event in (STARTED, subagent("a"), text("m"), {"type": "TEXT_MESSAGE_END", "messageId": "m"}):
            reducer.apply(event)
        for event in (subagent_end("a"), FINISHED):
            reducer.apply(event)
    assert reducer.status == "finished"


def test_characters_that_a_snapshot_took_away_are_free_again() -> None:
    reducer = agui.Reducer(limits=agui.Limits(characters=20))
    for event in (STARTED, text("m"), say("m", TEN * 2), snapshot(), text("n"), say("n", TEN * 2)):
        reducer.apply(event)
    assert reducer.messages[-1].content == TEN * 2
    with pytest.raises(agui.LimitExceeded):
        reducer.apply(say("n", "x"))


def test_messages_that_a_snapshot_took_away_are_free_again() -> None:
    reducer = agui.Reducer(limits=agui.Limits(messages=2, tool_calls=2))
    for event in (STARTED, call("a"), call("b"), snapshot(), call("c"), call("d")):
        reducer.apply(event)
    with pytest.raises(agui.LimitExceeded):
        reducer.apply(call("e"))


# --- bytes without end --------------------------------------------------------------------------------------------

ENDLESS = {
    "a line of data": (b"data: ", b"x" * 1000),
    "a line without a field": (b"", b"x" * 1000),
    "a comment": (b": ", b"x" * 1000),
    "data lines without a blank one": (b"", b"data: " + b"x" * 1000 + b"\n"),
    "an event's JSON": (b'data: {"type":"CUSTOM","name":"x","value":"', b"x" * 1000),
}


@pytest.mark.parametrize("name", ENDLESS)
@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_sse_without_end(name: str, policy: Any) -> None:
    first, more = ENDLESS[name]
    reducer = agui.Reducer(limits=agui.Limits(event_bytes=20_000), policy=policy)
    reducer.apply(STARTED)
    reducer.apply_sse(first)
    with pytest.raises(agui.LimitExceeded) as refusal:
        repeat(lambda: reducer.apply_sse(more))
    assert refusal.value.limit == "event_bytes"
    assert reducer.status == "rejected"


@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_a_json_line_without_end(policy: Any) -> None:
    reducer = agui.Reducer(limits=agui.Limits(event_bytes=20_000), policy=policy)
    reducer.apply_lines(json.dumps(STARTED).encode() + b"\n[")
    with pytest.raises(agui.LimitExceeded) as refusal:
        repeat(lambda: reducer.apply_lines(b" " * 1000))
    assert refusal.value.limit == "event_bytes"
    assert refusal.value.index == 1


def test_many_small_events_in_one_read_are_no_large_event() -> None:
    reducer = agui.Reducer(limits=agui.Limits(event_bytes=300))
    in_sse(reducer, [STARTED, *[custom("x" * 50)] * 100])
    in_lines(reducer, [custom("x" * 50)] * 100)
    assert reducer.status == "running"


# --- nesting ------------------------------------------------------------------------------------------------------

DEEP = nested(300)
PLACES: dict[str, Wire] = {
    "rawEvent": {**custom(1), "rawEvent": DEEP},
    "metadata": {**custom(1), "metadata": {"x": DEEP}},
    "metadata of content": {**say("m", "x"), "metadata": {"x": DEEP}},
    "CUSTOM.value": custom(DEEP),
    "RAW.event": {"type": "RAW", "event": DEEP},
    "RUN_FINISHED.result": {**FINISHED, "result": DEEP},
    "SUBAGENT_FINISHED.result": {**subagent_end("s"), "result": DEEP},
    "snapshot": state(DEEP),
    "an object": state(json.loads('{"a":' * 300 + "1" + "}" * 300)),
    "the value of an operation": patch(put("/a", DEEP)),
    "an extra member of an operation": patch({**put("/a", 1), "note": DEEP}),
    "activity content": activity("a", {"x": DEEP}),
    "a message's metadata": snapshot({**user("u"), "metadata": {"x": DEEP}}),
    "a part's metadata": snapshot(user("u", [{"type": "text", "text": "", "metadata": DEEP}])),
    "a response schema": {
        **FINISHED,
        "outcome": {"type": "interrupt", "interrupts": [{"id": "i", "reason": "r", "responseSchema": {"x": DEEP}}]},
    },
    "the echo": {**STARTED, "input": {"threadId": "t", "runId": "r", "messages": [], "state": DEEP}},
    "an unknown property": {**custom(1), "surprise": DEEP},
    "a string's place": say("m", DEEP),
    "the type's place": {"type": DEEP},
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_nested_too_deeply_is_refused_in_every_place(place: str) -> None:
    event = PLACES[place]
    for way, feed in WAYS.items():
        for policy in ("strict", "lenient"):
            reducer = agui.Reducer(policy=policy)  # type: ignore[arg-type]
            feed(reducer, [STARTED, subagent("s"), text("m")])
            with pytest.raises(agui.AGUIError) as refusal:
                feed(reducer, [event])
            assert isinstance(refusal.value, agui.LimitExceeded), (way, policy, refusal.value)
            assert refusal.value.limit == "nesting"
            assert refusal.value.index == 3


@pytest.mark.parametrize("depth", [1_000, 100_000])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_nesting_that_no_parser_takes(depth: int, brackets: str) -> None:
    opening = "[" if brackets == "[]" else '{"a":'
    for closing in (opening * depth + "1" + brackets[1] * depth, opening * depth):
        for frame in (
            b'{"type":"RAW","event":%s}',
            b'{"type":"NEW","event":%s}',
            b'{"type":"RAW","event":1,"x":%s}',
            b"%s",
        ):
            data = frame % closing.encode()
            for name, wrap in (("apply", b"%s"), ("apply_sse", b"data:%s\n\n"), ("apply_lines", b"%s\n")):
                reducer = agui.Reducer()
                reducer.apply(STARTED)
                with pytest.raises(agui.AGUIError) as refusal:
                    getattr(reducer, name)(wrap % data)
                assert isinstance(refusal.value, agui.DecodeError | agui.LimitExceeded), refusal.value
                assert reducer.status == "rejected"


def test_nesting_of_dicts_that_no_recursion_takes() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for event in (state(deep), custom(deep), {"type": "NEW", "x": deep}, {**text("m"), "x": deep}, {"type": deep}):
        reducer = agui.Reducer()
        reducer.apply(STARTED)
        with pytest.raises(agui.LimitExceeded):
            reducer.apply(event)
    while deep:  # a chain of this length must be taken apart by hand
        deep = deep.pop("a")


def test_nesting_built_by_patches() -> None:
    reducer = agui.Reducer(state={})
    reducer.apply(STARTED)
    with pytest.raises(agui.LimitExceeded) as refusal:
        apply_all(reducer, (patch(put("/a" * depth, {})) for depth in range(1, 300)))
    assert refusal.value.limit == "nesting"
    agui.encode(reducer.state)


def test_nesting_built_by_copies() -> None:
    reducer = agui.Reducer(state={"a": {}})
    reducer.apply(STARTED)
    deeper = patch(copy("", "/b"), {"op": "move", "from": "/b", "path": "/a"})
    with pytest.raises(agui.LimitExceeded) as refusal:
        repeat(lambda: reducer.apply(deeper), 300)
    assert refusal.value.limit in ("nesting", "nodes")
    agui.encode(reducer.state)


def test_a_state_that_copies_itself_over_and_over() -> None:
    reducer = agui.Reducer(state={"a": [1, 2, 3]})
    reducer.apply(STARTED)
    tracemalloc.start()
    try:
        with pytest.raises(agui.LimitExceeded) as refusal:
            apply_all(reducer, (patch(copy("/a", "/a/-"), copy("/a", f"/b{number}")) for number in range(100)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert refusal.value.limit in ("nodes", "nesting")
    assert peak < 2_000_000


def test_arguments_nested_without_end_are_invalid_and_raise_nothing() -> None:
    reducer = agui.Reducer()
    for event in (STARTED, call("c"), *[args("c", "[" * 1_000)] * 100):
        reducer.apply(event)
    view = reducer.tool_calls["c"]
    assert view.args is not None
    reducer.apply({"type": "TOOL_CALL_END", "toolCallId": "c"})
    assert (view.complete, view.valid) == (True, False)
    assert view.error is not None


# --- warnings -----------------------------------------------------------------------------------------------------


def test_warnings_are_bounded_and_never_raise() -> None:
    reducer = agui.Reducer(limits=agui.Limits(warnings=5))
    reducer.apply(STARTED)
    for number in range(50):
        reducer.apply({"type": f"NEW_{number}"})
        reducer.apply({**custom(1), f"surprise{number}": 1})
        reducer.apply({"type": "NEW_0"})
    assert len(reducer.warnings) == 5
    assert reducer.warnings[0].count == 51
    reducer.apply(FINISHED)
    assert reducer.status == "finished"


# --- what no limit names ------------------------------------------------------------------------------------------

SMALL = agui.Limits(
    messages=50,
    tool_calls=50,
    open_items=50,
    lanes=50,
    subagents=50,
    warnings=20,
    nodes=2_000,
    characters=200_000,
    item_characters=200_000,
)
UNIQUE = 5_000
"""Characters of every event that are like no other's."""


def unique(number: int) -> str:
    return f"{number:08}" + "u" * (UNIQUE - 8)


def message_end(id: str) -> Wire:
    return {"type": "TEXT_MESSAGE_END", "messageId": id}


GROWTH: dict[str, Callable[[str], list[Wire]]] = {
    "spans": lambda u: [span(u), {"type": "REASONING_END", "messageId": u}],
    "steps": lambda u: [step(u), {"type": "STEP_FINISHED", "stepName": u}],
    "texts": lambda u: [text(u), message_end(u)],
    "calls": lambda u: [call(u), {"type": "TOOL_CALL_END", "toolCallId": u}],
    "names of calls": lambda u: [{**call("c"), "toolCallName": u}, {"type": "TOOL_CALL_END", "toolCallId": "c"}],
    "snapshots": lambda u: [snapshot(user(u))],
    "snapshots of calls": lambda u: [snapshot(assistant("m", u))],
    "snapshots of reasoning": lambda u: [snapshot({"id": u, "role": "reasoning", "content": ""})],
    "metadata": lambda u: [text("m", metadata={u: 1}), message_end("m")],
    "values of metadata": lambda u: [text("m", metadata={u[:8]: u}), message_end("m")],
    "metadata of an activity": lambda u: [{**activity("a"), "metadata": {u: 1}}],
    "metadata of calls": lambda u: [{**call("c"), "metadata": {u: 1}}, {"type": "TOOL_CALL_END", "toolCallId": "c"}],
    "activities": lambda u: [activity("a", {"x": u})],
    "keys of an activity": lambda u: [
        *([activity("a")] if u[:8] == "0" * 8 else []),
        activity_patch("a", put(f"/{u}", 1)),
    ],
    "declined activities": lambda u: [{**activity(u), "replace": False}, snapshot(), activity(u)],
    "activities without a message": lambda u: [activity_patch(u, put("/a", 1))],
    "encrypted values": lambda u: [
        {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": u, "encryptedValue": "x"}
    ],
    "results": lambda u: [result(u)],
    "results and snapshots": lambda u: [result("t", u), snapshot()],
    "parts of results": lambda u: [result("t" + u[:8], content=[{"type": "text", "text": u}])],
    "states": lambda u: [state({u: u})],
    "keys of the state": lambda u: [patch(put(f"/{u}", 1))],
    "strings of the state": lambda u: [patch(put(f"/{u[:8]}", u))],
    "failing patches": lambda u: [patch({"op": "remove", "path": f"/{u}"})],
    "tags": lambda u: [{**custom(1), "subagentRunId": u}],
    "lanes": lambda u: [chunk("m" + u[:8], u), {**custom(1), "subagentRunId": u}, snapshot()],
    "subagents": lambda u: [subagent(u), subagent_end(u)],
    "suspended subagents": lambda u: [
        subagent(u[:8]),
        {**subagent_end(u[:8]), "outcome": {"type": "suspended", "interruptIds": [u]}},
    ],
    "runs": lambda u: [{**FINISHED, "runId": u}, {**STARTED, "runId": u}],
    "failed runs": lambda u: [{"type": "RUN_ERROR", "message": u}, STARTED],
    "echoes": lambda u: [
        FINISHED,
        {**STARTED, "input": {"threadId": "t", "runId": "r", "messages": [user("u")], "forwardedProps": u}},
    ],
    "interrupts": lambda u: [
        {**FINISHED, "outcome": {"type": "interrupt", "interrupts": [{"id": u, "reason": "r"}]}},
        STARTED,
    ],
    "results of runs": lambda u: [{**FINISHED, "result": u}, STARTED],
    "unknown types": lambda u: [{"type": u}],
    "unknown properties": lambda u: [{**custom(1), u: 1}],
    "raw events": lambda u: [{"type": "RAW", "event": u}],
    "thoughts": lambda u: [{"type": "THINKING_START", "title": u}, {"type": "THINKING_END"}],
}


@pytest.mark.parametrize("name", GROWTH)
def test_memory_is_bounded(name: str) -> None:
    """Either a limit is exceeded, or nothing is kept of what came. Lenient, so that nothing else stops the stream."""
    make, rounds = GROWTH[name], 300
    reducer = agui.Reducer(limits=SMALL, policy="lenient")
    reducer.apply(STARTED)
    tracemalloc.start()
    try:
        with contextlib.suppress(agui.LimitExceeded):
            apply_all(
                reducer, (json.dumps(event).encode() for number in range(rounds) for event in make(unique(number)))
            )
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert held < 750_000, f"{held:,} bytes are held: {reducer.status}"


def test_the_limits_say_what_they_are() -> None:
    assert agui.Limits() == agui.Limits(
        event_bytes=16 * 2**20,
        nesting=200,
        messages=100_000,
        tool_calls=100_000,
        tool_calls_per_message=100_000,
        open_items=10_000,
        lanes=1_000,
        subagents=10_000,
        item_characters=64 * 2**20,
        characters=256 * 2**20,
        nodes=5_000_000,
        patch_operations=100_000,
        warnings=1_000,
    )


@pytest.mark.parametrize("value", ["x", None, -1, 1.5, True])
def test_a_limit_is_a_number_of_things(value: Any) -> None:
    with pytest.raises(TypeError, match=r"Limits\(messages=\.\.\.\) takes an int of at least 0"):
        agui.Limits(messages=value)


@pytest.mark.parametrize("encode", [json.dumps, lambda event: event])
def test_a_refusal_names_the_limit_on_nesting(encode: Any) -> None:
    reducer = agui.Reducer(limits=agui.Limits(nesting=10))
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    with pytest.raises(agui.LimitExceeded, match="more than 10 deep"):
        reducer.apply(encode({"type": "CUSTOM", "name": "n", "value": nested(11)}))


def test_no_limit_is_blamed_for_the_stack() -> None:
    reducer = agui.Reducer(limits=agui.Limits(nesting=10**9))
    with pytest.raises(agui.LimitExceeded, match=r"for the stack that is left; Limits\.nesting is 1000000000"):
        reducer.apply(b'{"type":"CUSTOM","name":"n","value":' + b"[" * 100_000)
