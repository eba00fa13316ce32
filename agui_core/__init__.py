"""agui_core: AG-UI event streams in, messages and state out.

    import agui_core as agui

    reducer = agui.Reducer()
    reducer.apply_sse(data)          # bytes as they come off the wire, cut anywhere
    reducer.messages, reducer.state

Each name is loaded when it is first touched, so a program pays for what it uses: one that only reduces loads no
event loop and nothing of `tools`, `stream` and `cli`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agui_core._lazy import later

if TYPE_CHECKING:
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
    from agui_core.protocol import UNSET, Event, Interrupt, ResumeEntry, RunAgentInput, events, messages
    from agui_core.reducer import (
        ArgumentsError,
        Changes,
        Conformer,
        PartialJson,
        Policy,
        Reducer,
        Run,
        ToolCallView,
        apply_patch,
        compact,
        conform,
        reduce,
    )
    from agui_core.status import Status
    from agui_core.stream import (
        Conversation,
        EventStream,
        HttpAgent,
        LiveRun,
        Turn,
        Update,
        Usage,
        follow,
        follow_sync,
        serve,
    )
    from agui_core.tools import (
        ApprovalRequest,
        Calls,
        CallState,
        DeclarationError,
        InvalidArguments,
        LoopResult,
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
    from agui_core.warnings import ProtocolWarning
    from agui_core.wire import JSONLinesDecoder, SSEDecoder, decode, encode, encode_sse, to_wire, validate

__all__ = [
    "UNSET",
    "AGUIError",
    "ApprovalError",
    "ApprovalRequest",
    "ArgumentsError",
    "CallState",
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
    "LiveRun",
    "LoopResult",
    "PartialJson",
    "PatchError",
    "Policy",
    "ProtocolError",
    "ProtocolWarning",
    "Reducer",
    "ResumeEntry",
    "ResumeError",
    "Run",
    "RunAgentInput",
    "SSEDecoder",
    "Status",
    "StillWaiting",
    "Tool",
    "ToolCallView",
    "ToolContext",
    "ToolError",
    "ToolLoop",
    "Toolset",
    "TransportError",
    "Turn",
    "Update",
    "Usage",
    "Verdict",
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

_HOMES = {
    "UNSET": "protocol",
    "AGUIError": "errors",
    "ApprovalError": "errors",
    "ApprovalRequest": "tools",
    "ArgumentsError": "reducer",
    "CallState": "tools",
    "Calls": "tools",
    "Changes": "reducer",
    "Conformer": "reducer",
    "Conversation": "stream",
    "DeclarationError": "tools",
    "DecodeError": "errors",
    "Event": "protocol",
    "EventStream": "stream",
    "HttpAgent": "stream",
    "Interrupt": "protocol",
    "InvalidArguments": "tools",
    "JSONLinesDecoder": "wire",
    "LimitExceeded": "errors",
    "Limits": "limits",
    "LiveRun": "stream",
    "LoopResult": "tools",
    "PartialJson": "reducer",
    "PatchError": "errors",
    "Policy": "reducer",
    "ProtocolError": "errors",
    "ProtocolWarning": "warnings",
    "Reducer": "reducer",
    "ResumeEntry": "protocol",
    "ResumeError": "errors",
    "Run": "reducer",
    "RunAgentInput": "protocol",
    "SSEDecoder": "wire",
    "Status": "status",
    "StillWaiting": "errors",
    "Tool": "tools",
    "ToolCallView": "reducer",
    "ToolContext": "tools",
    "ToolError": "tools",
    "ToolLoop": "tools",
    "Toolset": "tools",
    "TransportError": "errors",
    "Turn": "stream",
    "Update": "stream",
    "Usage": "stream",
    "Verdict": "tools",
    "apply_patch": "reducer",
    "compact": "reducer",
    "conform": "reducer",
    "decisions": "tools",
    "decode": "wire",
    "encode": "wire",
    "encode_sse": "wire",
    "events": "protocol",
    "follow": "stream",
    "follow_sync": "stream",
    "interrupt_for": "tools",
    "langgraph_interrupts": "tools",
    "messages": "protocol",
    "reduce": "reducer",
    "serve": "stream",
    "to_wire": "wire",
    "validate": "wire",
}
"""The room, or the module before all rooms, that each name is imported from when it is first touched."""

if not TYPE_CHECKING:  # so that type checkers know that there are no other names
    __getattr__ = later(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
