"""Chunk expansion (protocol section 11): chunk events become start, content and end events before they are judged.

A *lane* is the parent agent (key `None`) or one `subagentRunId`; it holds at most one open chunk stream. `plan` says
what an event expands to without changing anything, `commit` makes a plan's effect on the lanes come true, so that a
refused event leaves no trace. Both cost O(1) per event, O(lanes) for what closes all lanes and for chunks without an
id.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import msgspec

from agui_core._text import quoted
from agui_core.errors import LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.reducer.families import FAMILIES, FAMILY_OF, Family, FamilyName

__all__ = [
    "CHUNKS", "ChunkStream", "Expander", "Expansion", "Owner", "contents", "name_owner", "refuse",
]  # fmt: skip

Owner: TypeAlias = str | None
"""A `subagentRunId`, or None for the parent agent."""

Chunk: TypeAlias = e.TextMessageChunkEvent | e.ToolCallChunkEvent | e.ReasoningMessageChunkEvent


class ChunkStream(msgspec.Struct, frozen=True):
    """What a lane is assembling: the opener's fields, which later chunks may only repeat (CHUNK-7, CHUNK-8)."""

    family: FamilyName
    id: str
    role: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    parent: str | UnsetType = UNSET


CHUNKS = frozenset(family.chunk for family in FAMILIES)
_BY_NAME = {family.name: family for family in FAMILIES}

_OWN, _ALL, _INVOCATION = "own", "all", "invocation"

# CHUNK-20: whose chunk stream an explicit event closes. What is not listed closes nothing.
_CLOSES: dict[type[e.Event], str] = {
    e.TextMessageStartEvent: _OWN,
    e.TextMessageContentEvent: _OWN,
    e.TextMessageEndEvent: _OWN,
    e.ToolCallStartEvent: _OWN,
    e.ToolCallArgsEvent: _OWN,
    e.ToolCallEndEvent: _OWN,
    e.ToolCallResultEvent: _OWN,
    e.StepStartedEvent: _OWN,
    e.StepFinishedEvent: _OWN,
    e.StateSnapshotEvent: _OWN,
    e.StateDeltaEvent: _OWN,
    e.CustomEvent: _OWN,
    e.ReasoningStartEvent: _OWN,
    e.ReasoningEndEvent: _OWN,
    e.ReasoningMessageStartEvent: _OWN,
    e.ReasoningMessageContentEvent: _OWN,
    e.ReasoningMessageEndEvent: _OWN,
    e.RunStartedEvent: _ALL,
    e.RunFinishedEvent: _ALL,
    e.RunErrorEvent: _ALL,
    e.MessagesSnapshotEvent: _ALL,
    e.SubagentFinishedEvent: _INVOCATION,
    e.SubagentErrorEvent: _INVOCATION,
}


class Expansion(NamedTuple):
    """A plan: the ends that come first, what follows them, and what `commit` does to the lanes."""

    ends: list[e.Event]
    events: list[e.Event]
    closes: list[tuple[Owner, ChunkStream]]
    opens: tuple[Owner, ChunkStream] | None


