"""Small streams of tool calls, and a thread that applies them."""

from __future__ import annotations

from typing import Any

from agui_core.protocol.messages import ToolMessage
from agui_core.reducer import Reducer
from agui_core.tools import Calls, Toolset
from support import events

Event = dict[str, Any]


def started(run_id: str) -> Event:
    return events.started(run_id, "t")


def finished(run_id: str, outcome: Any = None) -> Event:
    return events.finished(run_id, "t", **({} if outcome is None else {"outcome": outcome}))


def interrupted(run_id: str, *interrupts: Event) -> Event:
    return finished(run_id, {"type": "interrupt", "interrupts": list(interrupts)})


def interrupt(id: str, call: str | None = None, **fields: Any) -> Event:
    return {"id": id, "reason": "tool_call", **({} if call is None else {"toolCallId": call}), **fields}


def opened(id: str, name: str = "look_up", arguments: str = "{}", parent: str = "m") -> list[Event]:
    return events.called(id, arguments, name=name, end=False, parentMessageId=parent)


def call(id: str, name: str = "look_up", arguments: str = "{}", parent: str = "m") -> list[Event]:
    return events.called(id, arguments, name=name, parentMessageId=parent)


def result(id: str, content: str = "done", message: str | None = None) -> Event:
    return events.result(id, content, message or f"{id}-result")


def run(run_id: str, *groups: Event | list[Event], outcome: Any = None) -> list[Event]:
    """A whole run of single events and groups of them."""
    inner = [event for group in groups for event in (group if isinstance(group, list) else [group])]
    return [started(run_id), *inner, finished(run_id, outcome)]


def feed(reducer: Reducer, *groups: Event | list[Event]) -> None:
    for group in groups:
        for event in group if isinstance(group, list) else [group]:
            reducer.apply(event)


def thread(toolset: Toolset, *groups: Event | list[Event], **options: Any) -> Calls:
    """Calls that have offered the whole toolset to run `r`, and then saw these events."""
    calls = Calls(Reducer(), toolset, **options)
    calls.next_input(thread_id="t", run_id="r")
    feed(calls.reducer, *groups)
    return calls


def answers(calls: Calls) -> dict[str, ToolMessage]:
    """The tool messages by call, in order; each call has one."""
    found = [message for message in calls.reducer.messages if isinstance(message, ToolMessage)]
    by_call = {message.tool_call_id: message for message in found}
    assert len(by_call) == len(found), "a call was answered twice"
    return by_call


def kinds(calls: Calls) -> dict[str, str]:
    """What kind of answer each call got, in the order of the messages."""
    return {id: message.metadata["agui_core.answer"] for id, message in answers(calls).items()}


def one(function: Any, *, arguments: str = "{}", name: str = "tool", limit: int = 32, **options: Any) -> Calls:
    """A finished run that calls one tool."""
    tools = Toolset()
    tools.tool(name=name, **options)(function)
    return thread(tools, run("r", call("a", name, arguments)), limit=limit)


async def answer_of(calls: Calls) -> ToolMessage:
    assert await calls.answer() == ("a",)
    answer = answers(calls)["a"]
    assert answer.content, "content is never empty"
    return answer
