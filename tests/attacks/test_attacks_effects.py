"""Attacks on "an effect happens once" and on "what was not offered does not run"."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import anyio
import pytest

from agui_core.errors import ApprovalError
from agui_core.limits import Limits
from agui_core.reducer import Reducer
from agui_core.tools import Calls, Toolset
from agui_core.wire import to_wire
from support.call_streams import Event, answers, call, feed, finished, kinds, run, started, thread
from support.events import snapshot

pytestmark = pytest.mark.anyio

USER = {"id": "u", "role": "user", "content": "Pay."}


class Bank:
    def __init__(self) -> None:
        self.paid: list[int] = []
        self.tools = Toolset()
        self.tools.tool(name="pay", effects=True, approval="never")(self.pay)
        self.tools.tool(name="refund", effects=True, approval="never")(self.refund)
        self.tools.tool(name="look_up")(lambda: "found")

    async def pay(self, amount: float) -> str:
        self.paid.append(int(amount))
        return f"paid {amount}"

    async def refund(self, amount: float) -> str:
        self.paid.append(-int(amount))
        return f"refunded {amount}"


@pytest.fixture
def bank() -> Bank:
    return Bank()


def pay(id: str = "a", arguments: str = '{"amount": 5}', name: str = "pay") -> list[Event]:
    return call(id, name, arguments)


# --- an effect happens once ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", ['{"amount": 5}', '{ "amount":5.0 }', '{"amount":5e0}'])
@pytest.mark.parametrize("restart", [False, True])
async def test_an_answer_that_a_snapshot_took_away_is_not_earned_twice(bank: Bank, again: str, restart: bool) -> None:
    calls = thread(bank.tools, run("r", pay()))
    await calls.answer()
    if restart:
        calls = Calls.restore(calls.checkpoint(), bank.tools)
    calls.next_input(run_id="r2")
    feed(calls.reducer, started("r2"), snapshot(USER), pay(arguments=again), finished("r2"))
    assert calls.state("a") == "input-available"
    await calls.answer()
    assert bank.paid == [5], "the effect happened once"
    assert answers(calls)["a"].content.endswith("it may or may not have run.")


async def test_the_mark_outlives_a_restart_while_the_answer_is_away(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay()))
    await calls.answer()
    calls.next_input(run_id="r2")
    feed(calls.reducer, started("r2"), snapshot(USER), finished("r2"))
    calls.waiting()
    calls = Calls.restore(calls.checkpoint(), bank.tools)
    calls.next_input(run_id="r3")
    feed(calls.reducer, run("r3", pay()))
    await calls.answer()
    assert bank.paid == [5]
    assert kinds(calls) == {"a": "cancelled"}


@pytest.mark.parametrize(
    ("name", "arguments", "paid"),
    [("pay", '{"amount": 6}', [5, 6]), ("refund", '{"amount": 5}', [5, -5])],
)
async def test_the_same_id_with_another_name_or_other_arguments_is_a_new_call(
    bank: Bank, name: str, arguments: str, paid: list[int]
) -> None:
    calls = thread(bank.tools, run("r", pay()))
    await calls.answer()
    calls.next_input(run_id="r2")
    feed(calls.reducer, started("r2"), snapshot(USER), pay("a", arguments, name), finished("r2"))
    await calls.answer()
    assert bank.paid == paid
    assert kinds(calls) == {"a": "ok"}


async def test_a_new_call_with_an_old_id_has_no_old_approval() -> None:
    ran: list[str] = []
    tools = Toolset()

    async def wipe(disk: str) -> None:
        ran.append(disk)

    tools.tool(effects=True)(wipe)
    calls = thread(tools, run("r", call("a", "wipe", '{"disk": "a"}')))
    calls.approve("a")
    await calls.answer()
    calls.next_input(run_id="r2")
    feed(calls.reducer, started("r2"), snapshot(USER), call("a", "wipe", '{"disk": "b"}'), finished("r2"))
    await calls.answer()
    assert ran == ["a"]
    assert calls.state("a") == "approval-requested"


async def test_what_ran_with_edited_arguments_is_known_by_these_too() -> None:
    ran: list[int] = []
    tools = Toolset()

    async def move(steps: int) -> None:
        ran.append(steps)

    tools.tool(effects=True)(move)
    for wire in ('{"steps": 1}', '{"steps": 2}'):
        ran.clear()
        calls = thread(tools, run("r", call("a", "move", '{"steps": 1}')))
        calls.approve("a", {"steps": 2})
        await calls.answer()
        calls = Calls.restore(calls.checkpoint(), tools)
        calls.next_input(run_id="r2")
        feed(calls.reducer, started("r2"), snapshot(USER), call("a", "move", wire), finished("r2"))
        assert calls.state("a") == "input-available", "nobody is asked: it may have run"
        await calls.answer()
        assert ran == [2]


@pytest.mark.parametrize(
    "change",
    [
        {"metadata": {}},
        {"metadata": {"agui_core.answer": "denied"}},
        {"arguments": '{"amount": 9}'},
        {"name": "look_up"},
    ],
)
@pytest.mark.parametrize("restart", [False, True])
async def test_an_agent_that_restates_what_ran_cannot_have_it_run_again(
    bank: Bank, change: dict[str, Any], restart: bool
) -> None:
    calls = thread(bank.tools, run("r", pay()))
    await calls.answer()
    restated = to_wire(calls.reducer.messages)
    for message in restated:
        if message["role"] == "tool":
            message |= {key: value for key, value in change.items() if key == "metadata"}
        for each in message.get("toolCalls", ()):
            each["function"] |= {key: value for key, value in change.items() if key != "metadata"}
    calls.next_input(run_id="r2")
    feed(calls.reducer, started("r2"), snapshot(*restated), finished("r2"))
    if restart:
        calls = Calls.restore(calls.checkpoint(), bank.tools)
    calls.next_input(run_id="r3")
    feed(calls.reducer, started("r3"), snapshot(USER), pay(), finished("r3"))
    await calls.answer()
    assert bank.paid == [5]
    assert kinds(calls) == {"a": "cancelled"}


async def test_an_answer_that_nothing_ran_takes_no_mark_away(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay()))
    await calls.answer()
    unlisted = {"type": "success", "pendingToolCallIds": ["b"]}
    for run_id, outcome, kind in (("r2", unlisted, "invalid"), ("r3", None, "cancelled")):
        calls.next_input(run_id=run_id)
        feed(calls.reducer, started(run_id), snapshot(USER), pay(), call("b"), finished(run_id, outcome))
        await calls.answer()
        assert kinds(calls) == {"a": kind, "b": "ok"}
    assert bank.paid == [5]


async def test_a_model_that_counts_ids_runs_nothing_twice_and_the_turn_waits(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("call_0")))
    await calls.answer()
    calls.next_input(run_id="r2")
    feed(calls.reducer, run("r2", pay("call_0", '{"amount": 7}')))
    assert await calls.answer() == ()
    assert bank.paid == [5]
    waiting = calls.waiting()
    assert (waiting.who, waiting.agent) == ("agent", ("call_0",))
    assert not calls.ready()
    assert "EVT-7" in {warning.rule for warning in calls.reducer.warnings}
    with pytest.raises(ApprovalError, match="answered already"):
        calls.set_output("call_0", "mine")


async def test_two_answers_never_race() -> None:
    tools = Toolset()
    began, proceed = anyio.Event(), anyio.Event()

    @tools.tool
    async def slow() -> str:
        began.set()
        await proceed.wait()
        return "its own"

    calls = thread(tools, run("r", call("a", "slow")))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await began.wait()
        with pytest.raises(ApprovalError, match="runs here"):
            calls.set_output("a", "by hand")
        proceed.set()
    assert answers(calls)["a"].content == "its own"


@pytest.mark.parametrize("where", ["in the queue", "while that is written down"])
async def test_a_call_answered_by_hand_before_its_turn_is_not_run(bank: Bank, where: str) -> None:
    calls = thread(bank.tools, run("r", pay("a"), pay("b", '{"amount": 6}')), limit=1)
    written: list[str] = []

    async def keep() -> None:
        written.append("")
        if where == "in the queue" and len(written) == 1:  # `a` begins
            calls.set_output("b", "paid in cash")
        elif where != "in the queue" and len(written) == 2:  # `b` begins
            calls.reducer.add({"id": "x", "role": "tool", "toolCallId": "b", "content": "paid in cash"})

    await calls.answer(before_effect=keep)
    assert bank.paid == [5]
    assert answers(calls)["b"].content == "paid in cash"
    assert calls.warnings == ()


async def test_a_call_begun_in_a_process_that_died_takes_an_answer_by_hand(bank: Bank) -> None:
    kept: list[bytes] = []
    calls = thread(bank.tools, run("r", pay()))

    async def keep() -> None:
        kept.append(calls.checkpoint())

    await calls.answer(before_effect=keep)
    again = Calls.restore(kept[0], bank.tools)
    again.set_output("a", "the bank says that it was paid")
    assert kinds(again) == {"a": "ok"}
    assert await again.answer() == ()


async def test_a_call_that_changes_while_its_tool_runs_gets_none_of_its_result() -> None:
    tools = Toolset()
    began, proceed = anyio.Event(), anyio.Event()
    ran: list[int] = []

    async def pay(amount: int) -> str:
        ran.append(amount)
        began.set()
        await proceed.wait()
        return f"paid {amount}"

    tools.tool(effects=True, approval="never")(pay)
    calls = thread(tools, run("r", call("a", "pay", '{"amount": 1}')))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await began.wait()
        feed(calls.reducer, started("r2"), snapshot(USER), call("a", "pay", '{"amount": 2}'), finished("r2"))
        proceed.set()
    assert "a" not in answers(calls)
    await calls.answer()
    assert ran == [1, 2]
    assert answers(calls)["a"].content == "paid 2"


async def test_the_marks_are_bounded_and_at_the_bound_no_effect_begins(bank: Bank) -> None:
    calls = Calls(Reducer(limits=Limits(tool_calls=2)), bank.tools)
    for number in range(4):
        calls.next_input(thread_id="t", run_id=f"r{number}")
        feed(calls.reducer, started(f"r{number}"), snapshot(USER), pay(f"c{number}"), finished(f"r{number}"))
        await calls.answer()
    assert bank.paid == [5, 5], "two answers are away: a third effect could not be remembered"
    assert kinds(calls) == {"c3": "invalid"}


async def test_format_1_is_read_and_what_was_begun_stays_begun(bank: Bank) -> None:
    reducer = Reducer()
    feed(reducer, run("r", pay()))
    old = (
        b'{"format":1,"seen":%d,"thread_id":"t","offered":{"r":["pay","look_up"]},"records":{"a":{"message_id":"m",'
        b'"opening":1,"state":"input-available","verdict":null,"digest":"","begun":true}},"answers":{},"entries":{},'
        b'"decided_at":0,"sent":true,"carried":[],"carried_from":null}'
    )
    calls = Calls.restore(reducer.checkpoint(old % reducer.version), bank.tools)
    await calls.answer()
    assert bank.paid == []
    assert kinds(calls) == {"a": "cancelled"}


# --- what was not offered does not run ------------------------------------------------------------------------------


@pytest.mark.parametrize("run_id", ["r2", "r1", "never sent"])
@pytest.mark.parametrize("restart", [False, True])
async def test_the_last_input_decides_whatever_run_id_comes_back(bank: Bank, run_id: str, restart: bool) -> None:
    calls = thread(bank.tools, run("r"))
    calls.next_input(run_id="r1")
    calls.next_input(run_id="r2", tools=bank.tools.filter(["look_up"]))
    if restart:
        calls = Calls.restore(calls.checkpoint(), bank.tools)
    feed(calls.reducer, run(run_id, pay("a"), call("b")))
    await calls.answer()
    assert bank.paid == []
    assert kinds(calls) == {"a": "invalid", "b": "ok"}


async def test_several_runs_in_one_stream_are_offered_the_same(bank: Bank) -> None:
    calls = Calls(Reducer(), bank.tools)
    calls.next_input(thread_id="t", run_id="r", tools=bank.tools.filter(["look_up"]))
    feed(calls.reducer, run("r"), run("another", pay("a")))
    await calls.answer()
    assert bank.paid == []


class Word(StrEnum):
    RUN = "run"


@pytest.mark.parametrize("said", [0, 1, 0.0, None, "yes", "RUN", [], {}, Word.RUN])
async def test_a_policy_that_decides_nothing_asks(said: Any) -> None:
    ran: list[int] = []
    tools = Toolset()
    tools.tool(name="act", approval=lambda arguments: said)(lambda: ran.append(1))
    calls = thread(tools, run("r", call("a", "act")))
    assert await calls.answer() == ()
    assert calls.state("a") == "approval-requested"
    assert ran == []
