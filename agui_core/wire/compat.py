"""The compatibility boundary: shapes that older peers send become today's before anything is judged (PROC-2).

Always on: a short list of nulls becomes absent fields (OPEN-20), the `THINKING_*` events of 0.x become the reasoning
family (OLD-1), and legacy `binary` content parts become media parts (OLD-2). Malformed values pass unchanged, so that
enforcement can refuse them (VER-9). Works in place, on dicts that belong to the caller alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import msgspec

from agui_core._text import place, quoted
from agui_core.wire.malformed import Path

__all__ = ["TRANSLATED", "Boundary", "Warn", "concerns", "translate", "upgrade_input", "upgrade_message"]

Warn: TypeAlias = Callable[[str, str, Path], object]
"""Takes a rule, a message and the path concerned."""

_Object: TypeAlias = dict[str, Any]

_MEDIA = frozenset({"image", "audio", "video", "document"})


def _quietly(rule: str, message: str, path: Path) -> None:
    """For an application's own values: it is told nothing."""


class Boundary(msgspec.Struct):
    """The memory of one stream's translation; copied and stored with the reducer.

    Invented ids are named after `run_id`. The caller sets it when it accepts a `RUN_STARTED`, not when that is refused
    or skipped.
    """

    run_id: str = ""
    span: str | None = None
    message: str | None = None
    invented: int = 0

    def invent(self) -> str:
        """A new id: deterministic, and unique over the runs of a stream."""
        self.invented += 1
        return f"{self.run_id}:reasoning:{self.invented}"


def concerns(event: _Object) -> bool:
    """Whether `translate` may have work with an event: a quick check that spares most events the call."""
    kind = event.get("type")
    return (type(kind) is str and kind in _HANDLERS) or event.get("rawEvent", False) is None


def translate(event: _Object, boundary: Boundary, warn: Warn) -> None:
    """Bring one event up to date, in place."""
    _drop_null(event, "rawEvent", (), warn)
    kind = event.get("type")
    handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
    if handler is not None:
        handler(event, boundary, warn)


def upgrade_input(value: _Object, warn: Warn = _quietly) -> None:
    """The same for a run input or a message by itself, in place."""
    _run_input(value, (), warn)
    upgrade_message(value, (), warn)


def upgrade_message(message: Any, path: Path = (), warn: Warn = _quietly) -> None:
    """Replace the legacy `binary` parts of a message's content by media parts, in place (OLD-2)."""
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list) or not any(_is_binary(part) for part in content):
        return
    upgraded: list[Any] = []
    for index, part in enumerate(content):
        if not _is_binary(part):
            upgraded.append(part)
            continue
        where = (*path, "content", index)
        media = _media_part(part)
        if media is None:
            warn("OLD-2", "a legacy binary part with neither data nor url cannot be converted", where)
            upgraded.append(part)
        elif any(_mirrors(other, media) for other in content):
            warn("OLD-2", "a legacy binary part repeats another part of its message: it was dropped", where)
        else:
            lost = ", its id is lost" if "id" in part else ""
            warn("OLD-2", f"a legacy binary part became a part of type {media['type']}{lost}", where)
            upgraded.append(media)
    message["content"] = upgraded


