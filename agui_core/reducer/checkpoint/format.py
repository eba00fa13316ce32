"""What a checkpoint looks like, and how increments are put on top of a whole one.

A file is a header (mark, format version, checksum, length of the body, lineage) and a body in msgpack, decoded by type.
Messages, the state and all else that has open data in it are JSON texts inside the body, so that integers beyond 64
bits survive. Messages are named by serials, calls by the serial of their message and their place in it.

The lineage tells whether an increment continues a checkpoint: all checkpoints that one reducer made at one version have
the same, so that any of them will do.

A whole checkpoint is an increment on nothing. An increment holds the messages that changed, the new ends of tables that
only grow, and all that is open; with `order`, or a table that is `fresh`, it replaces what was there.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from struct import Struct as Layout
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Struct

from agui_core.errors import AGUIError
from agui_core.limits import Limits
from agui_core.reducer.chunks import ChunkStream
from agui_core.reducer.stream_state import Phase
from agui_core.status import Status
from agui_core.warnings import ProtocolWarning
from agui_core.wire import Boundary
from agui_core.wire.framing import BufferState

__all__ = [
    "TABLES",
    "Body",
    "ConversationPart",
    "Counters",
    "MessageRecord",
    "OpenRecord",
    "Places",
    "Ref",
    "Refusal",
    "RunPart",
    "StreamPart",
    "Settings",
    "Whole",
    "lineage",
    "ranges",
    "read",
    "write",
]

FORMAT = 1
"""Goes up with every change after which an older reader would go wrong."""
MAGIC = b"AGUICKPT"
_HEADER = Layout(">8sHIQI")

Natural: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Serial: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]
Ref: TypeAlias = tuple[int, int]
"""An entry: its message's serial, and the call's place in the message or -1 for the message itself."""
Refs: TypeAlias = list[tuple[Serial, Annotated[int, msgspec.Meta(ge=-1)]]]

TABLES = (
    "message_owners",
    "reasoning_owners",
    "call_owners",
    "started_calls",
    "ended_subagents",
    "tags",
    "suspended_on",
    "run_ids",
)
"""Tables of `StreamState` that only grow within a run, by their names there."""


class MessageRecord(Struct, frozen=True, array_like=True):
    """A message as it is, with its calls."""

    serial: Serial
    message: bytes
    """JSON."""
    added: Natural
    stamp: Natural
    block: Natural
    """The block that it was in when it came; blocks end, and no message moves, save where there is an `order`."""
    follows: bool
    """Whether it is a tool message, and so belongs to the block before it."""
    grows: bool
    """Whether the last part of its content is the text that grows."""
    calls: list[tuple[Natural, Natural, bool, bool]]
    """Of each call: when it was added and last changed, whether it is complete, and whether it is broken."""


class ConversationPart(Struct, frozen=True, array_like=True):
    """The messages that changed, and what says where they stand."""

    messages: list[MessageRecord]
    order: list[tuple[Serial, Natural]] | None
    """All messages in order, as ranges: first serial, length. None when all new ones come at the end of a block."""
    log: Refs
    """What changed, in the order of the last change."""
    calls: Refs
    """Calls by id, in the order in which they came: all of them with an `order`, else the new ones."""
    results: list[Serial]
    """The messages that are the results of calls, likewise."""
    removed: list[tuple[str, Natural]]
    reordered: Natural
    restated: Natural
    serials: Natural
    characters: Natural
    largest: Natural
    pieces: Natural


class OpenRecord(Struct, frozen=True, array_like=True):
    """An open item."""

    start: bytes
    """JSON of its start event."""
    owner: str | None
    entry: tuple[Serial, Annotated[int, msgspec.Meta(ge=-1)]] | None
    half: Annotated[int, msgspec.Meta(ge=0, le=0xDFFF)]
    """The code of half a surrogate pair, or 0."""
    broken: bool


class StreamPart(Struct, frozen=True, array_like=True):
    """What is open, and what this run knows of owners."""

    phase: Phase
    thread_id: str | None
    run_id: str | None
    fresh: bool
    """Whether the tables (save for `run_ids`) and `answered` replace what was there."""
    tables: dict[str, dict[str, str | None]]
    answered: list[str]
    activity_owners: dict[str, str | None]
    texts: list[OpenRecord]
    calls: list[OpenRecord]
    reasonings: list[OpenRecord]
    spans: list[str]
    steps: list[tuple[str | None, str]]
    subagents: list[str]
    lanes: list[tuple[str | None, ChunkStream]]


class Counters(Struct, frozen=True, array_like=True):
    """Where in the stream it is, and what is left of the limits; by the names in `ReducerState`."""

    other_events: int
    other_changes: int
    state_version: Natural
    run_version: Natural
    run_began_at: Natural
    char_budget: int
    overhead_chars: int
    overhead_since: int
    near_limit: bool
    quiet_from: Natural = 0
    has_spoken: bool = False
    """Whether a message grew since what the run said was last looked at."""


class Refusal(Struct, frozen=True, array_like=True):
    """Why the stream was refused."""

    kind: str
    message: str
    rule: str
    index: int | None
    type: str | None
    ids: tuple[str, ...]
    limit: str


class RunPart(Struct, frozen=True, array_like=True):
    """The latest run."""

    status: Status
    run: bytes
    """JSON of a `Run`."""
    named_pending: tuple[str, ...]
    error: Refusal | None


class Settings(Struct, frozen=True, array_like=True):
    """What a reducer is made with."""

    policy: Literal["strict", "lenient"]
    limits: Limits
    assumed: tuple[str, str]


class Body(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One checkpoint. What is None has not changed."""

    version: Natural
    since: Natural | None = None
    """The version that this is an increment on; None for a whole checkpoint."""
    base: Natural = 0
    """The lineage of the checkpoint at that version."""
    settings: Settings | None = None
    counters: Counters
    conversation: ConversationPart
    sequence: StreamPart
    answered: list[str]
    """Calls answered by the application; like `StreamState.answered`."""
    run: RunPart | None = None
    state: bytes | None = None
    warnings: tuple[list[ProtocolWarning], Natural] | None = None
    boundary: Boundary
    sse: BufferState
    lines: BufferState
    extra: bytes = b""


