"""Options of a declaration, of `Calls` and of `ToolLoop`: what is of no use is refused where it enters.

Each module that takes options has a table of them; the kinds that several need are here.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, NamedTuple

__all__ = ["COUNT", "COUNT_OR_NONE", "SECONDS", "SWITCH", "TEXT", "Option", "check_options"]


class Option(NamedTuple):
    """What one option takes."""

    wanted: str
    """The same in words."""
    types: tuple[Any, ...]
    fits: Callable[[Any], bool] = lambda value: True
    """Asked about values of these types only."""

    def admits(self, value: Any) -> bool:
        """Whether the type is right. True and False are no numbers here, though Python has them as such."""
        return isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool))


TEXT = Option("text", (str,))
SWITCH = Option("True or False", (bool,))
"""Nothing else, as a setting's "false" is true to Python."""
COUNT = Option("a whole number, 1 at least", (int,), lambda number: number >= 1)
COUNT_OR_NONE = Option(
    "a whole number, 1 at least, or None", (int, NoneType), lambda number: number is None or number >= 1
)
SECONDS = Option(
    "seconds above 0, or None",
    (int, float, NoneType),
    lambda seconds: seconds is None or 0 < seconds <= sys.float_info.max,
)


def check_options(table: Mapping[str, Option], **values: Any) -> None:
    """Raises `TypeError` for a wrong type and `ValueError` for another value that does not fit, naming the option, what
    came and what is wanted.
    """
    for name, value in values.items():
        option = table[name]
        if not option.admits(value):
            raise TypeError(f"{name} is {_shown(value)}, but takes {option.wanted}")
        if not option.fits(value):
            raise ValueError(f"{name} is {_shown(value)}, but takes {option.wanted}")


def _shown(value: Any) -> str:
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer too long to be written
        return type(value).__name__
