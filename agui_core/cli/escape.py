"""Text from the wire for a terminal: control characters and invisible characters become visible escapes.

Escape sequences and C1 controls (a terminal obeys them), bidirectional controls (they reorder the text around them),
zero-width characters and tags (they cannot be seen) are written as `\\x1b`, `\\u202e` or `\\U000e0041`. The rest stays.
"""

from __future__ import annotations

import re
from typing import Any
from unicodedata import east_asian_width

import msgspec

from agui_core._text import INVISIBLE, escaped, one_line

__all__ = ["cells_of", "escape_json_bytes", "pretty", "escape_block", "escape_json", "escape_line", "wrapped"]

_BLOCK = re.compile(rf"[\x00-\x08\x0b-\x1f{INVISIBLE}]")
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")


def escape_block(text: str) -> str:
    """`text` of many lines: LF and TAB stay."""
    return _BLOCK.sub(escaped, text)


def escape_line(text: str) -> str:
    """`text` as one line: LF and TAB are escaped as well, so that it cannot pretend to be several."""
    return one_line(text, len(text))


def escape_json(value: Any, *, indent: int = 2, ascii: bool = False) -> str:
    """The JSON of a value or a struct; the same characters become JSON escapes, so it still reads as the same value.

    `ascii` escapes all that is not ASCII, for an output that is not UTF-8. `indent=0` is one line.
    """
    text = msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()
    return (_NOT_ASCII if ascii else _BLOCK).sub(_escape_json, text)


def escape_json_bytes(text: bytes) -> bytes:
    """A JSON text whose invisible characters, which stand inside strings only, are JSON escapes."""
    return text if text.isascii() and b"\x7f" not in text else _BLOCK.sub(_escape_json, text.decode()).encode()


def pretty(value: Any, width: int = 80) -> str:
    """The JSON of a value for people: one line when it is short, indented when it is not."""
    line = escape_json(value, indent=0)
    return line if len(line) <= width else escape_json(value)


def wrapped(line: str, width: int, used: int = 0) -> list[str]:
    """A line in rows of at most `width` cells, so that the terminal wraps nothing; the first row has `used` less."""
    pieces: list[str] = []
    start, cells = 0, used
    for place, character in enumerate(line):
        size = cells_of(character)
        if cells and cells + size > width:
            pieces.append(line[start:place])
            start, cells = place, 0
        cells += size
    return [*pieces, line[start:]]


def cells_of(text: str) -> int:
    """Cells of a terminal that a text takes, or more."""
    return sum(8 if character == "\t" else 2 if east_asian_width(character) in "WFA" else 1 for character in text)


def _escape_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
