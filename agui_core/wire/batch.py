"""Many JSON texts as one: what the readers hand to the decoder so that a whole read is decoded in one call.

A `Batch` joins its payloads with a null between each two, and is decoded as one JSON list, which must be objects and
nulls in turn. A payload that is not one whole object sends the batch to be decoded payload by payload, where it is
refused.

Why that is exact. A value that runs over several payloads has the null in it. In an object that is no JSON, as a key
would have to follow, so it can only be inside an array: then the payload where it begins holds a bracket that it does
not close, and each payload with a bracket is read by itself as well. Where no value runs on, each payload is one value
at least; and as many values as payloads mean that each is just one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["SEPARATOR", "Batch", "decode_joined", "join"]

SEPARATOR = b",null,"
"""What stands between two payloads of a batch. Longer than a line end, so that replacing those counts them."""

_BRACKET = b"["
_scan = msgspec.json.Decoder(msgspec.Raw).decode


class Batch:
    """`count` payloads as one text, and the way back to the single payloads when the text does not decode."""

    __slots__ = ("_payloads", "_source", "_split", "count", "text")

    def __init__(self, text: bytes, count: int, source: bytes, split: Callable[[bytes], list[bytes]]) -> None:
        self.text = text
        self.count = count
        self._source = source
        self._split = split
        self._payloads: list[bytes] | None = None

    @property
    def arrays_are_whole(self) -> bool:
        """Whether each payload that holds a bracket is one JSON text. Costs a search where none does."""
        if _BRACKET not in self.text:
            return True
        try:
            for payload in self.payloads():
                if _BRACKET in payload:
                    _scan(payload)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return False
        return True

    def payloads(self) -> list[bytes]:
        """The single payloads, in order. Blank lines of JSON Lines are not among them, so there may be fewer."""
        if self._payloads is None:
            self._payloads = self._split(self._source)
        return self._payloads


def join(payloads: list[bytes]) -> Batch:
    """A batch of payloads that are already apart."""
    return Batch(SEPARATOR.join(payloads), len(payloads), b"", lambda _: payloads)


def decode_joined(decoder: msgspec.json.Decoder[list[Any]], batch: Batch) -> list[Any] | None:
    """The values of a batch, one each of its payloads, or None when it does not decode to these. Never raises."""
    try:
        values = decoder.decode(b"[%b]" % batch.text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    if len(values) != 2 * batch.count - 1:
        return None
    del values[1::2]
    return values if None not in values and batch.arrays_are_whole else None
