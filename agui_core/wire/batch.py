"""Many JSON texts as one: what the readers hand to the decoder so that a whole read is decoded in one call.

A `Batch` joins its payloads with a separator that reads as two more JSON numbers, `,173,208,`, chosen at random per
process. Decoded as one JSON list, the result must show these two numbers, and nothing but one event, at every third
place. That proves each payload to be one whole JSON value: had a payload run on into the next (an array left open, say,
that the next one closes), it would have swallowed a separator, and no payload can supply a separator that it does not
know. So a batch is accepted exactly when each of its payloads would be, wherever the bytes were cut.

The numbers are small so that CPython makes no objects for them: the proof costs about 25 ns an event.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any

import msgspec

__all__ = ["SEPARATOR", "Batch", "decode_joined", "join"]

_FIRST = 100 + secrets.randbelow(157)
_SECOND = 100 + secrets.randbelow(157)
SEPARATOR = b",%d,%d," % (_FIRST, _SECOND)
"""What stands between two payloads of a batch; always nine bytes."""


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


def decode_joined(decoder: msgspec.json.Decoder[Any], text: bytes, count: int) -> list[Any] | None:
    """The `count` values of a batch's text, or None unless each payload is one whole value of the decoder's type.

    `decoder` decodes a list of the wanted type or `int`. Never raises.
    """
    try:
        found = decoder.decode(b"[%b]" % text)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None
    gaps = count - 1
    if len(found) != 3 * gaps + 1 or found[1::3].count(_FIRST) != gaps or found[2::3].count(_SECOND) != gaps:
        return None
    values: list[Any] = found[::3]
    return values