def _is_binary(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "binary" and isinstance(part.get("mimeType"), str)


def _media_part(part: _Object) -> _Object | None:
    mime_type = part["mimeType"]
    family = next((kind for kind in ("image", "audio", "video") if mime_type.startswith(f"{kind}/")), "document")
    source = next(({"type": name, "value": part[name]} for name in ("data", "url") if part.get(name)), None)
    if source is None:
        return None
    media: _Object = {
        "type": family,
        "source": {**source, "mimeType": mime_type},
    }
    if part.get("filename"):
        media["metadata"] = {"filename": part["filename"]}
    return media


def _mirrors(part: Any, media: _Object) -> bool:
    if not isinstance(part, dict) or part.get("type") != media["type"] or part.get("source") != media["source"]:
        return False
    if "metadata" not in media:
        return True
    metadata = part.get("metadata")
    return isinstance(metadata, dict) and metadata.get("filename") == media["metadata"]["filename"]


def _drop_null(holder: Any, name: str, path: Path, warn: Warn) -> None:
    if isinstance(holder, dict) and name in holder and holder[name] is None:
        del holder[name]
        where = (*path, name)
        warn("OPEN-20", f"null at `{place(where)}` counts as absent; leave the field out", where)


def _elements(holder: _Object, name: str) -> Iterable[tuple[int, Any]]:
    elements = holder.get(name)
    return enumerate(elements) if isinstance(elements, list) else ()


def _inbound_messages(holder: _Object, path: Path, warn: Warn) -> None:
    for index, message in _elements(holder, "messages"):
        where = (*path, "messages", index)
        if isinstance(message, dict):
            for number, part in _elements(message, "content"):
                if isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in _MEDIA:
                    _drop_null(part, "metadata", (*where, "content", number), warn)
        upgrade_message(message, where, warn)


def _run_started(event: _Object, boundary: Boundary, warn: Warn) -> None:
    if isinstance(event.get("input"), dict):
        _run_input(event["input"], ("input",), warn)


def _run_input(run_input: _Object, path: Path, warn: Warn) -> None:
    _drop_null(run_input, "forwardedProps", path, warn)
    for name, member in (("tools", "parameters"), ("resume", "payload")):
        for index, element in _elements(run_input, name):
            _drop_null(element, member, (*path, name, index), warn)
    _inbound_messages(run_input, path, warn)


def _messages_snapshot(event: _Object, boundary: Boundary, warn: Warn) -> None:
    _inbound_messages(event, (), warn)


def _nulls(*names: str) -> Callable[[_Object, Boundary, Warn], None]:
    def handler(event: _Object, boundary: Boundary, warn: Warn) -> None:
        for name in names:
            _drop_null(event, name, (), warn)

    return handler


def _renamed(event: _Object, kind: str, warn: Warn) -> None:
    warn("OLD-1", f"the retired {event['type']} became {kind}", ())
    event["type"] = kind


def _continued(event: _Object, open_id: str | None, boundary: Boundary, warn: Warn) -> str:
    if open_id is not None:
        return open_id
    invented = boundary.invent()
    warn("OLD-1", f"a {event['type']} that nothing opened: its id {quoted(invented)} is invented", ())
    return invented


def _thinking_start(event: _Object, boundary: Boundary, warn: Warn) -> None:
    if "title" in event:
        del event["title"]
        warn("OLD-1", "the title of THINKING_START is lost: REASONING_START has none", ("title",))
    event["messageId"] = boundary.span = boundary.invent()
    _renamed(event, "REASONING_START", warn)


def _thinking_end(event: _Object, boundary: Boundary, warn: Warn) -> None:
    event["messageId"] = _continued(event, boundary.span, boundary, warn)
    boundary.span = None
    _renamed(event, "REASONING_END", warn)


def _thinking_text_start(event: _Object, boundary: Boundary, warn: Warn) -> None:
    event["messageId"] = boundary.message = boundary.invent()
    event["role"] = "reasoning"
    _renamed(event, "REASONING_MESSAGE_START", warn)


def _thinking_text_content(event: _Object, boundary: Boundary, warn: Warn) -> None:
    event["messageId"] = _continued(event, boundary.message, boundary, warn)
    _renamed(event, "REASONING_MESSAGE_CONTENT", warn)


def _thinking_text_end(event: _Object, boundary: Boundary, warn: Warn) -> None:
    event["messageId"] = _continued(event, boundary.message, boundary, warn)
    boundary.message = None
    _renamed(event, "REASONING_MESSAGE_END", warn)


_HANDLERS: dict[str, Callable[[_Object, Boundary, Warn], None]] = {
    "RUN_STARTED": _run_started,
    "RUN_FINISHED": _nulls("result", "outcome"),
    "SUBAGENT_FINISHED": _nulls("result"),
    "TOOL_CALL_START": _nulls("parentMessageId"),
    "TOOL_CALL_CHUNK": _nulls("parentMessageId"),
    "MESSAGES_SNAPSHOT": _messages_snapshot,
    "THINKING_START": _thinking_start,
    "THINKING_END": _thinking_end,
    "THINKING_TEXT_MESSAGE_START": _thinking_text_start,
    "THINKING_TEXT_MESSAGE_CONTENT": _thinking_text_content,
    "THINKING_TEXT_MESSAGE_END": _thinking_text_end,
}

TRANSLATED = frozenset(_HANDLERS)
"""The types of event that the boundary may change, whatever their members."""
