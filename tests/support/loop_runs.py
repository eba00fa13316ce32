"""Runs of a `ToolLoop` for tests: inputs, scripted decisions, and what came of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import agui_core as agui
from agui_core.protocol import messages as m
from agui_core.protocol.run import ResumeEntry
from agui_core.tools import Toolset
from agui_core.tools.loop import ToolLoop
from agui_core.tools.loop_result import LoopResult

__all__ = ["Went", "adding", "again", "call", "entry", "given", "go", "scripted"]


def given(*messages: Any, run_id: str = "r", question: str = "go", **fields: Any) -> agui.RunAgentInput:
    asked = m.UserMessage(id="u", content=question)
    return agui.RunAgentInput(thread_id="t", run_id=run_id, messages=(asked, *messages), **fields)


def scripted(*decisions: Any) -> Callable[..., Any]:
    """Decides one after the other; one that is a function is called with the messages. The last one is repeated."""
    left = list(decisions)

    async def decide(messages: Any, tools: Any) -> Any:
        decision = left.pop(0) if len(left) > 1 else left[0]
        return decision(messages) if callable(decision) else decision

    return decide


def call(name: str = "add", id: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, **({} if id is None else {"id": id})}


def adding(**options: Any) -> tuple[Toolset, list[Any]]:
    """A toolset with one tool, and the sums that it was asked for."""
    tools, sums = Toolset(), []

    @tools.tool(name="add", **options)
    async def add(a: int, b: int = 0) -> int:
        sums.append((a, b))
        return a + b

    return tools, sums


class Went:
    """What a run gave, folded by a strict reducer."""

    def __init__(self, run_input: agui.RunAgentInput) -> None:
        self.reducer = agui.Reducer.from_input(run_input)
        self.events: list[Any] = []
        self.result: LoopResult

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def statuses(self) -> list[str]:
        return [observation.status for observation in self.result.tool_results]

    @property
    def contents(self) -> list[Any]:
        return [message.content for message in self.reducer.messages if isinstance(message, m.ToolMessage)]


async def go(loop: ToolLoop, run_input: agui.RunAgentInput | None = None) -> Went:
    run_input = run_input or given()
    went = Went(run_input)
    async with loop.run(run_input) as run:
        async for event in run:
            went.reducer.apply(event)
            went.events.append(event)
            assert (run.result is not None) == (event.type in ("RUN_FINISHED", "RUN_ERROR")) or run.result
    assert run.result is not None
    went.result = run.result
    assert went.reducer.warnings == ()
    return went


def again(went: Went, *entries: ResumeEntry, run_id: str = "r2", **fields: Any) -> agui.RunAgentInput:
    """The input that goes on from there."""
    messages = tuple(message for message in went.reducer.messages if message.id != "u")
    return given(*messages, run_id=run_id, **fields, **({"resume": entries} if entries else {}))


def entry(payload: Any = None, id: str = "c:approval", status: Any = "resolved") -> ResumeEntry:
    return ResumeEntry(interrupt_id=id, status=status, payload=agui.UNSET if payload is None else payload)
