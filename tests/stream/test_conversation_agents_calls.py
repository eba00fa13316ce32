"""Calls that are not the application's: those that wait for somebody, those that nobody offers, loaded ones."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import agui_core as agui
from support.chats import Script, call, chatting, finish, run, say, tool_contents, tools

pytestmark = pytest.mark.anyio


def done(id: str) -> dict[str, Any]:
    return {"type": "TOOL_CALL_RESULT", "messageId": f"{id}-result", "toolCallId": id, "content": "done"}


# --- the agent's own calls: which of them wait ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "after",
    [
        [],
        [{"type": "STATE_SNAPSHOT", "snapshot": {"a": 1}}],
        [{"type": "STEP_STARTED", "stepName": "s"}, {"type": "STEP_FINISHED", "stepName": "s"}],
        [{"type": "CUSTOM", "name": "n", "value": 1}, {"type": "RAW", "event": 1}],
        [{"type": "TEXT_MESSAGE_START", "messageId": "n"}, {"type": "TEXT_MESSAGE_END", "messageId": "n"}],
    ],
)
async def test_a_turn_that_ends_with_a_call_of_the_agents_own_waits(after: list[Any]) -> None:
    async with chatting(run(say("Shall I?"), call("a", "transfer"), after), run(say("Bye.", "b"))) as (chat, agent):
        assert await chat.send("go").wait() == "waiting"
        waiting = chat.waiting()
        assert (waiting.who, waiting.agent) == ("agent", ("a",))
        assert any("'a'" in str(warning) and "FT-2" in str(warning) for warning in chat.warnings)
        assert await chat.send("never mind").wait() == "done", "the user may go on"
        assert len(agent.inputs) == 2


REASONING = [
    {"type": "REASONING_MESSAGE_START", "messageId": "n", "role": "reasoning"},
    {"type": "REASONING_MESSAGE_CONTENT", "messageId": "n", "delta": "hm"},
    {"type": "REASONING_MESSAGE_END", "messageId": "n"},
]
OPEN_TEXT = {"type": "TEXT_MESSAGE_START", "messageId": "n"}
MORE_TEXT = [
    {"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "x"},
    {"type": "TEXT_MESSAGE_END", "messageId": "n"},
]


@pytest.mark.parametrize(
    "steps",
    [
        run(call("a", "transfer"), say("I did it.", "b")),
        run(call("a", "transfer"), REASONING),
        run(call("a", "transfer"), call("b", "transfer"), done("b")),
        run(OPEN_TEXT, call("a", "transfer"), MORE_TEXT),
        run(call("a", "transfer"), done("a")),
    ],
)
async def test_what_came_after_it_is_the_agents_own_affair(steps: list[Any]) -> None:
    async with chatting(steps) as (chat, _):
        assert await chat.send("go").wait() == "done"
        assert chat.waiting().who == "nobody"


async def test_text_before_it_in_the_same_message_does_not_count() -> None:
    first = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "n", "delta": "x"}
    end = {"type": "TEXT_MESSAGE_END", "messageId": "n"}
    async with chatting(run(OPEN_TEXT, first, call("a", "transfer"), end)) as (chat, _):
        assert await chat.send("go").wait() == "waiting"


async def test_what_waits_is_known_in_a_restored_conversation() -> None:
    async with chatting(run(OPEN_TEXT, call("a", "transfer"), MORE_TEXT, call("b", "transfer"))) as (chat, _):
        await chat.send("go").wait()
        data = chat.checkpoint()
    assert agui.Conversation.restore(data, Script(), tools).waiting().agent == ("b",)


async def test_the_second_of_two_answers_starts_the_run() -> None:
    async with chatting(run(call("a", "transfer"), call("b", "transfer")), run(say("Done.", "z"))) as (chat, agent):
        assert await chat.send("go").wait() == "waiting"
        assert chat.set_output("a", "yes") is None, "the other one still waits"
        turn = chat.set_output("b", "no")
        assert turn is not None
        assert await turn.wait() == "done"
        assert tool_contents(agent.inputs[1]) == {"a": "yes", "b": "no"}


async def test_one_answer_goes_out_now_with_proceed() -> None:
    async with chatting(run(call("a", "transfer"), call("b", "transfer")), run(say("Done.", "z"))) as (chat, agent):
        await chat.send("go").wait()
        turn = chat.set_output("a", "yes", proceed=True)
        assert turn is not None
        await turn.wait()
        assert tool_contents(agent.inputs[1]) == {"a": "yes"}


async def test_frontend_calls_do_not_wait_for_the_agents_own() -> None:
    async with chatting(run(call("a", "transfer"), call("b", "look_up")), run(say("Done.", "z"))) as (chat, agent):
        assert await chat.send("go").wait() == "done"
        assert tool_contents(agent.inputs[1]) == {"b": "about x"}


# --- calls of tools that nobody here offers ---------------------------------------------------------------------------


async def test_a_call_of_a_tool_that_nobody_knows_is_answered_when_the_thread_goes_on_by_itself_once() -> None:
    asking = run(call("a", "teleport"), finish(outcome={"type": "success", "pendingToolCallIds": ["a"]}))
    again = run(call("b", "teleport"), finish(outcome={"type": "success", "pendingToolCallIds": ["b"]}))
    async with chatting(asking, again) as (chat, agent):
        assert await chat.send("go").wait() == "waiting", "a name that was answered is known: now it waits"
        assert tool_contents(agent.inputs[1]) == {"a": "Not run: there is no tool named teleport here."}
        assert len(agent.inputs) == 2, "once"


async def test_a_name_that_was_offered_once_is_not_unknown() -> None:
    named = finish(outcome={"type": "success", "pendingToolCallIds": ["a"]})
    toolset = agui.Toolset()
    toolset.tool(name="look_up")(lambda: "x")
    agent = Script(run(say("Hi.")), run(call("a", "show"), named))
    wide = agui.Toolset()
    wide.add({"name": "show", "description": "Show."}, effects=False)
    calls = agui.Calls(agui.Reducer(), wide)
    async with agui.Conversation(agent, calls=calls, interval=0) as chat:
        await chat.send("hello").wait()
        data = chat.checkpoint()
    agent.runs = agent.runs[-1:]
    async with agui.Conversation.restore(data, agent, toolset, interval=0) as chat:
        assert await chat.send("go").wait() == "waiting"
        assert chat.waiting().agent == ("a",)


# --- a thread that was loaded from stored messages --------------------------------------------------------------------

USER = {"id": "u", "role": "user", "content": "Delete it."}
ASKING = {
    "id": "m",
    "role": "assistant",
    "toolCalls": [{"id": "a", "type": "function", "function": {"name": "delete", "arguments": '{"path": "/x"}'}}],
}


async def test_a_loaded_thread_goes_on_where_it_was() -> None:
    reducer = agui.Reducer(messages=[USER, ASKING])
    agent = Script(run(say("Gone.", "z")))
    async with agui.Conversation(agent, tools, reducer=reducer, interval=0) as chat:
        with pytest.raises(agui.StillWaiting) as raised:
            chat.send("hello?")
        assert raised.value.calls == ("a",)
        turn = chat.approve(chat.request("a"))
        assert turn is not None
        assert await turn.wait() == "done"
        assert tool_contents(agent.inputs[0]) == {"a": "deleted /x"}


async def test_the_user_may_leave_it_behind() -> None:
    agent = Script(run(say("Fine.", "z")))
    async with agui.Conversation(agent, tools, reducer=agui.Reducer(messages=[USER, ASKING]), interval=0) as chat:
        assert await chat.send("leave it", abandon=True).wait() == "done"
        assert tool_contents(agent.inputs[0]) == {"a": "No result: the user went on before this call was answered."}


# --- answers by hand ------------------------------------------------------------------------------------------------


async def test_an_answer_to_a_call_of_a_stopped_run_is_checked_as_any_other() -> None:
    began = anyio.Event()

    async def hang() -> None:
        began.set()
        await anyio.sleep_forever()

    async with chatting([*call("a", "show"), hang]) as (chat, _):
        turn = chat.send("go")
        await began.wait()
        chat.stop()
        await turn.wait()
        with pytest.raises(TypeError, match="the error is a short text"):
            chat.set_output("a", "x", error=5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="cannot be written as JSON"):
            chat.set_output("a", object())
        with pytest.raises(agui.ApprovalError, match="no tool call 'b'"):
            chat.set_output("b", "x")
        chat.set_output("a", "shown")
        with pytest.raises(agui.ApprovalError, match="answered already"):
            chat.set_output("a", "shown")


async def test_an_id_used_again_holds_up_no_other_call() -> None:
    runs = (call("c", "look_up"), run(call("c", "look_up"), call("x", "transfer")), say("ok", "n"))
    async with chatting(*runs) as (chat, agent):
        assert await chat.send("go").wait() == "waiting"
        assert chat.waiting().agent == ("c", "x")
        turn = chat.set_output("x", "moved")
        assert turn is not None
        assert await turn.wait() == "done"
        assert tool_contents(agent.inputs[-1])["x"] == "moved"
