"""What a `Reducer` shows: messages, versions and changes, tool calls, events to observers, warnings; and middleware."""

from __future__ import annotations

import json
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import agui_core as agui
from support.events import FINISHED, STARTED
from support.folding import canonical
from support.hello_stream import CALL, HELLO, MESSAGES, QUESTION, REST, STREAM, assert_whole, begin

# --- what comes out -----------------------------------------------------------------------------------------------


def test_an_unchanged_message_keeps_its_identity() -> None:
    reducer = begin(*HELLO, *REST[2:4], messages=[QUESTION])
    first = reducer.messages
    assert reducer.messages is first or all(a is b for a, b in zip(reducer.messages, first, strict=True))
    reducer.apply(REST[3])
    second = reducer.messages
    assert [message.id for message in second] == ["u", "m", "k"]
    assert (second[0] is first[0], second[1] is first[1], second[2] is first[2]) == (True, True, False)
    assert first[2].content == "\N{GRINNING FACE}!"
    reducer.apply({"type": "RAW", "event": 1})
    assert all(a is b for a, b in zip(reducer.messages, second, strict=True))


def test_an_unchanged_call_of_a_changed_message_keeps_its_identity() -> None:
    other = [{**event, "toolCallId": "d"} for event in CALL[:2]]
    reducer = begin(*HELLO[:1], *CALL, *other)
    first = reducer.messages[0].tool_calls
    reducer.apply(other[1])
    second = reducer.messages[0].tool_calls
    assert (second[0] is first[0], second[1] is first[1]) == (True, False)


def test_messages_are_frozen() -> None:
    (message,) = begin(*HELLO).messages
    with pytest.raises(AttributeError):
        message.content = "no"
    assert isinstance(begin(*HELLO).messages, tuple)


def test_the_state_that_was_handed_out_stays_when_nothing_changed() -> None:
    reducer = begin(REST[0])
    first = reducer.state
    reducer.apply(HELLO[0])
    assert reducer.state is first


def test_changes_name_what_changed_since_a_version() -> None:
    reducer = begin(*HELLO[:1], messages=[QUESTION])
    version = reducer.version
    assert not reducer.changes(since=version)
    for events, expected in (
        (HELLO[1:2], {"changed": ("m",)}),
        (CALL[:2], {"changed": ("m",), "calls": ("c",)}),
        ([{"type": "RAW", "event": 1}], {}),
        (REST[:1], {"state": True}),
        (REST[2:3], {"added": ("k",)}),
        (REST[3:4], {"changed": ("k",)}),
        (
            [{"type": "MESSAGES_SNAPSHOT", "messages": [QUESTION | {"content": "new"}]}],
            {"changed": ("u",), "removed": {"m", "k"}},
        ),
    ):
        version = reducer.version
        for event in events:
            reducer.apply(event)
        changes = reducer.changes(since=version)
        for field in ("added", "changed", "calls", "state"):
            assert getattr(changes, field) == expected.get(field, type(getattr(changes, field))()), (events, field)
        assert set(changes.removed) == expected.get("removed", set()), events
        assert changes.version == reducer.version
        assert bool(changes) == bool(expected), events
        assert changes.reordered is False


def test_the_version_only_grows() -> None:
    reducer = agui.Reducer()
    versions = [reducer.version]
    for event in STREAM:
        reducer.apply(event)
        versions.append(reducer.version)
    reducer.add(QUESTION)
    versions.append(reducer.version)
    assert versions == sorted(versions)
    assert versions[-1] > versions[-2]
    assert reducer.version == reducer.version


def test_changes_since_the_beginning_name_everything() -> None:
    reducer = agui.reduce(STREAM)
    changes = reducer.changes(since=0)
    assert set(changes.added) == {"m", "k", "a"}
    assert changes.calls == ("c",)
    assert (changes.state, changes.run) == (True, True)


def test_changes_say_when_the_run_differs() -> None:
    reducer = agui.Reducer()
    for event, differs in ((STARTED, True), (HELLO[0], False), (HELLO[2], False), (FINISHED, True)):
        version = reducer.version
        reducer.apply(event)
        assert reducer.changes(since=version).run is differs, event
    version = reducer.version
    reducer.apply({"type": "RUN_ERROR", "message": "late"})
    assert reducer.changes(since=version).run


def test_changes_say_that_a_call_is_new_pending() -> None:
    reducer = begin()
    version = reducer.version
    reducer.apply(CALL[0])
    assert reducer.run.pending_tool_calls == ("c",)
    assert reducer.changes(since=version).calls == ("c",)


