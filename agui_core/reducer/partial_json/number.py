"""A JSON number that arrives in pieces, for `partial_json`.

Promises: takes each character once, whatever the cuts; stops at the first character that cannot belong to the number;
notices the first exponent digit that puts the number outside the range of a double whatever follows. Costs O(length)
in all, also for a megabyte of digits in single-character pieces.

Only numbers cut by the end of a delta come here, and those that `msgspec` refuses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast

import msgspec

__all__ = ["PartialNumber"]

_decode = msgspec.json.decode
_skip_digits = cast("Callable[[str, int], re.Match[str]]", re.compile("[0-9]*").match)

# What may follow in each phase. A phase that runs on over digits names itself for them; _WHOLE may end a number.
_NONZERO = "123456789"
_DIGITS = "0" + _NONZERO
_PHASES: dict[str, dict[str, str]] = {
    "start": {"-": "sign", "0": "zero", **dict.fromkeys(_NONZERO, "integer")},
    "sign": {"0": "zero", **dict.fromkeys(_NONZERO, "integer")},
    "zero": {".": "point", "e": "e", "E": "e"},
    "integer": {**dict.fromkeys(_DIGITS, "integer"), ".": "point", "e": "e", "E": "e"},
    "point": dict.fromkeys(_DIGITS, "fraction"),
    "fraction": {**dict.fromkeys(_DIGITS, "fraction"), "e": "e", "E": "e"},
    "e": {"-": "minus", "+": "plus", **dict.fromkeys(_DIGITS, "exponent")},
    "minus": dict.fromkeys(_DIGITS, "shrinking"),
    "plus": dict.fromkeys(_DIGITS, "exponent"),
    "shrinking": dict.fromkeys(_DIGITS, "shrinking"),
    "exponent": dict.fromkeys(_DIGITS, "exponent"),
}
_WHOLE = frozenset({"zero", "integer", "fraction", "shrinking", "exponent"})
# Phases whose digits decide nothing one by one, so that they are skipped in bulk.
_BULK = frozenset({"integer", "fraction", "shrinking"})
# Phases after which the exponent can only grow.
_GROWING = frozenset({"plus", "exponent"})

_LARGEST_MAGNITUDE = 308


class PartialNumber:
    """One number, read from its first character on. `too_large` is set when no continuation can be in range."""

    __slots__ = ("_exponent", "_magnitude", "_mantissa", "_phase", "_pieces", "too_large")

    def __init__(self) -> None:
        self._phase = "start"
        self._pieces: list[str] = []
        self._mantissa = ""
        self._magnitude: int | None = None
        self._exponent = -1
        self.too_large = False

    @property
    def whole(self) -> bool:
        """Whether the number could end here."""
        return self._phase in _WHOLE

    @property
    def range_fault(self) -> str:
        """Why the number cannot be used although it is one."""
        if self._phase == "integer":
            return "integer of more than 4,300 digits"
        return "number outside the range of a double"

    def scan(self, text: str, position: int) -> int:
        """Take what belongs to the number from `position` on; the position after it, or of the fatal character."""
        start, size = position, len(text)
        while position < size:
            if self._phase in _BULK:
                position = _skip_digits(text, position).end()
                if position == size:
                    break
            character = text[position]
            phase = _PHASES[self._phase].get(character)
            if phase is None:
                break
            if phase == "e":
                self._pieces.append(text[start:position])
                start = position
                self._end_mantissa()
            elif phase in _GROWING and self._outgrows(character):
                self.too_large = True
                break
            self._phase = phase
            position += 1
        self._pieces.append(text[start:position])
        return position

    def value(self) -> int | float | None:
        """The number if it ends here; None when it is outside the range that JSON documents may use."""
        try:
            number: int | float = _decode("".join(self._pieces))
        except ValueError:
            return None
        return number

    def _end_mantissa(self) -> None:
        """Note the power of ten of the first digit that is not 0; a mantissa of zeros has none."""
        self._mantissa = "".join(self._pieces)
        self._pieces = [self._mantissa]
        whole, _, fraction = self._mantissa.lstrip("-").partition(".")
        significant = fraction.lstrip("0")
        if whole != "0":
            self._magnitude = len(whole) - 1
        elif significant:
            self._magnitude = len(significant) - len(fraction) - 1

    def _outgrows(self, character: str) -> bool:
        """Whether the exponent with this character (a digit or the plus sign) is too large, however it goes on."""
        exponent = max(self._exponent, 0) * 10 + int(character) if character != "+" else 0
        if self._magnitude is None or exponent == self._exponent:
            return False
        self._exponent = exponent
        reach = self._magnitude + exponent
        if reach != _LARGEST_MAGNITUDE:
            return reach > _LARGEST_MAGNITUDE
        try:
            _decode(f"{self._mantissa}e{exponent}")
        except ValueError:
            return True
        return False
