"""Attacks on approvals: what is decided on is what was shown."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agui_core.errors import ApprovalError, ResumeError
from agui_core.protocol.run import ResumeEntry
from agui_core.reducer import Reducer
from agui_core.tools import ApprovalRequest, Calls, Toolset, Verdict
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

pytestmark = pytest.mark.anyio


class Disk:
    def __init__(self) -> None:
        self.wiped: list[str] = []
        self.tools = Toolset()
        self.tools.tool(effects=True)(self.wipe)

    async def wipe(self, disk: str) -> str:
        self.wiped.append(disk)
        return "wiped"


@pytest.fixture
def disk() -> Disk:
    return Disk()


def wipe(id: str = "a", disk: str = "scratch") -> list[dict[str, Any]]:
    return call(id, "wipe", f'{{"disk": "{disk}"}}')


def changed(calls: Calls) -> None:
    """The same call id, with other arguments, in a run of its own."""
    feed(calls.reducer, started("r2"), opened("a", "wipe", " ")[:1], {"type": "TOOL_CALL_END", "toolCallId": "a"})
    feed(calls.reducer, {"type": "MESSAGES_SNAPSHOT", "messages": [ASKING]}, finished("r2"))


ASKING = {
    "id": "m",
    "role": "assistant",
    "toolCalls": [{"id": "a", "type": "function", "function": {"name": "wipe", "arguments": '{"disk": "all"}'}}],
}


# --- the digest ---------------------------------------------------------------------------------------------------


async def test_a_request_approves_what_it_shows_and_nothing_else(disk: Disk) -> None:
    calls = thread(disk.tools, run("r", wipe()))
    request = calls.request("a")
    assert (request.call_id, request.tool_name, request.arguments) == ("a", "wipe", '{"disk": "scratch"}')
    changed(calls)
    assert calls.state("a") == "approval-requested"
    for decide in (calls.approve, calls.deny):
        with pytest.raises(ApprovalError, match="another one than was shown; nothing was decided"):
            decide(request)
        with pytest.raises(ApprovalError, match="another one than was shown"):
            decide("a", digest=request.digest)
    assert calls.state("a") == "approval-requested"
    fresh = calls.request("a")
    assert fresh.digest != request.digest
    calls.approve("a", digest=fresh.digest)
    await calls.answer()
    assert disk.wiped == ["all"]


@pytest.mark.parametrize("look", ["request", "waiting", "state"])
async def test_a_bare_id_means_the_call_as_it_was_last_shown(disk: Disk, look: str) -> None:
    calls = thread(disk.tools, run("r", wipe()))
    if look == "waiting":
        calls.waiting()
    else:
        getattr(calls, look)("a")
    changed(calls)
    with pytest.raises(ApprovalError, match="another one than was shown"):
        calls.approve("a")
    await calls.answer()
    assert disk.wiped == []
    getattr(calls, "waiting" if look == "waiting" else look)(*([] if look == "waiting" else ["a"]))
    calls.approve("a")
    await calls.answer()
    assert disk.wiped == ["all"]


async def test_a_bare_id_that_nothing_showed_means_the_call_as_it_is(disk: Disk) -> None:
    calls = thread(disk.tools, run("r", wipe()))
    changed(calls)
    calls.approve("a")
    await calls.answer()
    assert disk.wiped == ["all"]


def test_the_digest_is_the_same_after_a_restart_and_differs_in_every_part(disk: Disk) -> None:
    calls = thread(disk.tools, run("r", wipe()))
    digest = calls.request("a").digest
    assert Calls.restore(calls.checkpoint(), disk.tools).request("a").digest == digest
    others = [
        thread(disk.tools, run("r", wipe("b"))).request("b"),
        thread(disk.tools, run("r", wipe(disk="other"))).request("a"),
        thread(disk.tools, run("r", call("a", "wipe", '{"disk":  "scratch"}'))).request("a"),
    ]
    questions = (
        interrupt("i", "a"),
        interrupt("j", "a"),
        interrupt("i", "a", message="Sure?"),
        interrupt("i", "a", metadata={"risk": 1}),
        interrupt("i", "a", responseSchema={"type": "boolean"}),
    )
    others += [thread(disk.tools, started("r"), wipe(), interrupted("r", each)).request("a") for each in questions]
    assert len({digest, *(other.digest for other in others)}) == 1 + len(others)


def test_lengths_keep_names_and_arguments_apart(disk: Disk) -> None:
    one = thread(disk.tools, run("r", call("a", "wip", 'e{"disk": 1}'))).request("a")
    other = thread(disk.tools, run("r", call("a", "wipe", '{"disk": 1}'))).request("a")
    assert one.digest != other.digest


# --- several interrupts with one id ---------------------------------------------------------------------------------


def asked_twice(disk: Disk) -> Calls:
    return thread(
        disk.tools, started("r"), wipe("a"), wipe("b"), interrupted("r", interrupt("i", "a"), interrupt("i", "b"))
    )


@pytest.mark.parametrize(
    ("first", "second", "approved"), [(True, True, True), (True, False, False), (False, True, False)]
)
async def test_interrupts_that_share_an_id_are_each_asked_and_one_entry_goes_out(
    disk: Disk, first: bool, second: bool, approved: bool
) -> None:
    calls, said = asked_twice(disk), iter((first, second))
    shown: list[str | None] = []

    async def confirm(request: ApprovalRequest) -> bool:
        shown.append(request.call_id)
        return next(said)

    await calls.answer(confirm)
    assert shown == ["a", "b"]
    (entry,) = calls.next_input(run_id="r2").resume or ()
    assert entry == ResumeEntry(interrupt_id="i", status="resolved", payload={"approved": approved})


def test_half_an_answer_to_a_shared_id_is_no_answer(disk: Disk) -> None:
    calls = asked_twice(disk)
    calls.approve("a")
    assert calls.waiting().interrupts == ("i",)
    with pytest.raises(ResumeError, match=r"\[INT-6\]"):
        calls.next_input(run_id="r2")
    again = Calls.restore(calls.checkpoint(), disk.tools)
    again.deny("b", "not that one")
    (entry,) = again.next_input(run_id="r2").resume or ()
    assert entry.payload == {"approved": False, "reason": "not that one"}


def test_a_changed_mind_counts_and_for_no_later_question(disk: Disk) -> None:
    calls = asked_twice(disk)
    first, second = (calls.request(id) for id in ("a", "b"))
    calls.approve(first)
    calls.approve(second)
    calls.deny(first, "not after all")
    (entry,) = calls.next_input(run_id="r2").resume or ()
    assert entry.payload == {"approved": False, "reason": "not after all"}
    again = [started("r2"), *wipe("c"), *wipe("d"), interrupted("r2", interrupt("i", "c"), interrupt("i", "d"))]
    feed(calls.reducer, again)
    calls.approve("d")
    assert calls.waiting().interrupts == ("i",)


async def test_the_same_question_twice_is_asked_once(disk: Disk) -> None:
    same = interrupt("i", message="Go on?")
    calls = thread(disk.tools, started("r"), interrupted("r", same, same))
    said = iter((True, False))

    async def confirm(request: ApprovalRequest) -> bool:
        return next(said)

    await calls.answer(confirm)
    (entry,) = calls.next_input(run_id="r2").resume or ()
    assert entry.payload == {"approved": True}
    assert next(said) is False, "nobody says no without being heard"


# --- who decided, and why -------------------------------------------------------------------------------------------


async def test_every_answer_says_who_decided(disk: Disk) -> None:
    disk.tools.tool(name="guess", approval=lambda arguments: "deny")(lambda: "x")
    disk.tools.tool(name="go", approval=lambda arguments: False)(lambda: "x")
    disk.tools.tool(name="free")(lambda: "x")
    calls = thread(
        disk.tools, run("r", wipe("a"), wipe("b"), wipe("c"), call("d", "guess"), call("e", "go"), call("f", "free"))
    )
    calls.approve("a", reason="old data")
    calls.approve("b", {"disk": "other"})
    calls.deny("c", "still in use")
    await calls.answer()
    said = {id: (message.metadata or {}).get("agui_core.approval") for id, message in answers(calls).items()}
    assert said == {
        "a": {"by": "person", "edited": False, "reason": "old data"},
        "b": {"by": "person", "edited": True},
        "c": {"by": "person", "edited": False, "reason": "still in use"},
        "d": {"by": "policy", "edited": False},
        "e": {"by": "policy", "edited": False},
        "f": None,
    }
    assert kinds(calls)["c"] == "denied"


async def test_what_is_cancelled_says_who_decided(disk: Disk) -> None:
    begun: list[str] = []

    async def hang(word: str = "") -> None:
        begun.append(word)
        if len(begun) == 3:
            scope.cancel()
        await anyio.sleep_forever()

    disk.tools.tool(name="hang", approval=lambda arguments: False)(hang)
    disk.tools.tool(name="asks", approval="always")(hang)
    calls = thread(disk.tools, run("r", call("a", "hang"), call("b", "asks"), call("c", "asks")))
    calls.approve("b", reason="to see")
    calls.approve("c", {"word": "x"})
    with anyio.CancelScope() as scope:
        await calls.answer()
    assert {id: message.metadata for id, message in answers(calls).items()} == {
        "a": {"agui_core.answer": "cancelled", "agui_core.approval": {"by": "policy", "edited": False}},
        "b": {
            "agui_core.answer": "cancelled",
            "agui_core.approval": {"by": "person", "edited": False, "reason": "to see"},
        },
        "c": {"agui_core.answer": "cancelled", "agui_core.approval": {"by": "person", "edited": True}},
    }
    assert 'it ran with {"word":"x"}' in answers(calls)["c"].content


def test_what_is_abandoned_says_who_decided(disk: Disk) -> None:
    calls = thread(disk.tools, run("r", wipe("a"), wipe("b"), wipe("c")))
    calls.approve("a", reason="old data")
    calls.deny("b", "still in use")
    calls.abandon()
    assert kinds(calls) == {"a": "cancelled", "b": "denied", "c": "cancelled"}
    said = {id: (message.metadata or {}).get("agui_core.approval") for id, message in answers(calls).items()}
    assert said == {
        "a": {"by": "person", "edited": False, "reason": "old data"},
        "b": {"by": "person", "edited": False, "reason": "still in use"},
        "c": None,
    }
    assert answers(calls)["b"].content.endswith("Reason: still in use")


async def test_a_restart_drops_no_reason(disk: Disk) -> None:
    calls, kept = thread(disk.tools, run("r", wipe("a"))), []
    calls.approve("a", reason="old data")

    async def keep() -> None:
        kept.append(calls.checkpoint())

    await calls.answer(before_effect=keep)
    calls = Calls.restore(kept[0], disk.tools)
    await calls.answer()
    assert kinds(calls) == {"a": "cancelled"}
    assert (answers(calls)["a"].metadata or {})["agui_core.approval"]["reason"] == "old data"


def test_the_reason_for_giving_up_goes_out(disk: Disk) -> None:
    calls = thread(disk.tools, started("r"), wipe(), interrupted("r", interrupt("i", "a")))
    (entry,) = calls.resume({"i": Verdict(approved=False, cancelled=True, reason="wrong disk")})
    assert (entry.status, entry.payload) == ("cancelled", {"reason": "wrong disk"})


# --- a history that was loaded --------------------------------------------------------------------------------------

USER = {"id": "u", "role": "user", "content": "Wipe it."}


async def test_nothing_counts_as_approved_in_a_loaded_history(disk: Disk) -> None:
    calls = Calls(Reducer(messages=[USER, ASKING]), disk.tools)
    assert calls.reducer.run.pending_tool_calls == ()
    assert calls.waiting().approver == ("a",)
    assert await calls.answer() == ()
    assert disk.wiped == []
    with pytest.raises(ResumeError, match="FT-5"):
        calls.next_input(thread_id="t")
    calls.approve(calls.request("a"))
    assert await calls.answer() == ("a",)
    assert disk.wiped == ["all"]
    assert calls.ready()
    assert calls.next_input(thread_id="t").messages[-1].role == "tool"


async def test_several_messages_of_a_loaded_history_wait_up_to_the_users_last_word(disk: Disk) -> None:
    def asking(id: str) -> dict[str, Any]:
        function = {"name": "wipe", "arguments": '{"disk": "d"}'}
        return {
            "id": f"m-{id}",
            "role": "assistant",
            "toolCalls": [{"id": id, "type": "function", "function": function}],
        }

    done = {"id": "t", "role": "tool", "toolCallId": "c", "content": "done"}
    calls = Calls(Reducer(messages=[asking("old"), USER, asking("b"), asking("c"), done, asking("d")]), disk.tools)
    assert calls.waiting().approver == ("b", "d")
    calls.deny("b")
    calls.deny("d")
    assert await calls.answer() == ("b", "d")
    run_input = calls.next_input(thread_id="t")
    assert kinds_of(run_input.messages) == {"b": "denied", "c": None, "d": "denied", "old": "cancelled"}


def kinds_of(messages: Any) -> dict[str, Any]:
    return {
        message.tool_call_id: (message.metadata or {}).get("agui_core.answer")
        for message in messages
        if message.role == "tool"
    }


def test_a_user_message_after_them_means_that_the_thread_went_on(disk: Disk) -> None:
    calls = Calls(Reducer(messages=[USER, ASKING, {**USER, "id": "u2"}]), disk.tools)
    assert calls.waiting().who == "nobody"
    answer = next(message for message in calls.next_input(thread_id="t").messages if message.role == "tool")
    assert answer.content == "Not run: the conversation went on before this call was answered."
