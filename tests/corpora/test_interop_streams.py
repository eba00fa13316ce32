"""Streams of real adapters: who waits after them, how two answers go out, and a retry that brings nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import agui_core as agui
from agui_core.protocol.messages import ToolMessage

pytestmark = pytest.mark.anyio


def _bytes(shared: Path, name: str) -> bytes:
    return (shared / "interop" / f"{name}.sse").read_bytes()


def _calls(shared: Path, name: str, policy: Any = "strict", tools: agui.Toolset | None = None) -> agui.Calls:
    reducer = agui.Reducer(policy=policy)
    reducer.apply_sse(_bytes(shared, name))
    reducer.end()
    return agui.Calls(reducer, tools or agui.Toolset())


class Replay:
    """An agent that plays a stream as it was recorded, under the ids of the run that is asked for."""

    def __init__(self, *streams: bytes) -> None:
        self.streams = list(streams)
        self.inputs: list[agui.RunAgentInput] = []

    async def run(self, run_input: agui.RunAgentInput) -> AsyncIterator[Any]:
        self.inputs.append(run_input)
        for line in self.streams.pop(0).decode().splitlines():
            if line.startswith("data: "):
                event = json.loads(line.removeprefix("data: "))
                if event["type"] in ("RUN_STARTED", "RUN_FINISHED"):
                    event |= {"threadId": run_input.thread_id, "runId": run_input.run_id}
                yield event


def _chat(agent: Replay) -> agui.Conversation:
    return agui.Conversation(agent, agui.Toolset(), thread_id="t", interval=0)


AGENTS = {
    "agno_3.1.10_two_confirmations": ("delete-7-0", "delete-7-1"),
    "mastra_1.1.2_require_approval_lost": ("delete1-8-0",),
    "adk_0.11.0_confirmation_default": ("delete1-2-0", "adk-d382a560-5433-47d8-b67a-97082b20407e"),
}
"""The agent's own calls that a plain end of the run leaves waiting."""


@pytest.mark.parametrize("name", AGENTS)
def test_the_agents_own_calls_wait(shared: Path, name: str) -> None:
    waiting = _calls(shared, name).waiting()
    assert (waiting.who, waiting.agent) == ("agent", AGENTS[name])


@pytest.mark.parametrize("name", AGENTS)
async def test_the_turn_ends_as_waiting_and_a_warning_names_the_calls(shared: Path, name: str) -> None:
    agent = Replay(_bytes(shared, name), _bytes(shared, "adk_0.11.0_two_confirmations_resumed"))
    async with _chat(agent) as chat:
        assert await chat.send("delete both").wait() == "waiting"
        told = [str(warning) for warning in chat.warnings if warning.rule == "FT-2"]
        assert all(any(id in text for text in told) for id in AGENTS[name])
        await chat.send("never mind").wait()
        assert len(agent.inputs) == 2, "the user may go on"


