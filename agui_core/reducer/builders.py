"""The messages and calls of a conversation while they grow, one builder each.

A text is kept as one string that grows in place while nobody holds an older one, so reading after every piece does not
copy the text each time.

Builders are dataclasses, because their attributes are set all the time, which is slow for structs.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from agui_core.limits import Limits
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.content import ContentPart, TextPart
from agui_core.protocol.messages import ActivityMessage, AssistantMessage, FunctionCall, Message, ToolCall
from agui_core.reducer.call_arguments import CallArguments
from agui_core.reducer.json_patch import Document

__all__ = ["CallBuilder", "Builder", "MessageBuilder"]

_encode = msgspec.json.encode
_NAMES = ("id", "name", "encrypted_value", "subagent_run_id", "tool_call_id", "error", "activity_type")
_ROLES: dict[type[Message], str] = {kind: str(kind.__struct_config__.tag) for kind in Message.__args__}


@dataclass(eq=False, slots=True)
class _Growing:
    """Text that arrives in pieces. `text` is None until there is any, be it empty (TEXT-6)."""

    id: str
    text: str | None
    metadata: dict[str, Any] | UnsetType
    pieces: list[str] = field(init=False, default_factory=list)
    touched: bool = field(init=False, default=False)
    added: int = field(init=False, default=-1)
    """The version at which it was first seen, 0 if it was there from the start, -1 before the first settling."""
    stamp: int = field(init=False, default=0)
    """The version at which it was last seen to have changed."""
    owns_metadata: bool = field(init=False, default=False)
    """Whether nobody else has seen the metadata, so that it may be changed in place."""
    counted: int = field(init=False, default=0)
    """The characters of its text that the conversation has counted."""

    def fold(self) -> None:
        """Join the pieces, of which there are some, to the text."""
        pieces = self.pieces
        more = "".join(pieces) if len(pieces) > 1 else pieces[0]
        pieces.clear()
        text = self.text
        if text is None:
            self.text = more
        else:
            # With only a local variable holding the string, CPython extends it in place.
            self.text = None
            text += more
            self.text = text

    def merge_metadata(self, metadata: dict[str, Any]) -> None:
        """META-2: key by key, the last one wins, no recursion. What was handed out is copied first, once."""
        if self.metadata is UNSET:
            self.metadata = dict(metadata)
        elif self.owns_metadata:
            self.metadata.update(metadata)
        else:
            self.metadata = {**self.metadata, **metadata}
        self.owns_metadata = True


@dataclass(eq=False, slots=True)
class CallBuilder(_Growing):
    """A tool call; its text is the arguments."""

    holder: MessageBuilder
    place: int
    """Among the calls of its message."""
    name: str
    encrypted_value: str | UnsetType = UNSET
    complete: bool = False
    broken: bool = field(init=False, default=False)
    """Whether half a surrogate pair was lost in the arguments."""
    reading: CallArguments | None = field(init=False, default=None)

    @classmethod
    def of(cls, call: ToolCall, holder: MessageBuilder, place: int) -> CallBuilder:
        """The entry of a call as it is held."""
        text = call.function.arguments
        entry = cls(call.id, text, call.metadata, holder, place, call.function.name, call.encrypted_value, True)
        entry.counted = len(text)
        return entry

    def copy(self, holder: MessageBuilder) -> CallBuilder:
        """The same call in the copy of its message, settled."""
        self.owns_metadata = False
        twin = copy(self)
        twin.holder, twin.pieces, twin.reading = holder, [], None
        return twin

    def build(self) -> ToolCall:
        """The frozen call as of the last settling."""
        self.owns_metadata = False
        return ToolCall(
            id=self.id,
            type="function",
            function=FunctionCall(name=self.name, arguments=self.text or ""),
            encrypted_value=self.encrypted_value,
            metadata=self.metadata,
        )


@dataclass(eq=False, slots=True)
class MessageBuilder(_Growing):
    """A message; its text is the content, or the text part that grows at the end of a list of parts."""

    role: str
    base: Message
    """Gives the fields that `build` does not set."""
    message: Message | None
    """The frozen message, None while it is stale."""
    parts: list[ContentPart] | None = field(init=False, default=None)
    document: Document | None = field(init=False, default=None)
    """The content of an activity."""
    calls: list[CallBuilder] | None = field(init=False, default=None)
    frozen: list[ToolCall | None] | None = field(init=False, default=None)
    """Its calls as its message has them, None where one is stale."""
    serial: int = field(init=False, default=0)
    """Its name in checkpoints, which the first one that holds it gives it."""
    number: int = field(init=False, default=-1)
    """Of the block that it stands in; -1 while it stands nowhere."""
    rank: int = field(init=False, default=0)
    """Its place in that block."""
    tail: list[MessageBuilder] | None = field(init=False, default=None)
    """The tool messages that follow directly, if it is a block's first."""
    position: int = field(init=False, default=0)

    @classmethod
    def of(cls, message: Message, limits: Limits) -> MessageBuilder:
        """The entry of a message as it is held or made."""
        content: Any = message.content
        text = content if type(content) is str else None
        entry = cls(message.id, text, message.metadata, _ROLES[type(message)], message, message)
        if text is not None:
            entry.counted = len(text)
        elif type(content) is tuple:
            entry.parts = list(content)
        elif type(message) is ActivityMessage:
            entry.document = Document(message.content, limits)
        if type(message) is AssistantMessage and message.tool_calls is not UNSET:
            entry.calls = [CallBuilder.of(call, entry, place) for place, call in enumerate(message.tool_calls)]
            entry.frozen = list(message.tool_calls)
        return entry

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands, comparable between messages."""
        return self.number, self.rank

    @property
    def characters(self) -> int:
        """Characters of content and arguments, as of the last settling."""
        total = len(self.text or "")
        for part in self.parts or ():
            total += len(part.text) if isinstance(part, TextPart) else len(part.source.value)
        for call in self.calls or ():
            total += len(call.text or "")
        return total

    @property
    def other_characters(self) -> int:
        """Characters of everything but content and arguments; bytes of JSON where it is open data."""
        names = [getattr(self.base, name, UNSET) or "" for name in _NAMES]
        total = sum(map(len, names))
        for call in self.calls or ():
            total += len(call.id) + len(call.name) + len(call.encrypted_value or "")
        for holder in (self, *(self.calls or ())):
            if holder.metadata is not UNSET:
                total += len(_encode(holder.metadata))
        for part in self.parts or ():
            total += len(_encode(part.metadata)) if part.metadata is not UNSET else 0
        if self.document is not None:
            total += len(_encode(self.document.value))
        return total

    def build(self) -> Message:
        """The frozen message as of the last folding; costs one pointer per part and per call."""
        content: Any
        self.owns_metadata = False
        if self.document is not None:
            content = self.document.value
        elif self.parts is not None:
            content = tuple(self.parts) if self.text is None else (*self.parts, TextPart(text=self.text))
        else:
            content = UNSET if self.text is None else self.text
        if self.frozen is None:
            message = replace(self.base, content=content, metadata=self.metadata)
        else:
            message = replace(self.base, content=content, metadata=self.metadata, tool_calls=tuple(self.frozen))
        self.message = message
        return message

    def copy(self) -> MessageBuilder:
        """The same message, settled, for another conversation."""
        twin = copy(self)
        twin.pieces, twin.number, twin.rank, twin.tail = [], -1, 0, None
        if self.document is not None:
            twin.document = self.document.copy()
        twin.owns_metadata = self.owns_metadata = False
        twin.parts = None if self.parts is None else list(self.parts)
        if self.calls is not None:
            twin.calls = [call.copy(twin) for call in self.calls]
            twin.frozen = list(self.frozen or ())
        return twin

    def settle_part(self) -> None:
        """End the text part that grows, so that another one can begin after it. The conversation is settled."""
        if self.parts is not None and self.text is not None:
            self.parts.append(TextPart(text=self.text))
            self.text = None
            self.counted = 0


Builder = MessageBuilder | CallBuilder
