"""Token usage over the runs of a conversation. Rules USE-1..5."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.stream.usage import TokenSum, Usage
from support.chats import Script, call, chatting, finish, run, say, settle, tools

pytestmark = pytest.mark.anyio


def used(model: str = "m", **counts: int) -> dict[str, Any]:
    return {"provider": "p", "model": model, **counts}


async def test_use_1_and_3_entries_add_up_by_provider_and_model() -> None:
    runs = (
        run(
            call("c", "look_up"),
            finish(usage=[used(inputTokens=9, cachedInputTokens=4, outputTokens=5, reasoningTokens=2, totalTokens=14)]),
        ),
        run(
            finish(
                usage=[
                    used(inputTokens=20, cachedInputTokens=1, outputTokens=1, reasoningTokens=1, totalTokens=21),
                    used("other", totalTokens=100),
                    {"totalTokens": 1000},
                ]
            )
        ),
    )
    async with chatting(*runs) as (chat, _):
        await chat.send("go").wait()
        usage = chat.usage
    assert (usage.runs, usage.total.exact) == (2, 1135)
    first, other, unnamed = usage.models
    assert (first.provider, first.model, unnamed.provider, unnamed.model) == ("p", "m", None, None)
    assert (first.input_tokens.exact, first.output_tokens.exact, first.total_tokens.exact) == (29, 6, 35)
    assert (first.cached_input_tokens.exact, first.reasoning_tokens.exact) == (5, 3)
    assert (other.total_tokens.exact, other.input_tokens.exact) == (100, None)


async def test_use_2_unknown_is_not_zero() -> None:
    runs = (
        [finish(usage=[used(totalTokens=5)])],
        [finish(usage=[used(inputTokens=7)])],
        [finish(usage=[used(totalTokens=0)])],
        [finish()],
    )
    async with chatting(*runs) as (chat, _):
        for total, text in (
            (TokenSum(5, 0), "5"),
            (TokenSum(5, 1), "at least 5"),
            (TokenSum(5, 1), "at least 5"),
            (TokenSum(5, 2), "at least 5"),
        ):
            await chat.send("go").wait()
            assert chat.usage.total == total
            assert str(chat.usage.total) == text
        assert chat.usage.silent == 1
        assert chat.usage.models[0].input_tokens == TokenSum(7, 2)


async def test_use_5_what_a_failed_run_took_counts() -> None:
    error = {"type": "RUN_ERROR", "message": "boom", "usage": [used(totalTokens=3)]}
    late = run(say("x"), finish(usage=[used(totalTokens=50)]), {"type": "RUN_ERROR", "message": "late"})
    async with chatting(run(say("a", "m1"), error), [finish(usage=[used(totalTokens=10)])], [error], late) as (chat, _):
        await chat.send("go").wait()
        for total in (13, 16, 66):  # the third came instead of a run, so the one before is not counted again
            await chat.retry().wait()
            assert chat.usage.total.exact == total
        assert chat.usage.runs == 4


async def test_a_run_that_breaks_off_counts_as_silent() -> None:
    async with chatting(run(say("a"), anyio.sleep_forever)) as (chat, _):
        turn = chat.send("go")
        await settle(lambda: len(chat.messages) == 2)
        chat.stop()
        await turn.wait()
        assert (chat.usage.runs, chat.usage.silent, chat.usage.total.exact) == (1, 1, None)


async def test_usage_is_kept() -> None:
    async with chatting([finish(usage=[used(totalTokens=2**40)])]) as (chat, _):
        await chat.send("go").wait()
        assert agui.Conversation.restore(chat.checkpoint(), Script(), tools).usage == chat.usage
    assert Usage().total.exact == 0


async def test_a_refused_stream_without_a_run_takes_nothing_and_what_was_said_is_still_owed() -> None:
    async with chatting([finish(usage=[used(totalTokens=3)])], [], say("Here.")) as (chat, agent):
        await chat.send("go").wait()
        original = agent._play

        async def play(run_input: Any, steps: Any) -> Any:
            yield {"type": "TEXT_MESSAGE_END", "messageId": "x"}

        agent._play = play  # type: ignore[method-assign]
        with pytest.raises(agui.ProtocolError):
            await chat.send("more").wait()
        agent._play = original  # type: ignore[method-assign]
        assert (chat.usage.runs, chat.usage.total.exact) == (1, 3)
        assert await chat.proceed().wait() == "done"
        assert chat.messages[-1].content == "Here."
