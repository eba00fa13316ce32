"""An agent served by `agui.serve`. It keeps nothing between runs: what it needs is in the input."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import zip_longest
from typing import Any

from talking import asked, delete_note, pieces, weather

import agui_core as agui

__all__ = ["agent"]

Event = dict[str, Any] | agui.Event


async def agent(given: agui.RunAgentInput) -> AsyncIterator[Event]:
    """One run. Says in the state which word it was asked and how many calls it ran."""
    ids = {"threadId": given.thread_id, "runId": given.run_id}
    reducer = agui.Reducer.from_input(given)
    users = [index for index, message in enumerate(given.messages) if message.role == "user"]
    word = str(given.messages[users[-1]].content)
    since = given.messages[users[-1] + 1 :]
    results = [str(message.content) for message in since if message.role == "tool"]
    waiting = [view for view in reducer.tool_calls.values() if view.result is None]
    yield {"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"}
    yield {"type": "STATE_SNAPSHOT", "snapshot": {"word": word, "ran": 0}}
    if given.resume is not agui.UNSET:
        verdicts = agui.decisions(given.resume, agui.interrupt_for(*waiting))
        for view in waiting:
            verdict = verdicts[f"{view.id}:approval"]
            results.append(delete_note(**(verdict.edited_args or view.args)) if verdict.approved else "no")
            yield _result(view.id, results[-1])
    step = asked(word, len(users), results)
    reducer.apply({"type": "RUN_STARTED", **ids})
    for event in _calls(step.calls, parent=f"asking-{len(users)}"):
        reducer.apply(event)
        yield event
    names = {name for _, name, _ in step.calls}
    if "delete_note" in names:
        outcome = agui.interrupt_for(*(reducer.tool_calls[id] for id, _, _ in step.calls))
        yield agui.events.RunFinishedEvent(thread_id=given.thread_id, run_id=given.run_id, outcome=outcome)
        return
    if "weather" in names:
        for id, _, args in step.calls:
            results.append(weather(**args))
            yield _result(id, results[-1])
            yield {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/ran", "value": len(results)}]}
        step = asked(word, len(users), results)
    if not step.calls:
        message = {"messageId": f"saying-{len(users)}"}
        yield {"type": "TEXT_MESSAGE_START", **message, "role": "assistant"}
        for delta in pieces(step.text):
            yield {"type": "TEXT_MESSAGE_CONTENT", **message, "delta": delta}
        yield {"type": "TEXT_MESSAGE_END", **message}
    yield {"type": "RUN_FINISHED", **ids}


def _result(id: str, content: str) -> Event:
    return {"type": "TOOL_CALL_RESULT", "messageId": f"{id}-result", "toolCallId": id, "content": content}


def _calls(calls: list[Any], parent: str) -> list[Event]:
    """The calls, growing side by side."""
    events: list[Event] = [
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name, "parentMessageId": parent}
        for id, name, _ in calls
    ]
    for deltas in zip_longest(*(pieces(json.dumps(args)) for _, _, args in calls)):
        pairs = zip(calls, deltas, strict=True)
        events += [{"type": "TOOL_CALL_ARGS", "toolCallId": call[0], "delta": delta} for call, delta in pairs if delta]
    return [*events, *({"type": "TOOL_CALL_END", "toolCallId": id} for id, _, _ in calls)]
