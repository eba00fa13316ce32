"""The arguments of a call: text becomes a JSON object that is safe to read.

The text comes from a model, so everything that two readers could understand differently is refused: repeated keys,
`NaN`, numbers that a double cannot hold, lone surrogates. Nesting is bounded. Costs one decoding by the standard
library and two scans of the text. The values are walked only when the text could hide something.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any, NoReturn, TypeAlias

import msgspec

from agui_core._text import cut, shown, written
from agui_core.limits import Limits
from agui_core.tools.errors import InvalidArguments, invalid_whole

__all__ = ["EXACT", "MAX_NESTING", "canonical", "read_arguments", "value_at", "with_integers"]

EXACT = 2**53
"""Below this every integral double is that integer and no other. Above it a double cannot tell neighbours apart."""
MAX_NESTING = Limits().nesting
MAX_VALUES = 1_000_000
"""Values in one call's arguments, containers among them."""
MAX_INTEGER_BITS = 14_000
"""Just below the 4,300 digits that CPython converts."""

Path: TypeAlias = "tuple[Path, str | int] | None"
"""Where a value sits, innermost step last; written out only for an error."""


class _Room:
    """The bounds of one value: `values` that may still follow, and `nesting` of containers."""

    __slots__ = ("nesting", "values")

    def __init__(self, nesting: int) -> None:
        self.nesting = nesting
        self.values = MAX_VALUES


def value_at(value: Any, steps: list[str | int]) -> Any:
    """The value at a path, or the innermost one that can be reached."""
    for step in steps:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return value
    return value


def read_arguments(arguments: str | Mapping[str, Any], nesting: int = MAX_NESTING) -> dict[str, Any]:
    """The arguments as a new JSON object, from the text of a call or from an object that an application holds.

    Blank text is `{}`, as the empty arguments of a call are. Raises `InvalidArguments` and nothing else.
    """
    try:
        room = _Room(nesting)
        value = _decode(arguments, room) if isinstance(arguments, str) else _copy(_mapping(arguments), None, 1, room)
    except RecursionError:
        _refuse_nesting(nesting)
    if type(value) is not dict:
        raise invalid_whole("the arguments are no JSON object", value, "a JSON object")
    return value


def canonical(value: Any) -> bytes:
    """The one text of a JSON value: keys sorted, integral floats below 2**53 as integers (1.0 is 1, -0.0 is 0),
    integers by their digits. Two texts of one value give the same bytes. Costs a walk over the value and one encoding.
    """
    return msgspec.json.encode(with_integers(value, EXACT - 1), order="sorted")


def with_integers(value: Any, largest: int) -> Any:
    """A copy of a JSON value with integers for integral floats of at most `largest`, whatever the sign."""
    kind = type(value)
    if kind is dict:
        return {name: with_integers(item, largest) for name, item in value.items()}
    if kind is list:
        return [with_integers(item, largest) for item in value]
    if kind is float and value.is_integer() and abs(value) <= largest:
        return int(value)
    return value


def _mapping(arguments: object) -> object:
    return dict(arguments) if isinstance(arguments, Mapping) else arguments


def _decode(text: str, room: _Room) -> Any:
    if not text.strip(" \t\r\n"):
        return {}
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as error:
        near = shown(text[max(error.pos - 20, 0) : error.pos + 20])
        raise InvalidArguments(
            f"the arguments are no JSON: {error.msg} at character {error.pos}, near {near}",
            expected="a JSON object",
            value=shown(text),
        ) from None
    except ValueError:  # an integer longer than CPython converts
        problem = "the arguments hold an integer with too many digits"
        raise invalid_whole(problem, text, "a shorter number") from None
    if _needs_walk(text, room.nesting):
        return _copy(value, None, 1, room)
    return value


def _needs_walk(text: str, nesting: int) -> bool:
    """Whether decoded text could nest too deep, hold too many values or a lone surrogate."""
    opened = text.count("[") + text.count("{")
    return opened > nesting or opened + text.count(",") >= MAX_VALUES or not text.isascii() or "\\u" in text


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        seen: set[str] = set()
        name = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise InvalidArguments(
            f"the key {shown(name)} occurs twice in one object", path=cut(name), expected="one value"
        )
    return members


def _float(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        _constant(text)
    return number


def _constant(text: str) -> NoReturn:
    raise InvalidArguments(f"{cut(text)} is no number that JSON can hold", expected="a number", value=cut(text))


_decoder = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)


def _copy(value: Any, path: Path, depth: int, room: _Room) -> Any:
    """An independent copy of a JSON value.

    Not `wire.json_values.Copier`, which repairs: here surrogates, subclasses and tuples are refused, the values are
    counted, and the error is written for the model.
    """
    room.values -= 1
    if room.values < 0:
        raise InvalidArguments(f"the arguments hold more than {MAX_VALUES} values", expected="fewer values")
    kind = type(value)
    if kind is dict:
        _check_nesting(depth, room.nesting)
        _check_keys(value, path)
        return {name: _copy(item, (path, name), depth + 1, room) for name, item in value.items()}
    if kind is list:
        _check_nesting(depth, room.nesting)
        return [_copy(item, (path, index), depth + 1, room) for index, item in enumerate(value)]
    if not _is_plain(value, kind):
        _refuse(f"{shown(value)} is no JSON value", path, shown(value))
    return value


def _refuse(problem: str, path: Path, value: str) -> NoReturn:
    steps: list[str | int] = []
    while path is not None:
        path, step = path
        steps.append(step)
    where = written(reversed(steps))
    raise InvalidArguments(
        f"argument {where}: {problem}" if where else problem, path=where, expected="a JSON value", value=value
    )


def _is_plain(value: Any, kind: type) -> bool:
    if kind is str:
        return _is_text(value)
    if kind is float:
        return isfinite(value)
    if kind is int:
        return int(value).bit_length() <= MAX_INTEGER_BITS
    return value is None or kind is bool


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True


def _check_keys(names: Iterable[object], path: Path) -> None:
    for name in names:
        if type(name) is not str or not _is_text(name):
            _refuse(f"the key {cut(ascii(name))} is no text", path, cut(ascii(name)))


def _check_nesting(depth: int, limit: int) -> None:
    if depth > limit:
        _refuse_nesting(limit)


def _refuse_nesting(limit: int) -> NoReturn:
    raise InvalidArguments(
        f"the arguments nest deeper than {limit} containers", expected=f"at most {limit} levels"
    ) from None
