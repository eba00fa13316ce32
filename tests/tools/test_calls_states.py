"""The states of a call and who acts: each transition and each row of the truth table."""

from __future__ import annotations

import itertools
from typing import get_args

import pytest

from agui_core.errors import ApprovalError
from agui_core.protocol.messages import ToolMessage
from agui_core.reducer import Reducer
from agui_core.tools import Calls, CallState, Toolset
from agui_core.tools.states import (
    TRANSITIONS,
    Actor,
    Phase,
    Signal,
    Waiting,
    advance,
    sum_up,
    who_acts,
)
from support.call_streams import (
    Event,
    call,
    feed,
    finished,
    interrupt,
    interrupted,
    opened,
    result,
    run,
    started,
    thread,
)
from support.events import snapshot

STATES: tuple[CallState, ...] = get_args(CallState)
SIGNALS: tuple[Signal, ...] = get_args(Signal)

# One line for each state, one column for each signal; `-`: cannot happen.
TABLE = """
                    opened     closed     restated   asked      decided    answered   failed     denied
input-streaming     streaming  available  available  -          -          output     error      no
input-available     streaming  -          available  requested  -          output     error      no
approval-requested  streaming  -          available  -          responded  output     error      no
approval-responded  streaming  -          available  -          -          output     error      no
output-available    output     output     available  -          -          output     output     output
output-error        error      error      available  -          -          error      error      error
output-denied       no         no         available  -          -          no         no         no
"""
SHORT: dict[str, CallState] = {
    "streaming": "input-streaming",
    "available": "input-available",
    "requested": "approval-requested",
    "responded": "approval-responded",
    "output": "output-available",
    "error": "output-error",
    "no": "output-denied",
}
EXPECTED = {
    (line.split()[0], signal): cell
    for line in TABLE.strip().splitlines()[1:]
    for signal, cell in zip(TABLE.split()[: len(SIGNALS)], line.split()[1:], strict=True)
}


@pytest.fixture
def toolset() -> Toolset:
    tools = Toolset()
    tools.tool(name="look_up")(lambda: "found")
    tools.tool(name="pay", effects=True)(lambda amount=1: f"paid {amount}")
    tools.add({"name": "navigate", "description": "Go to a page."}, effects=False)
    return tools


@pytest.mark.parametrize(("state", "signal"), list(itertools.product(STATES, SIGNALS)))
def test_the_table_of_transitions(state: CallState, signal: Signal) -> None:
    expected = EXPECTED[state, signal]
    if expected == "-":
        assert signal not in TRANSITIONS[state]
        with pytest.raises(KeyError):
            advance(state, signal)
    else:
        assert advance(state, signal) == SHORT[expected]


def test_no_signal_leads_back_within_one_opening() -> None:
    order = {state: number for number, state in enumerate(STATES)}
    for state, signals in TRANSITIONS.items():
        for signal, after in signals.items():
            if signal not in ("opened", "restated"):
                assert order[after] >= order[state] or after == state


# --- the same transitions, as streams and decisions cause them ----------------------------------------------------

