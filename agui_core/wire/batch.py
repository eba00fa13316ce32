"""Many JSON texts as one: what the readers hand to the decoder so that a whole read is decoded in one call.

A `Batch` joins its payloads, and is decoded as one run of values, which must be as many as there are payloads. A
payload that is not one whole object sends the batch to be decoded payload by payload, where it is refused.

Why that is exact, with either separator. No value runs on from one payload into another: a tab cannot stand in a
string, and neither two objects nor two nulls can stand in an array or object with no comma between them. So every
payload is any number of whole values, and one at least: with `OBJECTS` it begins with an object; with `NULLS` there
would be four nulls in a row, and of three in a row one is where an object has to be. As many values as there are
payloads mean that each is just one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["NULLS", "OBJECTS", "Batch", "decode_joined", "join"]

NULLS = b"\tnull\tnull\t"
"""Put between two payloads. Longer than a line end, so that replacing those counts them."""
OBJECTS = b"}\t{"
"""Put between two payloads that lost the braces where they meet. Free to decode, but the braces have to be found."""
_STEP = 3
"""With nulls, one value in so many is that of a payload."""


class Batch:
    """`count` payloads as one text, and the way back to the single payloads when the text does not decode."""

    __slots__ = ("_payloads", "_source", "_split", "count", "separator", "text")

    def __init__(
        self, text: bytes, count: int, source: bytes, split: Callable[[bytes], list[bytes]], separator: bytes = NULLS
    ) -> None:
        self.text = text
        self.separator = separator
        self.count = count
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
    """The values of a batch, one each of its payloads, or None when it does not decode to these. Never raises.

    The decoder takes an object or null. (An empty object counts as none: it is no event.)
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
