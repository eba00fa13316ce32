"""Options of a declaration, of `Calls` and of `ToolLoop`: wrong values are refused where they enter.

Each module that takes options has a table of them. The kinds that several modules need are here.
"""

from __future__ import annotations

import reprlib
import sys
from collections.abc import Callable, Mapping
from types import NoneType
from typing import Any, NamedTuple

__all__ = ["COUNT", "COUNT_OR_NONE", "SECONDS", "SWITCH", "TEXT", "Option", "check_options"]


class Option(NamedTuple):
    """The values that one option takes."""

    wanted: str
    """The same in words, for errors."""
    types: tuple[Any, ...]
    fits: Callable[[Any], bool] = lambda value: True
    """Called for values of these types only."""

    def admits(self, value: Any) -> bool:
        """Whether the type is right. True and False do not count as numbers here, as they do in Python."""
        return isinstance(value, self.types) and (bool in self.types or not isinstance(value, bool))


TEXT = Option("text", (str,))
SWITCH = Option("True or False", (bool,))
"""Only these, as a setting's "false" is true to Python."""
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
    """Check options by their table.

    Raises: `TypeError` for a wrong type, `ValueError` for another value that does not fit. The text names the option,
    the value and what is wanted.
    """
    for name, value in values.items():
        option = table[name]
        if not option.admits(value):
            raise TypeError(f"{name} is {_shown(value)}, but takes {option.wanted}")
        if not option.fits(value):
            raise ValueError(f"{name} is {_shown(value)}, but takes {option.wanted}")


def _shown(value: Any) -> str:
    """As Python writes it, unlike `_text.shown`: an option is the application's own object, seldom JSON."""
    try:
        return reprlib.repr(value)
    except ValueError:  # an integer too long to be written
        return type(value).__name__
