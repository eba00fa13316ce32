"""The demo's assistant as our `ToolLoop` and as a LangGraph graph: the same conversation, over the same protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from fastapi import FastAPI

import agui_core as agui
from agui_core.cli import demo_agent
from agui_core.protocol import messages as m
from agui_core.stream import HttpAgent, serve
from agui_core.tools import Calls, Toolset
from agui_core.tools.loop import ToolLoop
from support.langgraph_assistant import assistant_graph

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.parametrize("anyio_backend", ["asyncio"]),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # what these packages say to each other
]


def langgraph(toolset: Toolset, decide: Callable[..., Any]) -> Any:
    app = FastAPI()
    agent = LangGraphAgent(
        name="assistant",
        graph=assistant_graph(toolset, decide),
        config={"recursion_limit": 100},
        emit_interrupt_outcome=True,
    )
    add_langgraph_fastapi_endpoint(app, agent, "/")
    return app


def tool_loop(toolset: Toolset, decide: Callable[..., Any]) -> Any:
    return serve(ToolLoop(decide, toolset).run)


async def talk(app: Any, question: str, *answers: Any) -> agui.Reducer:
    """Ask, and answer what the agent wants to have confirmed; every run goes over HTTP."""
    reducer = agui.Reducer(messages=[{"role": "user", "id": "u", "content": question}])
    calls = Calls(reducer, Toolset())
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app)) as client:
        agent = HttpAgent("http://agent/", client=client)
        for answer in (None, *answers):
            if answer is not None:
                (interrupt,) = calls.interrupts
                assert (interrupt.reason, interrupt.message) == ("tool_call", "Approve save_note?")
                calls.resume([{"interruptId": interrupt.id, "status": "resolved", "payload": answer}])
            async with agent.run(calls.next_input(thread_id="t"), reducer=reducer) as run:
                async for _ in run.updates(0):
                    pass
    return reducer


def conversation(reducer: agui.Reducer) -> list[Any]:
    """Roles, texts, call names, parsed arguments and results; ids and metadata are each agent's own."""
    names = {id: call.name for id, call in reducer.tool_calls.items()}
    told: list[Any] = []
    for message in reducer.messages:
        if isinstance(message, m.ToolMessage):
            told.append((message.role, names[message.tool_call_id], message.content))
        elif isinstance(message, m.AssistantMessage):
            views = [reducer.tool_calls[call.id] for call in message.tool_calls or ()]
            told.append((message.role, message.content or "", [(view.name, view.args) for view in views]))
        else:
            told.append((message.role, getattr(message, "content", None)))
    return told


def with_notes() -> tuple[Toolset, list[str]]:
    """The assistant's tools and one more, which asks."""
    notes: list[str] = []
    tools = Toolset()

    @tools.tool(effects=True)
    async def save_note(text: str) -> str:
        """Save a note."""
        notes.append(text)
        return f"saved as number {len(notes)}"

    return demo_agent.toolset | tools, notes


def decide_with_notes(messages: Any, tools: Any) -> Any:
    results = [message.content for message in messages if message.role == "tool"]
    steps: list[Any] = [
        [
            {"name": "get_stock_price", "arguments": {"symbol": "AAPL"}},
            {"name": "get_stock_price", "arguments": {"symbol": 5}},
            {"name": "sell_everything", "arguments": {}},
        ],
        None,
        None,
        {"name": "save_note", "arguments": {"text": "AAPL is at 178.15"}},
    ]
    return steps[len(results)] if len(results) < len(steps) else f"The note: {results[-1]}"


def decide_to_go_on(messages: Any, tools: Any) -> Any:
    results = [message for message in messages if message.role == "tool"]
    return {"name": "calculate_expression", "arguments": {"expression": f"1 + {len(results)}"}}


@pytest.mark.parametrize(
    "question",
    [
        "What is the gain on 100 AAPL shares bought at 150?",
        "What is the price of MSFT?",
        "What is the price of XYZ?",
        "What is 1 / 0?",
        "What is an interrupt?",
        "xyzzy",
    ],
)
async def test_the_same_conversation(question: str) -> None:
    reducers = [await talk(make(demo_agent.toolset, demo_agent.decide), question) for make in (tool_loop, langgraph)]
    ours, theirs = map(conversation, reducers)
    assert ours == theirs
    assert len(ours) >= 4
    assert [reducer.status for reducer in reducers] == ["finished", "finished"]


@pytest.mark.parametrize("answer", [{"approved": True}, {"approved": False, "reason": "not now"}, {"approved": False}])
async def test_the_same_conversation_with_a_person_in_it(answer: Any) -> None:
    told = []
    for make in (tool_loop, langgraph):
        tools, notes = with_notes()
        reducer = await talk(make(tools, decide_with_notes), "Note the price.", answer)
        assert notes == (["AAPL is at 178.15"] if answer["approved"] else [])
        assert reducer.status == "finished"
        told.append(conversation(reducer))
    assert told[0] == told[1]
    assert [entry[0] for entry in told[0]] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]


async def test_the_same_conversation_up_to_the_cap() -> None:
    reducers = [await talk(make(demo_agent.toolset, decide_to_go_on), "Go on.") for make in (tool_loop, langgraph)]
    ours, theirs = map(conversation, reducers)
    assert ours == theirs
    assert len(ours) == 1 + 2 * 9
    assert ours[-1][2] == "Not run: no more than 8 tool calls may be made."