HELD_CALL: Event = {"id": "c", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
HELD: Event = {"id": "m", "role": "assistant", "toolCalls": [HELD_CALL]}
REOPENED = opened("c", "pay", "")
CLOSED: Event = {"type": "TOOL_CALL_END", "toolCallId": "c"}


def tool_message(kind: str | None = None, error: str | None = None) -> Event:
    message: Event = {"id": "answer", "role": "tool", "toolCallId": "c", "content": "x"}
    if kind is not None:
        message["metadata"] = {"agui_core.answer": kind}
    return message if error is None else {**message, "error": error}


def reach(calls: Calls, state: CallState) -> None:
    """Bring call `c` of the tool `pay` into a state, at the end of run `r` (or inside it, while it streams)."""
    if state == "input-streaming":
        feed(calls.reducer, started("r"), opened("c", "pay"))
    elif state == "input-available":
        feed(calls.reducer, started("r"), call("c", "pay"))
    else:
        feed(calls.reducer, run("r", call("c", "pay")))
        assert calls.state("c") == "approval-requested"
        if state == "approval-responded":
            calls.approve("c")
        elif state != "approval-requested":
            kind = {"output-available": "ok", "output-error": "error", "output-denied": "denied"}[state]
            calls.reducer.add(tool_message(kind))
    assert calls.state("c") == state


@pytest.mark.parametrize("state", STATES)
def test_reopening_starts_an_unanswered_call_anew_and_an_answered_one_stays_answered(
    toolset: Toolset, state: CallState
) -> None:
    calls = thread(toolset)
    reach(calls, state)
    going = calls.reducer.status == "running"
    if not going:
        feed(calls.reducer, started("r2"))
    if state == "input-streaming":
        feed(calls.reducer, CLOSED)
    feed(calls.reducer, REOPENED)
    expected = SHORT[EXPECTED[state, "opened"]]
    assert calls.state("c") == expected
    feed(calls.reducer, CLOSED)
    assert calls.state("c") == ("input-available" if expected == "input-streaming" else expected)
    feed(calls.reducer, finished("r" if going else "r2"))
    assert calls.state("c") == ("approval-requested" if expected == "input-streaming" else expected)


@pytest.mark.parametrize("state", STATES)
def test_a_snapshot_starts_anew(toolset: Toolset, state: CallState) -> None:
    calls = thread(toolset)
    reach(calls, state)
    if calls.reducer.status != "running":
        feed(calls.reducer, started("r2"))
    feed(calls.reducer, snapshot(HELD))
    assert calls.state("c") == ("input-streaming" if state == "input-streaming" else "input-available")


def test_a_snapshot_that_drops_the_call_ends_its_states(toolset: Toolset) -> None:
    calls = thread(toolset, run("r", call("c", "pay")))
    assert calls.state("c") == "approval-requested"
    feed(calls.reducer, started("r2"), snapshot())
    with pytest.raises(KeyError):
        calls.state("c")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (tool_message(), "output-available"),
        (tool_message(error="no luck"), "output-error"),
        (tool_message("ok"), "output-available"),
        (tool_message("denied"), "output-denied"),
        *((tool_message(kind), "output-error") for kind in ("error", "cancelled", "timeout", "invalid", "unheard of")),
    ],
)
def test_an_answer_moves_any_unanswered_call(
    toolset: Toolset, state: CallState, answer: Event, expected: CallState
) -> None:
    calls = thread(toolset)
    reach(calls, state)
    if calls.reducer.status == "running":
        feed(calls.reducer, {"type": "RUN_ERROR", "message": "gone"})
    calls.reducer.add(answer)
    assert calls.state("c") == (state if state.startswith("output") else expected)


@pytest.mark.parametrize("state", STATES)
def test_a_result_on_the_wire_moves_any_unanswered_call(toolset: Toolset, state: CallState) -> None:
    calls = thread(toolset)
    reach(calls, state)
    if calls.reducer.status != "running":
        feed(calls.reducer, started("r2"))
    feed(calls.reducer, result("c"))
    assert calls.state("c") == (state if state.startswith("output") else "output-available")


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("decide", [Calls.approve, Calls.deny])
def test_only_what_was_asked_can_be_decided(toolset: Toolset, state: CallState, decide: object) -> None:
    calls = thread(toolset)
    reach(calls, state)
    if state == "approval-requested":
        decide(calls, "c")  # type: ignore[operator]
        assert calls.state("c") == "approval-responded"
    else:
        with pytest.raises(ApprovalError, match=rf"'c' waits for no approval: it is {state}"):
            decide(calls, "c")  # type: ignore[operator]


def test_nothing_is_known_of_an_unknown_call(toolset: Toolset) -> None:
    calls = thread(toolset, run("r"))
    with pytest.raises(KeyError):
        calls.state("nobody")
    for decide in (calls.approve, calls.deny):
        with pytest.raises(ApprovalError, match="there is no tool call 'nobody'"):
            decide("nobody")


def test_a_restored_history_tells_its_states(toolset: Toolset) -> None:
    held = [{**HELD_CALL, "id": f"c{number}"} for number in range(5)]
    messages: list[Event] = [{**HELD, "toolCalls": held}]
    for number, kind in enumerate(("ok", "denied", "timeout", None)):
        messages.append({**tool_message(kind), "id": f"a{number}", "toolCallId": f"c{number}"})
    calls = Calls(Reducer(messages=messages), toolset)
    assert [calls.state(f"c{number}") for number in range(5)] == [
        "output-available",
        "output-denied",
        "output-error",
        "output-available",
        "approval-requested",
    ], "the last one still waits (FT-2)"


# --- who acts on one call -----------------------------------------------------------------------------------------

PHASES: tuple[Phase, ...] = get_args(Phase)
ASKING = ("input-streaming", "input-available", "approval-requested")


