"""Keeping a `Conversation` and going on with it in another process, wherever it was."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.wire import encode
from support.chats import Script, ask, call, chatting, interrupted, run, say, settle, texts, tool_contents, tools

pytestmark = pytest.mark.anyio


def restored(data: bytes, *runs: Any, **options: Any) -> tuple[agui.Conversation, Script]:
    agent = Script(*runs)
    return agui.Conversation.restore(data, agent, tools, interval=0, **options), agent


async def test_kept_between_turns_it_goes_on() -> None:
    async with chatting(say("hello")) as (chat, _):
        await chat.send("hi").wait()
        data = chat.checkpoint()
    again, agent = restored(data, say("there", "m2"))
    assert (again.status, again.thread_id, texts(again)) == ("finished", "t", texts(chat))
    async with again:
        assert await again.proceed().wait() == "done"
        assert agent.inputs == []
        assert await again.send("you").wait() == "done"
    assert [message.content for message in agent.inputs[0].messages] == ["hi", "hello", "you"]
    assert agent.inputs[0].thread_id == "t"


async def test_before_the_run_began() -> None:
    async with chatting(say("never")) as (chat, _):
        chat.send("hi")
        data = chat.checkpoint()
        chat.stop()
    again, agent = restored(data, say("hello"))
    async with again:
        assert await again.proceed().wait() == "done"
    assert len(agent.inputs) == 1
    assert texts(again) == [("user", "hi"), ("assistant", "hello")]


async def test_run_17_in_the_middle_of_a_run() -> None:
    async with chatting([*say("par"), anyio.sleep_forever]) as (chat, _):
        chat.send("hi")
        await settle(lambda: texts(chat)[-1] == ("assistant", "par"))
        data = chat.checkpoint()
    again, agent = restored(data, say("whole", "m2"))
    assert (again.status, again.stopped) == ("truncated", False)
    async with again:
        assert await again.proceed().wait() == "broken"
        assert await again.retry().wait() == "done"
    assert texts(again) == [("user", "hi"), ("assistant", "whole")]
    assert [message.role for message in agent.inputs[0].messages] == ["user"]


async def test_in_the_middle_of_an_approval() -> None:
    asked: list[str] = []

    async def hesitate(request: Any) -> bool:
        asked.append(request.call_id)
        if request.call_id == "c2":
            await anyio.sleep_forever()
        return True

    async with chatting(run(call("c1", "delete"), call("c2", "delete", "{ }")), confirm=hesitate) as (chat, _):
        chat.send("go")
        await settle(lambda: asked == ["c1", "c2"] and chat.calls.state("c1") == "output-available")
        data = chat.checkpoint()
    assert "Denied" not in str(texts(chat))

    async def confirm(request: Any) -> bool:
        asked.append(request.call_id)
        return False

    again, agent = restored(data, say("ok"), confirm=confirm)
    with pytest.raises(agui.StillWaiting):
        again.send("well?")
    async with again:
        assert await again.proceed().wait() == "done"
    assert asked == ["c1", "c2", "c2"]
    assert tool_contents(agent.inputs[0])["c1"] == "deleted /"
    assert tool_contents(agent.inputs[0])["c2"].startswith("Denied")


async def test_in_the_middle_of_the_interrupts() -> None:
    asked: list[str] = []

    async def hesitate(interrupt: agui.Interrupt) -> Any:
        asked.append(interrupt.id)
        if interrupt.id == "i2":
            await anyio.sleep_forever()
        return {"big": 2**70, "text": "\u00e9"}

    async with chatting(run(interrupted(ask("i1"), ask("i2"))), on_interrupt=hesitate) as (chat, _):
        chat.send("go")
        await settle(lambda: asked == ["i1", "i2"])
        data = chat.checkpoint()

    async def on_interrupt(interrupt: agui.Interrupt) -> Any:
        asked.append(interrupt.id)
        return "second"

    again, agent = restored(data, say("ok"), on_interrupt=on_interrupt)
    async with again:
        assert await again.proceed().wait() == "done"
    assert asked == ["i1", "i2", "i2"]
    assert [entry.payload for entry in agent.inputs[0].resume] == [{"big": 2**70, "text": "\u00e9"}, "second"]


async def test_in_the_middle_of_a_tool_with_effects() -> None:
    kept: list[bytes] = []
    started = anyio.Event()
    slow = agui.Toolset()

    @slow.tool(effects=True, approval="never")
    async def wipe() -> str:
        "Wipe."
        started.set()
        await anyio.sleep_forever()
        return "wiped"

    async def keep() -> None:
        kept.append(chat.checkpoint())

    chat = agui.Conversation(Script(run(call("c", "wipe"))), slow, before_effect=keep)
    async with chat:
        chat.send("go")
        await started.wait()
    agent = Script(say("ok"))
    async with agui.Conversation.restore(kept[0], agent, slow) as again:
        assert await again.proceed().wait() == "done"
    assert "may or may not have run" in tool_contents(agent.inputs[0])["c"]


async def test_kept_after_a_stop_it_goes_on() -> None:
    async with chatting([*say("par"), *call("c", "show"), anyio.sleep_forever]) as (chat, _):
        turn = chat.send("hi")
        await settle(lambda: "c" in chat.reducer.tool_calls and chat.reducer.tool_calls["c"].complete)
        chat.stop()
        await turn.wait()
        data = chat.checkpoint()
    again, agent = restored(data, say("ok", "m2"))
    assert (again.stopped, again.status) == (True, "truncated")
    async with again:
        assert again.set_output("c", "late") is None
        assert agent.inputs == []
        assert await again.send("more").wait() == "done"
        assert not again.stopped
    assert tool_contents(agent.inputs[0]) == {"c": "late"}


async def test_a_decision_before_the_block_waits_for_it() -> None:
    async with chatting(run(call("c", "delete"))) as (chat, _):
        await chat.send("go").wait()
        data = chat.checkpoint()
    again, agent = restored(data, say("ok"))
    assert again.approve("c") is None
    async with again:
        assert await again.proceed().wait() == "done"
    assert tool_contents(agent.inputs[0]) == {"c": "deleted /"}


async def test_increments_are_small_and_restore_the_whole() -> None:
    async with chatting(run(call("c", "look_up")), say("a" * 50_000, "m1"), say("b", "m2")) as (chat, _):
        await chat.send("one").wait()
        whole, version = chat.checkpoint(), chat.reducer.version
        await chat.send("two").wait()
        increment = chat.checkpoint(since=version)
        assert len(increment) < 5_000
    agent = Script(say("c", "m3"))
    async with agui.Conversation.restore(whole, agent, tools, increment) as again:
        assert texts(again) == texts(chat)
        assert again.usage == chat.usage
        assert await again.send("three").wait() == "done"
    assert len(agent.inputs[0].messages) == len(chat.messages) + 1


async def test_options_of_the_calls_and_of_the_reducer() -> None:
    async with chatting(say("hello")) as (chat, _):
        await chat.send("hi").wait()
    events: list[Any] = []
    options = {"timeout": 5, "on_event": events.append}
    agent = Script(say("again", "m2"))
    async with agui.Conversation.restore(chat.checkpoint(), agent, tools, calls_options=options) as again:
        await again.send("more").wait()
    assert [event.type for event in events][::4] == ["RUN_STARTED", "RUN_FINISHED"]


@pytest.mark.parametrize("data", [b"", b"{}", b"\x80", b"\xff" * 40, encode([1])])
def test_what_is_no_checkpoint(data: bytes) -> None:
    with pytest.raises(agui.AGUIError):
        agui.Conversation.restore(data, Script())


async def test_a_damaged_checkpoint_is_refused_or_restored_whole() -> None:
    async with chatting(say("hello")) as (chat, _):
        await chat.send("hi").wait()
    data = chat.checkpoint()
    for position in range(0, len(data), 7):
        for damaged in (data[:position], data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]):
            try:
                agui.Conversation.restore(damaged, Script(), tools)
            except agui.AGUIError:
                continue
