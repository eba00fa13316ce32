"""The bound on what a tool's answer may hold: `result_bytes`, of UTF-8. This is no `Limit`: nothing raises, but what is
cut says so.
"""

from __future__ import annotations

from msgspec.structs import replace

from agui_core.protocol.base import UNSET
from agui_core.protocol.content import ContentPart, TextPart
from agui_core.wire.encode import encode

__all__ = ["RESULT_BYTES", "bounded", "size_of"]

RESULT_BYTES = 1024 * 1024
"""Where nothing else is said."""

Content = str | tuple[ContentPart, ...]


def size_of(content: Content) -> int:
    """Bytes of a text in UTF-8, or of the texts and data of content parts."""
    return len(content.encode()) if isinstance(content, str) else sum(map(_size_of_part, content))


def bounded(content: Content, limit: int | None) -> Content:
    """The content in at most `limit` bytes: text is cut at a character, and says how long it was. Among parts, texts
    are cut first; a part with data that does not fit even so is replaced by a text that says what was left out.
    """
    if limit is None or size_of(content) <= limit:
        return content
    return _cut(content, limit) if isinstance(content, str) else _bounded_parts(content, limit)


def _cut(text: str, limit: int) -> str:
    data = text.encode()
    said = f"\n[Cut off here: the whole text has {len(data):,} bytes.]"
    return data[: max(limit - len(said), 0)].decode("utf-8", "ignore") + said


def _bounded_parts(parts: tuple[ContentPart, ...], limit: int) -> Content:
    room = limit
    fitting: list[ContentPart] = []
    for part in parts:
        if not isinstance(part, TextPart):
            size = _size_of_part(part)
            if size > room:
                part = TextPart(text=f"[Left out: {part.type}, {size:,} bytes.]")
            room -= _size_of_part(part)
        elif part.metadata is not UNSET and len(encode(part)) > limit:
            part = TextPart(text=part.text)
        fitting.append(part)
    kept: list[ContentPart] = []
    for before, part in zip(parts, fitting, strict=True):
        if isinstance(before, TextPart) and isinstance(part, TextPart):
            size = _size_of_part(part)
            if size > room:
                overhead = size - len(part.text.encode())
                part = replace(part, text=_cut(part.text, room - overhead))
            room = max(room - _size_of_part(part), 0)
        kept.append(part)
    return tuple(kept)


def _size_of_part(part: ContentPart) -> int:
    metadata = 0 if part.metadata is UNSET else len(encode(part)) - len(encode(replace(part, metadata=UNSET)))
    return metadata + len(part.text.encode() if isinstance(part, TextPart) else part.source.value.encode())
