"""`StreamState`: what is open, and who owns what, in the run that goes on (protocol sections 5 to 10, 15).

Theory of operation. A stream is in one of four phases. `rules` has a table for each phase, from event type to *rule*,
a function `(stream, event)`. It either raises `ProtocolError` and changes nothing, or notes here what the event opens
and closes and returns the item concerned. A type that the table of the phase lacks is refused. A run event changes
the phase, so no rule has to ask whether a run is active.

    idle      RUN_STARTED -> running    RUN_ERROR -> failed
    running   RUN_FINISHED -> finished  RUN_ERROR -> failed    everything else stays
    finished  RUN_STARTED -> running    RUN_ERROR -> failed
    failed    RUN_STARTED -> running

The lenient policy knows two more, for events that come after a run's end: `finished+` and `failed+` take what
`finished` and `failed` take, and all that a running run takes besides its ends.

An `OpenItem` in a table proves that the item is open and says who owns it, so one look-up by id verifies an event.
Nothing here grows with the text. What grows are the ids and owners of this run's items, which the limits bound. Expects
expanded events (section 11).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias

from msgspec.structs import replace

from agui_core._text import quoted
from agui_core.errors import LimitExceeded
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.messages import AssistantMessage, Message
from agui_core.reducer.chunks import Owner, name_owner, refuse
from agui_core.reducer.families import FAMILIES, FAMILY_OF
from agui_core.reducer.items import Note, OpenItem

__all__ = ["Phase", "StreamState"]


_OWNERS = {"reasoning": "reasoning_owners", "activity": "activity_owners"}
"""The table that knows who owns a message, by its role; `message_owners` for all others."""


_SUBAGENT_EVENTS = (e.SubagentStartedEvent, e.SubagentFinishedEvent, e.SubagentErrorEvent)


_TABLES = (
    "activity_owners",
    "answered",
    "call_owners",
    "calls",
    "ended_subagents",
    "message_owners",
    "reasoning_owners",
    "reasonings",
    "run_ids",
    "spans",
    "started_calls",
    "steps",
    "subagents",
    "suspended_on",
    "tags",
    "texts",
)
"""The tables that grow within a run; new keys come last."""


Phase: TypeAlias = Literal["idle", "running", "finished", "failed", "finished+", "failed+"]


class Mark(NamedTuple):
    """A stream state before an event."""

    phase: Phase
    thread_id: str | None
    run_id: str | None
    tables: dict[str, Any]
    lengths: list[int]
    values: list[tuple[dict[str, Any], Any, Any]]
    """What the event may say anew of what is known: table, key, value."""
    owners: list[tuple[OpenItem, Owner]]


class StreamState:
    """The state of one stream, as far as order and ownership go."""

    __slots__ = (
        "_note",
        "activity_owners",
        "answered",
        "call_owners",
        "calls",
        "ended_subagents",
        "limits",
        "message_owners",
        "phase",
        "reasoning_owners",
        "reasonings",
        "run_id",
        "run_ids",
        "spans",
        "started_calls",
        "steps",
        "subagents",
        "suspended_on",
        "tags",
        "texts",
        "thread_id",
    )

    def __init__(self, limits: Limits, note: Note) -> None:
        self.limits = limits
        self._note = note
        self.phase: Phase = "idle"
        self.thread_id: str | None = None
        self.run_id: str | None = None
        self.run_ids: dict[str, None] = {}
        # Tables only grow within a run, at their end, so that a checkpoint finds what is new.
        # Open now.
        self.texts: dict[str, OpenItem] = {}
        self.calls: dict[str, OpenItem] = {}
        self.reasonings: dict[str, OpenItem] = {}
        self.spans: dict[str, None] = {}
        self.steps: dict[tuple[Owner, str], None] = {}
        self.subagents: dict[str, None] = {}
        # Of this run: who owns what (SUB-16), in one table per kind of item, as ids are unique within a kind only.
        self.message_owners: dict[str, Owner] = {}
        self.reasoning_owners: dict[str, Owner] = {}
        self.activity_owners: dict[str, Owner] = {}
        self.call_owners: dict[str, Owner] = {}
        self.ended_subagents: dict[str, None] = {}
        self.tags: dict[str, None] = {}
        self.suspended_on: dict[str, None] = {}
        self.started_calls: dict[str, str] = {}
        self.answered: set[str] = set()

    @property
    def pending(self) -> tuple[str, ...]:
        """Calls started in this run without a result in it, in order (FT-2)."""
        if not self.answered:
            return tuple(self.started_calls)
        return tuple([call for call in self.started_calls if call not in self.answered])

    @property
    def characters(self) -> int:
        """Characters of the ids and names that are remembered of this run. O(ids)."""
        tables = (
            self.run_ids, self.spans, self.subagents, self.message_owners, self.reasoning_owners, self.activity_owners,
            self.call_owners, self.ended_subagents, self.tags, self.suspended_on, self.started_calls, self.answered,
        )  # fmt: skip
        return sum([sum(map(len, table)) for table in tables]) + sum([len(name) for _, name in self.steps])

    @property
    def anything_open(self) -> bool:
        """Whether a run could not finish now (RUN-4)."""
        return bool(self.texts or self.calls or self.reasonings or self.spans or self.steps or self.subagents)

    def open_item(self, event: e.Event) -> OpenItem | None:
        """The open item that an event names."""
        if isinstance(event, e.ToolCallArgsEvent | e.ToolCallEndEvent | e.ToolCallStartEvent):
            return self.calls.get(event.tool_call_id)
        id = getattr(event, "message_id", None)
        return (self.texts.get(id) or self.reasonings.get(id)) if isinstance(id, str) else None

    def copy(self, note: Note) -> StreamState:
        """An independent copy."""
        twin: StreamState = object.__new__(StreamState)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(twin, name, value.copy() if isinstance(value, dict | set) else value)
        for table in (twin.texts, twin.calls, twin.reasonings):
            table.update({id: replace(item, entry=None) for id, item in table.items()})
        twin._note = note
        return twin

    def reopen_run(self) -> None:
        """Let events for a run that has ended pass (lenient)."""
        self.phase = "finished+" if self.phase == "finished" else "failed+"

    def unverify(self, event: e.Event, item: OpenItem | None) -> None:
        """Undo what the event verified last opened or ended: what it ended is open again, what it started is gone."""
        kind = type(event)
        family = FAMILY_OF.get(kind)
        if item is None or family is None:
            return
        if kind is family.end:
            getattr(self, family.open)[item.id] = item
        elif kind is family.start:
            getattr(self, family.open).pop(item.id, None)

    def mark(self, event: e.Event, *, repaired: bool = False) -> Mark:
        """What `restore` needs to make an event unsaid that is refused after it was verified, or `repaired`, which may
        begin a run. O(1), but O(owners) for a snapshot of the messages.
        """
        snapshot = isinstance(event, e.MessagesSnapshotEvent)
        alone = not repaired and isinstance(event, e.StateDeltaEvent | e.StateSnapshotEvent)
        names = ("tags",) if alone else _TABLES
        tables = {name: getattr(self, name) for name in names}
        if snapshot:
            tables = {name: table.copy() for name, table in tables.items()}
        id: Any = getattr(event, "message_id", UNSET)
        call: Any = getattr(event, "tool_call_id", UNSET)
        named: tuple[tuple[dict[str, Any], Any], ...] = (
            (self.message_owners, id),
            (self.activity_owners, id),
            (self.started_calls, call),
        )
        return Mark(
            self.phase,
            self.thread_id,
            self.run_id,
            tables,
            [len(table) for table in tables.values()],
            [(table, key, table[key]) for table, key in named if key in table],
            [(item, item.owner) for table in (self.texts, self.calls, self.reasonings) for item in table.values()]
            if snapshot
            else [],
        )

    def restore(self, mark: Mark, event: e.Event) -> None:
        """Be as at the mark. What the event opened and ended was taken back by `unverify` already."""
        self.phase = mark.phase
        self.thread_id, self.run_id = mark.thread_id, mark.run_id
        for (name, table), length in zip(mark.tables.items(), mark.lengths, strict=True):
            setattr(self, name, table)
            if isinstance(table, dict):
                while len(table) > length:
                    table.popitem()
            elif len(table) > length and isinstance(event, e.ToolCallResultEvent):
                table.discard(event.tool_call_id)
        for table, key, value in mark.values:
            table[key] = value
        for item, owner in mark.owners:
            item.owner = owner

    def begin_run(self, event: e.RunStartedEvent) -> None:
        """RUN-9: a new run starts with nothing open. The tables are new ones, as `mark` may hold the old ones."""
        self.texts, self.calls, self.reasonings = {}, {}, {}
        self.spans, self.steps, self.subagents = {}, {}, {}
        self.message_owners, self.reasoning_owners, self.activity_owners, self.call_owners = {}, {}, {}, {}
        self.ended_subagents, self.tags, self.suspended_on = {}, {}, {}
        self.started_calls, self.answered = {}, set()
        self.thread_id = event.thread_id
        self.run_id = event.run_id
        self.phase = "running"

    def own_messages(self, event: e.Event, messages: tuple[Message, ...], *, authoritative: bool) -> None:
        """Set owners from restated messages: over what is known (SUB-16) or only where nothing is (OPEN-2)."""
        for message in messages:
            owner = None if message.subagent_run_id is UNSET else message.subagent_run_id
            table = getattr(self, _OWNERS.get(message.role, "message_owners"))
            if authoritative or message.id not in table:
                table[message.id] = owner
            if isinstance(message, AssistantMessage) and message.tool_calls is not UNSET:
                for call in message.tool_calls:
                    if authoritative or call.id not in self.call_owners:
                        self.call_owners[call.id] = owner
        if authoritative:
            for family in FAMILIES:
                owners = getattr(self, family.owners)
                for item in getattr(self, family.open).values():
                    item.owner = owners[item.id]
            self._forget_dropped(messages)

    def _forget_dropped(self, messages: tuple[Message, ...]) -> None:
        """Keep the tables of a run bounded when snapshots take messages away as fast as others come."""
        messages_bound, calls_bound = self.limits.messages, self.limits.tool_calls
        kept: set[str] = {message.id for message in messages}
        kept_calls = {c.id for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls or ()}
        for owners, stay, open_items, bound in (
            (self.message_owners, kept, self.texts, messages_bound),
            (self.reasoning_owners, kept, self.reasonings, messages_bound),
            (self.activity_owners, kept, {}, messages_bound),
            (self.call_owners, kept_calls, self.calls, calls_bound),
        ):
            if len(owners) >= bound:
                for id in [id for id in owners if id not in stay and id not in open_items and id not in self.spans]:
                    del owners[id]
        if len(self.answered) >= calls_bound or len(self.started_calls) >= calls_bound:
            # What the run neither holds nor waits for is nobody's concern any more.
            for id in [id for id in self.started_calls if id in self.answered and id not in kept_calls]:
                del self.started_calls[id]
            self.answered &= self.started_calls.keys() | kept_calls

    def agree(
        self, event: e.Event, tag: str | UnsetType, owner: Owner, noun: str, id: str, rule: str = "SUB-8"
    ) -> None:
        """Raise unless a present tag names the owner; an absent one never disagrees (SUB-8, SUB-9)."""
        if tag is not UNSET and tag != owner:
            raise refuse(
                rule,
                event,
                f"subagentRunId {quoted(tag)} does not match the owner of {noun} {quoted(id)}, {name_owner(owner)};"
                " leave the tag out or repeat the opener's",
                id,
            )

    def room_for_one(self, event: e.Event) -> None:
        """Raise `LimitExceeded` when one more open item is too many."""
        held = len(self.texts) + len(self.calls) + len(self.reasonings) + len(self.spans) + len(self.steps)
        if held >= self.limits.open_items:
            raise LimitExceeded(
                f"more than {self.limits.open_items} items are open at one time", limit="open_items", type=event.type
            )

    def warn(self, rule: str, event: e.Event, message: str) -> None:
        """Report a breach that rejects nothing (section 23)."""
        self._note(rule, event.type, message)

    def note_tag(self, event: e.Event, tag: str) -> None:
        if tag in self.ended_subagents and tag not in self.subagents and not isinstance(event, _SUBAGENT_EVENTS):
            self.warn("SUB-18", event, f"it is attributed to subagent {quoted(tag)}, whose invocation has ended")
        elif tag not in self.tags and len(self.tags) < self.limits.subagents:
            self.tags[tag] = None
