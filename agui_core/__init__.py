"""agui_core: AG-UI event streams in, messages and state out.

    import agui_core as agui

    reducer = agui.Reducer()
    reducer.apply_sse(data)          # bytes as they come off the wire, cut anywhere
    reducer.messages, reducer.state

Everything here works without an event loop. What needs one, or an extra, is loaded when it is first touched.
"""

from __future__ import annotations

from agui_core.errors import (
    AGUIError,
    ApprovalError,
    DecodeError,
    LimitExceeded,
    PatchError,
    ProtocolError,
    ResumeError,
    TransportError,
)
from agui_core.limits import Limits
from agui_core.protocol import events, messages
from agui_core.protocol.base import UNSET
from agui_core.protocol.events import Event
from agui_core.protocol.run import Interrupt, ResumeEntry, RunAgentInput
from agui_core.reducer import (
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
from agui_core.warning import ProtocolWarning
from agui_core.wire import JSONLinesDecoder, SSEDecoder, decode, encode, encode_sse, to_wire

__all__ = [
    "UNSET",
    "AGUIError",
    "ApprovalError",
    "Changes",
    "Conformer",
    "DecodeError",
    "Event",
    "Interrupt",
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
    "ToolCallView",
    "TransportError",
    "apply_patch",
    "compact",
    "conform",
    "decode",
    "encode",
    "encode_sse",
    "events",
    "messages",
    "reduce",
    "to_wire",
]
