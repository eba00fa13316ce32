"""Many JSON texts as one: what the readers hand to the decoder so that a whole read is decoded in one call.

A `Batch` joins its payloads with commas, and is decoded as one JSON list that must have as many elements as there are
payloads. So a payload that is not one whole value sends the batch to be decoded payload by payload, where it is
refused, whether it runs on into the next or holds two. (Only a stream made for it, with both in one read, gets by:
then the two make up for each other, and it is read as if its lines had been cut in other places.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["SEPARATOR", "Batch", "decode_joined", "join"]

SEPARATOR = b", "
"""What stands between two payloads of a batch. Longer than a line end, so that replacing those counts them."""


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


def decode_joined(decoder: msgspec.json.Decoder[list[Any]], text: bytes, count: int) -> list[Any] | None:
    """The `count` values of a batch's text, or None when it does not decode to just so many. Never raises."""
    try:
        values = decoder.decode(b"[%b]" % text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    return values if len(values) == count else None
