"""`Conversation` when a run does not end well: stopped, failed, refused, broken off."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import agui_core as agui
from support.chats import Script, ask, call, chatting, finish, interrupted, read, run, say, settle, texts, tool_contents
from support.clocks import virtual_time

pytestmark = pytest.mark.anyio


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
        assert await chat.proceed().wait() == "done"
        assert texts(chat) == [("user", "go"), ("assistant", "ok")]


@virtual_time
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
            turn = chat.proceed()
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
        statuses, error = await read(turn)
        assert isinstance(error, agui.ProtocolError)
        assert error.rule == "STR-2"
        assert (statuses[-1], chat.status, chat.error) == ("rejected", "rejected", error)
        with pytest.raises(agui.ProtocolError):
            await turn.wait()
        assert agent.active == 0
        version = chat.reducer.version
        assert await chat.retry().wait() == "done"
        assert (chat.status, chat.error) == ("finished", None)
        assert chat.reducer.version > version
        assert texts(chat) == [("user", "go"), ("assistant", "ok")], "the broken run's text is not said twice"


async def test_an_agent_that_cannot_be_reached() -> None:
    async with chatting([]) as (chat, agent):
        agent.run = broken_run  # type: ignore[method-assign]
        with pytest.raises(agui.TransportError, match="unreachable"):
            await chat.send("go").wait()
        assert (chat.status, chat.usage.runs) == ("idle", 0)
        del agent.run
        assert await chat.proceed().wait() == "done"
        assert [message.content for message in agent.inputs[0].messages] == ["go"]


def broken_run(run_input: Any) -> Any:
    raise agui.TransportError("unreachable")


async def test_a_connection_that_breaks() -> None:
    async with chatting([*say("part"), agui.TransportError("gone")], say("ok", "m2")) as (chat, _):
        statuses, error = await read(chat.send("go"))
        assert isinstance(error, agui.TransportError)
        assert statuses[-1] == "truncated"
        assert not chat.stopped
        assert await chat.proceed().wait() == "broken"
        assert await chat.retry().wait() == "done"


async def test_tr_1_a_connection_that_breaks_after_the_end_of_its_run_loses_nothing() -> None:
    runs = ([*call("c", "look_up"), finish(), agui.TransportError("gone")], say("ok"))
    async with chatting(*runs) as (chat, agent):
        assert await chat.send("go").wait() == "done"
        assert [warning.rule for warning in chat.warnings] == ["TR-1"]
    assert tool_contents(agent.inputs[1]) == {"c": "about x"}


async def test_open_16_a_refused_resume_leaves_its_interrupts_open() -> None:
    asked = []

    async def on_interrupt(interrupt: agui.Interrupt) -> str:
        asked.append(interrupt.id)
        return "blue"

    error = {"type": "RUN_ERROR", "message": "busy"}
    runs = (run(interrupted(ask("i"))), [error], [error], say("ok"))
    async with chatting(*runs, on_interrupt=on_interrupt) as (chat, agent):
        assert await chat.send("go").wait() == "broken"
        with pytest.raises(agui.StillWaiting):
            chat.send("hello?")
        assert await chat.proceed().wait() == "broken"
        assert await chat.proceed().wait() == "done"
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


class _Silent(Script):
    """Its first run is a stream without an event."""

    def run(self, run_input: agui.RunAgentInput) -> Any:
        return super().run(run_input) if self.inputs else self._say_nothing(run_input)

    async def _say_nothing(self, run_input: agui.RunAgentInput) -> Any:
        self.inputs.append(run_input)
        return
        yield


async def test_run_1_a_stream_without_a_run_is_no_success() -> None:
    agent = _Silent(say("ok"))
    async with agui.Conversation(agent, interval=0) as chat:
        with pytest.raises(agui.TransportError, match=r"before a run began.*\[RUN-1\]"):
            await chat.send("go").wait()
        assert texts(chat) == [("user", "go")]
        assert await chat.retry().wait() == "done"
        assert texts(chat) == [("user", "go"), ("assistant", "ok")]
    assert len(agent.inputs) == 2


class _OtherThread(Script):
    """It names a thread of its own, whatever it was sent."""

    async def _play(self, run_input: agui.RunAgentInput, steps: list[Any]) -> Any:
        async for event in super()._play(run_input, steps):
            yield {**event, "threadId": "own"} if event["type"] in ("RUN_STARTED", "RUN_FINISHED") else event


async def test_int_4_an_agent_that_names_another_thread_may_fail_and_be_asked_again() -> None:
    agent = _OtherThread(say("a"), run({"type": "RUN_ERROR", "message": "busy"}), say("b", "m2"), say("c", "m3"))
    async with agui.Conversation(agent, interval=0) as chat:
        endings = [await chat.send("go").wait(), await chat.send("go").wait(), await chat.retry().wait()]
        assert [*endings, await chat.send("go").wait()] == ["done", "broken", "done", "done"]
    assert len({run_input.thread_id for run_input in agent.inputs}) == 1
