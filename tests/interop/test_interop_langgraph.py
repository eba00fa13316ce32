"""Our client and LangGraph agents served by ag-ui-langgraph, with a chat model that is a function.

Both forms of its interrupts: the outcome of the run, and the older `on_interrupt` with `forwardedProps.command.resume`.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any

import pytest
from ag_ui_langgraph import LangGraphAgent, add_langgraph_fastapi_endpoint
from agent_tests import AgentTests
from fastapi import FastAPI
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, Send, interrupt
from talking import Talk, asked, delete_note, hosted, pieces, weather

import agui_core as agui


class Model(BaseChatModel):
    """What the model does next, its calls' arguments taking turns."""

    @property
    def _llm_type(self) -> str:
        return "function"

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        raise RuntimeError("this model only streams")

    async def _astream(self, messages: list[BaseMessage], *args: Any, **options: Any) -> AsyncIterator[Any]:
        users = [index for index, message in enumerate(messages) if message.type == "human"]
        results = [str(message.content) for message in messages[users[-1] :] if message.type == "tool"]
        step = asked(str(messages[users[-1]].content), len(users), results)
        for delta in pieces(step.text):
            yield ChatGenerationChunk(message=AIMessageChunk(content=delta))
        for index, (id, name, args) in enumerate(step.calls):
            for number, delta in enumerate(pieces(json.dumps(args))):
                head = {"id": id, "name": name} if number == 0 else {"id": None, "name": None}
                chunk = {"index": index, "args": delta, "type": "tool_call_chunk", **head}
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk]))


async def think(state: MessagesState) -> dict[str, Any]:
    return {"messages": [await Model().ainvoke(state["messages"])]}


async def delete_approved(path: str, id: Annotated[str, InjectedToolCallId]) -> str:
    """Delete a note, when a person has agreed."""
    answer = interrupt({"reason": "tool_call", "message": f"Delete {path}?", "toolCallId": id})
    if not (isinstance(answer, dict) and answer.get("approved") is True):
        return "no"
    return delete_note(**(answer.get("editedArgs") or {"path": path}))


act = ToolNode([tool(weather), tool("delete_note")(delete_approved)])


def whose(state: MessagesState) -> str | list[Send]:
    """The calls that are the agent's run side by side."""
    last = state["messages"][-1]
    calls: Sequence[Any] = last.tool_calls if isinstance(last, AIMessage) else ()
    return [Send("act", [call]) for call in calls if call["name"] in ("weather", "delete_note")] or END


class SideBySide(LangGraphAgent):
    """Several interrupts at a time are, in the package, a subclass's to answer."""

    def _build_command_from_agui_resume(self, entries: list[Any], **options: Any) -> Command[Any]:
        return Command(resume={entry.interrupt_id: entry.payload for entry in entries})


def served(**options: Any) -> FastAPI:
    graph: Any = StateGraph(MessagesState)
    graph.add_node("think", think).add_node("act", act).add_edge(START, "think").add_edge("act", "think")
    graph.add_conditional_edges("think", whose, ["act", END])
    app = FastAPI()
    agent = SideBySide(name="agent", graph=graph.compile(checkpointer=InMemorySaver()), **options)
    add_langgraph_fastapi_endpoint(app, agent, "/agent")
    return app


class TestLangGraph(AgentTests):
    @pytest.fixture
    def talk(self) -> Iterator[Talk]:
        with hosted(served(emit_interrupt_outcome=True)) as url:
            yield Talk(url)


class TestLangGraphOfOld(AgentTests):
    @pytest.fixture
    def talk(self) -> Iterator[Talk]:
        with hosted(served()) as url:
            yield Talk(url, middleware=[agui.langgraph_interrupts()])
