"""Text from the wire on somebody's terminal: control characters and invisible ones become visible escapes.

What a terminal would obey (escape sequences, C1 controls), what reorders the text around it (bidirectional controls)
and what cannot be seen (zero-width characters, tags) is written as `\\x1b`, `\\u202e` or `\\U000e0041`. The rest stays.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

__all__ = ["pretty", "safe_block", "safe_json", "safe_line"]

_INVISIBLE = (
    r"\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    r"\ud800-\udfff\ufeff\uffa0\ufff0-\uffff\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e0fff"
)
_SEEN = r"\ufffc\ufffd"  # the object replacement and the replacement character
_BLOCK = re.compile(rf"(?![{_SEEN}])[\x00-\x08\x0b-\x1f{_INVISIBLE}]")
_LINE = re.compile(rf"(?![{_SEEN}])[\x00-\x1f{_INVISIBLE}]")
_NOT_ASCII = re.compile(r"[^\x00-\x7e]")
_NAMED = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}


def safe_block(text: str) -> str:
    """`text` of many lines: LF and TAB stay."""
    return _BLOCK.sub(_escape, text)


def safe_line(text: str) -> str:
    """`text` as one line: LF and TAB are escaped as well, so that it cannot pretend to be several."""
    return _LINE.sub(_escape, text)


def safe_json(value: Any, *, indent: int = 2, ascii: bool = False) -> str:
    """The JSON of a value or a struct; the same characters become JSON escapes, so it still reads as the same value.

    `ascii` escapes all that is not ASCII, for an output that is not UTF-8. `indent=0` is one line.
    """
    text = msgspec.json.format(msgspec.json.encode(value), indent=indent).decode()
    return (_NOT_ASCII if ascii else _BLOCK).sub(_escape_json, text)


def pretty(value: Any, width: int = 80) -> str:
    """The JSON of a value for people: one line when it is short, indented when it is not."""
    line = safe_json(value, indent=0)
    return line if len(line) <= width else safe_json(value)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    code = ord(character)
    if character in _NAMED:
        return _NAMED[character]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _escape_json(match: re.Match[str]) -> str:
    units = match[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))