_decoder = msgspec.msgpack.Decoder(Body)
_encoder = msgspec.msgpack.Encoder()


def write(body: Body, lineage: int | None) -> bytes:
    """The bytes of a checkpoint; the first at its version has no lineage and begins one."""
    try:
        packed = _encoder.encode(body)
    except (TypeError, ValueError, OverflowError) as error:
        raise AGUIError(f"what this reducer holds cannot be written as a checkpoint: {error}") from None
    if lineage is None:
        lineage = zlib.crc32(packed)
    return _HEADER.pack(MAGIC, FORMAT, zlib.crc32(packed, lineage), len(packed), lineage) + packed


def lineage(data: bytes) -> int:
    """The lineage of a checkpoint that was written or parsed."""
    number: int = _HEADER.unpack_from(data)[-1]
    return number


def _parse(data: bytes, name: str) -> Body:
    if data[: len(MAGIC)] != MAGIC[: len(data)] or not data:
        raise AGUIError(f"{name} is no checkpoint of a reducer")
    if len(data) < _HEADER.size:
        raise AGUIError(f"{name} is cut short: {len(data)} bytes are not even a header")
    _, version, checksum, length, start = _HEADER.unpack_from(data)
    if version > FORMAT:
        raise AGUIError(
            f"{name} has format {version}, and this version of agui_core reads formats up to {FORMAT}; restore it with"
            " the version that made it, or a newer one"
        )
    packed = data[_HEADER.size :]
    if len(packed) < length:
        raise AGUIError(f"{name} is cut short: {len(packed)} of {length} bytes are there")
    if version < 1 or len(packed) > length or zlib.crc32(packed, start) != checksum:
        raise AGUIError(f"{name} is damaged: its checksum does not fit")
    try:
        return _decoder.decode(packed)
    except (msgspec.MsgspecError, RecursionError, ValueError) as error:
        raise AGUIError(f"{name} is damaged: {error}") from None


