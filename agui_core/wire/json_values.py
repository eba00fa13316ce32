"""JSON values as Python objects: their depth, and clean private copies of values that others built.

`too_deep` walks a value level by level, so it needs no recursion and costs about 30 ns a value. `Copier` costs about
100 ns a value. It is for objects that did not come from our own JSON decoder, which cannot make what `Copier` refuses.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from agui_core._text import quoted
from agui_core.errors import LimitExceeded
from agui_core.protocol.base import UNSET
from agui_core.protocol.events import Event
from agui_core.wire.malformed import Malformed, Path
from agui_core.wire.pydantic_models import dumped, is_model

__all__ = [
    "DEEPEST",
    "Copier",
    "check_nesting",
    "holds_foreign",
    "nesting_exceeded",
    "clean_text",
    "stack_exceeded",
    "too_deep",
]

DEEPEST = 900
"""Containers inside containers beyond which encoders may fail, whatever the limits are."""

_LEAVES = frozenset({str, int, float, bool, type(None), type(UNSET)})
_CONTAINERS = frozenset({dict, list, tuple})
_LARGEST, _SMALLEST = 10**4_300 - 1, 1 - 10**4_299
"""Integers of more than 4,300 characters, the sign included, are neither read nor written as JSON."""


def clean_text(text: str) -> str:
    """Text that UTF-8 can carry: halves of surrogate pairs joined where they meet, U+FFFD for each lone one."""
    return text if text.isascii() else text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _members(container: Any) -> Iterable[Any]:
    if isinstance(container, dict):
        return container.values()
    if isinstance(container, msgspec.Struct):
        return [getattr(container, name) for name in container.__struct_fields__]
    return container if isinstance(container, list | tuple) else ()


def too_deep(value: object, limit: int) -> bool:
    """Whether containers are nested more than `limit` deep in `value`; structs count as containers."""
    level = [] if type(value) in _LEAVES else [value]
    for _ in range(limit):
        level = [item for container in level for item in _members(container) if type(item) not in _LEAVES]
        if not level:
            return False
    return bool(level)


def nesting_exceeded(limit: int) -> LimitExceeded:
    """The error of a value that is nested too deeply."""
    return LimitExceeded(
        f"a value is nested more than {limit} deep; raise Limits.nesting if the source is trusted", limit="nesting"
    )


def stack_exceeded(limit: int) -> LimitExceeded:
    """The error of a value that is too deep for the interpreter's stack, though perhaps not for the `limit`."""
    return LimitExceeded(
        f"a value is nested too deeply for the stack that is left; Limits.nesting is {limit}", limit="nesting"
    )


def _open_fields(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    flat = (msgspec.inspect.StrType, msgspec.inspect.IntType, msgspec.inspect.BoolType, msgspec.inspect.LiteralType)
    shape = msgspec.inspect.type_info(kind)
    assert isinstance(shape, msgspec.inspect.StructType)
    return tuple(field.name for field in shape.fields if not isinstance(field.type, flat))


class _OpenFields(dict[type[msgspec.Struct], tuple[str, ...]]):
    """The members of each type of event that may be nested, found when the type first comes."""

    def __missing__(self, kind: type[msgspec.Struct]) -> tuple[str, ...]:
        fields = self[kind] = _open_fields(kind)
        return fields


_OPEN_FIELDS = _OpenFields()


def check_nesting(event: Event, limit: int) -> bool:
    """Whether an event has open data. Costs about 0.1 µs for an event without, and 30 ns for each value in it.

    Raises: `LimitExceeded` when a member is nested more than `limit` deep.
    """
    has_open = False
    for name in _OPEN_FIELDS[type(event)]:
        value = getattr(event, name)
        if type(value) not in _LEAVES:
            has_open = True
            if too_deep(value, limit):
                raise nesting_exceeded(limit)
    return has_open


def holds_foreign(value: object) -> bool:
    """Whether a value holds one that is neither JSON nor a struct, say a model. Its nesting has been checked."""
    level = [value]
    while level:
        if not all(type(item) in _CONTAINERS or isinstance(item, msgspec.Struct) for item in level):
            return True
        level = [item for container in level for item in _members(container) if type(item) not in _LEAVES]
    return False


class Copier:
    """Copies one JSON value into plain dicts, lists and scalars of its own, so that nothing foreign is kept.

    Accepts subclasses of these (an enum that is a string, say), tuples for lists, and pydantic models as the JSON they
    write. Halves of surrogate pairs are joined; `repaired` lists where a lone one became U+FFFD.

    Raises: `Malformed` for any other value, `LimitExceeded` for more than `limit` containers inside each other in it.
    """

    __slots__ = ("_limit", "_path", "repaired")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._path: list[str | int] = []
        self.repaired: list[Path] = []

    def copy(self, value: object) -> Any:
        """The copy."""
        try:
            return self._copy(value, self._limit + 1)
        except RecursionError:
            raise stack_exceeded(self._limit) from None

    def _copy(self, value: object, room: int) -> Any:
        kind = type(value)
        if kind is str:
            return self._text(value)  # type: ignore[arg-type]
        if value is None or kind is bool:
            return value
        if isinstance(value, dict | list | tuple):
            if not room:
                raise nesting_exceeded(self._limit)
            return self._dict(value, room - 1) if isinstance(value, dict) else self._list(value, room - 1)
        return self._copy(self._dumped(value), room) if is_model(value) else self._scalar(value)

    def _dumped(self, model: object) -> Any:
        try:
            return dumped(model)
        except Malformed as problem:
            raise problem.inside(tuple(self._path)) from None

    def _dict(self, value: dict[Any, Any], room: int) -> dict[str, Any]:
        copy: dict[str, Any] = {}
        path = self._path
        for key, item in value.items():
            if not isinstance(key, str):
                raise self._malformed(f"has the key {quoted(key, 40)}, which is no string")
            name = self._text(key)
            path.append(name)
            copy[name] = self._copy(item, room)
            path.pop()
        return copy

    def _list(self, value: list[Any] | tuple[Any, ...], room: int) -> list[Any]:
        copy: list[Any] = []
        path = self._path
        for index, item in enumerate(value):
            path.append(index)
            copy.append(self._copy(item, room))
            path.pop()
        return copy

    def _scalar(self, value: object) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            if not _SMALLEST <= value <= _LARGEST:
                raise self._malformed("is an integer of more than 4,300 digits")
            return int(value)
        if isinstance(value, float):
            if not math.isfinite(value):
                raise self._malformed("is a number outside the range of a double")
            return float(value)
        name = type(value).__name__
        raise self._malformed(f"is {'an' if name[:1] in 'aeiouAEIOU' else 'a'} {name}, which is no JSON value")

    def _text(self, value: str) -> str:
        if value.isascii() and type(value) is str:
            return value
        value = str.__str__(value)
        try:
            value.encode()
        except UnicodeEncodeError:
            whole = clean_text(value)
            if "\ufffd" in whole:
                self.repaired.append(tuple(self._path))
            return whole
        return value

    def _malformed(self, reason: str) -> Malformed:
        return Malformed(reason, path=tuple(self._path))
