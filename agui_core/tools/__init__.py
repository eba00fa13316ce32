"""Tools that the application runs: declaring, answering, approving, resuming, and the bounded loop.

Start with `calls`: `Calls` stands between a reducer and the tools. `ToolLoop` does the same for an agent.

    toolset            `Tool`, `Toolset`; `signature` reads functions, `json_schema` checks, within `schema_cost`
    calls              `Calls`: what waits, who decides, what comes of it
    tracker            `CallTracker`: what is known of the last run's calls; `persisted` is what outlives the process
    states, run_view   where each call stands, and the run as one look
    approval           requests, verdicts, digests; `verdicts` takes decisions, `effects` keeps that nothing runs twice
    interrupts         what the next run answers; `langgraph` questions that come as custom events
    executor           runs calls side by side; `concurrency` bounds threads, `outcomes` is what the model is told
    loop               `ToolLoop`; `loop_run` one run, `decision` what a model may say, `loop_result` what came of it
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
from agui_core.tools.toolset import Tool, Toolset

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
