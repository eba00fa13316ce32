"""`Conversation` and people: approvals, interrupts, going on without an answer. Rules FT-5, INT-5..9."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.protocol.run import ResumeEntry
from agui_core.tools import Verdict
from support.chats import Script, ask, call, chatting, interrupted, read, run, say, settle, texts, tool_contents

pytestmark = pytest.mark.anyio


# --- people ---------------------------------------------------------------------------------------------------------


async def test_approval_by_a_function() -> None:
    asked = []

    async def confirm(request: Any) -> bool | Verdict:
        asked.append((request.tool_name, request.arguments))
        return Verdict(approved=True, edited_args={"path": "/tmp"}) if len(asked) == 1 else False

    runs = (run(call("c1", "delete", '{"path": "/"}'), call("c2", "delete"), call("c3", "look_up")), say("ok"))
    async with chatting(*runs, confirm=confirm) as (chat, agent):
        assert await chat.send("go").wait() == "done"
    assert asked == [("delete", '{"path": "/"}'), ("delete", "{}")]
    sent = tool_contents(agent.inputs[1])
    assert "deleted /tmp" in sent["c1"]
    assert sent["c2"].startswith("Denied")
    assert sent["c3"] == "about x"


async def test_each_decision_by_hand_takes_the_thread_on() -> None:
    async with chatting(run(call("c1", "delete"), call("c2", "delete")), say("ok")) as (chat, agent):
        assert await chat.send("go").wait() == "waiting"
        assert chat.waiting().approver == ("c1", "c2")
        first = chat.approve("c1")
        assert first is not None
        assert await first.wait() == "waiting"
        assert chat.calls.state("c1") == "output-available"
        second = chat.deny("c2", "no")
        assert second is not None
        assert await second.wait() == "done"
    assert len(agent.inputs) == 2


async def test_a_decision_during_a_turn_is_taken_up() -> None:
    started, release = anyio.Event(), anyio.Event()
    slow = agui.Toolset()

    @slow.tool(effects=True)
    async def work() -> str:
        "Work."
        started.set()
        await release.wait()
        return "worked"

    agent = Script(run(call("c1", "work"), call("c2", "work", "{ }")), say("ok"))
    async with agui.Conversation(agent, slow, interval=0) as chat:
        await chat.send("go").wait()
        turn = chat.approve("c1")
        assert turn is not None
        await started.wait()
        assert chat.approve("c2") is None
        release.set()
        assert await turn.wait() == "done"
    assert list(tool_contents(agent.inputs[1]).values()) == ["worked", "worked"]


async def test_the_last_answer_by_hand_starts_the_next_turn() -> None:
    async with chatting(run(call("c1", "show"), call("c2", "show")), say("ok")) as (chat, agent):
        assert await chat.send("go").wait() == "waiting"
        assert chat.waiting().application == ("c1", "c2")
        assert chat.set_output("c1", "shown") is None
        turn = chat.set_output("c2", None, error="no screen")
        assert turn is not None
        assert await turn.wait() == "done"
    assert tool_contents(agent.inputs[1])["c1"] == "shown"


INTERRUPTED = run(say("first", "m1"), interrupted(ask("i1", message="Colour?"), ask("i2", message="Size?")))


async def test_interrupts_are_answered_by_a_function() -> None:
    answers = {"i1": {"colour": "blue"}, "i2": ResumeEntry(interrupt_id="i2", status="cancelled")}

    async def on_interrupt(interrupt: agui.Interrupt) -> Any:
        return answers[interrupt.id]

    async with chatting(INTERRUPTED, say("ok"), on_interrupt=on_interrupt) as (chat, agent):
        assert await chat.send("go").wait() == "done"
    assert agui.to_wire(agent.inputs[1].resume) == [
        {"interruptId": "i1", "status": "resolved", "payload": {"colour": "blue"}},
        {"interruptId": "i2", "status": "cancelled"},
    ]


async def test_int_6_a_part_of_the_answers_waits_for_the_rest() -> None:
    answers: dict[str, Any] = {"i1": "blue"}
    asked = []

    async def on_interrupt(interrupt: agui.Interrupt) -> Any:
        asked.append(interrupt.id)
        return answers.get(interrupt.id)

    async with chatting(INTERRUPTED, say("ok"), on_interrupt=on_interrupt) as (chat, agent):
        assert await chat.send("go").wait() == "waiting"
        with pytest.raises(
            agui.StillWaiting, match=r"interrupts 'i1', 'i2' wait for the approver.*\[FT-5, INT-6\]"
        ) as caught:
            chat.send("what?")
        assert (caught.value.who, caught.value.interrupts) == ("approver", ("i1", "i2"))
        answers["i2"] = "large"
        assert await chat.proceed().wait() == "done"
    assert asked == ["i1", "i2", "i2"]
    assert [entry.payload for entry in agent.inputs[1].resume] == ["blue", "large"]


@pytest.mark.parametrize("restored", [False, True])
async def test_an_answer_that_was_not_sent_is_none_to_a_later_question(restored: bool) -> None:
    asked = []

    async def on_interrupt(interrupt: Any) -> Any:
        asked.append(interrupt.message)
        return {"a": True}.get(interrupt.message)

    toolset = agui.Toolset()
    agent = Script([interrupted(ask("i", message="a"), ask("j"))], [interrupted(ask("i", message="b"))])
    async with agui.Conversation(agent, toolset, on_interrupt=on_interrupt) as chat:
        assert await chat.send("go").wait() == "waiting"
        if not restored:
            assert await chat.send("no, something else", abandon=True).wait() == "waiting"
        saved = chat.checkpoint()
    if restored:
        async with agui.Conversation.restore(saved, agent, toolset, on_interrupt=on_interrupt) as chat:
            assert await chat.send("no, something else", abandon=True).wait() == "waiting"
    assert asked == ["a", agui.UNSET, "b"]
    assert [len(each.resume or ()) for each in agent.inputs] == [0, 2]


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ((True, True), {"approved": True}),
        ((True, Verdict(approved=False, reason="not that")), {"approved": False, "reason": "not that"}),
        ((False, True), {"approved": False}),
        (("x", "x"), "x"),
    ],
)
async def test_int_15_interrupts_that_share_an_id_are_each_asked(said: tuple[Any, Any], sent: Any) -> None:
    asked = []

    async def on_interrupt(interrupt: Any) -> Any:
        asked.append(interrupt.message)
        return None if asked == ["a", "b"] else said["ab".index(interrupt.message)]

    agent = Script([interrupted(ask("i", message="a"), ask("i", message="b"), ask("i", message="b"))], [])
    async with agui.Conversation(agent, on_interrupt=on_interrupt) as chat:
        assert await chat.send("go").wait() == "waiting"
        saved = chat.checkpoint()
    async with agui.Conversation.restore(saved, agent, on_interrupt=on_interrupt) as chat:
        assert await chat.proceed().wait() == "done"
    assert asked == ["a", "b", "b"]
    assert agent.inputs[1].resume == (ResumeEntry(interrupt_id="i", status="resolved", payload=sent),)


async def test_int_15_different_answers_for_one_id_are_asked_again() -> None:
    said = iter(["x", "y", "z", "z"])

    async def on_interrupt(interrupt: Any) -> Any:
        return next(said)

    agent = Script([interrupted(ask("i", message="a"), ask("i", message="b"))], [])
    async with agui.Conversation(agent, on_interrupt=on_interrupt) as chat:
        with pytest.raises(agui.ResumeError, match=r"\[INT-15\]"):
            await chat.send("go").wait()
        assert await chat.proceed().wait() == "done"


async def test_interrupts_are_resumed_by_hand() -> None:
    async with chatting(INTERRUPTED, say("ok")) as (chat, agent):
        assert await chat.send("go").wait() == "waiting"
        with pytest.raises(agui.ResumeError, match="INT-6"):
            chat.resume({"i1": True})
        turn = chat.resume({"i1": True, "i2": None})
        assert turn is not None
        assert await turn.wait() == "done"
    assert [entry.status for entry in agent.inputs[1].resume] == ["resolved", "cancelled"]


async def test_confirm_and_on_interrupt_share_the_work() -> None:
    asked: dict[str, list[str]] = {"confirm": [], "interrupt": []}

    async def confirm(request: Any) -> bool:
        asked["confirm"].append(request.interrupt.id)
        return True

    async def on_interrupt(interrupt: agui.Interrupt) -> str:
        asked["interrupt"].append(interrupt.id)
        return "text"

    stop = interrupted({"id": "i1", "reason": "tool_call", "toolCallId": "c"}, ask("i2"))
    runs = (run(call("c", "wipe"), stop), say("ok"))
    async with chatting(*runs, confirm=confirm, on_interrupt=on_interrupt) as (chat, agent):
        assert await chat.send("go").wait() == "done"
    assert asked == {"confirm": ["i1"], "interrupt": ["i2"]}
    assert [entry.payload for entry in agent.inputs[1].resume] == [{"approved": True}, "text"]


async def test_int_8_an_expired_interrupt_is_given_up() -> None:
    async def on_interrupt(interrupt: agui.Interrupt) -> str:
        raise AssertionError

    runs = (run(interrupted(ask("i", expiresAt="2020-01-01T00:00:00Z"))), say("ok"))
    async with chatting(*runs, on_interrupt=on_interrupt) as (chat, agent):
        assert await chat.send("go").wait() == "done"
    assert agent.inputs[1].resume[0].status == "cancelled"


async def test_an_answer_for_another_interrupt() -> None:
    async def on_interrupt(interrupt: agui.Interrupt) -> ResumeEntry:
        return ResumeEntry(interrupt_id="other", status="cancelled")

    async with chatting(INTERRUPTED, on_interrupt=on_interrupt) as (chat, _):
        with pytest.raises(agui.AGUIError, match="INT-5"):
            await chat.send("go").wait()


async def test_what_a_function_of_the_application_raises() -> None:
    async def confirm(request: Any) -> bool:
        raise LookupError("no screen")

    async with chatting(run(call("c", "delete")), say("ok"), confirm=confirm) as (chat, _):
        statuses, error = await read(chat.send("go"))
        assert statuses[-1] == "finished"
        assert isinstance(error, LookupError)
        assert chat.error is error
        assert chat.waiting().approver == ("c",)


# --- going on without an answer -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("steps", "who", "calls"),
    [(run(call("c", "delete")), "approver", ("c",)), (run(call("c", "show")), "application", ("c",))],
)
async def test_ft_5_sending_while_something_waits(steps: list[Any], who: str, calls: tuple[str, ...]) -> None:
    async with chatting(steps, say("ok")) as (chat, agent):
        await chat.send("go").wait()
        for act in (lambda: chat.send("well?"), chat.retry):
            with pytest.raises(agui.StillWaiting) as caught:
                act()
            assert (caught.value.who, caught.value.calls) == (who, calls)
        assert await chat.send("never mind", abandon=True).wait() == "done"
    assert tool_contents(agent.inputs[1]) == {"c": "No result: the user went on before this call was answered."}
    answer = next(message for message in agent.inputs[1].messages if message.role == "tool")
    assert (answer.error, answer.metadata) == ("the user went on", {"agui_core.answer": "cancelled"})
    assert [message.role for message in agent.inputs[1].messages][-3:] == ["assistant", "tool", "user"]


async def test_abandoning_gives_interrupts_up() -> None:
    stop = interrupted({"id": "i1", "reason": "tool_call", "toolCallId": "c"}, ask("i2"))
    async with chatting(run(call("c", "wipe"), stop), say("ok")) as (chat, agent):
        await chat.send("go").wait()
        assert await chat.send("never mind", abandon=True).wait() == "done"
    assert [(entry.interrupt_id, entry.status) for entry in agent.inputs[1].resume] == [
        ("i1", "cancelled"),
        ("i2", "cancelled"),
    ]
    assert tool_contents(agent.inputs[1]) == {}  # FT-11


async def test_abandoning_an_open_question() -> None:
    asked = anyio.Event()

    async def confirm(request: Any) -> bool:
        asked.set()
        await anyio.sleep_forever()
        return True

    async with chatting(run(call("c", "delete")), say("ok"), confirm=confirm) as (chat, agent):
        first = chat.send("go")
        await asked.wait()
        with pytest.raises(agui.StillWaiting):
            chat.send("well?")
        second = chat.send("never mind", abandon=True)
        assert (await first.wait(), await second.wait()) == ("stopped", "done")
        assert not chat.stopped
    assert tool_contents(agent.inputs[1])["c"].startswith("No result")


async def test_abandoning_a_run_and_that_again() -> None:
    async with chatting([*say("par", "m1"), anyio.sleep_forever], say("ok", "m2")) as (chat, agent):
        turns = [chat.send("one")]
        await settle(lambda: texts(chat)[-1] == ("assistant", "par"))
        turns += [chat.send("two", abandon=True), chat.send("three", abandon=True)]
        assert [await turn.wait() for turn in turns] == ["stopped", "stopped", "done"]
        assert [text for _, text in texts(chat)] == ["one", "par", "two", "three", "ok"]
    assert len(agent.inputs) == 2


async def test_abandoning_nothing_is_sending() -> None:
    async with chatting([], []) as (chat, _):
        await chat.send("a", abandon=True).wait()
        assert await chat.send("b", abandon=True).wait() == "done"
