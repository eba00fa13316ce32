"""Content parts and their sources: what a user message or a tool result may hold besides text."""

from __future__ import annotations

from typing import TypeAlias

from agui_core.protocol.base import UNSET, NotNull, TypedStruct, UnsetType

__all__ = [
    "AudioPart",
    "ContentPart",
    "DataSource",
    "DocumentPart",
    "FileSource",
    "ImagePart",
    "Source",
    "TextPart",
    "UrlSource",
    "VideoPart",
]


class DataSource(TypedStruct, frozen=True, kw_only=True, tag="data"):
    """Inline bytes as base64. Whether it is valid base64 is found out by whoever decodes it."""

    value: str
    mime_type: str


class UrlSource(TypedStruct, frozen=True, kw_only=True, tag="url"):
    """An address chosen by somebody else: fetching it is a decision of the application (SEC-8)."""

    value: str
    mime_type: str | UnsetType = UNSET


class FileSource(TypedStruct, frozen=True, kw_only=True, tag="file"):
    """An opaque handle at a provider, never fetched and never parsed (IN-10)."""

    value: str
    provider: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


Source: TypeAlias = DataSource | UrlSource | FileSource


class TextPart(TypedStruct, frozen=True, kw_only=True, tag="text"):
    """Plain text."""

    text: str
    id: str | UnsetType = UNSET
    metadata: NotNull | UnsetType = UNSET


class _MediaPart(TypedStruct, frozen=True, kw_only=True):
    source: Source
    id: str | UnsetType = UNSET
    metadata: NotNull | UnsetType = UNSET


class ImagePart(_MediaPart, frozen=True, kw_only=True, tag="image"):
    """A picture."""


class AudioPart(_MediaPart, frozen=True, kw_only=True, tag="audio"):
    """A sound."""


class VideoPart(_MediaPart, frozen=True, kw_only=True, tag="video"):
    """A film."""


class DocumentPart(_MediaPart, frozen=True, kw_only=True, tag="document"):
    """Any other file."""


ContentPart: TypeAlias = TextPart | ImagePart | AudioPart | VideoPart | DocumentPart
