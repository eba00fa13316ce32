"""The parts of a tool loop that its runs need."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from agui_core.protocol.messages import Message
from agui_core.protocol.run import ToolDeclaration
from agui_core.tools.executor_settings import ExecutorSettings
from agui_core.tools.toolset import Toolset

__all__ = ["Decide", "LoopPlan"]

Decide: TypeAlias = Callable[[tuple[Message, ...], tuple[ToolDeclaration, ...]], "Awaitable[Any] | Any"]
"""Takes the conversation so far and the tools that may be called; gives the next decision."""


class LoopPlan(NamedTuple):
    """The parts of a `ToolLoop`, checked."""

    decide: Decide
    decides_async: bool
    """Whether a call of `decide` gives a coroutine. A sync one runs in a thread."""
    toolset: Toolset
    max_tool_calls: int
    settings: ExecutorSettings
    """How calls are run."""
