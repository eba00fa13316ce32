"""Our client and agents served by pydantic-ai's AG-UI adapter, with a model that is a function."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Sequence

import pytest
from agent_tests import AgentTests
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from talking import Talk, asked, delete_note, hosted, pieces, weather


async def model(messages: Sequence[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
    """What the model does next, its calls' arguments taking turns."""
    parts = [part for message in messages for part in message.parts]
    users = [index for index, part in enumerate(parts) if isinstance(part, UserPromptPart)]
    results = [str(part.content) for part in parts[users[-1] :] if isinstance(part, ToolReturnPart)]
    step = asked(str(parts[users[-1]].content), len(users), results)
    for delta in pieces(step.text):
        yield delta
    for index, (id, name, args) in enumerate(step.calls):
        yield {index: DeltaToolCall(name=name, json_args="", tool_call_id=id)}
        for delta in pieces(json.dumps(args)):
            yield {index: DeltaToolCall(json_args=delta)}


agent = Agent(FunctionModel(stream_function=model), output_type=[str, DeferredToolRequests])
agent.tool_plain(weather)
agent.tool_plain(requires_approval=True)(delete_note)


async def endpoint(request: Request) -> Response:
    return await AGUIAdapter.dispatch_request(request, agent=agent)


@pytest.fixture
def talk() -> Iterator[Talk]:
    with hosted(Starlette(routes=[Route("/agent", endpoint, methods=["POST"])])) as url:
        yield Talk(url)


class TestPydanticAI(AgentTests):
    denied = "The tool call was denied."
