"""Trying again: what the broken run said is neither sent nor said twice."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agui_core as agui
from support.chats import call, chatting, finish, run, say, texts
from support.properties import examples

pytestmark = pytest.mark.anyio

FAILED = {"type": "RUN_ERROR", "message": "overloaded"}


def half(text: str, id: str = "m") -> list[Any]:
    return say(text, id)[:2]


def reasoning(text: str, id: str) -> list[Any]:
    return [
        {"type": "REASONING_MESSAGE_START", "messageId": id, "role": "reasoning"},
        {"type": "REASONING_MESSAGE_CONTENT", "messageId": id, "delta": text},
        {"type": "REASONING_MESSAGE_END", "messageId": id},
    ]


def done(id: str) -> dict[str, Any]:
    return {"type": "TOOL_CALL_RESULT", "messageId": f"{id}-result", "toolCallId": id, "content": "done"}


@pytest.mark.parametrize("open_at_the_end", [True, False])
@pytest.mark.parametrize("same_id", [True, False])
async def test_the_half_answer_is_neither_sent_nor_kept(open_at_the_end: bool, same_id: bool) -> None:
    broken = run(reasoning("hm", "t"), half("The ans") if open_at_the_end else say("The ans"), FAILED)
    async with chatting(broken, say("The answer.", "m" if same_id else "n")) as (chat, agent):
        assert await chat.send("go").wait() == "broken"
        assert texts(chat)[1:] == [("reasoning", "hm"), ("assistant", "The ans")]
        version = chat.reducer.version
        assert await chat.retry().wait() == "done"
        assert texts(chat) == [("user", "go"), ("assistant", "The answer.")]
        assert [message.role for message in agent.inputs[1].messages] == ["user"]
        assert set(chat.reducer.changes(version).removed) == ({"t"} if same_id else {"t", "m"})


async def test_it_goes_when_the_first_event_comes_and_before_that_is_applied() -> None:
    seen: list[Any] = []
    shown: list[Any] = []

    async def look() -> None:
        seen.append(texts(chat))

    async with chatting(run(half("The ans"), FAILED), [look, *say("The answer.", "n")]) as (chat, agent):
        await chat.send("go").wait()
        original = agent._play

        async def play(run_input: Any, steps: Any) -> Any:
            shown.append(texts(chat))
            async for event in original(run_input, steps):
                yield event

        agent._play = play  # type: ignore[method-assign]
        await chat.retry().wait()
    assert shown == [[("user", "go"), ("assistant", "The ans")]], "it stays until the new run comes"
    assert seen == [[("user", "go")]]


@pytest.mark.parametrize("how", ["silence", "refused"])
async def test_it_stays_when_nothing_comes(how: str) -> None:
    bad: list[Any] = [{"type": "TEXT_MESSAGE_END", "messageId": "x"}]

    async with chatting(run(half("The ans"), FAILED), [], say("The answer.", "n")) as (chat, agent):
        await chat.send("go").wait()
        original = agent._play

        async def play(run_input: Any, steps: Any) -> Any:
            for event in bad if how == "refused" else []:
                yield event

        agent._play = play  # type: ignore[method-assign]
        with pytest.raises(agui.AGUIError):
            await chat.retry().wait()
        assert texts(chat) == [("user", "go"), ("assistant", "The ans")]
        agent._play = original  # type: ignore[method-assign]
        await chat.retry().wait()


UNREACHED: dict[str, list[Any]] = {
    "silence": [],
    "refused": [{"type": "TEXT_MESSAGE_END", "messageId": "x"}],
    "unreachable": [agui.TransportError("no route to the agent")],
}


def raw(agent: Any, tries: list[list[Any]]) -> None:
    """The next runs of an agent are these steps, with nothing around them; its own come after."""
    original = agent._play

    async def play(run_input: Any, steps: Any) -> Any:
        if not tries:
            async for event in original(run_input, steps):
                yield event
            return
        agent.runs.insert(0, steps)
        for step in tries.pop(0):
            if isinstance(step, Exception):
                raise step
            yield step

    agent._play = play


@pytest.mark.parametrize("restarted", [True, False])
@pytest.mark.parametrize("calls", [True, False])
@pytest.mark.parametrize("broken", [FAILED, agui.TransportError("cut")])
@pytest.mark.parametrize("how", UNREACHED)
async def test_tries_that_nothing_came_of_change_nothing(how: str, broken: Any, calls: bool, restarted: bool) -> None:
    said = run(half("The ans"), call("c", "look_up") if calls else [], broken)
    async with chatting(said, say("The answer.", "n")) as (chat, agent):
        if broken is FAILED:
            await chat.send("go").wait()
        else:
            with pytest.raises(agui.TransportError):
                await chat.send("go").wait()
        raw(agent, [UNREACHED[how], UNREACHED[how]])
        for _ in range(2):
            with pytest.raises(agui.AGUIError):
                await chat.retry().wait()
            assert ("assistant", "The ans") in texts(chat)
        data = chat.checkpoint()
        if not restarted:
            assert await chat.retry().wait() == "done"
            left, sent = texts(chat), agent.inputs[-1].messages
    if restarted:
        async with agui.Conversation.restore(data, agent, interval=0) as again:
            assert await again.retry().wait() == "done"
            left, sent = texts(again), agent.inputs[-1].messages
    assert [text for role, text in left if role in ("user", "assistant") and text] == ["go", "The answer."]
    assert not any(message.content for message in sent if message.role == "assistant")
    assert [message.role for message in sent] == (["user", "assistant", "tool"] if calls else ["user"])


async def test_a_try_that_nothing_came_of_does_not_put_a_whole_run_in_doubt() -> None:
    async with chatting(say("Whole.", "m"), say("More.", "n")) as (chat, agent):
        await chat.send("go").wait()
        raw(agent, [UNREACHED["refused"]])
        with pytest.raises(agui.ProtocolError):
            await chat.retry().wait()
        await chat.retry().wait()
        assert texts(chat) == [("user", "go"), ("assistant", "Whole."), ("assistant", "More.")]


async def test_a_message_with_calls_keeps_them_and_loses_its_text() -> None:
    asking = [
        *half("I will look it up"),
        {"type": "TOOL_CALL_START", "toolCallId": "a", "toolCallName": "look_up", "parentMessageId": "m"},
        {"type": "TOOL_CALL_END", "toolCallId": "a"},
    ]
    async with chatting(run(asking, FAILED), say("The answer.", "n")) as (chat, agent):
        await chat.send("go").wait()
        await chat.retry().wait()
        asked, answered = agent.inputs[1].messages[1:]
        assert (asked.content or None, [each.id for each in asked.tool_calls]) == (None, ["a"])
        assert answered.content.startswith("Not run: the run failed")
        assert chat.messages[1].content is agui.UNSET
        assert chat.messages[2] == answered


async def test_what_stands_before_the_last_word_of_a_tool_stays() -> None:
    broken = run(say("First.", "m1"), call("a", "agents"), done("a"), half("Then", "m2"), FAILED)
    async with chatting(broken, say("Then this.", "m3")) as (chat, _):
        await chat.send("go").wait()
        await chat.retry().wait()
        assert [text for _, text in texts(chat) if text] == ["go", "First.", "done", "Then this."]


async def test_a_message_held_before_is_left_alone_and_warned_about() -> None:
    held = agui.Reducer(messages=[{"id": "m", "role": "assistant", "content": "Hello."}])
    async with chatting([*say(" And more", "m"), FAILED], say("Fine.", "n"), reducer=held) as (chat, _):
        await chat.retry().wait()
        assert texts(chat) == [("assistant", "Hello. And more")]
        await chat.retry().wait()
        assert texts(chat) == [("assistant", "Hello. And more"), ("assistant", "Fine.")]
        assert any("'m' was held before the run" in str(warning) for warning in chat.warnings)


@pytest.mark.parametrize("end", [[], finish()])
async def test_a_retry_that_brought_no_message_warns(end: Any) -> None:
    async with chatting(run(half("The ans"), FAILED), run(end)) as (chat, _):
        await chat.send("go").wait()
        assert await chat.retry().wait() == "done"
        assert any("brought no message" in str(warning) for warning in chat.warnings)


async def test_it_is_known_after_a_restart_too() -> None:
    async with chatting(run(half("The ans"), FAILED)) as (chat, agent):
        await chat.send("go").wait()
        data = chat.checkpoint()
    agent.runs = [say("The answer.", "n")]
    async with agui.Conversation.restore(data, agent, interval=0) as again:
        await again.retry().wait()
        assert texts(again) == [("user", "go"), ("assistant", "The answer.")]


async def test_stopped_and_tried_again() -> None:
    async with chatting([*half("The ans"), anyio.sleep_forever], say("The answer.", "n")) as (chat, _):
        async for _update in chat.send("go"):
            if texts(chat)[-1] == ("assistant", "The ans"):
                chat.stop()
        assert await chat.retry().wait() == "done"
        assert texts(chat) == [("user", "go"), ("assistant", "The answer.")]


PIECES = st.lists(
    st.sampled_from(
        [
            say("a", "m1"),
            say("b", "m2"),
            half("c", "m3"),
            reasoning("d", "t1"),
            call("c1", "agents"),
            [*call("c2", "agents"), done("c2")],
            call("c3", "look_up"),
        ]
    ),
    max_size=5,
    unique_by=str,
)


@given(PIECES)
@examples(60)
def test_nothing_of_a_broken_run_is_left_after_the_last_word_of_user_or_tool(pieces: list[list[Any]]) -> None:
    async def main() -> None:
        async with chatting(run(*pieces, FAILED), say("The answer.", "n")) as (chat, agent):
            await chat.send("go").wait()
            await chat.retry().wait()
            for messages in (agent.inputs[1].messages, chat.messages[:-1]):
                tail: list[Any] = []
                for message in messages:
                    tail = [] if message.role in ("user", "tool") else [*tail, message]
                assert all(message.role == "assistant" and not message.content for message in tail)
            assert chat.messages[-1].content == "The answer."
            again = agui.Conversation.restore(chat.checkpoint(), agent)
            assert again.messages == chat.messages

    anyio.run(main)


async def test_a_message_before_the_users_last_word_that_grew_is_warned_about() -> None:
    runs = (say("one"), [*say("more")[:2], FAILED], say("fin", "n"))
    async with chatting(*runs) as (chat, _):
        await chat.send("go").wait()
        assert await chat.send("again").wait() == "broken"
        assert await chat.retry().wait() == "done"
        assert any("'m' was held before the run" in str(warning) for warning in chat.warnings)
