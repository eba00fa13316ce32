"""What is open between a start and an end, and how a breach that rejects nothing is reported."""

from __future__ import annotations

import weakref
from typing import Any, Protocol

import msgspec

from agui_core.protocol import events as e
from agui_core.reducer.chunks import Owner

__all__ = ["Note", "Noted", "OpenItem"]


class Note(Protocol):
    """Receives a producer's breach that rejects nothing, or nothing under the lenient policy (then `refused`)."""

    def __call__(self, rule: str, type: str, message: str, *, refused: bool = False) -> object: ...


class Noted:
    """A `Note` that passes on to a bound method without keeping its object alive: a cycle would keep dead ones."""

    __slots__ = ("_note",)

    def __init__(self, note: Note) -> None:
        self._note = weakref.WeakMethod(note)

    def __call__(self, rule: str, type: str, message: str, *, refused: bool = False) -> None:
        self._note()(rule, type, message, refused=refused)  # type: ignore[misc]


class OpenItem(msgspec.Struct, eq=False):
    """An item between its start and its end: a text message, a tool call or a reasoning message."""

    id: str
    owner: Owner
    start: e.Event
    entry: Any = None
    """What the reducer builds from it; None for a mere verifier, or when a snapshot dropped it (OPEN-6)."""
    half: str = ""
    """The first half of a surrogate pair that a delta cut in two."""
    broken: bool = False
    """Whether a half was ever left alone."""
