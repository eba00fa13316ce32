"""Our client and an agent written with the official Python package: its models read our input, its encoder writes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

import pytest
from ag_ui import core
from ag_ui.encoder import EventEncoder
from agent_tests import AgentTests
from talking import Talk, asked, delete_note, hosted, pieces, weather

OWN = {"weather": weather, "delete_note": delete_note}


def agent(given: core.RunAgentInput) -> Iterator[core.BaseEvent]:
    """One run: say something, or make calls that stream at the same time, answered here, by the application, or when a
    person has approved."""
    boundary = {"thread_id": given.thread_id, "run_id": given.run_id}
    yield core.RunStartedEvent(**boundary)
    users = [index for index, message in enumerate(given.messages) if message.role == "user"]
    since = given.messages[users[-1] + 1 :]
    results = [str(message.content) for message in since if message.role == "tool"]
    for entry in given.resume or []:
        call_id = entry.interrupt_id
        args = next(call for message in since for call in message.tool_calls or [] if call.id == call_id)
        result = _decided(entry, args.function.arguments)
        results.append(result)
        yield core.ToolCallResultEvent(message_id=f"{call_id}-result", tool_call_id=call_id, content=result)
    word = str(given.messages[users[-1]].content)
    step = asked(word, len(users), results)
    yield from _calls(step.calls, parent=f"asking-{len(users)}")
    if step.calls and step.calls[0][1] == "delete_note":
        interrupts = [core.Interrupt(id=id, reason="tool_call", tool_call_id=id) for id, _, _ in step.calls]
        outcome = core.RunFinishedInterruptOutcome(type="interrupt", interrupts=interrupts)
        yield core.RunFinishedEvent(**boundary, outcome=outcome)
        return
    if step.calls and step.calls[0][1] == "weather":
        for id, _, args in step.calls:
            results.append(weather(**args))
            yield core.ToolCallResultEvent(message_id=f"{id}-result", tool_call_id=id, content=results[-1])
        step = asked(word, len(users), results)
    if step.text:
        yield core.TextMessageStartEvent(message_id=f"saying-{len(users)}", role="assistant")
        for delta in pieces(step.text):
            yield core.TextMessageContentEvent(message_id=f"saying-{len(users)}", delta=delta)
        yield core.TextMessageEndEvent(message_id=f"saying-{len(users)}")
    yield core.RunFinishedEvent(**boundary)


def _decided(entry: core.ResumeEntry, arguments: str) -> str:
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    if payload.get("approved") is not True:
        return "no"
    edited = payload.get("editedArgs")
    return delete_note(**(edited or json.loads(arguments)))


def _calls(calls: list[Any], parent: str) -> Iterator[core.BaseEvent]:
    for id, name, _ in calls:
        yield core.ToolCallStartEvent(tool_call_id=id, tool_call_name=name, parent_message_id=parent)
    for deltas in zip_longest(*(pieces(json.dumps(args)) for _, _, args in calls)):
        for (id, _, _), delta in zip(calls, deltas, strict=True):
            if delta:
                yield core.ToolCallArgsEvent(tool_call_id=id, delta=delta)
    for id, _, _ in calls:
        yield core.ToolCallEndEvent(tool_call_id=id)


async def app(scope: Any, receive: Any, send: Any) -> None:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    given = core.RunAgentInput.model_validate_json(body)
    accept = dict(scope["headers"])[b"accept"].decode()
    encoder = EventEncoder(accept=accept)
    headers = [(b"content-type", encoder.get_content_type().encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    for event in agent(given):
        await send({"type": "http.response.body", "body": encoder.encode(event).encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def talk() -> Iterator[Talk]:
    with hosted(app) as url:
        yield Talk(url)


class TestEncoder(AgentTests):
    at_once = 2