class Expander:
    """The lanes of one stream."""

    __slots__ = ("_holders", "_limit", "lanes")

    def __init__(self, limits: Limits) -> None:
        self.lanes: dict[Owner, ChunkStream] = {}
        self._holders: dict[tuple[FamilyName, str], Owner] = {}
        self._limit = limits.lanes

    def plan(self, event: e.Event) -> Expansion:
        """What `event` expands to. Raises `ProtocolError` (CHUNK-3, -7, -8, -12..14) or `LimitExceeded`."""
        if type(event) in CHUNKS:
            return self._plan_chunk(event)  # type: ignore[arg-type]
        owners = self._closed_by(event)
        return Expansion([self._end(owner) for owner in owners], [event], self._streams(owners), None)

    def commit(self, expansion: Expansion) -> None:
        """Make the plan's effect on the lanes come true."""
        for owner, stream in expansion.closes:
            self._close(owner, stream)
        if expansion.opens is not None:
            self.open(*expansion.opens)

    def revert(self, expansion: Expansion) -> None:
        """Take back the effect of the plan that was committed last. A lane that is open again is the last one."""
        if expansion.opens is not None:
            self._close(*expansion.opens)
        for owner, stream in expansion.closes:
            self.open(owner, stream)

    def open(self, owner: Owner, stream: ChunkStream) -> None:
        """Set a lane's stream."""
        self.lanes[owner] = stream
        self._holders[stream.family, stream.id] = owner

    def _close(self, owner: Owner, stream: ChunkStream) -> None:
        del self.lanes[owner]
        del self._holders[stream.family, stream.id]

    def _streams(self, owners: list[Owner]) -> list[tuple[Owner, ChunkStream]]:
        return [(owner, self.lanes[owner]) for owner in owners]

    def holds(self, family: FamilyName, id: str) -> bool:
        """Whether some lane is assembling this item."""
        return (family, id) in self._holders

    def copy(self) -> Expander:
        """Independent lanes in the same state."""
        twin: Expander = object.__new__(Expander)
        twin.lanes, twin._holders, twin._limit = dict(self.lanes), dict(self._holders), self._limit
        return twin

    def clear(self) -> None:
        """Forget all lanes."""
        self.lanes.clear()
        self._holders.clear()

    def _closed_by(self, event: e.Event) -> list[Owner]:
        if not self.lanes:
            return []
        kind = type(event)
        reach = _CLOSES.get(kind)
        if reach is None:
            return []
        if reach is _ALL:
            return list(self.lanes)
        tag = event.subagent_run_id  # type: ignore[union-attr]
        own = None if tag is UNSET else tag
        owners = [own] if own in self.lanes else []
        family = FAMILY_OF.get(kind)
        if family is not None:  # the item may be the one that some lane assembles (CHUNK-24)
            holder = (family.name, getattr(event, family.id))
            if holder in self._holders and self._holders[holder] != own:
                owners.append(self._holders[holder])
        return owners

    def _plan_chunk(self, chunk: Chunk) -> Expansion:
        family = FAMILY_OF[type(chunk)]
        item: str | UnsetType = getattr(chunk, family.id)
        owner = self._lane(chunk, family, item)
        current = self.lanes.get(owner)
        if current is not None and current.family == family.name and (item is UNSET or item == current.id):
            self._check_repeats(chunk, family, current)
            return Expansion([], contents(chunk, current.id, owner, opened=False), [], None)
        stream = self._opener(chunk, family, item)
        if current is None and len(self.lanes) >= self._limit:
            raise LimitExceeded(
                f"more than {self._limit} chunk streams are open at one time", limit="lanes", type=chunk.type
            )
        ends = [] if current is None else [self._end(owner)]
        events = [_start(stream, chunk, owner), *contents(chunk, stream.id, owner, opened=True)]
        return Expansion(ends, events, [] if current is None else [(owner, current)], (owner, stream))

    def _lane(self, chunk: Chunk, family: Family, item: str | UnsetType) -> Owner:
        """Section 11.2: the lane that a chunk belongs to."""
        tag = chunk.subagent_run_id
        if item is not UNSET:
            holder = (family.name, item)
            if holder in self._holders:
                owner = self._holders[holder]
                if tag is not UNSET and tag != owner:
                    raise refuse(
                        "SUB-8",
                        chunk,
                        f"subagentRunId {quoted(tag)} does not match the owner of {family.noun} {quoted(item)},"
                        f" {name_owner(owner)}; leave the tag out or repeat the opener's",
                        item,
                    )
                return owner
            return None if tag is UNSET else tag
        if tag is not UNSET:
            return tag
        candidates = [owner for owner, stream in self.lanes.items() if stream.family == family.name]
        if None in candidates or not candidates:
            return None
        if len(candidates) > 1:
            raise refuse(
                "CHUNK-12",
                chunk,
                f"it names neither a {family.wire_id} nor a subagentRunId, and {len(candidates)} subagents have an open"
                f" {family.noun}: it is ambiguous; name one of the two",
                *[owner for owner in candidates if owner is not None],
            )
        return candidates[0]

    def _check_repeats(self, chunk: Chunk, family: Family, stream: ChunkStream) -> None:
        for attribute, held, wire in family.repeats:
            value = getattr(chunk, attribute)
            if attribute == "parent_message_id" and value == "":
                value = UNSET  # EVT-6
            established = getattr(stream, held)
            if value is not UNSET and value != established:
                shown = "absent" if established is UNSET else quoted(established)
                raise refuse(
                    "CHUNK-7",
                    chunk,
                    f"{wire} {quoted(value)} does not match the open stream's {wire}, {shown}; a later chunk of"
                    f" {family.noun} {quoted(stream.id)} may only repeat it",
                    stream.id,
                )

    def _opener(self, chunk: Chunk, family: Family, item: str | UnsetType) -> ChunkStream:
        if item is UNSET:
            raise refuse(
                "CHUNK-3",
                chunk,
                f"it opens a {family.noun} and so must have a {family.wire_id}; nothing is open to continue",
            )
        if isinstance(chunk, e.ToolCallChunkEvent):
            if chunk.tool_call_name is UNSET:
                raise refuse(
                    "CHUNK-3", chunk, f"it opens tool call {quoted(item)} and so must have a toolCallName", str(item)
                )
            parent = chunk.parent_message_id or UNSET  # EVT-6: an empty one counts as absent
            return ChunkStream("call", item, name=chunk.tool_call_name, parent=parent)
        if isinstance(chunk, e.TextMessageChunkEvent):
            return ChunkStream("text", item, role="assistant" if chunk.role is UNSET else chunk.role, name=chunk.name)
        return ChunkStream("reasoning", item)

    def _end(self, owner: Owner) -> e.Event:
        stream = self.lanes[owner]
        family = _BY_NAME[stream.family]
        return family.make(family.end, stream.id, subagent_run_id=UNSET if owner is None else owner)


