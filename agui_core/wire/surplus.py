"""Unknown members of events, remembered by the names of all members, so that a stream full of them stays fast."""

from __future__ import annotations

import msgspec

from agui_core._text import place, pointer
from agui_core.wire.fast_events import FAST_OF
from agui_core.wire.shapes import Shape

__all__ = ["Surplus"]


class Surplus:
    """The unknown members of an event with just these member names, and the warnings about them."""

    __slots__ = ("fast", "kind", "names", "struct", "unfit", "warnings")

    def __init__(self, shape: Shape, names: tuple[str, ...]) -> None:
        self.kind = shape.tag
        self.struct = shape.struct
        self.names = tuple(name for name in names if name not in shape.known)
        self.unfit = bool(self.names)
        self.fast: type[msgspec.Struct] = shape.struct
        """The struct to decode to: the fast one where nothing but content stays."""
        fast = FAST_OF.get(shape.struct)
        if fast is not None:
            known = {field.encode_name for field in msgspec.structs.fields(fast)} | {"type"}
            if set(names) - set(self.names) <= known:
                self.fast = fast
        self.warnings = [(f"unknown property `{place((name,))}` was removed", pointer((name,))) for name in self.names]
