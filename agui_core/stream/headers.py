"""Headers of the application, checked where they are given. The only place that knows the syntax of a header."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

__all__ = ["Fields", "Headers", "header_fields"]

Headers: TypeAlias = Mapping[str, str] | Mapping[bytes, bytes] | Iterable[tuple[str, str] | tuple[bytes, bytes]]
Fields: TypeAlias = list[tuple[bytes, bytes]]

_NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_NO_VALUE = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")


def header_fields(headers: Any) -> Fields:
    """A mapping, or pairs, of str (in Latin-1) or bytes, as pairs of bytes. None means no headers.

    Raises: `TypeError` for a wrong type, `ValueError` for a name or a value that HTTP cannot carry.
    """
    if headers is None:
        return []
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    if isinstance(pairs, str | bytes) or not isinstance(pairs, Iterable):
        raise TypeError(f"headers is a mapping, or an iterable of pairs, not a {type(headers).__name__}")
    return [_field(pair) for pair in pairs]


def _field(pair: Any) -> tuple[bytes, bytes]:
    # Messages name the header, and never show its value, which may be a secret.
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise TypeError(f"headers holds a {type(pair).__name__} where a pair of name and value is wanted")
    name = _in_latin_1(pair[0], "the name of a header")
    if not _NAME.fullmatch(name):
        raise ValueError(f"headers: {pair[0]!r} is no name of a header")
    value = _in_latin_1(pair[1], f"the value of the header {pair[0]!r}").strip(b" \t")
    if _NO_VALUE.search(value):
        raise ValueError(
            f"headers: the value of the header {pair[0]!r} holds a line break or another control character"
        )
    return name, value


def _in_latin_1(text: Any, what: str) -> bytes:
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise TypeError(f"headers: {what} is str or bytes, not a {type(text).__name__}")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise ValueError(f"headers: {what} holds {text[error.start]!r}, which is not in Latin-1") from None
