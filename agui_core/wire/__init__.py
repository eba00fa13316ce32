"""Bytes to events and back: readers, decoding with the compatibility boundary and enforcement, encoding."""

from __future__ import annotations

from agui_core.wire.batch import Batch
from agui_core.wire.boundary import Boundary
from agui_core.wire.decode import Decoder, decode
from agui_core.wire.encode import encode, to_wire
from agui_core.wire.enforce import validate
from agui_core.wire.lines import JSONLinesDecoder
from agui_core.wire.reading import cut
from agui_core.wire.sse import SSEDecoder, encode_sse
from agui_core.wire.values import check_nesting

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
