"""Our client and agents served by Microsoft Agent Framework's AG-UI package, with a chat client that is a function."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

import pytest
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    tool,
)
from agent_framework_ag_ui import AgentFrameworkAgent, add_agent_framework_fastapi_endpoint
from agent_tests import AgentTests
from fastapi import FastAPI
from talking import CALLS, SAID, Talk, asked, delete_note, hosted, pieces, weather


class Model(FunctionInvocationLayer[Any], BaseChatClient[Any]):
    """What the model does next, its calls' arguments cut into deltas."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **more: Any
    ) -> Any:
        assert stream, "this model only streams"
        return self._build_response_stream(self._updates(messages))

    async def _updates(self, messages: Sequence[Message]) -> AsyncIterator[ChatResponseUpdate]:
        users = [index for index, message in enumerate(messages) if message.role == "user"]
        contents = [content for message in messages[users[-1] :] for content in message.contents]
        results = [str(content.result) for content in contents if content.type == "function_result"]
        step = asked(messages[users[-1]].text, len(users), results)
        for delta in pieces(step.text):
            yield ChatResponseUpdate(role="assistant", contents=[Content.from_text(delta)])
        for id, name, args in step.calls:
            for number, delta in enumerate(pieces(json.dumps(args))):
                call = Content.from_function_call(id, name if number == 0 else "", arguments=delta)
                yield ChatResponseUpdate(role="assistant", contents=[call])


def served(**options: Any) -> FastAPI:
    tools = [tool(weather), tool(approval_mode="always_require")(delete_note)]
    agent = AgentFrameworkAgent(Agent(client=Model(), name="agent", tools=tools), **options)
    app = FastAPI()
    add_agent_framework_fastapi_endpoint(app, agent, "/agent", single_user=True)
    return app


class TestAgentFramework(AgentTests):
    """Leniently: several calls of ours at a time are started and ended twice by the package, and then stand twice in
    its snapshot."""

    rules = ("STR-1", "STR-2", "TOOL-3", "OPEN-13")
    at_once = 2
    denied = "Error: Tool call invocation was rejected by user."

    @pytest.fixture
    def talk(self) -> Iterator[Talk]:
        with hosted(served(require_confirmation=False)) as url:
            yield Talk(url, policy="lenient")


@pytest.mark.anyio
@pytest.mark.parametrize("confirmation", [False, True])
async def test_all_else_is_read_strictly(confirmation: bool) -> None:
    """With `require_confirmation`, the default, a call to a tool that nobody has stands beside each interrupt; what the
    model is told of it comes first in what it says.
    """
    with hosted(served(require_confirmation=confirmation)) as url:
        talk = Talk(url)
        for word in ("hello", "weather", "delete", "weather"):
            assert await talk.say(word) == "done"
            assert talk.said.endswith(SAID.get(word, "you said hello"))
        assert talk.statuses == ["finished", "finished", "interrupted", "finished", "finished"]
        assert talk.asked == CALLS["delete"]