@pytest.mark.parametrize("name", ["agno_3.1.10_two_confirmations"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_two_answers_go_out_in_one_run(shared: Path, name: str, order: tuple[int, int]) -> None:
    agent = Replay(_bytes(shared, name), _bytes(shared, "pydantic_ai_2.68.0_retry_after_partial_text"))
    async with _chat(agent) as chat:
        await chat.send("delete both").wait()
        first, second = (AGENTS[name][place] for place in order)
        assert chat.set_output(first, {"accepted": True}) is None
        turn = chat.set_output(second, {"accepted": True})
        assert turn is not None
        await turn.wait()
    answered = {m.tool_call_id: m.content for m in agent.inputs[1].messages if isinstance(m, ToolMessage)}
    assert set(answered) == set(AGENTS[name])
    assert all(json.loads(str(content)) == {"accepted": True} for content in answered.values())


async def test_one_answer_goes_out_when_the_application_says_so(shared: Path) -> None:
    agent = Replay(
        _bytes(shared, "adk_0.11.0_confirmation_default"), _bytes(shared, "adk_0.11.0_retry_after_partial_text")
    )
    async with _chat(agent) as chat:
        await chat.send("delete it").wait()
        turn = chat.set_output(AGENTS["adk_0.11.0_confirmation_default"][1], {"confirmed": True}, proceed=True)
        assert turn is not None
        await turn.wait()
    assert len(agent.inputs) == 2


async def test_interrupts_are_answered_together_and_wait_for_no_call_of_the_agents_own(shared: Path) -> None:
    agent = Replay(
        _bytes(shared, "adk_0.11.0_two_confirmations"), _bytes(shared, "adk_0.11.0_two_confirmations_resumed")
    )
    async with _chat(agent) as chat:
        assert await chat.send("delete both").wait() == "waiting"
        waiting = chat.waiting()
        assert waiting.who in ("application", "approver")
        assert len(chat.calls.interrupts) == 2
        turn = chat.resume({each.id: True for each in chat.calls.interrupts})
        assert turn is not None
        await turn.wait()
        assert len(agent.inputs[1].resume or ()) == 2
        assert chat.reducer.tool_calls["delete-1-1"].result is not None


@pytest.mark.parametrize("tool_is_ours", [True, False])
def test_calls_that_are_started_and_ended_twice_are_each_one_call(shared: Path, tool_is_ours: bool) -> None:
    tools = agui.Toolset()
    if tool_is_ours:
        tools.add({"name": "local_time", "description": "The time."}, effects=False)
    calls = _calls(shared, "agent_framework_1.7.0_two_frontend_calls", "lenient", tools)
    waiting = calls.waiting()
    assert waiting.who == ("application" if tool_is_ours else "agent")
    assert (waiting.application or waiting.agent) == ("time-3-0", "time-3-1")
    assert [view.args for view in calls.reducer.tool_calls.values()] == [{"zone": "UTC"}, {"zone": "CET"}]


@pytest.mark.parametrize("name", ["mastra_suspend_delete", "mastra_suspend_delete1"])
def test_an_interrupt_may_name_a_call_that_nobody_saw(shared: Path, name: str) -> None:
    calls = _calls(shared, name)
    assert calls.waiting().who in ("application", "approver")
    calls.resume({each.id: True for each in calls.interrupts})
    assert {entry.interrupt_id for entry in calls.next_input().resume or ()} == {each.id for each in calls.interrupts}


def test_a_run_that_says_nothing_leaves_nobody_waiting(shared: Path) -> None:
    calls = _calls(shared, "langgraph_0.0.47_default_interrupt_next_user_turn")
    assert calls.reducer.status == "finished"
    assert not calls.interrupts


RETRIES = ["adk_0.11.0_retry_after_partial_text", "pydantic_ai_2.68.0_retry_after_partial_text"]


@pytest.mark.parametrize("name", RETRIES)
@pytest.mark.parametrize("broken", ["crewai_1.0.0_model_error_mid_text", "llamaindex_model_error_connection_cut"])
async def test_a_retry_that_brings_no_message_warns(shared: Path, name: str, broken: str) -> None:
    agent = Replay(_bytes(shared, broken), _bytes(shared, name))
    async with _chat(agent) as chat:
        turn = chat.send("hello")
        with suppress(agui.AGUIError):
            await turn.wait()
        half = [message for message in chat.messages if message.role == "assistant"]
        assert half, "the run said something before it broke"
        await chat.retry().wait()
        assert [message.role for message in chat.messages] == ["user"], "the half text is gone"
        assert any("brought no message" in str(warning) for warning in chat.warnings)
        assert [message.role for message in agent.inputs[1].messages] == ["user"]


@pytest.mark.parametrize("policy", ["strict", "lenient"])
def test_every_stream_is_read(shared: Path, policy: Any) -> None:
    names = sorted(path.stem for path in (shared / "interop").glob("*.sse"))
    assert names
    for name in names:
        if policy == "strict" and name == "agent_framework_1.7.0_two_frontend_calls":
            with pytest.raises(agui.ProtocolError, match="STR-1"):
                _calls(shared, name, policy)
            continue
        calls = _calls(shared, name, policy)
        assert calls.reducer.run.run_id is not None
        assert calls.waiting()
