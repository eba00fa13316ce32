"""What people who do this job reported elsewhere: lost fields, odd schemas, loops after errors, numbers, dialects."""

from __future__ import annotations

from typing import Any

import pytest

import agui_core as agui
from support.call_streams import answers, call, kinds, run, thread
from support.chats import Script, say
from support.chats import call as said_call

pytestmark = pytest.mark.anyio

HELD: list[dict[str, Any]] = [
    {
        "id": "u1",
        "role": "user",
        "content": [
            {"type": "image", "source": {"type": "url", "value": "https://pic.example/a"}, "metadata": {"k": None}}
        ],
    },
    {"id": "q1", "role": "reasoning", "content": "hm", "encryptedValue": "S1"},
    {
        "id": "a1",
        "role": "assistant",
        "encryptedValue": "S2",
        "toolCalls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "disk", "arguments": '{"n": 1.50}'},
                "encryptedValue": "S3",
                "metadata": {"v": None},
            }
        ],
    },
    {
        "id": "x1",
        "role": "tool",
        "toolCallId": "c1",
        "content": "full",
        "error": "disk full",
        "encryptedValue": "S4",
        "metadata": {"z": [1]},
    },
]


def test_what_is_held_goes_back_as_it_came_in_4() -> None:
    reducer = agui.Reducer.restore(agui.Reducer(messages=HELD).checkpoint())
    calls = agui.Calls(reducer, agui.Toolset())
    assert agui.to_wire(calls.next_input(thread_id="t"))["messages"] == HELD
    assert calls.state("c1") == "output-error"


SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "$id": "https://tools.example/move.json",
    "type": "object",
    "definitions": {"place": {"type": "integer", "minimum": 0}},
    "properties": {"x": {"$ref": "#/definitions/place"}},
    "required": ["x"],
}


async def test_a_schema_goes_out_as_it_is_and_calls_are_checked_by_it() -> None:
    tools = agui.Toolset()
    tools.add({"name": "move", "description": "Move.", "parameters": SCHEMA}, lambda arguments: "moved", effects=False)
    wanted = [call(f"c{n}", "move", text) for n, text in enumerate(['{"x": 3}', '{"x": 4.0}', '{"x": -3}', "{}"])]
    calls = thread(tools, run("r", *wanted))
    await calls.answer()
    assert kinds(calls) == {"c0": "ok", "c1": "ok", "c2": "invalid", "c3": "invalid"}
    assert agui.to_wire(calls.next_input().tools)[0]["parameters"] == SCHEMA


async def test_the_tool_of_a_front_end_may_have_such_a_schema() -> None:
    tools = agui.Toolset()
    tools.add({"name": "move", "description": "Move.", "parameters": SCHEMA}, lambda arguments: "moved", effects=False)
    client = agui.Calls(agui.Reducer(messages=[{"id": "u", "role": "user", "content": "go"}]), tools)
    loop = agui.ToolLoop(lambda messages, offered: {"name": "move", "arguments": {"x": 1}}, agui.Toolset())
    async with loop.run(client.next_input(thread_id="t")) as live:
        async for event in live:
            client.reducer.apply(event)
    assert client.reducer.status == "finished"
    assert len(client.reducer.run.pending_tool_calls) == 1


async def test_an_error_after_the_results_ends_the_turn_and_retrying_runs_no_tool() -> None:
    tools, drawn = agui.Toolset(), []

    @tools.tool
    async def chart(symbol: str) -> str:
        """Show a chart."""
        drawn.append(symbol)
        return "shown"

    failed = {"type": "RUN_ERROR", "message": "throttled"}
    agent = Script(said_call("c1", "chart", '{"symbol": "X"}'), [failed], [failed], say("There."))
    async with agui.Conversation(agent, tools, interval=0) as chat:
        assert await chat.send("go").wait() == "broken"
        assert len(agent.inputs) == 2
        assert await chat.retry().wait() == "broken"
        assert await chat.retry().wait() == "done"
    assert drawn == ["X"]
    assert len({given.run_id for given in agent.inputs}) == 4
    assert [[message.role for message in given.messages] for given in agent.inputs[1:]] == [
        ["user", "assistant", "tool"]
    ] * 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"ms": 120000.0}', "ok"),
        ('{"ms": 1e3}', "ok"),
        ('{"ms": 1, "tags": [2.0], "limit": 5.0}', "ok"),
        ('{"ms": 9007199254740993}', "ok"),
        ('{"ms": 3.5}', "invalid"),
        ('{"ms": "3"}', "invalid"),
        ('{"ms": true}', "invalid"),
        ('{"ms": 1, "\\u006ds": 2}', "invalid"),
    ],
)
async def test_a_number_without_a_fraction_is_an_integer(text: str, kind: str) -> None:
    tools = agui.Toolset()

    @tools.tool
    async def wait(ms: int, tags: list[int] | None = None, limit: int | None = None) -> str:
        """Wait."""
        return repr((ms, tags, limit))

    calls = thread(tools, run("r", call("c", "wait", text)))
    await calls.answer()
    assert kinds(calls) == {"c": kind}
    if kind == "ok":
        assert "." not in str(answers(calls)["c"].content)


@pytest.mark.parametrize("give", [False, 0, "", [], {"a": None}, "yes"])
def test_a_question_in_the_old_form_is_answered_in_the_old_form(give: Any) -> None:
    calls = agui.Calls(agui.Reducer(middleware=(agui.langgraph_interrupts(),)), agui.Toolset())
    given = calls.next_input(thread_id="t")
    ids = {"threadId": given.thread_id, "runId": given.run_id}
    question = {"type": "CUSTOM", "name": "on_interrupt", "value": '{"q": 1}'}
    for event in ({"type": "RUN_STARTED", **ids}, question, {"type": "RUN_FINISHED", **ids}):
        calls.reducer.apply(event)
    (interrupt,) = calls.interrupts
    calls.resume([{"interruptId": interrupt.id, "status": "resolved", "payload": give}])
    sent = agui.to_wire(calls.next_input())
    assert sent["forwardedProps"] == {"command": {"resume": give}}
    assert "resume" not in sent
