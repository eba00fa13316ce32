"""What the values of one call cost a validator that compares them: numbers above all.

Integers beyond 62 bits are kept as text and converted for each comparison, in the square of their digits: one of 4,200
digits takes 0.4 ms. Floats are compared as exact fractions, which take 0.3 us, and 20 us as they come near 1e-300. To
find whether a list holds something twice, a validator hashes its items and compares those with equal hashes. Measured
with jsonschema-rs 0.61, in steps of about a microsecond. Gathered in one pass over the value, without recursion.
"""

from __future__ import annotations

from collections import Counter
from math import frexp
from typing import Any, NamedTuple

__all__ = ["Values", "division", "weigh"]

_SHORT_BITS = 62
_DIGITS_PER_BIT = 0.30103
_COMPARING = 40_000
"""Digits squared in one step of a comparison."""
_DIVIDING = 4_000
"""The same for `multipleOf`, which works with fractions."""
_DIVISION = 25
"""Steps of a division by or of a long integer, whatever its length."""
_FLOAT = 4
"""Steps of a `multipleOf` of a number that is no short integer."""
_EXPONENT = 40
"""Powers of two, above or below one, that make a float a step dearer."""
_TEXT = 5_000
"""Characters in one step of a comparison."""
_SHOWN = 160
"""Characters of a text that are shown as fast as one JSON value."""
_PARTS = 25
"""Parts of lists and objects in one step of a comparison."""
_FEW = 15
"""Up to so many items, each pair is compared and nothing is hashed."""
_HASHED_ALIKE: dict[bool | None, float] = {None: 3221225473 * 5e-324, True: 5e-324, False: 0.0}
"""What a list may hold instead, and have the same hash."""


class _Weight(NamedTuple):
    """The weight of one value and its parts."""

    size: int = 1
    """JSON values."""
    long: int = 0
    """Steps to convert its numbers and to read its texts once."""
    digits: bool = False
    """Whether it holds a long integer."""
    objects: bool = False
    """Whether there is an object among them."""


_LEAF = _Weight()


class Values:
    """The weights of all containers in one value."""

    __slots__ = ("_containers", "_pairs")

    def __init__(self, value: Any) -> None:
        self._containers: dict[int, _Weight] = {}
        self._pairs: dict[int, int] = {}
        stack: list[tuple[Any, bool]] = [(value, False)]
        while stack:
            holder, gathered = stack.pop()
            inner = holder.values() if isinstance(holder, dict) else holder
            if not gathered:
                stack.append((holder, True))
                stack.extend((item, False) for item in inner if isinstance(item, dict | list))
                continue
            size, long, digits, objects = 1, 0, False, isinstance(holder, dict)
            if objects:
                long += sum(map(len, holder)) // _TEXT
            for item in inner:
                weight = self.of(item)
                size += weight.size
                long += weight.long
                digits = digits or weight.digits
                objects = objects or weight.objects
            self._containers[id(holder)] = _Weight(size, long, digits, objects)

    def of(self, value: Any) -> _Weight:
        """The weight of a value that the whole holds."""
        if isinstance(value, dict | list):
            return self._containers[id(value)]
        if type(value) is str:
            return _Weight(long=len(value) // _TEXT) if len(value) >= _TEXT else _LEAF
        if type(value) is float:
            return _Weight(long=1 + _exponent(value))
        digits = _digits(value)
        return _Weight(long=1 + digits * digits // _COMPARING, digits=True) if digits else _LEAF

    def extent(self, value: Any) -> int:
        """How much has to be looked at to show a value: JSON values, or as much text."""
        return 1 + len(value) // _SHOWN if type(value) is str else self.of(value).size

    def uniqueness(self, items: list[Any]) -> int:
        """Steps to see whether a list holds something twice: each pair is compared where hashing does not help."""
        weight, count = self._containers[id(items)], len(items)
        if id(items) not in self._pairs:
            self._pairs[id(items)] = self._count_pairs(items)
        pairs = self._pairs[id(items)]
        rounds = count if count <= _FEW else -(-pairs // count)
        return weight.size + weight.long + pairs + rounds * (weight.long + weight.size // _PARTS) // 2

    def _count_pairs(self, items: list[Any]) -> int:
        """How many pairs may have equal hashes, both ways round."""
        count = len(items)
        if self._containers[id(items)].digits or any(self.of(item).objects for item in items):
            return count * count
        if count <= _FEW:
            return 0
        return sum(number * number for number in Counter(map(_mark, items)).values() if number > 1)


def weigh(value: list[Any]) -> _Weight:
    """The weight of a list that stands alone."""
    return Values(value).of(value)


def division(value: Any) -> int:
    """Steps that a number, divisor or not, adds to a `multipleOf`."""
    digits = _digits(value)
    if digits:
        return _DIVISION + digits * digits // _DIVIDING
    return _FLOAT + _exponent(value) if type(value) is float else 0


def _mark(value: Any) -> int:
    """Equal for values without objects that a validator may hash alike: by what is in their lists, nested or not."""
    leaves: list[Any] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if type(item) is list:
            stack.extend(item)
        elif type(item) is int:
            leaves.append(float(item))
        else:
            leaves.append(_HASHED_ALIKE[item] if item is None or type(item) is bool else item)
    return hash(tuple(leaves))


def _exponent(value: float) -> int:
    """Steps that a float costs the more, the further from one."""
    return abs(frexp(value)[1]) // _EXPONENT


def _digits(value: Any) -> int:
    """The digits of a long integer, 0 for anything else."""
    bits = value.bit_length() if type(value) is int else 0
    return int(bits * _DIGITS_PER_BIT) if bits > _SHORT_BITS else 0
