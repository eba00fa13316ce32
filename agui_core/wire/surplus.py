"""What is remembered of events with unknown members, so that many of one kind are told apart once."""

from __future__ import annotations

import msgspec

from agui_core._text import place
from agui_core.wire.fast_events import PLAIN_OF
from agui_core.wire.malformed import pointer
from agui_core.wire.shapes import Shape

__all__ = ["Surplus"]


class Surplus:
    """The unknown members of an event with just these member names, and what to say about them."""

    __slots__ = ("kind", "names", "plain", "struct", "warnings")

    def __init__(self, shape: Shape, names: tuple[str, ...]) -> None:
        self.kind = shape.tag
        self.struct = shape.struct
        self.names = tuple(name for name in names if name not in shape.known)
        plain = PLAIN_OF.get(shape.struct)
        wanted = () if plain is None else {field.encode_name for field in msgspec.structs.fields(plain)} | {"type"}
        # The simpler struct, where what stays is content and nothing else.
        self.plain = plain if plain is not None and set(names) - set(self.names) <= set(wanted) else shape.struct
        self.warnings = [(f"unknown property `{place((name,))}` was removed", pointer((name,))) for name in self.names]
