"""The bound on a tool's answer: `result_bytes`, of UTF-8. Unlike `Limits` it does not raise; a cut answer says so."""

from __future__ import annotations

from msgspec.structs import replace

from agui_core.protocol.base import UNSET
from agui_core.protocol.content import ContentPart, TextPart
from agui_core.wire.encode import encode

__all__ = ["RESULT_BYTES", "bounded", "size_of"]

RESULT_BYTES = 1024 * 1024
"""The default."""
_FRAME = 256
"""Uncounted bytes of JSON around the text or data of a part, short ids and MIME types included."""

Content = str | tuple[ContentPart, ...]


def size_of(content: Content) -> int:
    """Bytes of a text in UTF-8, or of the texts and data of content parts."""
    return len(content.encode()) if isinstance(content, str) else sum(map(_size_of_part, content))


def bounded(content: Content, limit: int | None) -> Content:
    """The content in at most `limit` bytes. Text is cut at a character, and says how long it was. Among parts, texts
    are cut first; a part with data that still does not fit becomes a text that names it. Where these sentences are too
    many, one stands for all parts from there on.
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
    return _few(parts, kept, limit)


def _few(parts: tuple[ContentPart, ...], kept: list[ContentPart], limit: int) -> Content:
    """The first parts that the limit allows, and a text that says how much was left out."""
    sizes = [_size_of_part(part) for part in kept]
    size = sum(sizes)
    said = ""
    left_out = 0
    while kept and size + len(said) > limit:
        kept.pop()
        size -= sizes.pop()
        left_out += _size_of_part(parts[len(kept)])
        said = f"[Left out: {len(parts) - len(kept):,} parts, {left_out:,} bytes.]"
    return (*kept, TextPart(text=said)) if said else tuple(kept)


def _size_of_part(part: ContentPart) -> int:
    """Bytes of its text or data and its metadata, and of other members beyond `_FRAME`; at least 1."""
    bare = replace(part, metadata=UNSET)
    size = 0 if part.metadata is UNSET else len(encode(part)) - len(encode(bare))
    if isinstance(bare, TextPart):
        size += len(bare.text.encode())
        bare = replace(bare, text="")
    else:
        size += len(bare.source.value.encode())
        bare = replace(bare, source=replace(bare.source, value=""))
    return max(size + max(len(encode(bare)) - _FRAME, 0), 1)
