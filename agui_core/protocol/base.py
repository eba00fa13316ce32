"""What every wire shape shares: how structs are configured, and the few types that recur.

All shapes are frozen `msgspec` structs with camelCase names on the wire and snake_case names in Python. An optional
field that is absent holds `UNSET`, never `None`, so that absent and `null` stay apart where `null` is data (EVT-8..10).
Shapes are closed: an unknown property does not decode here, it is stripped by enforcement first (PROC-5).
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, TypeAlias

import msgspec
from msgspec import UNSET, Struct, UnsetType

__all__ = ["UNSET", "Count", "Metadata", "NotNull", "SafeInteger", "TypedStruct", "UnsetType", "WireStruct"]

MAX_SAFE_INTEGER = 2**53 - 1

SafeInteger: TypeAlias = Annotated[int, msgspec.Meta(ge=-MAX_SAFE_INTEGER, le=MAX_SAFE_INTEGER)]
"""An integer that a double holds exactly (EVT-3)."""

Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_SAFE_INTEGER)]
"""A number of tokens (section 5.1 of the protocol)."""

NotNull: TypeAlias = bool | int | float | str | list[Any] | dict[str, Any]
"""Any JSON value except a bare `null`; nulls inside containers are data (EVT-9)."""

Metadata: TypeAlias = dict[str, Any]
"""A JSON object under free keys (META-1)."""


class WireStruct(
    Struct,
    frozen=True,
    kw_only=True,
    rename="camel",
    forbid_unknown_fields=True,
    omit_defaults=True,
    repr_omit_defaults=True,
    gc=False,
):
    """The configuration of every wire shape. `kw_only` is not inherited by msgspec, and type checkers want `frozen`,
    so each class repeats both. A docstring tells of each field of its class, in the first sentence or on a line.
    """

    def __init_subclass__(cls) -> None:
        # The lines about inherited fields are added here, so that `help` tells of all fields and each is told once.
        base = cls.__base__
        inherited = base.__doc__.partition("\n\n")[2] if base and base.__doc__ else ""
        if cls.__doc__ and inherited:
            gap = "\n" if "\n\n" in cls.__doc__ else "\n\n"
            cls.__doc__ = f"{cls.__doc__.rstrip()}{gap}{inherited}"


class TypedStruct(WireStruct, frozen=True, kw_only=True, tag_field="type"):
    """A shape that the wire tells apart by `type`. Each class has its own as a literal, by which checkers narrow."""

    type: ClassVar[str]
