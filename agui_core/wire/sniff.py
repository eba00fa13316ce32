"""Which format a stream has, told by its first character, and the byte order mark that may stand before that."""

from __future__ import annotations

__all__ = ["BOM", "begins_json_lines", "first_text", "opens_bom"]

BOM = b"\xef\xbb\xbf"
_BLANK = b" \t\r\n"
_UNDECIDED = 64 * 1024
"""Blank bytes after which a stream that has shown nothing else is taken for server-sent events."""


def opens_bom(data: bytes) -> bool:
    """Whether `data` may be the beginning of a byte order mark that is not whole yet."""
    return len(data) < len(BOM) and BOM.startswith(data)


def first_text(head: bytes) -> bytes | None:
    """The beginning of a stream from its first character on, None while that has not come."""
    if opens_bom(head):
        return None
    text = head.removeprefix(BOM).lstrip(_BLANK)
    return text if text or len(head) >= _UNDECIDED else None


def begins_json_lines(text: bytes) -> bool:
    """Whether a stream with this first text is JSON Lines; everything but an object means server-sent events."""
    return text.startswith(b"{")
