"""What is wrong with a JSON text."""

from __future__ import annotations

import msgspec

__all__ = ["JsonFault"]


class JsonFault(msgspec.Struct, frozen=True):
    """Why a text is no JSON document.

    position: characters before the first one that no document could have there; the text's length when it ends too
      early.
    reason: what is wrong there, in words. Never holds more than one character of the text, and that one escaped.
    """

    position: int
    reason: str

    def __str__(self) -> str:
        return f"character {self.position}: {self.reason}"
