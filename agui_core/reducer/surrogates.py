"""`Halves`: the halves of characters that deltas cut in two are joined; nothing handed out holds a lone surrogate."""

from __future__ import annotations

import re
from typing import Any

from msgspec.structs import replace

from agui_core._text import quoted
from agui_core.protocol import events as e
from agui_core.reducer.families import FAMILIES, FAMILY_OF
from agui_core.reducer.items import Note, OpenItem

__all__ = ["CONTENT", "Halves"]

CONTENT = frozenset(family.content for family in FAMILIES)
_ENDS = frozenset(family.end for family in FAMILIES)
_HALF = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class Halves:
    """Joins what the content of one stream was cut into. The first half waits in its open item."""

    __slots__ = ("_note", "before")

    def __init__(self, note: Note) -> None:
        self._note = note
        self.before: list[tuple[OpenItem, str, bool]] = []
        """What one event changed of open items: the half that waited, and whether one was lost."""

    def paired(self, event: Any, item: OpenItem | None) -> list[tuple[e.Event, OpenItem | None]]:
        """An event with whole characters. An end comes after a replacement for the half that still waited."""
        if item is not None:
            kind = type(event)
            if kind in CONTENT:
                if item.half or (not event.delta.isascii() and _HALF.search(event.delta)):
                    event = replace(event, delta=self._pair(event, item))
            elif item.half and kind in _ENDS:
                self.before.append((item, item.half, item.broken))
                item.half = ""
                return [(self._lone(event, item), item), (event, item)]
        return [(event, item)]

    def revert(self) -> None:
        """Undo the changes of the last event."""
        for item, half, broken in reversed(self.before):
            item.half, item.broken = half, broken

    def _pair(self, event: Any, item: OpenItem) -> str:
        text: str = item.half + event.delta
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        self.before.append((item, item.half, item.broken))
        item.half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = text[: len(text) - len(item.half)]
        if _HALF.search(text):
            self._note_lone(event, item)
            text = _HALF.sub(_REPLACEMENT, text)
        return text

    def _lone(self, end: e.Event, item: OpenItem) -> e.Event:
        self._note_lone(end, item)
        family = FAMILY_OF[type(end)]
        return family.make(family.content, item.id, delta=_REPLACEMENT)

    def _note_lone(self, event: e.Event, item: OpenItem) -> None:
        item.broken = True
        self._note("SSE-9", event.type, f"half a surrogate pair in the text of {quoted(item.id)} became U+FFFD")
