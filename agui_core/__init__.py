"""agui_core: AG-UI event streams in, messages and state out.

    import agui_core as agui

    reducer = agui.Reducer()
    reducer.apply_sse(data)          # bytes as they come off the wire, cut anywhere
    reducer.messages, reducer.state

Everything here works without an event loop. What needs one, or an extra, is loaded when it is first touched.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agui_core.errors import (
    AGUIError,
    ApprovalError,
    DecodeError,
    LimitExceeded,
    PatchError,
    ProtocolError,
    ResumeError,
    StillWaiting,
    TransportError,
)
from agui_core.limits import Limits
from agui_core.reducer import (
    ArgumentsError,
    Changes,
    Conformer,
    PartialJson,
    Reducer,
    Run,
    ToolCallView,
    apply_patch,
    compact,
    conform,
    reduce,
)
from agui_core.warnings import ProtocolWarning
from agui_core.wire import JSONLinesDecoder, SSEDecoder, decode, encode, encode_sse, to_wire, validate

if TYPE_CHECKING:
    from agui_core.protocol import UNSET, Event, Interrupt, ResumeEntry, RunAgentInput, events, messages
    from agui_core.stream import Conversation, EventStream, HttpAgent, follow, follow_sync, serve
    from agui_core.tools import (
        Calls,
        DeclarationError,
        InvalidArguments,
        Tool,
        ToolContext,
        ToolError,
        ToolLoop,
        Toolset,
        Verdict,
        decisions,
        interrupt_for,
        langgraph_interrupts,
    )

__all__ = [
    "UNSET",
    "AGUIError",
    "ApprovalError",
    "ArgumentsError",
    "Calls",
    "Changes",
    "Conformer",
    "Conversation",
    "DeclarationError",
    "DecodeError",
    "Event",
    "EventStream",
    "HttpAgent",
    "Interrupt",
    "InvalidArguments",
    "JSONLinesDecoder",
    "LimitExceeded",
    "Limits",
    "PartialJson",
    "PatchError",
    "ProtocolError",
    "ProtocolWarning",
    "Reducer",
    "ResumeEntry",
    "ResumeError",
    "Run",
    "RunAgentInput",
    "SSEDecoder",
    "Tool",
    "ToolCallView",
    "ToolContext",
    "ToolError",
    "ToolLoop",
    "Toolset",
    "TransportError",
    "Verdict",
    "StillWaiting",
    "apply_patch",
    "compact",
    "conform",
    "decisions",
    "decode",
    "encode",
    "encode_sse",
    "events",
    "follow",
    "follow_sync",
    "interrupt_for",
    "langgraph_interrupts",
    "messages",
    "reduce",
    "serve",
    "to_wire",
    "validate",
]

# Imported when it is first touched, from the room that has it: what needs an event loop or an extra, and plain data.
_LATER = {
    "UNSET": "protocol",
    "Calls": "tools",
    "Conversation": "stream",
    "DeclarationError": "tools",
    "Event": "protocol",
    "EventStream": "stream",
    "HttpAgent": "stream",
    "Interrupt": "protocol",
    "InvalidArguments": "tools",
    "ResumeEntry": "protocol",
    "RunAgentInput": "protocol",
    "Tool": "tools",
    "ToolContext": "tools",
    "ToolError": "tools",
    "ToolLoop": "tools",
    "Toolset": "tools",
    "Verdict": "tools",
    "decisions": "tools",
    "events": "protocol",
    "follow": "stream",
    "follow_sync": "stream",
    "interrupt_for": "tools",
    "langgraph_interrupts": "tools",
    "messages": "protocol",
    "serve": "stream",
}


def __getattr__(name: str) -> Any:
    room = _LATER.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
