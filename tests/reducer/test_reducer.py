"""The `Reducer` as its users meet it: what goes in, what comes out, and what it promises about both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import ag_ui.core as official
import pytest

import agui_core as agui
from support.events import FINISHED, STARTED
from support.folding import canonical
from support.hello_stream import CALL, HELLO, MESSAGES, QUESTION, REST, STREAM, assert_whole, begin

BROKEN = {"type": "TEXT_MESSAGE_END", "messageId": "nobody"}


def wire(reducer: agui.Reducer) -> Any:
    return agui.to_wire(reducer.messages)


# --- what goes in -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "prepare",
    [
        pytest.param(lambda event: event, id="dict"),
        pytest.param(lambda event: json.dumps(event).encode(), id="bytes"),
        pytest.param(lambda event: json.dumps(event, ensure_ascii=False).encode(), id="bytes in utf-8"),
        pytest.param(lambda event: bytearray(json.dumps(event), "ascii"), id="bytearray"),
        pytest.param(lambda event: memoryview(json.dumps(event).encode()), id="memoryview"),
        pytest.param(json.dumps, id="str"),
        pytest.param(lambda event: json.dumps(event, indent=2), id="str over several lines"),
        pytest.param(lambda event: agui.decode(json.dumps(event)), id="struct"),
        pytest.param(lambda event: getattr(official, _official(event)).model_validate(event), id="ag_ui.core"),
    ],
)
def test_apply_takes_events_as_people_have_them(prepare: Callable[[Any], Any]) -> None:
    reducer = agui.Reducer()
    for event in STREAM:
        reducer.apply(prepare(event))
    assert_whole(reducer)


def _official(event: dict[str, Any]) -> str:
    return "".join(part.capitalize() for part in event["type"].split("_")) + "Event"


def test_apply_does_not_keep_what_it_was_given() -> None:
    snapshot = {"type": "STATE_SNAPSHOT", "snapshot": {"list": [1]}}
    activity = {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "t", "content": {"list": [1]}}
    text = {"type": "TEXT_MESSAGE_START", "messageId": "m", "metadata": {"list": [1]}}
    reducer = begin(snapshot, activity, text)
    before = canonical([reducer.state, wire(reducer)])
    for container in (snapshot["snapshot"], activity["content"], text["metadata"]):
        container["list"].append(2)
        container["more"] = 1
    assert canonical([reducer.state, wire(reducer)]) == before


def test_reduce_folds_a_whole_stream() -> None:
    assert_whole(agui.reduce(STREAM))
    assert_whole(agui.reduce(json.dumps(event).encode() for event in STREAM))
    assert agui.reduce(STREAM[:-1]).status == "truncated"
    assert agui.reduce([], messages=[MESSAGES[0]], state=1).state == 1


def test_messages_and_state_may_be_there_before() -> None:
    struct = agui.messages.UserMessage(id="u", content="hi")
    reducer = agui.Reducer(messages=[struct, MESSAGES[0]], state=[1])
    assert wire(reducer) == [{"id": "u", "role": "user", "content": "hi"}, MESSAGES[0]]
    assert reducer.messages[0] is struct
    assert (reducer.state, reducer.status, reducer.run) == ([1], "idle", agui.Run())


RUN_INPUT = {
    "threadId": "t",
    "runId": "r",
    "messages": [{"id": "u", "role": "user", "content": "hi"}, MESSAGES[0]],
    "state": {"n": 1},
    "tools": [],
    "context": [],
    "forwardedProps": {},
}


@pytest.mark.parametrize(
    "run_input",
    [
        pytest.param(RUN_INPUT, id="dict"),
        pytest.param(json.dumps(RUN_INPUT).encode(), id="bytes"),
        pytest.param(json.dumps(RUN_INPUT), id="str"),
        pytest.param(official.RunAgentInput.model_validate(RUN_INPUT), id="ag_ui.core"),
        pytest.param(
            agui.RunAgentInput(
                thread_id="t",
                run_id="r",
                messages=agui.Reducer(messages=RUN_INPUT["messages"]).messages,  # type: ignore[arg-type]
                state={"n": 1},
            ),
            id="struct",
        ),
    ],
)
def test_a_reducer_begins_with_what_a_run_input_holds(run_input: Any) -> None:
    reducer = agui.Reducer.from_input(run_input, policy="lenient")
    assert canonical(wire(reducer)) == canonical(RUN_INPUT["messages"])
    assert (reducer.state, reducer.policy, reducer.status) == ({"n": 1}, "lenient", "idle")


def test_from_input_without_state_starts_from_an_empty_object() -> None:
    assert agui.Reducer.from_input({"threadId": "t", "runId": "r", "messages": []}).state == {}


@pytest.mark.parametrize("broken", [{}, {"threadId": "t"}, {**RUN_INPUT, "messages": {}}, b"nope", b"[]", "5"])
def test_from_input_refuses_what_is_none(broken: Any) -> None:
    with pytest.raises(agui.AGUIError):
        agui.Reducer.from_input(broken)


@pytest.mark.parametrize(
    "message", [{"id": "m"}, {"id": "m", "role": "user"}, {"id": 5, "role": "user", "content": ""}]
)
def test_messages_that_are_none_are_refused(message: Any) -> None:
    with pytest.raises(agui.ProtocolError):
        agui.Reducer(messages=[message])


def test_a_policy_that_does_not_exist() -> None:
    with pytest.raises(ValueError, match="strict"):
        agui.Reducer(policy="loose")  # type: ignore[arg-type]


# --- bytes cut anywhere -------------------------------------------------------------------------------------------


def sse(events: Iterable[Any], newline: str = "\n") -> bytes:
    """Server-sent events with all that a server may put between: comments, fields, several data lines."""
    blocks = [": hello", "event: x\nid: 1\nretry: 5"]
    for number, event in enumerate(events):
        text = json.dumps(event, ensure_ascii=False, indent=1 if number % 3 == 0 else None)
        blocks.append("\n".join(f"data: {line}" for line in text.split("\n")))
        blocks.append(": ping")
    return "".join(f"{block}\n\n" for block in blocks).replace("\n", newline).encode()


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_apply_sse_cut_anywhere(newline: str) -> None:
    data = sse(STREAM, newline)
    for cut in range(0, len(data), 7):
        reducer = agui.Reducer()
        for piece in (data[:cut], data[cut : cut + 1], data[cut + 1 :]):
            reducer.apply_sse(piece)
        reducer.end()
        assert_whole(reducer)


def test_apply_sse_byte_by_byte() -> None:
    reducer = agui.Reducer()
    for byte in b"\xef\xbb\xbf" + sse(STREAM):
        reducer.apply_sse(bytes([byte]))
    assert_whole(reducer)


def test_apply_lines_cut_anywhere() -> None:
    data = "".join(json.dumps(event, ensure_ascii=False) + "\n\r\n" for event in STREAM).encode()
    for cut in range(0, len(data), 3):
        reducer = agui.Reducer()
        reducer.apply_lines(data[:cut])
        reducer.apply_lines(data[cut:])
        reducer.end()
        assert_whole(reducer)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_apply_sse_and_lines_take_bytes_of_every_kind(kind: Any) -> None:
    data = json.dumps(STARTED).encode() + b"\n"
    by_sse, by_lines = agui.Reducer(), agui.Reducer()
    by_sse.apply_sse(kind(b"data:" + data + b"\n"))
    by_lines.apply_lines(kind(data))
    assert by_sse.status == by_lines.status == "running"


def test_a_bad_event_in_the_middle_of_a_read() -> None:
    events = [STARTED, HELLO[0], BROKEN, HELLO[1], FINISHED]
    for name, data in (
        ("apply_sse", sse(events)),
        ("apply_lines", b"".join(json.dumps(event).encode() + b"\n" for event in events)),
    ):
        reducer = agui.Reducer()
        with pytest.raises(agui.ProtocolError) as refusal:
            getattr(reducer, name)(data)
        assert refusal.value.index == 2
        assert wire(reducer) == [{"id": "m", "role": "assistant", "content": ""}]
        assert reducer.status == "rejected"


@pytest.mark.parametrize(
    "garbage", [b"nope", b"[]", b'"x"', b"5", b"null", b"{} {}", b'{"type":"RAW"', b"\xff", b"\xed\xa0\x80"]
)
def test_SSE_8_bytes_that_are_no_event(garbage: bytes) -> None:
    for name, frame in (("apply", b"%s"), ("apply_sse", b"data: %s\n\n"), ("apply_lines", b"%s\n")):
        reducer = begin()
        with pytest.raises(agui.DecodeError) as refusal:
            getattr(reducer, name)(frame % garbage)
        assert refusal.value.index == 1, name
        assert f"[{refusal.value.rule}]" in str(refusal.value)
        assert "event 1" in str(refusal.value)
        assert reducer.status == "rejected"


# --- the end ------------------------------------------------------------------------------------------------------


def test_RUN_17_the_end_truncates_a_run() -> None:
    reducer = begin(*HELLO[:2])
    assert reducer.status == "running"
    reducer.end()
    assert reducer.status == "truncated"
    reducer.end()
    assert reducer.status == "truncated"
    assert wire(reducer)[0]["content"] == "Hé\u2028llo"


@pytest.mark.parametrize(
    ("last", "status"),
    [(FINISHED, "finished"), ({"type": "RUN_ERROR", "message": "no"}, "failed"), (None, "truncated")],
)
def test_the_end_leaves_a_run_that_has_ended(last: Any, status: str) -> None:
    reducer = begin(*([last] if last else []))
    reducer.end()
    assert reducer.status == status


def test_the_end_before_any_event() -> None:
    reducer = agui.Reducer()
    reducer.end()
    assert reducer.status == "idle"


def test_a_last_line_without_its_newline_is_applied_when_it_is_whole() -> None:
    data = b"\n".join(json.dumps(event).encode() for event in STREAM)
    whole, cut = agui.Reducer(), agui.Reducer()
    whole.apply_lines(data)
    whole.end()
    assert_whole(whole)
    cut.apply_lines(data[:-1])
    cut.end()
    assert cut.status == "truncated"


def test_SSE_12_a_last_block_without_its_blank_line_is_discarded() -> None:
    data = b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in STREAM)
    reducer = agui.Reducer()
    reducer.apply_sse(data[:-1])
    reducer.end()
    assert reducer.status == "truncated"


def test_a_last_line_that_is_refused() -> None:
    reducer = agui.Reducer()
    reducer.apply_lines(json.dumps(STARTED).encode() + b"\n" + json.dumps(STARTED).encode())
    with pytest.raises(agui.ProtocolError):
        reducer.end()
    assert reducer.status == "rejected"


# --- refusals -----------------------------------------------------------------------------------------------------


def test_a_refused_event_changes_nothing_and_every_later_one_is_refused_alike() -> None:
    seen: list[str] = []
    reducer = begin(*HELLO[:2], *REST, on_event=lambda event: seen.append(event.type))
    observed, messages, state, run = list(seen), reducer.messages, reducer.state, reducer.run
    version = reducer.version
    with pytest.raises(agui.ProtocolError) as refusal:
        reducer.apply(BROKEN)
    assert refusal.value is reducer.error
    assert reducer.status == "rejected"
    assert all(now is then for now, then in zip(reducer.messages, messages, strict=True))
    assert reducer.state is state
    assert (reducer.run, seen) == (run, observed)
    changes = reducer.changes(since=version)
    assert changes == agui.Changes(version=changes.version, run=changes.run)
    for later in (
        lambda: reducer.apply(HELLO[1]),
        lambda: reducer.apply(b"{}"),
        lambda: reducer.apply_sse(b"data: {}\n\n"),
        lambda: reducer.apply_sse(b""),
        lambda: reducer.apply_lines(b"{}\n"),
    ):
        with pytest.raises(agui.ProtocolError) as again:
            later()
        assert again.value is refusal.value
    assert all(now is then for now, then in zip(reducer.messages, messages, strict=True))


@pytest.mark.parametrize(
    "event",
    [
        pytest.param({"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "x", "role": "user"}]}, id="snapshot"),
        pytest.param({"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "x"}, id="chunk that closes another"),
        pytest.param({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}, id="finish"),
        pytest.param(
            {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/n", "value": 2}, {"op": "add"}]}, id="patch"
        ),
        pytest.param({"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x", "subagentRunId": "s"}, id="tag"),
        pytest.param({"type": "TEXT_MESSAGE_END", "messageId": "m", "metadata": 5}, id="metadata"),
    ],
)
def test_what_a_refused_event_would_have_changed_stays(event: Any) -> None:
    reducer = begin(*HELLO[:2], *REST)
    before = canonical([wire(reducer), reducer.state])
    with pytest.raises(agui.ProtocolError):
        reducer.apply(event)
    assert canonical([wire(reducer), reducer.state]) == before


def test_renew_goes_on_after_a_refusal() -> None:
    seen: list[str] = []
    reducer = begin(*HELLO[:2], REST[0], on_event=lambda event: seen.append(event.type))
    with pytest.raises(agui.ProtocolError):
        reducer.apply(BROKEN)
    fresh = reducer.renew()
    assert (fresh.status, fresh.error, fresh.run.run_id) == ("idle", None, None)
    assert (fresh.messages, fresh.state, fresh.version) == (reducer.messages, reducer.state, reducer.version)
    version = fresh.version
    for event in (STARTED, *HELLO, FINISHED):
        fresh.apply(event)
    assert wire(fresh)[0]["content"] == "Hé\u2028lloHé\u2028llo"
    assert fresh.version > version
    assert fresh.changes(since=version).changed == ("m",)
    assert seen[-1] == "RUN_FINISHED"
    assert wire(reducer)[0]["content"] == "Hé\u2028llo"
    assert reducer.status == "rejected"


def test_renew_forgets_what_was_open() -> None:
    fresh = begin(HELLO[0], REST[2]).renew()
    fresh.apply(STARTED)
    with pytest.raises(agui.ProtocolError):
        fresh.apply(HELLO[1])


# --- add ----------------------------------------------------------------------------------------------------------

ANSWER = {"id": "t", "role": "tool", "toolCallId": "c", "content": "found"}


@pytest.mark.parametrize(
    "prepare", [lambda message: message, lambda message: agui.Reducer(messages=[message]).messages[0]]
)
def test_add_puts_messages_at_the_end_and_answers_behind_their_call(prepare: Any) -> None:
    reducer = agui.reduce([STARTED, *HELLO, *CALL, FINISHED])
    assert reducer.run.pending_tool_calls == ("c",)
    version = reducer.version
    reducer.add(prepare(QUESTION))
    reducer.add(prepare(ANSWER))
    assert [message.id for message in reducer.messages] == ["m", "t", "u"]
    assert reducer.run.pending_tool_calls == ()
    assert reducer.tool_calls["c"].result is reducer.messages[1]
    changes = reducer.changes(since=version)
    assert sorted(changes.added) == ["t", "u"]
    assert changes.run
    assert reducer.status == "finished"


def test_TOOL_7_add_an_answer_behind_the_answers_there() -> None:
    reducer = agui.Reducer(messages=[MESSAGES[0], {**ANSWER, "id": "t0", "toolCallId": "z"}, QUESTION])
    reducer.add(ANSWER)
    assert [message.id for message in reducer.messages] == ["m", "t0", "t", "u"]


def test_add_an_answer_to_no_call_goes_to_the_end() -> None:
    reducer = agui.Reducer(messages=[QUESTION])
    reducer.add(ANSWER)
    assert [message.id for message in reducer.messages] == ["u", "t"]


@pytest.mark.parametrize("events", [[], [STARTED, FINISHED], [STARTED, {"type": "RUN_ERROR", "message": "x"}]])
def test_add_in_every_status_but_running(events: list[Any]) -> None:
    reducer = agui.reduce(events)
    reducer.add(QUESTION)
    assert wire(reducer) == [QUESTION]


def test_add_after_truncation_and_refusal() -> None:
    truncated, refused = begin(), begin()
    truncated.end()
    with pytest.raises(agui.ProtocolError):
        refused.apply(STARTED)
    for reducer in (truncated, refused):
        reducer.add(QUESTION)
        assert wire(reducer) == [QUESTION]


def test_add_while_running_is_refused_and_changes_nothing() -> None:
    reducer = begin()
    with pytest.raises(agui.AGUIError, match="run"):
        reducer.add(QUESTION)
    assert reducer.messages == ()
    reducer.apply(FINISHED)
    assert reducer.status == "finished"


def test_add_refuses_what_is_no_message() -> None:
    reducer = agui.Reducer()
    with pytest.raises(agui.ProtocolError):
        reducer.add({"id": "u", "role": "user"})
    assert (reducer.messages, reducer.status, reducer.error) == ((), "idle", None)


# --- copies -------------------------------------------------------------------------------------------------------


def test_a_copy_is_independent_both_ways() -> None:
    reducer = begin(*HELLO[:2], *CALL[:2], *REST[:3])
    twin = reducer.copy()
    assert twin.messages == reducer.messages
    assert (twin.state, twin.status, twin.run, twin.version) == (
        reducer.state,
        reducer.status,
        reducer.run,
        reducer.version,
    )
    before = canonical([wire(reducer), reducer.state])
    for event in (
        *[REST[3], HELLO[1], CALL[2], REST[1], {"type": "NEW"}],
        {"type": "STATE_DELTA", "delta": [{"op": "add", "path": "/list/-", "value": 2}]},
    ):
        twin.apply(event)
    assert canonical([wire(reducer), reducer.state]) == before
    assert (len(twin.warnings), reducer.warnings) == (1, ())
    after = canonical([wire(twin), twin.state])
    for event in (REST[3], *CALL[2:], HELLO[2], FINISHED):
        reducer.apply(event)
    assert reducer.status == "finished"
    assert canonical([wire(twin), twin.state]) == after
    assert twin.status == "running"


def test_a_copy_goes_on_where_the_other_was_at_every_event() -> None:
    for cut in range(len(STREAM) + 1):
        reducer = agui.Reducer()
        for event in STREAM[:cut]:
            reducer.apply(event)
        twin = reducer.copy()
        for event in STREAM[cut:]:
            twin.apply(event)
        assert_whole(twin)


def test_a_copy_holds_bytes_that_wait_for_more() -> None:
    data = sse(STREAM)
    reducer = agui.Reducer()
    reducer.apply_sse(data[:333])
    twin = reducer.copy()
    twin.apply_sse(data[333:])
    assert_whole(twin)
    reducer.apply_sse(data[333:])
    assert_whole(reducer)


def test_a_copy_of_a_refused_reducer_is_refused() -> None:
    reducer = begin()
    with pytest.raises(agui.ProtocolError):
        reducer.apply(STARTED)
    twin = reducer.copy()
    assert (twin.status, twin.error) == ("rejected", reducer.error)
    with pytest.raises(agui.ProtocolError):
        twin.apply(FINISHED)


def test_partial_arguments_of_a_copy_are_its_own() -> None:
    reducer = begin(*CALL[:2])
    assert reducer.tool_calls["c"].args == {"q": "a"}
    twin = reducer.copy()
    twin.apply(CALL[2])
    assert twin.tool_calls["c"].args == {"q": "ab"}
    assert reducer.tool_calls["c"].args == {"q": "a"}


@pytest.mark.parametrize("last", [b'{"type":"RAW"', b'{"type":"RAW","event":"\xc3', b"tru"])
def test_SSE_12_a_last_line_that_was_cut_is_discarded(last: bytes) -> None:
    reducer = agui.Reducer()
    reducer.apply_lines(json.dumps(STARTED).encode() + b"\n" + last)
    reducer.end()
    assert [warning.rule for warning in reducer.warnings] == ["SSE-12"]


@pytest.mark.parametrize("last", [b'{"type":"RAW","event":1}{"type":"RAW","event":2}', b'{"type":"RAW"]', b"12"])
def test_SSE_8_a_last_line_that_is_broken_is_refused(last: bytes) -> None:
    reducer = agui.Reducer()
    reducer.apply_lines(json.dumps(STARTED).encode() + b"\n" + last)
    with pytest.raises(agui.DecodeError):
        reducer.end()
    assert reducer.status == "rejected"
