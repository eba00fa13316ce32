"""Agents that follow a script, and the events they say, for the tests of conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

import agui_core as agui
from support import events
from support.clocks import PATIENCE

__all__ = [
    "Script",
    "ask",
    "call",
    "chatting",
    "finish",
    "interrupted",
    "read",
    "run",
    "say",
    "settle",
    "texts",
    "tool_contents",
    "tools",
]

Wire = dict[str, Any]
Step = Wire | Exception | Callable[[], Awaitable[object]]
"""An event to send, an exception to raise, or something to await."""


class Script:
    """An agent. Each run takes the next list of steps; RUN_STARTED and a plain end are put around it, unless the list
    says these itself. What it was sent is in `inputs`; what it is in the middle of is counted in `active`.
    """

    def __init__(self, *runs: list[Step]) -> None:
        self.runs = list(runs)
        self.inputs: list[agui.RunAgentInput] = []
        self.active = 0

    def run(self, run_input: agui.RunAgentInput) -> AsyncIterator[Any]:
        self.inputs.append(run_input)
        return self._play(run_input, self.runs.pop(0))

    async def _play(self, run_input: agui.RunAgentInput, steps: list[Step]) -> AsyncIterator[Any]:
        ids = {"threadId": run_input.thread_id, "runId": run_input.run_id}
        types = [step["type"] if isinstance(step, dict) else "" for step in steps]
        self.active += 1
        try:
            if types[:1] != ["RUN_ERROR"]:
                yield {"type": "RUN_STARTED", **ids}
            for step in steps:
                if isinstance(step, Exception):
                    raise step
                if callable(step):
                    await step()
                else:
                    yield {**step, **ids} if step["type"] == "RUN_FINISHED" else step
            if not {"RUN_ERROR", "RUN_FINISHED"} & set(types):
                yield {"type": "RUN_FINISHED", **ids}
        finally:
            self.active -= 1


def run(*groups: Step | list[Step]) -> list[Step]:
    return [step for group in groups for step in (group if isinstance(group, list) else [group])]


def say(text: str, id: str = "m") -> list[Step]:
    return [*events.spoken(id, text)]


def call(id: str, name: str, arguments: str = "{}") -> list[Step]:
    return [*events.called(id, arguments, name=name)]


def finish(**fields: Any) -> Wire:
    return {"type": "RUN_FINISHED", **fields}


def interrupted(*interrupts: Wire) -> Wire:
    return finish(outcome={"type": "interrupt", "interrupts": list(interrupts)})


def ask(id: str, **fields: Any) -> Wire:
    return {"id": id, "reason": "input_required", **fields}


def texts(chat: agui.Conversation) -> list[tuple[str, Any]]:
    """Who said what."""
    return [(message.role, getattr(message, "content", None)) for message in chat.messages]


def tool_contents(run_input: agui.RunAgentInput) -> dict[str, Any]:
    """What the calls were answered, as it was sent."""
    return {message.tool_call_id: message.content for message in run_input.messages if message.role == "tool"}


async def settle(reached: Callable[[], object]) -> None:
    """Wait until something is so."""
    with anyio.fail_after(PATIENCE):
        while not reached():
            await anyio.lowlevel.checkpoint()


async def read(turn: agui.stream.Turn) -> tuple[list[str], Exception | None]:
    """The status at each update of a turn, and what it raised."""
    statuses: list[str] = []
    try:
        async for update in turn:
            statuses += [update.status]
    except Exception as error:
        return statuses, error
    return statuses, None


tools = agui.Toolset()


@tools.tool
async def look_up(word: str = "x") -> str:
    "Look something up."
    return f"about {word}"


@tools.tool(effects=True)
async def delete(path: str = "/") -> str:
    "Delete something."
    return f"deleted {path}"


tools.add({"name": "show", "description": "Show something on the screen."}, effects=False)


@asynccontextmanager
async def chatting(*runs: Any, **options: Any) -> AsyncIterator[tuple[agui.Conversation, Script]]:
    agent = Script(*runs)
    async with agui.Conversation(agent, tools, thread_id="t", interval=0, **options) as chat:
        yield chat, agent
    assert agent.active == 0
