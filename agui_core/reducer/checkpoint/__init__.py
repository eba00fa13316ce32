"""Checkpoints: all that a reducer is, as bytes, whole or in increments. Loaded when the first one is made or read.

`format` says what a checkpoint looks like and puts increments on top of one another; `save` makes one, `load` makes a
reducer of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agui_core._lazy import later

if TYPE_CHECKING:
    from agui_core.reducer.checkpoint.format import read
    from agui_core.reducer.checkpoint.load import fill
    from agui_core.reducer.checkpoint.save import make, mark

__all__ = ["fill", "make", "mark", "read"]

if not TYPE_CHECKING:  # so that type checkers know that there are no other names
    __getattr__ = later(__name__, {"fill": "load", "make": "save", "mark": "save", "read": "format"})
