"""Content parts and their sources: what a user message or a tool result may hold besides text."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

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
    """Inline bytes: `value` in base64, valid or not, of type `mime_type`."""

    type: ClassVar[Literal["data"]] = "data"
    value: str
    mime_type: str


class UrlSource(TypedStruct, frozen=True, kw_only=True, tag="url"):
    """An address that somebody else chose: fetching it is the application's decision (SEC-8).

    value: the address.
    mime_type: the type of what is there, if known.
    """

    type: ClassVar[Literal["url"]] = "url"
    value: str
    mime_type: str | UnsetType = UNSET


class FileSource(TypedStruct, frozen=True, kw_only=True, tag="file"):
    """A file at a provider, never fetched and never parsed here (IN-10).

    value: the provider's handle, opaque.
    provider: the vendor's id in lower case.
    mime_type: the type of the file, if known.
    """

    type: ClassVar[Literal["file"]] = "file"
    value: str
    provider: str | UnsetType = UNSET
    mime_type: str | UnsetType = UNSET


Source: TypeAlias = DataSource | UrlSource | FileSource


class TextPart(TypedStruct, frozen=True, kw_only=True, tag="text"):
    """Plain text.

    text: the text.
    id: the part's own id.
    metadata: any JSON value but null.
    """

    type: ClassVar[Literal["text"]] = "text"
    text: str
    id: str | UnsetType = UNSET
    metadata: NotNull | UnsetType = UNSET


class _MediaPart(TypedStruct, frozen=True, kw_only=True):
    """What is not text.

    source: where the bytes are.
    id: the part's own id.
    metadata: any JSON value but null.
    """

    source: Source
    id: str | UnsetType = UNSET
    metadata: NotNull | UnsetType = UNSET


class ImagePart(_MediaPart, frozen=True, kw_only=True, tag="image"):
    """A picture."""

    type: ClassVar[Literal["image"]] = "image"


class AudioPart(_MediaPart, frozen=True, kw_only=True, tag="audio"):
    """A sound."""

    type: ClassVar[Literal["audio"]] = "audio"


class VideoPart(_MediaPart, frozen=True, kw_only=True, tag="video"):
    """A film."""

    type: ClassVar[Literal["video"]] = "video"


class DocumentPart(_MediaPart, frozen=True, kw_only=True, tag="document"):
    """Any other file."""

    type: ClassVar[Literal["document"]] = "document"


ContentPart: TypeAlias = TextPart | ImagePart | AudioPart | VideoPart | DocumentPart
