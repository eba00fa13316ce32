"""Tools that the application runs: declaring, answering, approving, resuming, and the bounded loop.

Start with `calls`: `Calls` stands between a reducer and the tools. `ToolLoop` does the same for an agent.

    tool, toolset      `Tool`, `Toolset`; `signature` reads functions, `json_arguments` the text of a call;
                       `json_schema` checks it, within `schema_cost` and `json_value_cost`
    context, errors    what a running tool knows of its call, and what it raises
    calls              `Calls`: waiting calls, approval, answers, the next input (`run_input`)
    tracker            `CallTracker`: decisions on the last run's calls; `persisted` is its part in a checkpoint
    states, run_view   the state of each call, and the last run as the reducer tells it
    approval           requests, verdicts, digests; `verdicts` applies verdicts, `effects` lets nothing run twice
    interrupts         questions that the next run answers; `langgraph` those that come as custom events
    executor           runs calls side by side, by `executor_settings`; `concurrency` counts threads, `outcomes` words
                       the answers, `result_size` cuts them
    loop               `ToolLoop`; `loop_plan` is what its runs need, `loop_run` one run, `decision` reads the model,
                       `loop_result` sums up
"""

from __future__ import annotations

from agui_core.tools.approval import ApprovalRequest, Verdict
from agui_core.tools.calls import Calls, Ending
from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError, InvalidArguments, ToolError
from agui_core.tools.interrupts import check_resume, decisions, interrupt_for
from agui_core.tools.langgraph import langgraph_interrupts
from agui_core.tools.loop import ToolLoop
from agui_core.tools.loop_result import LoopResult
from agui_core.tools.states import CallState, Waiting
from agui_core.tools.tool import Tool
from agui_core.tools.toolset import Toolset

__all__ = [
    "ApprovalRequest",
    "Calls",
    "DeclarationError",
    "Ending",
    "InvalidArguments",
    "LoopResult",
    "CallState",
    "Tool",
    "ToolContext",
    "ToolError",
    "ToolLoop",
    "Toolset",
    "Verdict",
    "Waiting",
    "check_resume",
    "decisions",
    "interrupt_for",
    "langgraph_interrupts",
]
