"""`ToolLoop`: an agent's bounded loop of deciding and calling tools, as AG-UI events.

    loop = agui.ToolLoop(decide, toolset)
    async with loop.run(run_input) as run:
        async for event in run:
            send(event)
    run.result

`decide(messages, tools)` is any function, sync or async, that gives a final answer or one or more calls (`decision`
lists the forms). The loop runs only calls of registered tools with arguments that fit, and gives the model the result
of each, in order. Timeouts, threads, texts of failures and approval are those of `Calls`.

It keeps nothing between runs. Where a person has to agree, the run ends with an interrupt. The next run input, with the
client's history and `resume` entries, goes on from there. Needs anyio only once a run begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agui_core._options import COUNT, Option, check_options
from agui_core.protocol.run import RunAgentInput
from agui_core.tools.executor_settings import ExecutorSettings
from agui_core.tools.loop_plan import Decide, LoopPlan
from agui_core.tools.result_size import RESULT_BYTES
from agui_core.tools.signature import is_async
from agui_core.tools.toolset import Toolset

if TYPE_CHECKING:
    from agui_core.tools.loop_run import LoopRun

__all__ = ["ToolLoop"]

_OPTIONS = {
    "decide": Option("a function of messages and tools", (Callable,)),
    "toolset": Option("a Toolset", (Toolset,)),
    "max_tool_calls": COUNT,
}


class ToolLoop:
    """An agent's bounded loop of deciding and calling tools. Holds no run, so that one serves any number of them at a
    time.

    `decide`: gives the next step; see the module.
    `toolset`: the agent's own tools.
    `max_tool_calls`: calls that are attempted between two user messages; invalid and denied ones count. The same call,
    asked for the third time, is not run and ends the loop too.
    `limit`: calls that run at a time in one run.
    `threads`, `timeout`, `expose_errors`, `result_bytes`: those of `Calls`.

    Raises: `TypeError` or `ValueError` for an option that does not fit.
    """

    def __init__(
        self,
        decide: Decide,
        toolset: Toolset,
        *,
        max_tool_calls: int = 8,
        limit: int = 32,
        threads: int | None = None,
        timeout: float | None = None,
        expose_errors: bool = False,
        result_bytes: int | None = RESULT_BYTES,
    ) -> None:
        check_options(_OPTIONS, decide=decide, toolset=toolset, max_tool_calls=max_tool_calls)
        self.toolset = toolset
        """The agent's own tools. Tools may be added at any time."""
        self._plan = LoopPlan(
            decide=decide,
            decides_async=is_async(decide),
            toolset=toolset,
            max_tool_calls=max_tool_calls,
            settings=ExecutorSettings(limit, threads, timeout, expose_errors, result_bytes).checked(),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.toolset!r}, at most {self._plan.max_tool_calls} calls>"

    def run(self, run_input: RunAgentInput) -> LoopRun:
        """One run: an async context manager and an async iterable of event structs. Fits `serve` as a handler.

        All work happens in the task that iterates. The model may call the tools of the input too; the client runs
        these. A name that both have means the toolset's.
        """
        from agui_core.tools.loop_run import LoopRun  # anyio is loaded when something async is touched

        return LoopRun(self._plan, run_input)
