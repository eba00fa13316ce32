"""Tools that the application runs: declaring, answering, approving, resuming, and the bounded loop."""

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
