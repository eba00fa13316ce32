"""An assistant with tools as a LangGraph graph: the loop of `ToolLoop`, one node for each thing it does."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Annotated, Any

import msgspec
from langchain_core.language_models.chat_models import BaseChatModel, generate_from_stream
from langchain_core.messages import AIMessageChunk, AnyMessage, HumanMessage, ToolMessage
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, ToolException
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import interrupt
from pydantic import Field
from typing_extensions import TypedDict

from agui_core.protocol import messages as m
from agui_core.tools import InvalidArguments, ToolContext, ToolError, Toolset, interrupt_for

__all__ = ["assistant_graph"]

MOST_CALLS = 8


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    calls: list[dict[str, Any]]
    """Of the last decision, those that have no observation yet."""
    attempts: int
    arguments: dict[str, Any]
    problem: str
    observation: ToolMessage
    step: str
    """What the node before found out; the edges go by it."""
    status: str


class RulesModel(BaseChatModel):
    """A chat model that streams what a function of the messages decides."""

    decide: Callable[..., Any]

    @property
    def _llm_type(self) -> str:
        return "rules"

    def _stream(self, messages: list[Any], *given: Any, **options: Any) -> Iterator[ChatGenerationChunk]:
        decision = self.decide([our for message in messages for our in ours(message)], ())
        id = f"ai-{len(messages)}"
        if isinstance(decision, str):
            for piece in re.findall(r"\S+\s*", decision):
                yield ChatGenerationChunk(message=AIMessageChunk(content=piece, id=id))
            return
        for index, call in enumerate([decision] if isinstance(decision, dict) else decision):
            arguments = json.dumps(call["arguments"])
            for name, piece in ((call["name"], ""), (None, arguments[:5]), (None, arguments[5:])):
                chunk = tool_call_chunk(
                    name=name, args=piece, id=None if name is None else f"call-{len(messages)}-{index}", index=index
                )
                yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[chunk], id=id))

    def _generate(self, messages: list[Any], *given: Any, **options: Any) -> ChatResult:
        return generate_from_stream(self._stream(messages))


class Acting(BaseTool):
    """One call as LangChain sees it: what `act` gives or raises becomes its tool message."""

    act: Callable[[], Awaitable[str]]
    description: str = ""
    args_schema: Any = Field(default_factory=lambda: {"type": "object", "properties": {}})
    handle_tool_error: bool = True

    def _run(self, **arguments: Any) -> str:
        raise AssertionError("the graph is async")

    async def _arun(self, **arguments: Any) -> str:
        return await self.act()


async def observe(call: Any, act: Callable[[], Awaitable[str]]) -> ToolMessage:
    message: ToolMessage = await Acting(name=call["name"], act=act).ainvoke({**call, "type": "tool_call"})
    message.id = call["id"]  # the id under which its event was sent
    return message


def ours(message: AnyMessage) -> Iterator[m.Message]:
    """What the rules look at, as our structs."""
    if isinstance(message, HumanMessage):
        yield m.UserMessage(id=message.id or "", content=str(message.content))
    elif isinstance(message, ToolMessage):
        kind = "ok" if message.status == "success" else "error"
        yield m.ToolMessage(
            id=message.id or "",
            tool_call_id=message.tool_call_id,
            content=str(message.content),
            metadata={"agui_core.answer": kind},
        )


def assistant_graph(toolset: Toolset, decide: Callable[..., Any]) -> Any:
    """The compiled graph."""
    model = RulesModel(decide=decide)

    def prepare_input(state: State) -> State:
        return {"calls": [], "attempts": 0, "status": ""}

    async def decide_next_action(state: State) -> State:
        return {"messages": [await model.ainvoke(state["messages"])]}

    def normalize_model_decision(state: State) -> State:
        message: Any = state["messages"][-1]
        if message.tool_calls:
            return {"calls": message.tool_calls, "step": "validate_tool_call"}
        return {"step": "synthesize_response" if message.content else "handle_failure"}

    def validate_tool_call(state: State) -> State:
        call, attempts = state["calls"][0], state["attempts"] + 1
        tool = toolset.get(call["name"])
        problem = ""
        if attempts > MOST_CALLS:
            problem = f"Not run: no more than {MOST_CALLS} tool calls may be made."
        elif tool is None:
            problem = f"Not run: there is no tool named {call['name']} here."
        else:
            try:
                arguments = tool.convert(call["args"])
            except InvalidArguments as error:
                problem = f"Not run: {error.message}"
        if problem or tool is None:
            return {"attempts": attempts, "problem": problem, "step": "handle_tool_error"}
        step = {"run": "execute_tool", "ask": "request_confirmation"}[tool.judge(arguments)]
        return {"attempts": attempts, "arguments": arguments, "step": step}

    def request_confirmation(state: State) -> State:
        call = state["calls"][0]
        function = m.FunctionCall(name=call["name"], arguments=json.dumps(call["args"]))
        (asked,) = interrupt_for(
            m.ToolCall(id=call["id"], type="function", function=function), tools=toolset
        ).interrupts
        answer = interrupt({name: value for name, value in msgspec.to_builtins(asked).items() if name != "id"})
        if isinstance(answer, dict) and answer.get("approved") is True:
            return {"step": "execute_tool"}
        denial = "Denied: a person did not allow this call; it was not run."
        reason = answer.get("reason") if isinstance(answer, dict) else None
        return {"problem": f"{denial} Reason: {reason}" if reason else denial, "step": "handle_tool_error"}

    async def execute_tool(state: State) -> State:
        call = state["calls"][0]
        tool = toolset[call["name"]]

        async def act() -> str:
            given = tool.bind(state["arguments"], ToolContext(call_id=call["id"], thread_id="", run_id=""))()
            result = await given if tool.is_async else given
            return result if isinstance(result, str) else msgspec.json.encode(result).decode()

        try:
            return {"observation": await observe(call, act), "step": "record_observation"}
        except ToolError as error:
            return {"problem": error.model_text, "step": "handle_tool_error"}

    async def handle_tool_error(state: State) -> State:
        async def act() -> str:
            raise ToolException(state["problem"])

        return {"observation": await observe(state["calls"][0], act)}

    def record_observation(state: State) -> State:
        rest, over = state["calls"][1:], state["attempts"] > MOST_CALLS
        step = "validate_tool_call" if rest else "handle_failure" if over else "decide_next_action"
        return {"messages": [state["observation"]], "calls": rest, "step": step}

    def synthesize_response(state: State) -> State:
        return {"status": "ok"}

    def handle_failure(state: State) -> State:
        return {"status": "needs_review"}

    nodes: tuple[Callable[..., Any], ...] = (
        prepare_input,
        decide_next_action,
        normalize_model_decision,
        validate_tool_call,
        request_confirmation,
        execute_tool,
        record_observation,
        handle_tool_error,
        synthesize_response,
        handle_failure,
    )
    graph: Any = StateGraph(State)
    for node in nodes:
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "prepare_input")
    graph.add_edge("prepare_input", "decide_next_action")
    graph.add_edge("decide_next_action", "normalize_model_decision")
    graph.add_edge("handle_tool_error", "record_observation")
    graph.add_edge("synthesize_response", END)
    graph.add_edge("handle_failure", END)
    branches = {
        "normalize_model_decision": ["validate_tool_call", "synthesize_response", "handle_failure"],
        "validate_tool_call": ["request_confirmation", "execute_tool", "handle_tool_error"],
        "request_confirmation": ["execute_tool", "handle_tool_error"],
        "execute_tool": ["record_observation", "handle_tool_error"],
        "record_observation": ["validate_tool_call", "decide_next_action", "handle_failure"],
    }
    for node_name, targets in branches.items():
        graph.add_conditional_edges(node_name, lambda state: state["step"], targets)
    return graph.compile(checkpointer=InMemorySaver())
