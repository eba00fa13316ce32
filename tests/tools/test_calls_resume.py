"""Interrupts: answering them, raising them, and LangGraph's older form. Rules INT-1..16."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from msgspec.structs import replace

from agui_core.errors import ProtocolError, ResumeError
from agui_core.protocol.base import UNSET
from agui_core.protocol.events import RunFinishedEvent
from agui_core.protocol.messages import FunctionCall, ToolCall
from agui_core.protocol.run import Interrupt, ResumeEntry
from agui_core.reducer import Reducer
from agui_core.tools import (
    Calls,
    InvalidArguments,
    Toolset,
    Verdict,
    check_resume,
    decisions,
    interrupt_for,
    langgraph_interrupts,
)
from agui_core.tools.interrupts import expired
from agui_core.wire import encode, to_wire
from support.call_streams import call, feed, finished, interrupt, interrupted, result, run, started, thread

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def ask(id: str = "i", **fields: Any) -> Interrupt:
    return Interrupt(id=id, reason="tool_call", **fields)


def entry(id: str = "i", status: Any = "resolved", **fields: Any) -> ResumeEntry:
    return ResumeEntry(interrupt_id=id, status=status, **fields)


def stopped(*interrupts: dict[str, Any], tools: Toolset | None = None) -> Calls:
    """A run that stopped to ask."""
    return thread(tools or Toolset(), started("r"), call("a", "delete"), interrupted("r", *interrupts))


# --- expiry -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("2024-01-01T11:59:59Z", True),
        ("2024-01-01T12:00:00Z", True),
        ("2024-01-01T12:00:00.001Z", False),
        ("2024-01-01T12:00:00", True),
        ("2024-01-01 12:00:01", False),
        ("2024-01-01", True),
        ("2024-01-02", False),
        ("2024-01-01T13:30:00+02:00", True),
        ("2024-01-01T11:30:00-02:00", False),
        ("0001-01-01T00:00:00+23:59", True),
        ("9999-12-31T23:59:59-23:59", False),
        ("", False),
        ("soon", False),
        ("99999-01-01T00:00:00Z", False),
        ("2024-13-01", False),
        ("1577836800000", False),
        ("\N{ARABIC-INDIC DIGIT TWO}024-01-01", False),
    ],
)
def test_INT_8_an_interrupt_expires_at_its_time(text: str, late: bool) -> None:
    assert expired(ask(expires_at=text), NOON) is late
    assert expired(ask(expires_at=text), NOON.astimezone(timezone(timedelta(hours=-7)))) is late
    assert expired(ask(expires_at=text), NOON.replace(tzinfo=None)) is late


def test_int_8_without_a_date_nothing_expires_and_now_is_now() -> None:
    assert not expired(ask())
    assert expired(ask(expires_at="2020-01-01"))
    assert not expired(ask(expires_at="2999-01-01"))


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Tokyo"])
def test_int_8_a_date_without_an_offset_is_utc_wherever_it_is_read(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", zone)
        time.tzset()
        assert expired(ask(expires_at="2024-01-01T12:00:00"), NOON)
        assert not expired(ask(expires_at="2024-01-01T12:00:01"), NOON)
        assert expired(ask(expires_at="2024-01-01T12:00:00Z"), NOON.replace(tzinfo=None))
        assert not expired(ask(expires_at="2024-01-01T12:00:01Z"), NOON.replace(tzinfo=None))
    time.tzset()


# --- coverage -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ([], "INT-6"),
        ([entry("i")], "INT-6"),
        ([entry("i"), entry("j"), entry("k")], "INT-5"),
        ([entry("i"), entry("j"), entry("i")], "INT-15"),
        ([entry("i"), entry("j"), entry("old")], "INT-8"),
        ([entry("i", payload=None), entry("j"), entry("old", "cancelled")], "INT-9"),
    ],
)
def test_what_may_not_be_sent(entries: list[ResumeEntry], rule: str) -> None:
    interrupts = [ask("i"), ask("j"), ask("old", expires_at="2024-01-01")]
    with pytest.raises(ResumeError, match=rf"interrupts '.*\[{rule}\]"):
        check_resume(interrupts, entries, NOON)


def test_what_may_be_sent() -> None:
    interrupts = [ask("i"), ask("j"), ask("", expires_at="2024-01-01")]
    check_resume(interrupts, [entry("", "cancelled"), entry("j", payload=False), entry("i")], NOON)
    check_resume([], [], NOON)
    with pytest.raises(ResumeError, match="INT-12"):
        check_resume([], [entry()], NOON)


def test_int_7_an_uncovered_interrupt_stops_the_next_input() -> None:
    calls = stopped(interrupt("i"), interrupt("j"))
    for attempt in ({}, {"i": True}, [entry("j", "cancelled")]):
        with pytest.raises(ResumeError, match="INT-6"):
            calls.resume(attempt)
    with pytest.raises(ResumeError, match="'i', 'j' have no answer"):
        calls.next_input()
    assert [e.interrupt_id for e in calls.resume({"j": None, "i": False})] == ["i", "j"]
    assert calls.next_input().resume == calls.resume()


def test_a_refused_list_leaves_what_was_said_before() -> None:
    calls = stopped(interrupt("i"), interrupt("j"))
    first = calls.resume({"i": True, "j": True})
    for attempt in ({"i": False, "k": True}, [entry("i"), entry("i")]):
        with pytest.raises(ResumeError):
            calls.resume(attempt)
    assert calls.resume() == first
    assert calls.resume({"i": False})[0].payload == {"approved": False}


def test_int_8_what_expires_before_it_is_sent_is_refused_then() -> None:
    calls = stopped(interrupt("i", expiresAt="2024-01-01T12:00:00"))
    with pytest.raises(ResumeError, match="INT-8"):
        calls.resume({"i": True}, now=NOON)
    calls.resume({"i": True}, now=NOON - timedelta(seconds=1))
    assert calls.next_input(now=NOON - timedelta(seconds=1)).resume
    with pytest.raises(ResumeError, match="INT-8"):
        calls.next_input(now=NOON)
    calls.resume({"i": None}, now=NOON)
    assert calls.next_input(now=NOON).resume == (entry("i", "cancelled"),)


def test_int_10_an_entry_of_unknown_status_counts_as_missing() -> None:
    calls = stopped(interrupt("i"))
    with pytest.raises(ResumeError, match="INT-6"):
        calls.resume([{"interruptId": "i", "status": "maybe"}])
    assert any("unknown value 'maybe'" in warning.message for warning in calls.warnings)


@pytest.mark.parametrize(
    "wrong",
    [
        {"interruptId": "i", "status": 7},
        {"interruptId": "i"},
        {"status": "resolved"},
        {"interruptId": "i", "status": "resolved", "payload": None},
        {"interruptId": "i", "status": "resolved", "metadata": []},
        {"interruptId": "i", "status": "resolved", "payload": object()},
        ResumeEntry(interrupt_id=5, status="resolved"),  # type: ignore[arg-type]
    ],
)
def test_malformed_entries_are_refused(wrong: Any) -> None:
    calls = stopped(interrupt("i"))
    with pytest.raises(ProtocolError):
        calls.resume([wrong])


def test_unknown_members_of_an_entry_are_stripped_with_a_warning() -> None:
    calls = stopped(interrupt("i"))
    assert calls.resume([{"interruptId": "i", "status": "resolved", "payload": 0, "extra": 1}]) == (
        entry("i", payload=0),
    )
    assert "/extra" in [warning.path for warning in calls.warnings]


def test_answers_of_other_types_are_mistakes() -> None:
    calls = stopped(interrupt("i"))
    with pytest.raises(TypeError, match="takes True, False, None or a Verdict"):
        calls.resume({"i": "yes"})  # type: ignore[dict-item]


# --- what the frameworks speak ------------------------------------------------------------------------------------

EDIT = Verdict(approved=True, edited_args={"path": "b"}, reason="safer")
AGENT_FRAMEWORK = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "accepted": {}, "path": {}, "editedArgs": {"type": "object"}},
    "anyOf": [{"required": ["approved"]}, {"required": ["accepted"]}],
    "additionalProperties": False,
}
STRANDS = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}
OLDER = {"type": "object", "properties": {"accepted": {"type": "boolean"}}, "additionalProperties": False}


@pytest.mark.parametrize(
    ("schema", "answer", "payload"),
    [
        (None, True, {"approved": True}),
        (None, False, {"approved": False}),
        (None, EDIT, {"approved": True, "editedArgs": {"path": "b"}, "reason": "safer"}),
        (None, Verdict(approved=False, edited_args={"path": "b"}), {"approved": False}),
        ({"type": "object"}, EDIT, {"approved": True, "editedArgs": {"path": "b"}, "reason": "safer"}),
        ({}, Verdict(approved=False, reason="no"), {"approved": False, "reason": "no"}),
        (AGENT_FRAMEWORK, EDIT, {"approved": True, "editedArgs": {"path": "b"}}),
        (AGENT_FRAMEWORK, False, {"approved": False}),
        (STRANDS, Verdict(approved=False, reason="no"), {"approved": False, "reason": "no"}),
        (OLDER, Verdict(approved=True, reason="ok"), {"accepted": True}),
        ({"type": "boolean"}, True, True),
        ({"type": "boolean"}, Verdict(approved=False, reason="no"), False),
        ({"type": ["object", "null"]}, True, {"approved": True}),
    ],
)
def test_the_payload_is_what_the_response_schema_allows(schema: Any, answer: Any, payload: Any) -> None:
    calls = stopped(interrupt("i", **({} if schema is None else {"responseSchema": schema})))
    (given,) = calls.resume({"i": answer})
    assert replace(given, metadata=UNSET) == entry("i", payload=payload)
    reason = answer.reason if isinstance(answer, Verdict) else None
    told = reason is None or (isinstance(payload, dict) and payload.get("reason") == reason)
    assert told or given.metadata == {"agui_core.approval": {"by": "person", "reason": reason}}


@pytest.mark.parametrize(
    ("schema", "answer"),
    [(STRANDS, EDIT), (OLDER, EDIT), ({"type": "boolean"}, EDIT), ({"type": "string"}, True), ({"type": 5}, True)],
)
def test_an_answer_without_a_place_is_refused_and_not_bent(schema: Any, answer: Any) -> None:
    calls = stopped(interrupt("i", responseSchema=schema))
    with pytest.raises(ResumeError, match=r"interrupt 'i' takes no .*\[INT-3\]"):
        calls.resume({"i": answer})


def test_edited_arguments_have_to_be_json() -> None:
    calls = stopped(interrupt("i"))
    with pytest.raises(InvalidArguments):
        calls.resume({"i": Verdict(approved=True, edited_args={"x": object()})})


# --- what stays open ----------------------------------------------------------------------------------------------


def test_open_16_answers_survive_a_run_that_never_began() -> None:
    calls = stopped(interrupt("i", "a"))
    calls.approve("a")
    first = calls.next_input(run_id="r2")
    again = calls.next_input(run_id="r3")
    assert first.resume == again.resume == (entry("i", payload={"approved": True}),)


def test_open_16_interrupts_stay_open_when_the_input_was_rejected_with_an_opening_run_error() -> None:
    calls = stopped(interrupt("i"))
    calls.resume({"i": True})
    calls.next_input(run_id="r2")
    feed(calls.reducer, {"type": "RUN_ERROR", "message": "bad payload"})
    assert [open_one.id for open_one in calls.interrupts] == ["i"]
    assert calls.waiting().interrupts == ("i",)
    with pytest.raises(ResumeError, match="INT-6"):
        calls.next_input()
    calls.resume({"i": None})
    assert calls.next_input(run_id="r3").resume == (entry("i", "cancelled"),)


@pytest.mark.parametrize("end", [{"type": "RUN_ERROR", "message": "x"}, None])
def test_open_16_interrupts_are_answered_once_the_resuming_run_began(end: Any) -> None:
    calls = stopped(interrupt("i"))
    calls.resume({"i": True})
    calls.next_input(run_id="r2")
    feed(calls.reducer, started("r2"))
    calls.reducer.end() if end is None else feed(calls.reducer, end)
    assert calls.interrupts == ()
    assert not calls.next_input(run_id="r3").resume


def test_int_13_the_same_interrupt_may_come_back_and_is_asked_anew() -> None:
    calls = stopped(interrupt("i"))
    calls.resume({"i": True})
    calls.next_input(run_id="r2")
    for run_id in ("r2", "r"):  # also from a producer that uses run ids again
        feed(calls.reducer, started(run_id), interrupted(run_id, interrupt("i")))
        assert calls.waiting().interrupts == ("i",)
        with pytest.raises(ResumeError, match="INT-6"):
            calls.next_input()
        calls.resume({"i": True})
        calls.next_input()


def test_open_15_interrupts_of_a_run_that_failed_late_are_not_offered() -> None:
    calls = stopped(interrupt("i"))
    feed(calls.reducer, {"type": "RUN_ERROR", "message": "flush failed"})
    assert calls.interrupts == ()
    assert not calls.next_input().resume


def test_int_16_only_the_last_run_counts() -> None:
    calls = stopped(interrupt("i"))
    feed(calls.reducer, run("r2", result("a")))
    assert calls.interrupts == ()
    with pytest.raises(ResumeError, match="INT-12"):
        calls.resume({"i": True})
    assert not calls.next_input().resume


def test_interrupts_stay_open_over_a_refusal_and_a_renewal() -> None:
    calls = stopped(interrupt("i", "a"))
    calls.approve("a")
    calls.next_input(run_id="r2")
    with pytest.raises(ProtocolError):
        feed(calls.reducer, {"type": "TEXT_MESSAGE_END", "messageId": "x"})
    before = calls.reducer
    assert calls.renew() is calls.reducer
    assert calls.reducer is not before
    assert calls.reducer.status == "idle"
    assert [open_one.id for open_one in calls.interrupts] == ["i"]
    with pytest.raises(ResumeError, match="INT-6"):
        calls.next_input()
    calls.resume({"i": False})
    sent = calls.next_input(run_id="r3")
    assert sent.thread_id == "t"
    assert sent.resume == (entry("i", payload={"approved": False}),)
    feed(calls.reducer, run("r3", result("a")))
    assert calls.interrupts == ()
    assert not calls.next_input().resume


def test_interrupts_stay_open_on_a_refused_reducer_and_can_be_answered_there() -> None:
    calls = stopped(interrupt("i"))
    with pytest.raises(ProtocolError):
        feed(calls.reducer, {"type": "TEXT_MESSAGE_END", "messageId": "x"})
    assert calls.waiting().who == "approver"
    calls.resume({"i": True})
    assert calls.waiting().who == "agent"
    assert calls.ready()
    assert calls.next_input().resume == (entry("i", payload={"approved": True}),)


def test_a_great_many_interrupts_and_calls_cost_no_more_than_each_of_them() -> None:
    count = 4_000
    groups = [call(f"c{n}") for n in range(count)]
    interrupts = [interrupt(f"i{n}", f"c{n}") for n in range(count)]
    calls = thread(Toolset(), started("r"), *groups, interrupted("r", *interrupts))
    steps = 0

    def count_steps(*_: object) -> None:
        nonlocal steps
        steps += 1

    sys.setprofile(count_steps)
    try:
        waiting = calls.waiting()
    finally:
        sys.setprofile(None)
    assert len(waiting.approver) == len(waiting.interrupts) == count
    assert steps < 300 * count
    with pytest.raises(ResumeError, match=r"'i0', 'i1', 'i2', 'i3', 'i4' and 3995 more have no answer"):
        calls.next_input()


# --- the agent's side ---------------------------------------------------------------------------------------------

CALL = ToolCall(id="c1", type="function", function=FunctionCall(name="send", arguments='{"to":"x"}'))


def test_an_interrupt_from_a_call_and_back() -> None:
    tools = Toolset()

    @tools.tool(effects=True)
    def send(to: str) -> None:
        """Send."""

    outcome = interrupt_for(CALL, tools=tools, expires_at=datetime(2030, 1, 1))
    (made,) = outcome.interrupts
    assert to_wire(made) == {
        "id": "c1:approval",
        "reason": "tool_call",
        "message": "Approve send?",
        "toolCallId": "c1",
        "expiresAt": "2030-01-01T00:00:00+00:00",
        "responseSchema": {
            "type": "object",
            "properties": {
                "approved": {"type": "boolean"},
                "editedArgs": {
                    "type": "object",
                    "properties": {"to": {"type": "string"}},
                    "required": ["to"],
                    "additionalProperties": False,
                    "description": "Replaces all arguments; leave it out to keep them.",
                },
                "reason": {"type": "string"},
            },
            "required": ["approved"],
        },
    }
    calls = thread(Toolset(), started("r"), call("c1", "send", '{"to":"x"}'))
    calls.reducer.apply(RunFinishedEvent(thread_id="t", run_id="r", outcome=outcome))
    calls.approve("c1", {"to": "y"}, reason="typo")
    sent = calls.next_input()
    verdict = Verdict(approved=True, edited_args={"to": "y"}, reason="typo")
    assert decisions(sent.resume, outcome) == {"c1:approval": verdict}
    assert decisions(json.loads(encode(sent))["resume"], outcome.interrupts) == {"c1:approval": verdict}


def test_references_of_a_tools_schema_still_lead_somewhere() -> None:
    tools = Toolset()
    parameters = {"type": "object", "properties": {"p": {"$ref": "#/$defs/P"}}, "$defs": {"P": {"type": "string"}}}
    tools.add({"name": "send", "description": "", "parameters": parameters})
    (made,) = interrupt_for(CALL, tools=tools).interrupts
    schema: Any = made.response_schema
    assert schema["$defs"] == {"P": {"type": "string"}}
    assert schema["properties"]["editedArgs"]["properties"] == {"p": {"$ref": "#/$defs/P"}}
    assert "$defs" not in schema["properties"]["editedArgs"]


def test_several_calls_make_several_interrupts() -> None:
    calls = thread(Toolset(), run("r", call("a"), call("b")))
    outcome = interrupt_for(*calls.reducer.tool_calls.values(), message="Go on?", expires_at="tomorrow")
    assert [(i.id, i.tool_call_id, i.message, i.expires_at) for i in outcome.interrupts] == [
        ("a:approval", "a", "Go on?", "tomorrow"),
        ("b:approval", "b", "Go on?", "tomorrow"),
    ]


@pytest.mark.parametrize(
    "payload",
    [True, 1, "true", {"approved": 1}, {"approved": "true"}, {"accepted": True}, {}, [True], {"approved": False}],
)
def test_only_an_explicit_approved_true_approves(payload: Any) -> None:
    verdict = decisions([entry("i", payload=payload)], [ask("i")])["i"]
    assert not verdict.approved
    assert verdict.edited_args is None


def test_decisions_read_what_people_answered() -> None:
    answered = [
        entry("i", payload={"approved": True, "editedArgs": {"n": 1}, "reason": 5}),
        entry("j", payload={"approved": True, "editedArgs": [1]}),
        entry("k", "cancelled", payload={"approved": True}),
        entry("l", payload={"approved": False, "reason": "no", "editedArgs": {}}),
        entry("m"),
    ]
    assert decisions(answered, [ask(id) for id in "ijklm"]) == {
        "i": Verdict(approved=True, edited_args={"n": 1}),
        "j": Verdict(approved=False),
        "k": Verdict(approved=False, cancelled=True),
        "l": Verdict(approved=False, reason="no"),
        "m": Verdict(approved=False),
    }


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry("i"), entry("i")],
        [entry("i"), entry("other")],
        [entry("i", payload={"approved": True})] * 2,
    ],
)
def test_decisions_refuse_what_does_not_answer_the_question(entries: list[ResumeEntry]) -> None:
    with pytest.raises(ResumeError):
        decisions(entries, [ask("i")])


def test_decisions_do_not_approve_after_the_deadline() -> None:
    late = ask("i", expires_at="2024-01-01")
    with pytest.raises(ResumeError, match="INT-8"):
        decisions([entry("i", payload={"approved": True})], [late], now=NOON)
    assert decisions([entry("i", "cancelled")], [late], now=NOON)["i"].cancelled


# --- LangGraph's older form ---------------------------------------------------------------------------------------


def on_interrupt(value: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "CUSTOM", "name": "on_interrupt", "value": value, **fields}


def langgraph(*events: Any) -> Calls:
    calls = Calls(Reducer(middleware=[langgraph_interrupts()]), Toolset())
    feed(calls.reducer, *events)
    return calls


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Shall I?", {"message": "Shall I?"}),
        ('"Shall I?"', {"message": "Shall I?"}),
        ({"message": "Now?", "expires_at": "2030-01-01"}, {"message": "Now?", "expiresAt": "2030-01-01"}),
        ({"toolCallId": "c", "responseSchema": {}}, {"toolCallId": "c", "responseSchema": {}}),
        ({"message": 5, "tool_call_id": None, "response_schema": "x"}, {}),
        ("[1, 2]", {}),
        (None, {}),
        ("[" * 5_000 + "]" * 5_000, {"message": "[" * 5_000 + "]" * 5_000}),
        ("[" * 150 + "]" * 150, {"message": "[" * 150 + "]" * 150}),
        ('{"message": "\\ud83d"}', {"message": '{"message": "\\ud83d"}'}),
    ],
)
def test_whatever_an_older_interrupt_carries(value: Any, expected: dict[str, Any]) -> None:
    calls = langgraph(started("r"), on_interrupt(value), finished("r"))
    (open_one,) = calls.interrupts
    wire = to_wire(open_one)
    assert {key: wire[key] for key in wire if key not in ("id", "reason", "metadata")} == expected


def test_the_older_form_over_several_runs() -> None:
    calls = langgraph(started("r"), on_interrupt("One?"), on_interrupt("Two?", rawEvent={"id": "lg-2"}), finished("r"))
    assert [i.id for i in calls.interrupts] == ["r:interrupt:1", "lg-2"]
    calls.resume({"r:interrupt:1": True, "lg-2": None})
    assert calls.next_input().forwarded_props == {"command": {"resume": {"r:interrupt:1": {"approved": True}}}}
    calls.resume({"lg-2": False})
    assert calls.next_input().forwarded_props == {
        "command": {"resume": {"r:interrupt:1": {"approved": True}, "lg-2": {"approved": False}}}
    }
    with pytest.raises(ProtocolError, match="forwardedProps has to be an object"):
        calls.next_input(forwarded_props=["a"])
    feed(calls.reducer, run("r2"))
    assert calls.interrupts == ()
    feed(calls.reducer, started("r3"), on_interrupt("Three?"), {"type": "RUN_ERROR", "message": "x"}, run("r4"))
    assert calls.interrupts == ()
    feed(calls.reducer, run("r5", on_interrupt("Four?"), outcome={"type": "cancelled"}))
    assert calls.interrupts == ()


def test_giving_up_cannot_be_said_in_the_older_form() -> None:
    calls = langgraph(started("r"), on_interrupt("One?"), finished("r"))
    calls.resume({"r:interrupt:1": None})
    sent = to_wire(calls.next_input())
    assert "resume" not in sent
    assert "forwardedProps" not in sent
