"""`Conversation`: turns and their rounds, the block and its readers, kinds of agents."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.protocol.content import TextPart
from agui_core.protocol.messages import UserMessage
from agui_core.stream import follow
from support.chats import Script, call, chatting, finish, run, say, settle, texts, tool_contents, tools
from support.watched import Watched

pytestmark = pytest.mark.anyio


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
    async with chatting([], [], [], []) as (chat, agent):
        await chat.send([{"type": "text", "text": "a"}, TextPart(text="b")]).wait()
        await chat.send(UserMessage(id="mine", content="c", name="Ada")).wait()
        await chat.send({"id": "wire", "role": "user", "content": "e"}).wait()
        strange: list[Any] = [[{"type": "text"}], [{"type": "text", "text": 5}], {"role": "user", "content": "e"}]
        for malformed in (*strange, {"id": "theirs", "role": "assistant", "content": "e"}):
            with pytest.raises(agui.ProtocolError):
                chat.send(malformed)
        await chat.send("d").wait()
    sent = agent.inputs[-1].messages
    assert [message.content for message in sent] == [(TextPart(text="a"), TextPart(text="b")), "c", "e", "d"]
    assert [message.id for message in sent[1:3]] == ["mine", "wire"]
    assert len({message.id for message in sent}) == 4


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
        assert await chat.proceed().wait() == "done"


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
        for act in (lambda: chat.send("b"), chat.retry, chat.proceed):
            with pytest.raises(agui.StillWaiting, match="a turn is going on") as caught:
                act()
            assert caught.value.who == "agent"
        await settle(lambda: agent.active)
        assert chat.turn is turn
        assert chat.status == "running"
        assert len(agent.inputs) == 1
    assert turn.ending == "stopped"


# --- the block and its readers --------------------------------------------------------------------------------------


async def test_a_reader_of_all_turns() -> None:
    seen: list[int] = []
    async with chatting(say("a", "m1"), say("b", "m2")) as (chat, _), anyio.create_task_group() as tasks:

        async def watch() -> None:
            async for update in chat.updates():
                seen[len(seen) :] = [len(update.messages)]

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
    for act in (lambda: chat.send("more"), chat.retry, chat.proceed):
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
    with pytest.raises(ValueError, match="mine"):  # noqa: PT012
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
    inputs: list[Any] = []

    class Agent:
        async def run(self, run_input: Any) -> Any:
            inputs.append(run_input)
            ids = {"threadId": "theirs", "runId": "r"}
            return Watched([{"type": "RUN_STARTED", **ids}, *say("ok"), {"type": "RUN_FINISHED", **ids}])

    async with agui.Conversation(Agent(), thread_id="ours") as chat:
        await chat.send("a").wait()
        assert await chat.send("b").wait() == "done"
    assert [run_input.thread_id for run_input in inputs] == ["ours", "ours"]


@pytest.mark.parametrize("options", [{"max_rounds": 0}, {"interval": -1}, {"calls": agui.Calls(agui.Reducer(), tools)}])
def test_options_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"max_rounds|interval|calls"):
        agui.Conversation(Script(), tools, **options)


async def test_a_thread_that_is_there_already() -> None:
    calls = agui.Calls(agui.Reducer([{"id": "u", "role": "user", "content": "before"}]), tools, timeout=1)
    agent = Script(say("ok"))
    async with agui.Conversation(agent, calls=calls) as chat:
        assert chat.calls is calls
        await chat.send("now").wait()
    assert [message.content for message in agent.inputs[0].messages] == ["before", "now"]
