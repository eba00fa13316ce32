"""Checkpoints: all that a reducer is, as bytes, whole or in increments."""

from agui_core.reducer.checkpoint.format import read
from agui_core.reducer.checkpoint.save import fill, make, mark

__all__ = ["fill", "make", "mark", "read"]
