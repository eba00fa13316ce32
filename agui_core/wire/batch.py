"""Many JSON texts as one, so that all payloads of a read are decoded in one call.

A `Batch` joins its payloads and is decoded as one run of values, which have to be as many as the payloads. If a payload
is not one whole object, the batch is decoded payload by payload, and that one is refused.

Why this is exact, with either separator. No value runs on from one payload into the next: a tab cannot stand in a
string, and two objects or two nulls cannot stand in an array or object without a comma. So each payload is a number of
whole values, one at least: with `OBJECTS` it begins with an object; with `NULLS` an empty payload gives four nulls in a
row, and of three in a row one is where an object has to be. As many values as payloads mean one value each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["NULLS", "OBJECTS", "Batch", "decode_joined", "join"]

NULLS = b"\tnull\tnull\t"
"""Stands between two payloads. Longer than a line end, so that replacing line ends counts them."""
OBJECTS = b"}\t{"
"""Stands between two payloads, in the place of the braces where they meet. Costs nothing to decode."""
_STEP = 3
"""With nulls, each third value belongs to a payload."""


class Batch:
    """`count` payloads as one text, and the way back to the single payloads when the text does not decode."""

    __slots__ = ("_payloads", "_source", "_split", "count", "separator", "text", "unfit")

    def __init__(
        self, text: bytes, count: int, source: bytes, split: Callable[[bytes], list[bytes]], separator: bytes = NULLS
    ) -> None:
        self.text = text
        self.separator = separator
        self.count = count
        self.unfit = False
        """Whether it was decoded as a whole, and is not made of conforming events."""
        self._source = source
        self._split = split
        self._payloads: list[bytes] | None = None

    def payloads(self) -> list[bytes]:
        """The single payloads, in order. Blank lines of JSON Lines are not among them, so there may be fewer."""
        if self._payloads is None:
            self._payloads = self._split(self._source)
        return self._payloads


def join(payloads: list[bytes]) -> Batch:
    """A batch of payloads that are already apart."""
    return Batch(NULLS.join(payloads), len(payloads), b"", lambda _: payloads)


def decode_joined(decoder: msgspec.json.Decoder[Any], batch: Batch) -> list[Any] | None:
    """One value for each payload of a batch, or None when it does not decode to these. Never raises.

    The decoder takes an object or null. An empty object counts as null: it is not an event.
    """
    try:
        values: list[Any] = decoder.decode_lines(batch.text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if batch.separator is OBJECTS:
        return values if len(values) == batch.count else None
    if len(values) != _STEP * batch.count - (_STEP - 1):
        return None
    values = values[::_STEP]
    return values if all(values) else None