class Places:
    """The messages of a checkpoint and its increments: where they stand, and what is said of them and their calls."""

    def __init__(self) -> None:
        self.records: dict[int, MessageRecord] = {}
        self._blocks: list[list[int]] = []
        self.log: dict[Ref, None] = {}
        self.calls: dict[Ref, None] = {}
        self.results: dict[int, None] = {}
        self.removed: dict[str, int] = {}

    def serials(self) -> Iterator[int]:
        """All messages in order."""
        for block in self._blocks:
            yield from block

    def add(self, part: ConversationPart) -> None:
        """Put an increment on top. Raises `ValueError` or `LookupError` when it does not fit."""
        new = [record for record in part.messages if record.serial not in self.records]
        self.records.update((record.serial, record) for record in part.messages)
        if part.order is None:
            for record in new:
                self._place(record)
        else:
            self._arrange(part.order)
            self.calls.clear()
            self.results.clear()
        for ref in part.log:
            self.log.pop(ref, None)
            self.log[ref] = None
        self.calls.update(dict.fromkeys(part.calls))
        self.results.update(dict.fromkeys(part.results))
        for id, version in part.removed:
            self.removed.pop(id, None)
            self.removed[id] = version

    def _place(self, record: MessageRecord) -> None:
        if record.block == len(self._blocks):
            self._blocks.append([record.serial])
        else:
            self._blocks[record.block].append(record.serial)

    def _arrange(self, order: list[tuple[int, int]]) -> None:
        if sum(length for _, length in order) > len(self.records):
            raise ValueError("more messages in order than there are")
        serials = [serial for first, length in order for serial in range(first, first + length)]
        records = {serial: self.records[serial] for serial in serials}
        if len(records) != len(serials):
            raise ValueError("a message stands in two places")
        self.records = records
        self._blocks = []
        for record in records.values():
            if record.follows and self._blocks:
                self._blocks[-1].append(record.serial)
            else:
                self._blocks.append([record.serial])
        self.log = {ref: None for ref in self.log if ref[0] in records}


class Whole(Struct):
    """A whole checkpoint and its increments as one: the parts of the last, with the earlier ones merged in."""

    last: Body
    settings: Settings
    places: Places
    tables: dict[str, dict[str, str | None]]
    run_answered: dict[str, None]
    answered: dict[str, None]
    run: RunPart
    state: bytes
    warnings: tuple[list[ProtocolWarning], int]


def read(data: bytes, increments: Sequence[bytes]) -> Whole:
    """Decode a whole checkpoint and the increments made after it, and merge them. Raises `AGUIError` for all else."""
    names = ["the checkpoint" if not increments else "the first checkpoint"]
    names += [f"increment {number}" for number in range(1, len(increments) + 1)]
    bodies = [_parse(piece, name) for piece, name in zip((data, *increments), names, strict=True)]
    base = bodies[0]
    if base.since is not None:
        raise AGUIError(
            f"{names[0]} is an increment on version {base.since}; the whole one it continues has to come first"
        )
    for position, (before, body) in enumerate(pairwise(bodies), 1):
        _check_chain(before, body, lineage((data, *increments)[position - 1]), names[position])
    try:
        return _merge(bodies)
    except (LookupError, ValueError, TypeError) as error:
        raise AGUIError(f"{names[-1]} is damaged: {error}") from None


def _check_chain(before: Body, body: Body, lineage: int, name: str) -> None:
    if body.since is None:
        raise AGUIError(f"{name} is a whole checkpoint; restore from it and what comes after it")
    if body.since != before.version or body.base != lineage:
        raise AGUIError(
            f"{name} continues another checkpoint (one at version {body.since}) than the one before it (at version"
            f" {before.version}); give the whole one and then its increments, each made `since` the one before it"
        )


def _merge(bodies: list[Body]) -> Whole:
    base, last = bodies[0], bodies[-1]
    if base.settings is None or base.run is None or base.state is None or base.warnings is None:
        raise ValueError("a whole checkpoint has all parts")
    whole = Whole(last, base.settings, Places(), {}, {}, {}, base.run, base.state, base.warnings)
    for body in bodies:
        whole.places.add(body.conversation)
        _merge_tables(whole, body)
        whole.run = body.run or whole.run
        whole.state = whole.state if body.state is None else body.state
        whole.warnings = body.warnings or whole.warnings
    return whole


def _merge_tables(whole: Whole, body: Body) -> None:
    part = body.sequence
    if part.fresh:
        whole.tables = {"run_ids": whole.tables.get("run_ids", {})}
        whole.run_answered.clear()
        whole.answered.clear()
    for name in TABLES:
        whole.tables.setdefault(name, {}).update(part.tables.get(name, {}))
    whole.run_answered.update(dict.fromkeys(part.answered))
    whole.answered.update(dict.fromkeys(body.answered))


def ranges(serials: Iterable[int]) -> list[tuple[int, int]]:
    """Serials in order, as ranges."""
    found: list[tuple[int, int]] = []
    for serial in serials:
        if found and sum(found[-1]) == serial:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        else:
            found.append((serial, 1))
    return found
