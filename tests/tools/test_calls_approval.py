"""Approval: who is asked about what, in which order, and what a verdict is worth."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agui_core.errors import ApprovalError, ResumeError
from agui_core.tools import ApprovalRequest, Calls, InvalidArguments, Toolset, Verdict
from support.call_streams import (
    answers,
    call,
    feed,
    finished,
    interrupt,
    interrupted,
    kinds,
    opened,
    run,
    started,
    thread,
)
from support.clocks import virtual_time

pytestmark = pytest.mark.anyio


class Bank:
    """A tool with effects that remembers them, and one without."""

    def __init__(self, **options: Any) -> None:
        self.paid: list[int] = []
        self.tools = Toolset()
        self.tools.tool(effects=True, **options)(self.pay)
        self.tools.tool(self.look_up)

    async def pay(self, amount: int) -> str:
        self.paid.append(amount)
        return f"paid {amount}"

    async def look_up(self) -> str:
        return "found"


def pay(id: str, amount: Any = 5) -> list[dict[str, Any]]:
    return call(id, "pay", f'{{"amount": {amount}}}')


@pytest.fixture
def bank() -> Bank:
    return Bank()


# --- who is asked -------------------------------------------------------------------------------------------------


async def test_without_an_approver_a_call_with_effects_waits_and_the_others_run(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a"), call("b")))
    assert await calls.answer() == ("b",)
    assert calls.state("a") == "approval-requested"
    assert bank.paid == []
    calls.approve("a")
    assert calls.state("a") == "approval-responded"
    assert await calls.answer() == ("a",)
    assert bank.paid == [5]
    assert calls.state("a") == "output-available"


@pytest.mark.parametrize(
    ("approval", "amount", "kind", "paid"),
    [
        ("never", 5, "ok", [5]),
        ("always", 5, None, []),
        (lambda args: args["amount"] > 100, 5, "ok", [5]),
        (lambda args: args["amount"] > 100, 500, None, []),
        (lambda args: "ask", 5, None, []),
        (lambda args: "run", 5, "ok", [5]),
        (lambda args: "deny", 5, "denied", []),
        (lambda args: 1 / 0, 5, None, []),
        (lambda args: None, 5, None, []),
        (lambda args: "sure", 5, None, []),
    ],
)
async def test_the_policy_of_a_tool(approval: Any, amount: int, kind: str | None, paid: list[int]) -> None:
    bank = Bank(approval=approval)
    calls = thread(bank.tools, run("r", pay("a", amount)))
    await calls.answer()
    assert kinds(calls) == ({} if kind is None else {"a": kind})
    assert bank.paid == paid
    assert calls.state("a") == {"ok": "output-available", "denied": "output-denied", None: "approval-requested"}[kind]


async def test_schema_only_tools_ask_unless_declared_without_effects() -> None:
    tools = Toolset()
    tools.add({"name": "unknown_effects", "description": ""}, lambda args: "ran")
    tools.add({"name": "harmless", "description": ""}, lambda args: "ran", effects=False)
    calls = thread(tools, run("r", call("a", "unknown_effects"), call("b", "harmless")))
    assert await calls.answer() == ("b",)
    assert calls.waiting().approver == ("a",)


async def test_nobody_is_asked_about_arguments_that_do_not_fit(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a", '"much"'), call("b", "pay", "{")))
    assert calls.waiting().application == ("a", "b")
    assert await calls.answer() == ("a", "b")
    assert kinds(calls) == {"a": "invalid", "b": "invalid"}


# --- what is said -------------------------------------------------------------------------------------------------


async def test_a_denial_is_said_in_the_content_and_is_no_error(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a"), pay("b")))
    calls.deny("a")
    calls.deny("b", reason="Too much.")
    await calls.answer()
    first, second = answers(calls).values()
    assert first.content == "Denied: a person did not allow this call; it was not run."
    assert second.content == "Denied: a person did not allow this call; it was not run. Reason: Too much."
    assert not first.error
    assert kinds(calls) == {"a": "denied", "b": "denied"}
    assert bank.paid == []


async def test_edited_arguments_replace_all_and_the_answer_says_so() -> None:
    tools = Toolset()
    ran = []

    @tools.tool(effects=True)
    def send(to: str, subject: str = "none") -> str:
        ran.append((to, subject))
        return "sent"

    text = '{"to": "a@example.org", "subject": "hi"}'
    calls = thread(tools, run("r", call("a", "send", text)))
    edited = {"to": "b@example.org"}
    calls.approve("a", edited)
    edited["to"] = "changed later"
    await calls.answer()
    assert ran == [("b@example.org", "none")]
    assert answers(calls)["a"].content == ('A person changed the arguments; it ran with {"to":"b@example.org"}\n\nsent')
    assert calls.reducer.tool_calls["a"].arguments == text


async def test_edited_arguments_that_do_not_fit_are_refused_at_once(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a")))
    for wrong in ({"amount": "much"}, {}, {"amount": 5, "to": "me"}):
        with pytest.raises(InvalidArguments):
            calls.approve("a", wrong)
        assert calls.state("a") == "approval-requested"
    calls.approve("a", {"amount": 7.0})
    await calls.answer()
    assert bank.paid == [7]


async def test_the_policy_judges_again_and_a_denial_wins_over_an_approval() -> None:
    rules = {"limit": 100}
    bank = Bank(approval=lambda args: "deny" if args["amount"] > rules["limit"] else "ask")
    calls = thread(bank.tools, run("r", pay("a"), pay("b"), pay("c")))
    for id in ("a", "b"):
        calls.approve(id)
    calls.approve("c", {"amount": 5_000})
    rules["limit"] = 1
    await calls.answer()
    assert kinds(calls) == {"a": "denied", "b": "denied", "c": "denied"}
    assert "rules of the application" in str(answers(calls)["a"].content)
    assert bank.paid == []


async def test_once_asked_a_call_does_not_run_unasked_though_the_policy_changes_its_mind() -> None:
    rules = {"ask": True}
    bank = Bank(approval=lambda args: rules["ask"])
    calls = thread(bank.tools, run("r", pay("a")))
    assert calls.state("a") == "approval-requested"
    rules["ask"] = False
    assert await calls.answer() == ()
    calls.approve("a")
    assert await calls.answer() == ("a",)


async def test_a_tool_without_need_of_approval_that_needs_it_in_the_end_is_asked_about() -> None:
    rules = {"ask": False}
    bank = Bank(approval=lambda args: rules["ask"])
    calls = thread(bank.tools, run("r", pay("a")))
    assert calls.state("a") == "input-available"
    rules["ask"] = True
    assert await calls.answer() == ()
    assert calls.state("a") == "approval-requested"
    assert bank.paid == []


# --- what voids an approval ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("more", ["", " ", ',"x":1}'])
async def test_reopening_a_call_voids_its_approval_tool_6(bank: Bank, more: str) -> None:
    calls = thread(bank.tools, run("r", pay("a")))
    calls.approve("a")
    feed(calls.reducer, started("r2"), opened("a", "pay", more), {"type": "TOOL_CALL_END", "toolCallId": "a"})
    feed(calls.reducer, finished("r2"))
    calls.state("a")
    await calls.answer()
    assert bank.paid == []
    assert calls.state("a") == ("output-error" if "x" in more else "approval-requested")


async def test_renaming_a_call_voids_its_approval(bank: Bank) -> None:
    bank.tools.tool(name="wipe", effects=True)(lambda amount: bank.paid.append(-1))
    calls = thread(bank.tools, run("r", pay("a")))
    calls.approve("a")
    feed(calls.reducer, started("r2"), call("a", "wipe", ""), finished("r2"))
    await calls.answer()
    assert bank.paid == []
    assert calls.state("a") == "approval-requested"


@pytest.mark.parametrize("amount", [5, 5_000])
async def test_a_snapshot_voids_an_approval(bank: Bank, amount: int) -> None:
    calls = thread(bank.tools, run("r", pay("a")))
    calls.approve("a")
    function = {"name": "pay", "arguments": f'{{"amount": {amount}}}'}
    message = {"id": "m", "role": "assistant", "toolCalls": [{"id": "a", "type": "function", "function": function}]}
    feed(calls.reducer, started("r2"), {"type": "MESSAGES_SNAPSHOT", "messages": [message]})
    feed(calls.reducer, call("a", "pay", ""), finished("r2"))
    await calls.answer()
    assert bank.paid == []
    assert calls.state("a") == "approval-requested"


async def test_an_approval_does_not_outlive_its_run(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a")))
    calls.approve("a")
    feed(calls.reducer, {"type": "RUN_ERROR", "message": "late"})
    assert await calls.answer() == ()
    with pytest.raises(ApprovalError):
        calls.deny("a")
    assert bank.paid == []


# --- asking with `confirm` ----------------------------------------------------------------------------------------


async def test_prompts_come_one_at_a_time_in_call_order_while_the_rest_runs(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a", 1), call("b"), pay("c", 2), call("d"), pay("e", 3)), limit=1)
    asked, asking = [], [0]
    ran_meanwhile = []

    async def confirm(request: ApprovalRequest) -> bool:
        asking[0] += 1
        assert asking[0] == 1
        await anyio.wait_all_tasks_blocked()
        ran_meanwhile.append([calls.state(id) for id in ("b", "d")])
        asked.append((request.call_id, request.tool_name, request.arguments, request.args, request.message))
        asking[0] -= 1
        return request.call_id != "c"

    assert await calls.answer(confirm) == ("a", "b", "c", "d", "e")
    assert asked == [
        ("a", "pay", '{"amount": 1}', {"amount": 1}, "Approve pay?"),
        ("c", "pay", '{"amount": 2}', {"amount": 2}, "Approve pay?"),
        ("e", "pay", '{"amount": 3}', {"amount": 3}, "Approve pay?"),
    ]
    assert ran_meanwhile[0] == ["output-available", "output-available"]
    assert kinds(calls) == {"a": "ok", "b": "ok", "c": "denied", "d": "ok", "e": "ok"}
    assert bank.paid == [1, 3]


@virtual_time
async def test_the_time_a_person_takes_is_no_tool_time(bank: Bank) -> None:
    bank = Bank(timeout=0.02)
    calls = thread(bank.tools, run("r", pay("a")), timeout=0.02)

    async def confirm(request: ApprovalRequest) -> bool:
        await anyio.sleep(0.06)
        return True

    await calls.answer(confirm)
    assert kinds(calls) == {"a": "ok"}


@pytest.mark.parametrize(
    ("verdict", "kind", "paid"),
    [
        (True, "ok", [5]),
        (False, "denied", []),
        (None, None, []),
        (Verdict(approved=True), "ok", [5]),
        (Verdict(approved=True, edited_args={"amount": 8}), "ok", [8]),
        (Verdict(approved=True, edited_args={"amount": "x"}), "invalid", []),
        (Verdict(approved=False, edited_args={"amount": 8}), "denied", []),
        (Verdict(approved=False, cancelled=True), None, []),
    ],
)
async def test_what_confirm_may_give(bank: Bank, verdict: Any, kind: str | None, paid: list[int]) -> None:
    calls = thread(bank.tools, run("r", pay("a"), call("b")))

    async def confirm(request: ApprovalRequest) -> Any:
        return verdict

    await calls.answer(confirm)
    assert kinds(calls).get("a") == kind
    assert kinds(calls)["b"] == "ok"
    assert bank.paid == paid
    if kind is None:
        assert calls.state("a") == "approval-requested"


@pytest.mark.parametrize("value", [1, "yes", {"approved": True}, object()])
async def test_nothing_else_approves(bank: Bank, value: Any) -> None:
    calls = thread(bank.tools, run("r", pay("a"), call("b")))

    async def confirm(request: ApprovalRequest) -> Any:
        return value

    with pytest.raises(TypeError, match="confirm gave"):
        await calls.answer(confirm)
    assert kinds(calls) == {"b": "ok"}
    assert bank.paid == []


async def test_when_asking_fails_the_rest_runs_and_what_was_not_asked_waits(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a"), pay("b"), call("c"), pay("d")))

    async def confirm(request: ApprovalRequest) -> bool:
        if request.call_id == "b":
            raise ConnectionError("the window is gone")
        return True

    with pytest.raises(ConnectionError, match="the window is gone"):
        await calls.answer(confirm)
    assert kinds(calls) == {"a": "ok", "c": "ok"}
    assert calls.waiting().approver == ("b", "d")


async def test_a_decision_made_elsewhere_while_a_person_is_asked_stands(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a")))

    async def confirm(request: ApprovalRequest) -> bool:
        calls.deny("a")
        return True

    await calls.answer(confirm)
    assert kinds(calls) == {"a": "denied"}
    assert bank.paid == []


async def test_a_call_that_changes_while_a_person_is_asked_is_not_approved(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a")))

    async def confirm(request: ApprovalRequest) -> bool:
        feed(calls.reducer, started("r2"), call("a", "pay", "\n"), finished("r2"))
        return True

    await calls.answer(confirm)
    assert bank.paid == []


@virtual_time
async def test_cancelling_while_a_person_is_asked_leaves_the_call_waiting(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", call("b"), pay("a")))

    async def confirm(request: ApprovalRequest) -> bool:
        await anyio.sleep_forever()
        return True

    with anyio.move_on_after(0.02):
        await calls.answer(confirm)
    assert kinds(calls) == {"b": "ok"}
    assert calls.state("a") == "approval-requested"


# --- asking about interrupts --------------------------------------------------------------------------------------


async def test_confirm_is_asked_about_interrupts_too_ft_11(bank: Bank) -> None:
    calls = thread(
        bank.tools,
        started("r"),
        call("x", "agents_own", '{"path": "/tmp"}'),
        pay("a"),
        pay("b"),
        interrupted(
            "r",
            interrupt("i-b", "b", message="Really pay?"),
            interrupt("i-x", "x"),
            interrupt("form", reason="input_required"),
            interrupt("old", expiresAt="2020-01-01"),
        ),
    )
    asked = []

    async def confirm(request: ApprovalRequest) -> bool | Verdict:
        asked.append((request.call_id, request.interrupt.id if request.interrupt else None, request.message))
        return request.call_id != "b"

    assert await calls.answer(confirm) == ("a",)
    assert asked == [("x", "i-x", "Approve agents_own?"), ("a", None, "Approve pay?"), ("b", "i-b", "Really pay?")]
    assert bank.paid == [5], "the call that an interrupt names is not run here"
    assert calls.waiting().interrupts == ("form", "old")
    entries = calls.resume({"form": None, "old": None})
    assert [(entry.interrupt_id, entry.status, entry.payload or None) for entry in entries] == [
        ("i-b", "resolved", {"approved": False}),
        ("i-x", "resolved", {"approved": True}),
        ("form", "cancelled", None),
        ("old", "cancelled", None),
    ]


async def test_deciding_on_a_call_that_an_interrupt_names(bank: Bank) -> None:
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "additionalProperties": False}
    calls = thread(
        bank.tools,
        started("r"),
        pay("a"),
        pay("b"),
        interrupted("r", interrupt("i", "a", responseSchema=schema), interrupt("j", "b", expiresAt="2020-01-01")),
    )
    with pytest.raises(ResumeError, match="'i' takes no edited arguments"):
        calls.approve("a", {"amount": 1})
    assert calls.state("a") == "approval-requested"
    with pytest.raises(ApprovalError, match=r"'j' has expired.*\[INT-8\]"):
        calls.approve("b")
    calls.approve("a", reason="not for the agent, as the schema has no place for it")
    (first, second) = calls.resume({"j": None})
    assert first.payload == {"approved": True}
    assert second.status == "cancelled"


async def test_keep_is_awaited_before_a_tool_with_effects_runs(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a", 1), call("b"), pay("c", 2)), limit=1)
    kept: list[tuple[list[int], dict[str, str]]] = []

    async def keep() -> None:
        paid = list(bank.paid)
        reborn = Calls.restore(calls.checkpoint(), Bank().tools)
        await reborn.answer()
        kept.append((paid, kinds(reborn)))

    async def confirm(request: ApprovalRequest) -> bool:
        return True

    await calls.answer(confirm, before_effect=keep)
    assert kept == [([], {"a": "cancelled", "b": "ok", "c": "ok"}), ([1], {"a": "ok", "b": "ok", "c": "cancelled"})]


async def test_what_could_not_be_kept_is_not_run(bank: Bank) -> None:
    calls = thread(bank.tools, run("r", pay("a"), call("b")))
    calls.approve("a")

    async def keep() -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        await calls.answer(before_effect=keep)
    assert bank.paid == []
    assert kinds(calls) == {"b": "ok"}
    assert await calls.answer() == ("a",)
    assert bank.paid == [5]


def test_calls_names_its_parts() -> None:
    tools = Toolset()
    calls = Calls(thread(tools).reducer, tools)
    assert calls.toolset is tools
    assert calls.interrupts == ()
    assert calls.warnings == ()


@pytest.mark.parametrize("approved", ["false", 1, None, [0]])
def test_only_a_boolean_says_whether_a_call_may_run(approved: Any) -> None:
    with pytest.raises(TypeError, match="True or False"):
        Verdict(approved=approved)


def test_a_reason_is_a_text() -> None:
    with pytest.raises(TypeError, match="the reason is a text or None"):
        Verdict(approved=False, reason=5)  # type: ignore[arg-type]


def test_edited_arguments_are_an_object() -> None:
    with pytest.raises(TypeError, match="edited_args is a dict or None, not list"):
        Verdict(approved=True, edited_args=[8])  # type: ignore[arg-type]
