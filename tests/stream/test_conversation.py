"""`Conversation`: sending, the rounds of a turn, waiting, stopping, trying again, reading."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from chats import Script, ask, call, finish, interrupted, run, say, settle, texts, tool_contents
from watched import Watched

import agui_core as agui
from agui_core.protocol.content import TextPart
from agui_core.protocol.messages import UserMessage
from agui_core.protocol.run import ResumeEntry
from agui_core.stream import follow
from agui_core.tools import Verdict

pytestmark = pytest.mark.anyio

tools = agui.Toolset()


@tools.tool
async def look_up(word: str = "x") -> str:
    "Look something up."
    return f"about {word}"


@tools.tool(effects=True)
async def delete(path: str = "/") -> str:
    "Delete something."
    return f"deleted {path}"


tools.add({"name": "show", "description": "Show something on the screen."}, effects=False)


@asynccontextmanager
async def chatting(*runs: Any, **options: Any) -> AsyncIterator[tuple[agui.Conversation, Script]]:
    agent = Script(*runs)
    async with agui.Conversation(agent, tools, thread_id="t", interval=0, **options) as chat:
        yield chat, agent
    assert agent.active == 0


async def yes(request: Any) -> bool:
    return True


# --- turns ----------------------------------------------------------------------------------------------------------


async def test_a_turn_is_shown_as_it_comes() -> None:
    async with chatting(say("hello", "m1")) as (chat, agent):
        turn = chat.send("hi")
        assert texts(chat) == [("user", "hi")]
        shown = [(update.status, len(update.messages), bool(update.changes)) async for update in turn]
        assert shown[0][1] == 1
        assert shown[-1] == ("finished", 2, True)
        assert (await turn.wait(), turn.over, chat.turn) == ("done", True, None)
        assert texts(chat) == [("user", "hi"), ("assistant", "hello")]
    assert [message.role for message in agent.inputs[0].messages] == ["user"]
    assert agent.inputs[0].thread_id == "t"
    assert [tool.name for tool in agent.inputs[0].tools or ()] == ["look_up", "delete", "show"]


async def test_the_first_update_shows_what_the_user_said() -> None:
    async with chatting(say("hello")) as (chat, _):
        async for update in chat.send("hi"):
            assert len(update.changes.added) == 1
            break


async def test_content_parts_and_whole_messages() -> None:
    async with chatting([], [], []) as (chat, agent):
        await chat.send([{"type": "text", "text": "a"}, TextPart(text="b")]).wait()
        await chat.send(UserMessage(id="mine", content="c", name="Ada")).wait()
        for malformed in ([{"type": "text"}], [{"type": "text", "text": 5}]):
            with pytest.raises(agui.ProtocolError):
                chat.send(malformed)
        await chat.send("d").wait()
    sent = agent.inputs[-1].messages
    assert [message.content for message in sent] == [(TextPart(text="a"), TextPart(text="b")), "c", "d"]
    assert sent[1].id == "mine"
    assert len({message.id for message in sent}) == 3


async def test_in_8_each_run_has_an_id_of_its_own() -> None:
    async with chatting(run(call("c", "look_up")), [], []) as (chat, agent):
        await chat.send("a").wait()
        await chat.send("b").wait()
    assert len({run_input.run_id for run_input in agent.inputs}) == 3


async def test_calls_are_answered_until_nobody_waits() -> None:
    runs = (
        run(call("c1", "look_up", '{"word": "a"}'), call("c2", "look_up", '{"word": "b"}')),
        run(call("c3", "look_up", '{"word": "c"}')),
        say("done"),
    )
    async with chatting(*runs) as (chat, agent):
        assert await chat.send("go").wait() == "done"
        assert chat.waiting().who == "nobody"
    assert tool_contents(agent.inputs[1]) == {"c1": "about a", "c2": "about b"}
    assert tool_contents(agent.inputs[2]) == {"c1": "about a", "c2": "about b", "c3": "about c"}


async def test_the_cap_on_runs() -> None:
    runs = [run(call(f"c{n}", "look_up", f'{{"word": "{n}"}}')) for n in range(5)]
    async with chatting(*runs, say("done"), max_rounds=3) as (chat, agent):
        assert await chat.send("go").wait() == "rounds"
        assert len(agent.inputs) == 3
        assert chat.calls.state("c2") == "output-available"
        assert chat.waiting().who == "agent"
        assert await chat.go_on().wait() == "done"


async def test_a_turn_that_needs_all_its_runs_is_done() -> None:
    async with chatting(run(call("c", "look_up")), say("done"), max_rounds=2) as (chat, _):
        assert await chat.send("go").wait() == "done"


async def test_an_agent_that_asks_the_same_again() -> None:
    runs = [run(call(f"c{n}", "look_up")) for n in range(5)]
    async with chatting(*runs) as (chat, agent):
        assert await chat.send("go").wait() == "repeated"
        assert len(agent.inputs) == 2


async def test_context_and_properties_go_into_every_input() -> None:
    options = {"context": [{"description": "d", "value": "v"}], "forwarded_props": {"p": 1}}
    async with chatting([], [], **options) as (chat, agent):
        await chat.send("a").wait()
        chat.options["forwarded_props"] = {"p": 2}
        chat.options["tools"] = tools.filter(["show"])
        await chat.send("b").wait()
    assert [run_input.forwarded_props for run_input in agent.inputs] == [{"p": 1}, {"p": 2}]
    assert agent.inputs[1].context[0].value == "v"
    assert [tool.name for tool in agent.inputs[1].tools] == ["show"]


async def test_one_run_at_a_time() -> None:
    async with chatting([anyio.sleep_forever]) as (chat, agent):
        turn = chat.send("a")
        for act in (lambda: chat.send("b"), chat.retry, chat.go_on):
            with pytest.raises(agui.Waiting, match="a turn is going on") as caught:
                act()
            assert caught.value.who == "agent"
        await settle(lambda: agent.active)
        assert chat.turn is turn
        assert chat.status == "running"
        assert len(agent.inputs) == 1
    assert turn.ending == "stopped"


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


async def test_approval_by_hand() -> None:
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


async def test_answers_by_hand() -> None:
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
            agui.Waiting, match=r"interrupts 'i1', 'i2' wait for the approver.*\[FT-5, INT-6\]"
        ) as caught:
            chat.send("what?")
        assert (caught.value.who, caught.value.interrupts) == ("approver", ("i1", "i2"))
        answers["i2"] = "large"
        assert await chat.go_on().wait() == "done"
    assert asked == ["i1", "i2", "i2"]
    assert [entry.payload for entry in agent.inputs[1].resume] == ["blue", "large"]


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
        turn = chat.send("go")
        statuses = []
        with pytest.raises(LookupError, match="no screen"):
            async for update in turn:
                statuses.append(update.status)  # noqa: PERF401
        assert statuses[-1] == "finished"
        assert isinstance(chat.error, LookupError)
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
            with pytest.raises(agui.Waiting) as caught:
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
        with pytest.raises(agui.Waiting):
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


# --- stopping -------------------------------------------------------------------------------------------------------


async def test_run_15_stopping_keeps_what_came_and_is_no_cancellation_of_the_agents() -> None:
    async with chatting([*say("partly"), anyio.sleep_forever], say("whole", "m2")) as (chat, agent):
        turn = chat.send("go")
        await settle(lambda: texts(chat)[-1] == ("assistant", "partly"))
        assert chat.stop()
        shown = [(update.status, update.stopped) async for update in turn]
        assert shown[-1] == ("truncated", True)
        assert (await turn.wait(), chat.stopped, chat.status) == ("stopped", True, "truncated")
        assert agent.active == 0
        assert texts(chat) == [("user", "go"), ("assistant", "partly")]
        assert not chat.stop()
        assert await chat.send("go on").wait() == "done"
        assert not chat.stopped
    assert [message.content for message in agent.inputs[1].messages] == ["go", "partly", "go on"]


async def test_stopping_at_once_sends_nothing() -> None:
    async with chatting(say("ok")) as (chat, agent):
        turn = chat.send("go")
        chat.stop()
        assert await turn.wait() == "stopped"
        assert agent.inputs == []
        assert await chat.go_on().wait() == "done"
        assert texts(chat) == [("user", "go"), ("assistant", "ok")]


async def test_stopping_while_a_tool_runs() -> None:
    started = anyio.Event()
    slow = agui.Toolset()

    @slow.tool
    async def work() -> str:
        "Work."
        started.set()
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.01)
        return "late"

    agent = Script(run(call("c", "work")), say("ok"))
    async with agui.Conversation(agent, slow, interval=0) as chat:
        turn = chat.send("go")
        await started.wait()
        chat.stop()
        assert await turn.wait() == "stopped"
        assert (chat.status, chat.stopped) == ("finished", True)
        assert chat.reducer.tool_calls["c"].result is not None
        assert len(agent.inputs) == 1
        assert await chat.send("and?").wait() == "done"
    assert list(tool_contents(agent.inputs[1])) == ["c"]


@pytest.mark.parametrize("late", ["finished", "truncated"])
async def test_a_late_answer_after_a_stop_is_recorded_and_not_sent(late: str) -> None:
    hanging = [anyio.sleep_forever] if late == "truncated" else []
    async with chatting(run(call("c1", "show"), call("c2", "show"), *hanging), say("ok")) as (chat, agent):
        turn = chat.send("go")
        await settle(lambda: "c2" in chat.reducer.tool_calls and chat.reducer.tool_calls["c2"].complete)
        if late == "finished":
            await turn.wait()
            chat.set_output("c1", "seen")
            turn = chat.go_on()
        chat.stop()
        await turn.wait()
        assert chat.status == late
        assert chat.set_output("c2", "shown") is None
        with pytest.raises(agui.ApprovalError):
            chat.set_output("c2", "twice")
        assert chat.turn is None
        assert len(agent.inputs) == 1
        assert await chat.send("and?").wait() == "done"
    assert tool_contents(agent.inputs[1])["c2"] == "shown"
    # OPEN-17: the other call of a run that broke off was not answered, and is not to be dangling.
    assert tool_contents(agent.inputs[1])["c1"].startswith("seen" if late == "finished" else "Not run")


async def test_a_call_that_was_cut_off_takes_no_answer() -> None:
    opened = call("c", "show")[:2]
    async with chatting(run(*opened, anyio.sleep_forever)) as (chat, _):
        turn = chat.send("go")
        await settle(lambda: "c" in chat.reducer.tool_calls)
        chat.stop()
        await turn.wait()
        with pytest.raises(agui.ApprovalError, match="cut off"):
            chat.set_output("c", "shown")


# --- failures -------------------------------------------------------------------------------------------------------


async def test_a_failed_run_and_trying_again() -> None:
    failing = run(call("c", "look_up"), {"type": "RUN_ERROR", "message": "boom"})
    async with chatting(failing, say("ok")) as (chat, agent):
        assert await chat.send("go").wait() == "broken"
        assert (chat.status, chat.run.error.message) == ("failed", "boom")
        assert await chat.retry().wait() == "done"
    assert agent.inputs[0].run_id != agent.inputs[1].run_id
    assert tool_contents(agent.inputs[1])["c"].startswith("Not run: the run failed")


async def test_run_7_every_try_may_fail_from_its_first_event() -> None:
    error = {"type": "RUN_ERROR", "message": "busy"}
    async with chatting([error], [error], run(say("x"), error), [error], say("ok", "m2")) as (chat, _):
        assert await chat.send("go").wait() == "broken"
        for ending in ("broken", "broken", "broken", "done"):
            assert await chat.retry().wait() == ending
        assert chat.usage.runs == 5


async def test_after_a_refused_run_the_thread_goes_on() -> None:
    refused = run(say("good", "m1"), {"type": "TEXT_MESSAGE_END", "messageId": "nothing"}, anyio.sleep_forever)
    async with chatting(refused, say("ok", "m2")) as (chat, agent):
        turn = chat.send("go")
        with pytest.raises(agui.ProtocolError, match="STR-2") as caught:
            async for _ in turn:
                pass
        assert (chat.status, chat.error) == ("rejected", caught.value)
        with pytest.raises(agui.ProtocolError):
            await turn.wait()
        assert agent.active == 0
        version = chat.reducer.version
        assert await chat.retry().wait() == "done"
        assert (chat.status, chat.error) == ("finished", None)
        assert chat.reducer.version > version
        assert texts(chat) == [("user", "go"), ("assistant", "good"), ("assistant", "ok")]


async def test_an_agent_that_cannot_be_reached() -> None:
    async with chatting([]) as (chat, agent):
        agent.run = broken_run  # type: ignore[method-assign]
        with pytest.raises(agui.TransportError, match="unreachable"):
            await chat.send("go").wait()
        assert (chat.status, chat.usage.runs) == ("idle", 0)
        del agent.run
        assert await chat.go_on().wait() == "done"
        assert [message.content for message in agent.inputs[0].messages] == ["go"]


def broken_run(run_input: Any) -> Any:
    raise agui.TransportError("unreachable")


async def test_a_connection_that_breaks() -> None:
    async with chatting([*say("part"), agui.TransportError("gone")], say("ok", "m2")) as (chat, _):
        turn = chat.send("go")
        statuses = []
        with pytest.raises(agui.TransportError, match="gone"):
            async for update in turn:
                statuses.append(update.status)  # noqa: PERF401
        assert statuses[-1] == "truncated"
        assert not chat.stopped
        assert await chat.go_on().wait() == "broken"
        assert await chat.retry().wait() == "done"


async def test_open_16_a_refused_resume_leaves_its_interrupts_open() -> None:
    asked = []

    async def on_interrupt(interrupt: agui.Interrupt) -> str:
        asked.append(interrupt.id)
        return "blue"

    error = {"type": "RUN_ERROR", "message": "busy"}
    runs = (run(interrupted(ask("i"))), [error], [error], say("ok"))
    async with chatting(*runs, on_interrupt=on_interrupt) as (chat, agent):
        assert await chat.send("go").wait() == "broken"
        with pytest.raises(agui.Waiting):
            chat.send("hello?")
        assert await chat.go_on().wait() == "broken"
        assert await chat.go_on().wait() == "done"
    assert [[entry.payload for entry in each.resume] for each in agent.inputs[1:]] == [["blue"]] * 3
    assert asked == ["i"] * 3


async def test_open_16_answers_survive_an_agent_that_cannot_be_reached() -> None:
    async def on_interrupt(interrupt: agui.Interrupt) -> str:
        return "blue"

    async with chatting(run(interrupted(ask("i"))), say("ok"), on_interrupt=on_interrupt) as (chat, agent):
        replies = iter([None, broken_run])
        genuine = agent.run
        agent.run = lambda run_input: (next(replies, None) or genuine)(run_input)  # type: ignore[method-assign]
        with pytest.raises(agui.TransportError):
            await chat.send("go").wait()
        assert chat.waiting().who == "agent"
        assert await chat.retry().wait() == "done"
    assert agent.inputs[1].resume[0].payload == "blue"


async def test_a_cancelled_run_is_the_agents_own_doing() -> None:
    async with chatting(run(say("x"), finish(outcome={"type": "cancelled"}))) as (chat, _):
        assert await chat.send("go").wait() == "broken"
        assert (chat.status, chat.stopped) == ("cancelled", False)


async def test_warnings_outlive_a_renewal() -> None:
    odd = {"type": "TEXT_MESSAGE_START", "messageId": "m1", "role": "wizard"}
    refused = run(odd, {"type": "TEXT_MESSAGE_END", "messageId": "other"})
    async with chatting(refused, say("ok", "m2")) as (chat, _):
        with pytest.raises(agui.ProtocolError):
            await chat.send("go").wait()
        await chat.retry().wait()
        assert "PROC-9" in [warning.rule for warning in chat.warnings]


# --- the block and its readers --------------------------------------------------------------------------------------


async def test_a_reader_of_all_turns() -> None:
    seen: list[int] = []
    async with chatting(say("a", "m1"), say("b", "m2")) as (chat, _), anyio.create_task_group() as tasks:

        async def watch() -> None:
            async for update in chat.updates():
                seen.append(len(update.messages))

        tasks.start_soon(watch)
        await chat.send("one").wait()
        await settle(lambda: seen and seen[-1] == 2)
        await chat.send("two").wait()
        await settle(lambda: seen[-1] == 4)
        tasks.cancel_scope.cancel()
    assert seen == sorted(seen)


async def test_readers_end_with_the_block() -> None:
    async with chatting([anyio.sleep_forever]) as (chat, agent):
        turn = chat.send("go")
        await settle(lambda: agent.active)
    assert [update.stopped async for update in chat.updates()] == [True]
    assert [update.status async for update in turn] == ["truncated"]
    assert turn.ending == "stopped"
    for act in (lambda: chat.send("more"), chat.retry, chat.go_on):
        with pytest.raises(RuntimeError, match="inside its block"):
            act()
    assert len(chat.messages) == 1
    with pytest.raises(RuntimeError, match="entered once"):
        await chat.__aenter__()


async def test_leaving_a_loop_does_not_stop_the_turn() -> None:
    async with chatting(say("hello")) as (chat, _):
        turn = chat.send("go")
        async for _ in turn:
            break
        assert await turn.wait() == "done"
        assert [update.status async for update in turn] == ["finished"]


async def test_an_exception_of_the_block_leaves_it_as_itself() -> None:
    agent = Script([anyio.sleep_forever])
    with pytest.raises(ValueError, match="mine"):
        async with agui.Conversation(agent, tools) as chat:
            chat.send("go")
            await settle(lambda: agent.active)
            raise ValueError("mine")
    assert agent.active == 0


async def test_cancelling_the_block() -> None:
    agent = Script([anyio.sleep_forever])
    with anyio.CancelScope() as scope:
        async with agui.Conversation(agent, tools) as chat:
            turn = chat.send("go")
            await settle(lambda: agent.active)
            scope.cancel()
            await anyio.sleep_forever()
    assert scope.cancelled_caught
    assert (agent.active, turn.ending, chat.status) == (0, "stopped", "truncated")


async def test_two_tasks_in_one_reader() -> None:
    async with chatting([anyio.sleep_forever]) as (chat, agent):
        reader = aiter(chat.send("go"))
        await settle(lambda: agent.active)
        async with anyio.create_task_group() as tasks:

            async def drain() -> None:
                async for _ in reader:
                    pass

            tasks.start_soon(drain)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(anyio.BusyResourceError):
                await anext(reader)
            tasks.cancel_scope.cancel()


# --- kinds of agents ------------------------------------------------------------------------------------------------


async def test_an_agent_that_makes_live_runs() -> None:
    source = Watched(
        run({"type": "RUN_STARTED", "threadId": "t", "runId": "r"}, *say("ok"), finish(threadId="t", runId="r"))
    )

    class Agent:
        def run(self, run_input: Any, *, reducer: agui.Reducer) -> Any:
            return follow(source, reducer=reducer)

    async with agui.Conversation(Agent(), interval=0.001) as chat:
        assert await chat.send("go").wait() == "done"
        assert texts(chat) == [("user", "go"), ("assistant", "ok")]
    assert source.closed


async def test_an_agent_with_a_reducer_of_its_own() -> None:
    class Agent:
        def run(self, run_input: Any) -> Any:
            return follow(Watched([]))

    async with agui.Conversation(Agent()) as chat:
        with pytest.raises(TypeError, match="reducer of its own"):
            await chat.send("go").wait()


async def test_an_agent_that_prepares_first_and_calls_the_thread_otherwise() -> None:
    class Agent:
        inputs: list[Any] = []

        async def run(self, run_input: Any) -> Any:
            self.inputs.append(run_input)
            ids = {"threadId": "theirs", "runId": "r"}
            return Watched([{"type": "RUN_STARTED", **ids}, *say("ok"), {"type": "RUN_FINISHED", **ids}])

    agent = Agent()
    async with agui.Conversation(agent, thread_id="ours") as chat:
        await chat.send("a").wait()
        assert await chat.send("b").wait() == "done"
    assert [run_input.thread_id for run_input in agent.inputs] == ["ours", "ours"]


@pytest.mark.parametrize("options", [{"max_rounds": 0}, {"interval": -1}, {"calls": agui.Calls(agui.Reducer(), tools)}])
def test_wrong_use(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_rounds|interval|calls"):
        agui.Conversation(Script(), tools, **options)


async def test_a_thread_that_is_there_already() -> None:
    calls = agui.Calls(agui.Reducer([{"id": "u", "role": "user", "content": "before"}]), tools, timeout=1)
    agent = Script(say("ok"))
    async with agui.Conversation(agent, calls=calls) as chat:
        assert chat.calls is calls
        await chat.send("now").wait()
    assert [message.content for message in agent.inputs[0].messages] == ["before", "now"]