def expected_actor(phase: Phase, state: CallState, *, ours: bool, named: bool) -> Actor:
    """The rules in words, as the other way to say the table."""
    if state.startswith("output"):
        return "nobody"  # answered is answered
    if phase == "going":
        return "agent"  # it still speaks
    if named:  # FT-11: a person answers, and the answer goes to the agent
        return "approver" if state in ASKING else "agent"
    if phase in ("none", "broken"):
        return "nobody"  # FT-7, OPEN-17: not executed
    if not ours:
        return "agent"  # FT-9
    return "approver" if state == "approval-requested" else "application"


@pytest.mark.parametrize(
    ("phase", "state", "ours", "named"), list(itertools.product(PHASES, STATES, (True, False), (True, False)))
)
def test_every_row_of_who_acts_on_a_call(phase: Phase, state: CallState, ours: bool, named: bool) -> None:
    assert who_acts(phase, state, ours=ours, named=named) == expected_actor(phase, state, ours=ours, named=named)


@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.parametrize("application", [True, False])
@pytest.mark.parametrize("approver", [True, False])
@pytest.mark.parametrize("agent", [True, False])
@pytest.mark.parametrize("interrupts", [True, False])
@pytest.mark.parametrize("answered", [True, False])
def test_every_row_of_who_acts_first(
    phase: Phase, application: bool, approver: bool, agent: bool, interrupts: bool, answered: bool
) -> None:
    acting: list[tuple[str, Actor]] = []
    acting += [("c1", "application")] if application else []
    acting += [("c2", "approver")] if approver else []
    acting += [("c3", "agent")] if agent else []
    waiting = sum_up(phase, [*acting, ("c4", "nobody")], ("i",) if interrupts else (), answered=answered)
    if phase == "going":
        expected = "agent"
    elif application:
        expected = "application"
    elif approver or interrupts:
        expected = "approver"
    else:
        expected = "agent" if agent or answered else "nobody"
    assert waiting.who == expected
    assert waiting.application == (("c1",) if application else ())
    assert waiting.approver == (("c2",) if approver else ())
    assert waiting.agent == (("c3",) if agent else ())
    assert waiting.interrupts == (("i",) if interrupts else ())


# --- the truth table, as streams cause it -------------------------------------------------------------------------

ERROR: Event = {"type": "RUN_ERROR", "message": "upstream"}
TRUTH: dict[str, tuple[list[Event], Waiting]] = {
    "no run yet": ([], Waiting(who="nobody")),
    "a run without calls": (run("r"), Waiting(who="nobody")),
    "the run goes on": ([started("r"), *call("a")], Waiting(who="agent", agent=("a",))),
    "one of ours": (run("r", call("a")), Waiting(who="application", application=("a",))),
    "one without a handler": (run("r", call("a", "navigate")), Waiting(who="application", application=("a",))),
    "one that asks": (run("r", call("a", "pay")), Waiting(who="approver", approver=("a",))),
    "one of ours that is broken": (run("r", call("a", "pay", "{")), Waiting(who="application", application=("a",))),
    "mixed: ours, asking, the agent's": (
        run("r", call("a", "pay"), call("b"), call("c", "agents_own")),
        Waiting(who="application", application=("b",), approver=("a",), agent=("c",)),
    ),
    "only the agent's own": (run("r", call("a", "agents_own")), Waiting(who="agent", agent=("a",))),
    "the agent answered its own": (run("r", call("a", "agents_own"), result("a")), Waiting(who="nobody")),
    "the agent answered ours (FT-1)": (run("r", call("a"), result("a")), Waiting(who="nobody")),
    "an orphan result": (run("r", result("nobody's")), Waiting(who="nobody")),
    "an orphan result and one of ours": (
        run("r", result("nobody's"), call("a")),
        Waiting(who="application", application=("a",)),
    ),
    "a result before its call": (run("r", result("a"), call("a")), Waiting(who="nobody")),
    "an id answered before is used again": (
        [*run("q", call("a"), result("a")), *run("r", call("a"))],
        Waiting(who="agent", agent=("a",)),
    ),
    "an id answered before, and a new one": (
        [*run("q", call("a"), result("a")), *run("r", call("a"), call("b"))],
        Waiting(who="application", application=("b",), agent=("a",)),
    ),
    "an unanswered id of an earlier run is used again": (
        [*run("q", call("a", arguments="{")), *run("r", call("a", arguments="}"))],
        Waiting(who="application", application=("a",)),
    ),
    "an unanswered call of an earlier run": ([*run("q", call("a")), *run("r")], Waiting(who="nobody")),
    "pending by the list only in part (FT-13)": (
        run("r", call("a"), call("b"), outcome={"type": "success", "pendingToolCallIds": ["b"]}),
        Waiting(who="application", application=("a", "b")),
    ),
    "an empty list is no list (FT-3)": (
        run("r", call("a"), outcome={"type": "success", "pendingToolCallIds": []}),
        Waiting(who="application", application=("a",)),
    ),
    "failed": ([started("r"), *call("a"), ERROR], Waiting(who="nobody")),
    "failed late": ([*run("r", call("a", "pay")), ERROR], Waiting(who="nobody")),
    "cancelled": (run("r", call("a"), outcome={"type": "cancelled"}), Waiting(who="nobody")),
    "interrupted about a call": (
        [started("r"), *call("a"), interrupted("r", interrupt("i", "a"))],
        Waiting(who="approver", approver=("a",), interrupts=("i",)),
    ),
    "interrupted about the agent's own call": (
        [started("r"), *call("a", "agents_own"), interrupted("r", interrupt("i", "a"))],
        Waiting(who="approver", approver=("a",), interrupts=("i",)),
    ),
    "interrupted about one of two": (
        [started("r"), *call("a"), *call("b"), interrupted("r", interrupt("i", "a"))],
        Waiting(who="application", application=("b",), approver=("a",), interrupts=("i",)),
    ),
    "interrupted about no call": (
        [started("r"), interrupted("r", interrupt("i"))],
        Waiting(who="approver", interrupts=("i",)),
    ),
    "interrupted, and then a late error (OPEN-15)": (
        [started("r"), *call("a"), interrupted("r", interrupt("i", "a")), ERROR],
        Waiting(who="nobody"),
    ),
}