def test_nothing_was_reordered_by_a_result_in_the_middle_but_it_was_added() -> None:
    reducer = begin(*HELLO[:1], *CALL, {"type": "TEXT_MESSAGE_START", "messageId": "z"})
    version = reducer.version
    reducer.apply({"type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": "x"})
    changes = reducer.changes(since=version)
    assert (changes.added, changes.reordered) == (("t",), False)
    assert [message.id for message in reducer.messages] == ["m", "t", "z"]


# --- calls --------------------------------------------------------------------------------------------------------


def test_TOOL_4_a_call_is_complete_and_valid_after_its_end_only() -> None:
    reducer = begin(CALL[0])
    view = reducer.tool_calls["c"]
    steps = []
    for event in (None, *CALL[1:]):
        if event:
            reducer.apply(event)
        steps.append((view.arguments, view.args, view.complete, view.valid))
    assert steps == [
        ("", agui.UNSET, False, False),
        ('{"q": "a', {"q": "ab"}, False, False),  # the value grows in place
        ('{"q": "ab"}', {"q": "ab"}, False, False),
        ('{"q": "ab"}', {"q": "ab"}, True, True),
    ]
    assert (view.id, view.name, view.message_id, view.result, dict(view.metadata)) == ("c", "look", "m", None, {})


@pytest.mark.parametrize(
    ("text", "valid", "value"),
    [
        ("", True, {}),
        ("{}", True, {}),
        ("null", True, None),
        ("[1, 2]", True, [1, 2]),
        (' {"a": 1} ', True, {"a": 1}),
        ('{"a": 1', False, {"a": 1}),
        ('{"a": 1}}', False, {"a": 1}),
        ("nope", False, agui.UNSET),
        ('{"a": 1} {"b": 2}', False, {"a": 1}),
    ],
)
def test_arguments_of_a_closed_call(text: str, valid: bool, value: Any) -> None:
    reducer = begin(CALL[0], {**CALL[1], "delta": text}, CALL[3])
    view = reducer.tool_calls["c"]
    assert (view.complete, view.valid, view.arguments) == (True, valid, text)
    if valid:
        assert canonical(view.args) == canonical(value)
        assert view.error is None
    else:
        assert view.error is not None


def test_calls_are_a_mapping_in_the_order_they_were_made() -> None:
    other = {**CALL[0], "toolCallId": "b"}
    reducer = begin(CALL[0], other)
    assert list(reducer.tool_calls) == ["c", "b"]
    assert len(reducer.tool_calls) == 2
    assert "c" in reducer.tool_calls
    assert "z" not in reducer.tool_calls
    with pytest.raises(KeyError):
        reducer.tool_calls["z"]


def test_a_call_shows_its_result_and_metadata() -> None:
    reducer = begin(
        {**CALL[0], "metadata": {"x.a": 1}},
        {"type": "TOOL_CALL_RESULT", "messageId": "t", "toolCallId": "c", "content": "first"},
        {"type": "TOOL_CALL_RESULT", "messageId": "t2", "toolCallId": "c", "content": "second"},
    )
    view = reducer.tool_calls["c"]
    assert view.metadata == {"x.a": 1}
    assert view.result is not None
    assert view.result.content == "first"


def test_calls_of_the_history_are_complete() -> None:
    view = agui.Reducer(messages=[MESSAGES[0]]).tool_calls["c"]
    assert (view.complete, view.valid, view.args) == (True, True, {"q": "ab"})


def test_a_reopened_call_is_open_again() -> None:
    reducer = begin(*CALL)
    assert reducer.tool_calls["c"].complete
    reducer.apply(CALL[0])
    assert not reducer.tool_calls["c"].complete


# --- observers and middleware -------------------------------------------------------------------------------------


def test_observers_see_each_event_after_it_was_applied() -> None:
    seen: list[Any] = []
    reducer = agui.Reducer(on_event=lambda event: seen.append((event.type, len(reducer.messages), reducer.status)))
    for event in (STARTED, HELLO[0], {"type": "NEW"}, HELLO[2], FINISHED):
        reducer.apply(event)
    assert seen == [
        ("RUN_STARTED", 0, "running"),
        ("TEXT_MESSAGE_START", 1, "running"),
        ("TEXT_MESSAGE_END", 1, "running"),
        ("RUN_FINISHED", 1, "finished"),
    ]