def _start(stream: ChunkStream, chunk: Chunk, owner: Owner) -> e.Event:
    tag = UNSET if owner is None else owner
    metadata = chunk.metadata  # META-9: it goes on the start; the raw event goes on the content event
    if isinstance(chunk, e.TextMessageChunkEvent):
        return e.TextMessageStartEvent(
            message_id=stream.id,
            role="assistant" if chunk.role is UNSET else chunk.role,
            name=chunk.name,
            metadata=metadata,
            subagent_run_id=tag,
        )
    if isinstance(chunk, e.ToolCallChunkEvent):
        return e.ToolCallStartEvent(
            tool_call_id=stream.id,
            tool_call_name=str(chunk.tool_call_name),
            parent_message_id=stream.parent,
            metadata=metadata,
            subagent_run_id=tag,
        )
    return e.ReasoningMessageStartEvent(message_id=stream.id, role="reasoning", metadata=metadata, subagent_run_id=tag)


def contents(chunk: Chunk, item: str, owner: Owner, *, opened: bool) -> list[e.Event]:
    """The content event of a chunk, if it has one (CHUNK-5, META-9)."""
    delta = chunk.delta
    if delta is UNSET:
        if chunk.raw_event is UNSET and (opened or chunk.metadata is UNSET):
            return []
        delta = ""
    tag = UNSET if owner is None else owner
    metadata = UNSET if opened else chunk.metadata
    raw = chunk.raw_event
    family = FAMILY_OF[type(chunk)]
    return [family.make(family.content, item, delta=delta, metadata=metadata, raw_event=raw, subagent_run_id=tag)]


def name_owner(owner: Owner) -> str:
    """How an owner is called in a message to people."""
    return "the parent agent" if owner is None else f"subagent {quoted(owner)}"


def refuse(rule: str, event: e.Event, message: str, *ids: str) -> ProtocolError:
    """The error for an event out of order; the caller adds its index."""
    return ProtocolError(message, rule=rule, type=event.type, ids=ids)
