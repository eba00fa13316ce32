"""Tools that the application runs: declaring, answering, approving, resuming, and the bounded loop."""

from __future__ import annotations

from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError, InvalidArguments, ToolError
from agui_core.tools.toolset import Tool, Toolset

__all__ = ["DeclarationError", "InvalidArguments", "Tool", "ToolContext", "ToolError", "Toolset"]