@pytest.mark.parametrize("row", TRUTH)
def test_the_truth_table_of_waiting(toolset: Toolset, row: str) -> None:
    events, expected = TRUTH[row]
    calls = thread(toolset, events)
    assert calls.waiting() == expected
    assert not calls.ready()


def test_waiting_after_the_source_ended_too_early(toolset: Toolset) -> None:
    calls = thread(toolset, started("r"), call("a"))
    calls.reducer.end()
    assert calls.reducer.status == "truncated"
    assert calls.waiting() == Waiting(who="nobody")


def test_waiting_after_a_refusal(toolset: Toolset) -> None:
    calls = thread(toolset, started("r"), call("a"))
    with pytest.raises(Exception, match="RUN_STARTED"):
        feed(calls.reducer, started("again"))
    assert calls.reducer.status == "rejected"
    assert calls.waiting() == Waiting(who="nobody")


def test_waiting_moves_on_with_decisions_and_answers(toolset: Toolset) -> None:
    calls = thread(toolset, run("r", call("a", "pay"), call("b", "pay"), call("c", "navigate")))
    before = calls.reducer.version
    calls.approve("a")
    assert calls.waiting() == Waiting(who="application", application=("a", "c"), approver=("b",))
    calls.deny("b")
    assert calls.waiting() == Waiting(who="application", application=("a", "b", "c"))
    assert not calls.ready(since=before)
    for id in ("a", "b", "c"):
        calls.reducer.add(ToolMessage(id=f"{id}-answer", tool_call_id=id, content="x"))
    assert calls.waiting() == Waiting(who="agent")
    assert calls.ready(since=before)
    assert calls.ready()
    assert not calls.ready(since=calls.reducer.version)
    feed(calls.reducer, started("r2"))
    assert not calls.ready(since=before)
    feed(calls.reducer, finished("r2"))
    assert calls.waiting() == Waiting(who="nobody")
    assert not calls.ready(since=before)


def test_waiting_moves_on_with_the_answers_to_interrupts(toolset: Toolset) -> None:
    calls = thread(toolset, started("r"), call("a"), interrupted("r", interrupt("i", "a"), interrupt("j")))
    before = calls.reducer.version
    calls.approve("a")
    assert calls.state("a") == "approval-responded"
    assert calls.waiting() == Waiting(who="approver", agent=("a",), interrupts=("j",))
    assert not calls.ready(since=before)
    calls.resume({"j": False})
    assert calls.waiting() == Waiting(who="agent", agent=("a",))
    assert calls.ready(since=before)
    calls.next_input(run_id="r2")
    feed(calls.reducer, run("r2", result("a")))
    assert calls.waiting() == Waiting(who="nobody")
    assert calls.state("a") == "output-available"
