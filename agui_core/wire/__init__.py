"""Bytes to events and back.

Start with `decode`: conforming bytes become structs in one call, all others are parsed, repaired and sanitized.

    framing            bytes cut anywhere become records; `sse` and `json_lines` say where a record ends;
                       `decoders` are what users hold of them
    sniff              which of the two formats it is, and its byte order mark
    batch              many JSON texts decoded in one call, exactly
    fast_events        content events with nothing but their text, which decode fastest
    decode             one event, many events, other shapes; `parse` reads JSON texts that may be hostile
    compat             the compatibility boundary: retired names and shapes, upgraded
    shapes             the table of what each struct may hold; `surplus` remembers unknown members
    sanitize           the one way from a value in any form to a struct
    malformed          a value that does not fit: what is wrong, and where
    json_values        depth, clean copies, halves of surrogate pairs; `pydantic_models` models of other packages
    encode             structs to JSON; `outgoing` run inputs, `old_peers` for older agents
"""

from __future__ import annotations

from agui_core.wire.batch import Batch
from agui_core.wire.compat import Boundary
from agui_core.wire.decode import Decoder, decode
from agui_core.wire.decoders import JSONLinesDecoder, SSEDecoder
from agui_core.wire.encode import encode, to_wire
from agui_core.wire.framing import cut
from agui_core.wire.json_lines import JSONLinesReader
from agui_core.wire.json_values import check_nesting
from agui_core.wire.sanitize import validate
from agui_core.wire.sse import SSEReader, encode_sse

__all__ = [
    "Batch",
    "Boundary",
    "Decoder",
    "JSONLinesDecoder",
    "JSONLinesReader",
    "SSEDecoder",
    "SSEReader",
    "check_nesting",
    "cut",
    "decode",
    "encode",
    "encode_sse",
    "to_wire",
    "validate",
]
