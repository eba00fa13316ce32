"""Values, ids and paths in messages to people: quoted, cut, on one line. The only place that shows wire text.

Errors, warnings, log records and HTTP answers show text from outside through these functions only. So it can neither
pass for words of ours nor begin a line of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = [
    "INVISIBLE",
    "SHOWN",
    "cut",
    "described",
    "escaped",
    "event_place",
    "listed",
    "one_line",
    "place",
    "plain",
    "pointer",
    "quoted",
    "shown",
    "written",
]

SHOWN = 100
"""Characters of a text or a value that a message shows."""
LISTED = 5
"""Ids of a list that a message shows."""
LONGEST = 2_000
"""Characters of a message."""

INVISIBLE = (
    r"\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800"
    r"\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U00013430-\U0001345f\U0001bca0-\U0001bca3"
    r"\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The inside of a class of characters: C1 controls, which a terminal obeys; what reorders the text around it, cannot be
seen, or ends a line for some readers; halves of surrogate pairs. C0 controls are apart, as LF and TAB may stay.
"""
_LINE = re.compile(rf"[\x00-\x1f{INVISIBLE}]")
_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}
_writer = json.JSONEncoder(ensure_ascii=False, skipkeys=True, default=lambda value: type(value).__name__)


def escaped(match: re.Match[str]) -> str:
    """The escape of a character that is not shown as it is."""
    character = match[0]
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def one_line(text: str, limit: int = LONGEST) -> str:
    """A text of at most `limit` characters on one line; what cannot be seen is escaped."""
    return _LINE.sub(escaped, text if len(text) <= limit else text[: limit - 3] + "...")


def cut(text: str, limit: int = SHOWN) -> str:
    """A text on one line, cut to `limit` characters after escaping."""
    text = one_line(text[: limit + 1])
    return text if len(text) <= limit else text[: limit - 1] + "…"


def quoted(text: object, limit: int = SHOWN) -> str:
    """A text quoted, with escapes, and cut when it is long."""
    if isinstance(text, str) and len(text) > limit:
        text = text[: limit + 1]
    quoted_text = one_line(repr(text))
    return quoted_text if len(quoted_text) <= limit else f"{quoted_text[:limit]}..."


def plain(name: str) -> str:
    """A name as it is when it is short and harmless, else quoted."""
    return name if len(name) <= SHOWN and name.isprintable() and not _LINE.search(name) else quoted(name)


def listed(ids: Iterable[str]) -> str:
    """Some ids: the first few, each quoted."""
    ids = list(ids)
    more = f" and {len(ids) - LISTED} more" if len(ids) > LISTED else ""
    return ", ".join(quoted(id) for id in ids[:LISTED]) + more


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path, whole."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def place(path: Iterable[str | int]) -> str:
    """The JSON Pointer of a path, for a message: cut when it is long."""
    text = ""
    for step in path:
        text += pointer((step if isinstance(step, int) else step[:SHOWN],))
        if len(text) > SHOWN:
            break
    return cut(text)


def event_place(index: int | None, type: str | None) -> str:
    """The place of an event in its stream, before a message about it: `event 3 (RUN_STARTED): `."""
    kind = f" ({plain(type)})" if type else ""
    return "" if index is None else f"event {index}{kind}: "


def described(value: object) -> str:
    """A JSON value in words: its kind, and itself when it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {quoted(value, 40)}"
    if isinstance(value, int | float):
        return "a number out of range" if isinstance(value, int) and value.bit_length() > 64 else f"the number {value}"
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list | tuple) else f"a {type(value).__name__}"


def shown(value: Any) -> str:
    """A value as JSON, cut to 100 characters; a large value is not written out for it."""
    text = ""
    try:
        for piece in _writer.iterencode(value[:SHOWN] + "…" if type(value) is str and len(value) > SHOWN else value):
            text += piece
            if len(text) > SHOWN:
                break
    except (ValueError, RecursionError):  # a cycle, or an integer too long to be written
        return type(value).__name__
    return cut(text)


def written(path: Iterable[str | int]) -> str:
    """A path as people write it, `items[0].price`, cut to 100 characters."""
    text = ""
    for step in path:
        text += f"[{step}]" if type(step) is int else f".{step}" if text else str(step)
        if len(text) > SHOWN:
            break
    return cut(text)
