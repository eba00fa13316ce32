"""Events to messages and state. Pure, synchronous, no I/O."""

from __future__ import annotations

from agui_core.reducer.compact import compact
from agui_core.reducer.conformer import Conformer, conform
from agui_core.reducer.json_patch import apply_patch
from agui_core.reducer.partial_json.parser import PartialJson
from agui_core.reducer.reducer import Reducer, reduce
from agui_core.reducer.state import Middleware, Policy, Status
from agui_core.reducer.typed_arguments import ArgumentsError
from agui_core.reducer.views import Changes, Run, ToolCalls, ToolCallView

__all__ = [
    "ArgumentsError",
    "Changes",
    "Conformer",
    "Middleware",
    "PartialJson",
    "Policy",
    "Reducer",
    "Run",
    "Status",
    "ToolCallView",
    "ToolCalls",
    "apply_patch",
    "compact",
    "conform",
    "reduce",
]
