"""What the values of one call cost a validator that compares them: long integers above all.

Integers beyond 62 bits are kept as text and converted for each comparison, in the square of their digits: one of 4,200
digits takes 0.4 ms, and to find whether a list of them holds one twice takes a comparison for each pair. Measured with
jsonschema-rs 0.61, in steps of about a microsecond. Gathered in one pass over the value, without recursion.
"""

from __future__ import annotations

from math import frexp
from typing import Any, NamedTuple

__all__ = ["Values", "division"]

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
_PLACES = 24
"""Binary places of a fraction in one step."""


class _Weight(NamedTuple):
    """Of one value with all that is in it."""

    size: int = 1
    """JSON values."""
    long: int = 0
    """Steps to convert its long integers once."""
    objects: bool = False
    """Whether it holds an object."""


_LEAF = _Weight()


class Values:
    """The weights of all containers in one value."""

    __slots__ = ("_containers",)

    def __init__(self, value: Any) -> None:
        self._containers: dict[int, _Weight] = {}
        stack: list[tuple[Any, bool]] = [(value, False)]
        while stack:
            holder, gathered = stack.pop()
            inner = holder.values() if isinstance(holder, dict) else holder
            if not gathered:
                stack.append((holder, True))
                stack.extend((item, False) for item in inner if isinstance(item, dict | list))
                continue
            size, long, objects = 1, 0, isinstance(holder, dict)
            for item in inner:
                weight = self.of(item)
                size += weight.size
                long += weight.long
                objects = objects or weight.objects
            self._containers[id(holder)] = _Weight(size, long, objects)

    def of(self, value: Any) -> _Weight:
        """The weight of a value that the whole holds."""
        if isinstance(value, dict | list):
            return self._containers[id(value)]
        digits = _digits(value)
        return _Weight(long=1 + digits * digits // _COMPARING) if digits else _LEAF

    def uniqueness(self, items: list[Any]) -> int:
        """Steps to see whether a list holds something twice: each pair is compared where hashing does not help."""
        count = len(items)
        weight = self._containers[id(items)]
        pairwise = weight.long or any(self.of(item).objects for item in items)
        return weight.size + (count * (count + weight.long) if pairwise else 0)


def division(value: Any, divisor: Any) -> int:
    """Steps of one `multipleOf`."""
    if type(value) not in (int, float):
        return 0
    digits = _digits(value)
    steps = _DIVISION + digits * digits // _DIVIDING if digits else _FLOAT if type(value) is float else 0
    return steps + _places(value) + _places(divisor)


def _places(number: Any) -> int:
    """Steps that the binary places of a small fraction add: fractions are exact, and 1e-300 is a long one."""
    return max(0, -frexp(number)[1]) // _PLACES if type(number) is float else 0


def _digits(value: Any) -> int:
    """The digits of a long integer, 0 for anything else."""
    bits = value.bit_length() if type(value) is int else 0
    return int(bits * _DIGITS_PER_BIT) if bits > _SHORT_BITS else 0
