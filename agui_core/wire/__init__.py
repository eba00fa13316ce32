"""Bytes to events and back: readers, decoding with the compatibility boundary and enforcement, encoding."""

from __future__ import annotations

from agui_core.wire.batch import Batch
from agui_core.wire.compat import Boundary
from agui_core.wire.decode import Decoder, decode
from agui_core.wire.encode import encode, to_wire
from agui_core.wire.framing import cut
from agui_core.wire.json_lines import JSONLinesDecoder
from agui_core.wire.json_values import check_nesting
from agui_core.wire.sanitize import validate
from agui_core.wire.sse import SSEDecoder, encode_sse

__all__ = [
    "Batch",
    "Boundary",
    "Decoder",
    "JSONLinesDecoder",
    "SSEDecoder",
    "check_nesting",
    "cut",
    "decode",
    "encode",
    "encode_sse",
    "to_wire",
    "validate",
]
