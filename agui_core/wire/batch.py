"""Many JSON texts as one: what the readers hand to the decoder so that a whole read is decoded in one call.

A `Batch` joins its payloads with two nulls between each two, and is decoded as one run of values, which must be an
object, two nulls, an object and so on. A payload that is not one whole object sends the batch to be decoded payload by
payload, where it is refused.

Why that is exact. No value runs on from one payload into another: in a string a tab cannot stand, and two nulls with no
comma between them can stand in no array or object. So every payload is any number of whole values. It is one at least,
as without one there are four nulls in a row, and of three in a row one is where an object has to be; and as many values
as there are payloads mean that each is just one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["SEPARATOR", "Batch", "decode_joined", "join"]

SEPARATOR = b"\tnull\tnull\t"
"""What stands between two payloads of a batch. Longer than a line end, so that replacing those counts them."""
_STEP = 3


class Batch:
    """`count` payloads as one text, and the way back to the single payloads when the text does not decode."""

    __slots__ = ("_payloads", "_source", "_split", "count", "text")

    def __init__(self, text: bytes, count: int, source: bytes, split: Callable[[bytes], list[bytes]]) -> None:
        self.text = text
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
    return Batch(SEPARATOR.join(payloads), len(payloads), b"", lambda _: payloads)


def decode_joined(decoder: msgspec.json.Decoder[Any], batch: Batch) -> list[Any] | None:
    """The values of a batch, one each of its payloads, or None when it does not decode to these. Never raises.

    The decoder takes an object or null. (An empty object counts as none: it is no event.)
    """
    try:
        values: list[Any] = decoder.decode_lines(batch.text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if len(values) != _STEP * batch.count - (_STEP - 1):
        return None
    values = values[::_STEP]
    return values if all(values) else None