@pytest.mark.parametrize("name", ["apply", "apply_lines", "apply_sse"])
def test_an_observer_that_raises_stops_nothing_and_is_reported(name: str) -> None:
    calls = 0

    def observe(event: Any) -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("observer is broken")

    reducer = agui.Reducer(on_event=observe)
    frame = {"apply": b"%s", "apply_sse": b"data: %s\n\n", "apply_lines": b"%s\n"}[name]
    for event in STREAM:
        getattr(reducer, name)(frame % json.dumps(event).encode())
    assert_whole(reducer)
    assert calls == len(STREAM) + 2  # the chunk's start and its synthesized end
    assert reducer.warnings
    assert all("observer is broken" in str(warning) for warning in reducer.warnings)
    assert sum(warning.count for warning in reducer.warnings) == calls


def rename(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        if event["type"] == "VENDOR_TEXT":
            for made in HELLO:
                yield {**made, "messageId": event["id"]}
        elif event["type"] != "RAW":
            yield {name: value for name, value in event.items() if name != "secret"}


def add_custom(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        yield event
        if event["type"] == "TEXT_MESSAGE_END":
            yield {"type": "CUSTOM", "name": "x.seen", "value": event["messageId"]}


@pytest.mark.parametrize("name", ["apply", "apply_lines", "apply_sse"])
def test_PROC_3_middleware_sees_what_enforcement_would_take_away(name: str) -> None:
    seen: list[str] = []
    reducer = agui.Reducer(middleware=[rename, add_custom], on_event=lambda event: seen.append(event.type))
    frame = {"apply": b"%s", "apply_sse": b"data: %s\n\n", "apply_lines": b"%s\n"}[name]
    for event in (STARTED, {"type": "VENDOR_TEXT", "id": "v"}, {"type": "RAW", "event": 1}, {**FINISHED, "secret": 1}):
        getattr(reducer, name)(frame % json.dumps(event).encode())
    assert reducer.status == "finished"
    assert [message.id for message in reducer.messages] == ["v"]
    assert seen == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "CUSTOM",
        "RUN_FINISHED",
    ]
    assert reducer.warnings == ()


def test_what_middleware_makes_is_judged() -> None:
    def spoil(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in events:
            yield {**event, "timestamp": "x"}

    reducer = agui.Reducer(middleware=[spoil])
    with pytest.raises(agui.ProtocolError, match="timestamp"):
        reducer.apply(STARTED)
    assert reducer.status == "rejected"


def test_PROC_2_middleware_sees_translated_events() -> None:
    seen: list[str] = []

    def look(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for event in events:
            seen.append(event["type"])
            yield event

    begin({"type": "THINKING_START"}, middleware=[look])
    assert seen == ["RUN_STARTED", "REASONING_START"]


# --- warnings -----------------------------------------------------------------------------------------------------


def test_warnings_count_repeats_and_read_well() -> None:
    reducer = begin(*[{"type": "CUSTOM", "name": "x", "value": 1, "extra": 1}] * 3)
    (warning,) = reducer.warnings
    assert (warning.rule, warning.index, warning.type, warning.path, warning.count) == (
        "PROC-5",
        1,
        "CUSTOM",
        "/extra",
        3,
    )
    for part in ("event 1", "CUSTOM", "extra", "[PROC-5]", "3"):
        assert part in str(warning)


def test_a_reducer_that_nobody_holds_is_gone_at_once() -> None:
    """No cycle keeps it for the collector."""
    reducer = agui.Reducer()
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    reducer.apply({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"})
    assert reducer.tool_calls["c"].args is agui.UNSET
    gone = weakref.ref(reducer)
    del reducer
    assert gone() is None


def test_pending_calls_are_those_of_the_latest_run() -> None:
    """FT-2."""
    reducer = agui.Reducer()
    for run in ("r1", "r2"):
        reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": run})
        reducer.apply({"type": "TOOL_CALL_START", "toolCallId": f"call of {run}", "toolCallName": "n"})
        assert reducer.run.pending_tool_calls == (f"call of {run}",)
        reducer.apply({"type": "TOOL_CALL_END", "toolCallId": f"call of {run}"})
        reducer.apply({"type": "RUN_FINISHED", "threadId": "t", "runId": run})
        assert reducer.run.pending_tool_calls == (f"call of {run}",)


def test_listeners_that_raise_stop_nothing() -> None:
    def fail(_: object) -> None:
        raise ValueError("no")

    reducer = agui.Reducer(on_event=fail, on_warning=fail)
    reducer.apply_lines(
        b'{"type":"RUN_STARTED","threadId":"t","runId":"r"}\n{"type":"NEWER"}\n{"type":"RAW","event":1}\n'
    )
    assert reducer.status == "running"
    assert {warning.rule for warning in reducer.warnings} == {"PROC-4", "OBSERVER"}


def test_copies_of_text_are_bounded() -> None:
    """A patch may copy a long text over and over; `nodes` counts text as well."""
    reducer = agui.Reducer()
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    reducer.apply({"type": "STATE_SNAPSHOT", "snapshot": {"a": "x" * 1_000_000}})
    copies = [{"op": "copy", "from": "", "path": f"/copy{number}"} for number in range(40)]
    with pytest.raises(agui.LimitExceeded) as caught:
        reducer.apply({"type": "STATE_DELTA", "delta": copies})
    assert caught.value.limit == "nodes"
    assert list(reducer.state) == ["a"]


# --- what changes say in odd places ---------------------------------------------------------------------------------


def message(id: str, content: str) -> dict[str, Any]:
    return {"id": id, "role": "assistant", "content": content}


def test_a_message_of_the_history_is_changed_and_not_added() -> None:
    reducer = begin(messages=[message("h", "x")])
    for current in (reducer, agui.Reducer.restore(reducer.checkpoint())):
        version = current.version
        for event in HELLO[:2]:
            current.apply({**event, "messageId": "h"})
        changes = current.changes(since=version)
        assert (changes.changed, changes.added) == (("h",), ())


def test_a_message_that_a_snapshot_restates_before_anybody_looked_is_added() -> None:
    reducer = begin()
    version = reducer.version
    for event in (HELLO[0], HELLO[2], {"type": "MESSAGES_SNAPSHOT", "messages": [message("m", "new")]}):
        reducer.apply(event)
    changes = reducer.changes(since=version)
    assert (changes.changed, changes.added) == ((), ("m",))


def test_a_message_that_was_dropped_and_came_back_stands_elsewhere() -> None:
    reducer = begin(messages=[message("m", "1"), message("b", "1")])
    version = reducer.version
    for event in ({"type": "MESSAGES_SNAPSHOT", "messages": [message("b", "1")]}, HELLO[0]):
        reducer.apply(event)
    assert [held.id for held in reducer.messages] == ["b", "m"]
    changes = reducer.changes(since=version)
    assert (changes.added, changes.removed, changes.reordered) == (("m",), (), True)
    assert reducer.changes(since=changes.version).reordered is False


def test_what_an_event_changed_before_it_reopened_a_message_of_parts_is_told() -> None:
    """The chunk ends the open call, and then begins another text part."""
    reducer = begin(messages=[{"id": "u", "role": "user", "content": [{"type": "text", "text": "hi"}]}])
    reducer.apply({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "f", "delta": "{}"})
    version, whole = reducer.version, reducer.checkpoint()
    reducer.apply({"type": "TEXT_MESSAGE_CHUNK", "messageId": "u", "role": "user", "delta": "x"})
    assert reducer.tool_calls["c"].complete
    changes = reducer.changes(since=version)
    assert (changes.calls, set(changes.changed)) == (("c",), {"c", "u"})
    restored = agui.Reducer.restore(whole, reducer.checkpoint(since=version))
    assert restored.tool_calls["c"].complete


def test_an_observer_may_ask_for_changes_between_the_steps_of_an_event() -> None:
    seen: list[int] = []
    reducer = agui.Reducer(on_event=lambda event: seen.append(reducer.version))
    reducer.apply(STARTED)
    reducer.apply({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "a"})
    _, started, content = seen
    assert started < content == reducer.version
    assert reducer.changes(since=started).changed == ("m",)


@pytest.mark.parametrize("cut", [False, True])
def test_the_version_of_a_refusal_does_not_depend_on_the_cut(cut: bool) -> None:
    begun = b'data: {"type":"RUN_STARTED","threadId":"t","runId":"r"}\n\ndata: {"type":"NEWER"}\n\n'
    refused = b"data: null\n\n"
    reducer = agui.Reducer()
    *before, last = (begun, refused) if cut else (begun + refused,)
    for read in before:
        reducer.apply_sse(read)
    with pytest.raises(agui.DecodeError) as caught:
        reducer.apply_sse(last)
    assert (caught.value.index, reducer.version) == (2, 3)
