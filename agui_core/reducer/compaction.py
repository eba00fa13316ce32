"""Fewer events that replay to the same conversation: `compact`.

How: every event is decoded, sanitized, expanded and verified, as in `conform`. What comes out is passed on at once,
except for what may wait because nothing in between depends on it:

- *text*: the content of an open item waits until its end, so that all of it becomes one event, whatever other items do
  meanwhile. What could tell the difference lets it go first: a MESSAGES_SNAPSHOT, the end of a run or of a subagent,
  the start of a call (`Run.last_calls` asks what was said after it), and events of another item that writes to the
  same message. The first content after a snapshot that may have dropped the item does not wait, as it makes the
  message anew, in its place (OPEN-6).
- *state and activities*: once a document is known (from a snapshot, or the state that was given), its patches are
  applied here, so it is known which of them apply (PATCH-5), and those become one patch. Where a snapshot waits, or is
  shorter than the patches, one snapshot goes out instead. A document that is not known keeps its patches one by one, as
  a patch that does not apply would take those joined with it down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from agui_core.errors import LimitExceeded
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.messages import AssistantMessage
from agui_core.reducer.conformer import conform
from agui_core.reducer.families import FAMILY_OF, FamilyName
from agui_core.reducer.patch_merger import PatchMerger, size_of
from agui_core.reducer.state import Middleware, Policy
from agui_core.warnings import ProtocolWarning

__all__ = ["compact"]

_TEXT = 1024 * 1024
"""Characters of one merged content event, at most."""
_HELD = 16 * 1024 * 1024
"""Characters that wait in all open items together, at most."""
_FRAME = 256
"""Bytes of an event besides its ids, its metadata and its payload, at most."""


def compact(
    events: Iterable[object],
    *,
    policy: Policy = "strict",
    limits: Limits | None = None,
    middleware: Iterable[Middleware] = (),
    state: Any = UNSET,
    keep_raw: bool = True,
    keep_custom: bool = True,
    on_warning: Callable[[ProtocolWarning], object] | None = None,
) -> Iterator[e.Event]:
    """Fewer events that do the same, lazily, from an iterable of anything that `Reducer.apply` takes.

    Promised: a reducer with the same policy, messages and state that replays them comes to the same messages, state,
    metadata, owners, run (results, errors, interrupts, pending calls), tool calls and status, as of each end of a run
    and of the end of the stream. The result is a conforming stream without chunks. One event that stands for several
    has the timestamp of the last of them.

    Not promised: what lies between (other items' events may overtake text, state and activities), warnings, versions,
    the `rawEvent` of merged events, patches that did not apply, and `valid` of a call whose arguments lost half a
    surrogate pair, which is U+FFFD here as in everything handed out. What a reducer would refuse for what it holds
    (too many messages, say) is not refused here but on replay.

    `state`: what the replay starts from, if you know it; else patches before the first STATE_SNAPSHOT stay single.
    `keep_raw`, `keep_custom`: RAW and CUSTOM events change nothing; they are kept, in order, unless this is False.
    The other options are `conform`'s.

    Time is linear in the stream. Memory holds what is open: unsent text (at most 16 Mi characters), the state once it
    is known, and the activities of the run. Raises what `conform` raises, after all events before the refused one.
    """
    compactor = _Compactor(limits or Limits(), state)
    unwanted = {kind for kind, kept in ((e.RawEvent, keep_raw), (e.CustomEvent, keep_custom)) if not kept}
    try:
        for event in conform(events, policy=policy, limits=limits, middleware=middleware, on_warning=on_warning):
            if type(event) not in unwanted:
                yield from compactor.feed(event)
    except Exception:
        yield from compactor.release()
        raise
    yield from compactor.release()


_Content: TypeAlias = e.TextMessageContentEvent | e.ToolCallArgsEvent | e.ReasoningMessageContentEvent


def _merged(first: dict[str, Any] | UnsetType, second: dict[str, Any] | UnsetType) -> dict[str, Any] | UnsetType:
    """What two events' metadata come to (META-2)."""
    if first is UNSET:
        return second
    return first if second is UNSET else {**first, **second}


class _Item(msgspec.Struct, eq=False):
    """An open item, and its content that waits."""

    dropped: bool = False
    """A snapshot may have dropped it, so that its next content makes it again."""
    last: Any = None
    deltas: list[str] = msgspec.field(default_factory=list)
    metadata: dict[str, Any] | UnsetType = UNSET
    tag: str | UnsetType = UNSET
    size: int = 0

    def add(self, event: _Content, size: int) -> None:
        """Let one more content event wait."""
        self.last = event
        self.deltas.append(event.delta)
        self.metadata = _merged(self.metadata, event.metadata)
        self.size += size
        if event.subagent_run_id is not UNSET:
            self.tag = event.subagent_run_id

    def release(self) -> e.Event:
        """What waits, as one event."""
        event: e.Event = self.last
        if len(self.deltas) > 1:
            event = replace(
                self.last,
                delta="".join(self.deltas),
                metadata=self.metadata,
                raw_event=UNSET,
                subagent_run_id=self.tag,
            )
        self.last, self.metadata, self.tag, self.size = None, UNSET, UNSET, 0
        self.deltas.clear()
        return event


class _Activity(msgspec.Struct, eq=False):
    """An activity of this run whose content is known."""

    folding: PatchMerger
    activity_type: str
    owner: str | UnsetType
    metadata: dict[str, Any] | UnsetType = UNSET
    tag: str | UnsetType = UNSET

    def wait(self, event: e.ActivitySnapshotEvent | e.ActivityDeltaEvent) -> None:
        """Let an event wait whose content has been folded."""
        self.folding.wait(event, size_of(event.metadata) or 0)
        self.metadata = _merged(self.metadata, event.metadata)
        if event.subagent_run_id is not UNSET:
            self.tag = event.subagent_run_id

    def release(self, value: Any = UNSET) -> list[e.Event]:
        """What waits, as one event; see `PatchMerger.take`."""
        last, count, whole = self.folding.last, self.folding.count, self.folding.whole
        metadata, tag = self.metadata, self.tag
        self.metadata = self.tag = UNSET
        content = self.folding.take(value)
        if count < 2:
            return [last] if count else []
        event: e.Event
        if whole:
            event = e.ActivitySnapshotEvent(
                message_id=last.message_id,
                activity_type=self.activity_type,
                content=content,
                metadata=metadata,
                timestamp=last.timestamp,
                subagent_run_id=self.owner,
            )
        else:
            event = e.ActivityDeltaEvent(
                message_id=last.message_id,
                activity_type=self.activity_type,
                patch=content,
                metadata=metadata,
                timestamp=last.timestamp,
                subagent_run_id=tag,
            )
        return [event]


_Key: TypeAlias = tuple[FamilyName, str]
_TWINS: dict[FamilyName, FamilyName] = {"text": "reasoning", "reasoning": "text"}
"""Families that share messages: one id in both writes to one message."""


class _Compactor:
    """Takes accepted events and gives those that need not wait."""

    __slots__ = ("_activities", "_document_bound", "_held", "_items", "_limits", "_state", "_text_bound", "_waiting")

    def __init__(self, limits: Limits, state: Any) -> None:
        self._limits = limits
        room = max(0, limits.event_bytes - _FRAME)
        self._text_bound = min(_TEXT, room // 6)  # a control character takes six bytes
        self._document_bound = room // 2
        self._items: dict[_Key, _Item] = {}
        self._waiting: dict[_Key, _Item] = {}
        self._held = 0
        self._activities: dict[str, _Activity] = {}
        self._state: PatchMerger | None = None
        if state is not UNSET:
            self._state = PatchMerger({} if state is None else state, limits, self._document_bound, object_only=False)

    def feed(self, event: e.Event) -> list[e.Event]:
        """The events that go out now that this one has come."""
        handler = _HANDLERS.get(type(event))
        return [event] if handler is None else handler(self, event)

    def release(self) -> list[e.Event]:
        """Everything that waits."""
        return [*self._release_text(), *self._release_activities(), *self._release_state()]

    # --- text -----------------------------------------------------------------------------------------------------

    def start(self, event: Any) -> list[e.Event]:
        key = _key(event)
        self._items[key] = _Item()
        return [*self._release_twin(key), event]

    def call_start(self, event: e.ToolCallStartEvent) -> list[e.Event]:
        """What was said before a call stays before it, as `Run.last_calls` asks what came after."""
        said = [key for key in self._waiting if key[0] != "call"]
        return [*[each for key in said for each in self._release_item(key)], *self.start(event)]

    def content(self, event: Any) -> list[e.Event]:
        key = _key(event)
        released = self._release_twin(key)
        item = self._items[key]
        more = size_of(event.metadata)
        size = len(event.delta) + (self._text_bound if more is None else more)
        frame = len(key[1]) + len(event.subagent_run_id or "")
        if item.size + size + frame > self._text_bound:
            released += self._release_item(key)
        if item.dropped or size + frame > self._text_bound:
            item.dropped = False
            return [*released, event]
        item.add(event, size)
        self._waiting[key] = item
        self._held += size
        return [*released, *self._release_text()] if self._held > _HELD else released

    def end(self, event: Any) -> list[e.Event]:
        key = _key(event)
        del self._items[key]
        return [*self._release_twin(key), *self._release_item(key), event]

    def _release_twin(self, key: _Key) -> list[e.Event]:
        twin = _TWINS.get(key[0])
        return [] if twin is None else self._release_item((twin, key[1]))

    def _release_item(self, key: _Key) -> list[e.Event]:
        item = self._waiting.pop(key, None)
        if item is None:
            return []
        self._held -= item.size
        return [item.release()]

    def _release_text(self) -> list[e.Event]:
        return [event for key in list(self._waiting) for event in self._release_item(key)]

    # --- the state ------------------------------------------------------------------------------------------------

    def state_snapshot(self, event: e.StateSnapshotEvent) -> list[e.Event]:
        try:
            if self._state is None:
                self._state = PatchMerger(event.snapshot, self._limits, self._document_bound, object_only=False)
            else:
                self._state.replace(event.snapshot)
        except LimitExceeded:
            return self._let_refuse(event)
        self._state.whole = True
        self._state.count = 0
        self._state.wait(event)
        return []

    def state_delta(self, event: e.StateDeltaEvent) -> list[e.Event]:
        state = self._state
        if state is None:
            return [event]
        room = state.has_room(event.delta, 0)
        before = UNSET if room else state.value
        try:
            if not state.apply(event.delta):
                return []
        except LimitExceeded:
            return self._let_refuse(event)
        released = [] if room else self._release_state(before)
        state.join(event.delta)
        state.wait(event)
        return released

    def _let_refuse(self, event: e.Event) -> list[e.Event]:
        """Pass on what a reducer will refuse, after what it will apply."""
        released = self._release_state()
        self._state = None
        return [*released, event]

    def _release_state(self, before: Any = UNSET) -> list[e.Event]:
        state = self._state
        if state is None or not state.count:
            return []
        last, count, whole = state.last, state.count, state.whole
        value = state.take(before)
        if count == 1:
            return [last]
        common = {"timestamp": last.timestamp, "metadata": last.metadata, "subagent_run_id": last.subagent_run_id}
        return [e.StateSnapshotEvent(snapshot=value, **common) if whole else e.StateDeltaEvent(delta=value, **common)]

    # --- activities -----------------------------------------------------------------------------------------------

    def activity_snapshot(self, event: e.ActivitySnapshotEvent) -> list[e.Event]:
        activity = self._activities.get(event.message_id)
        if event.replace is False:  # makes an activity, or adds metadata to one (ACT-3)
            return [event] if activity is None else [*activity.release(), event]
        try:
            if activity is None:
                folding = PatchMerger(event.content, self._limits, self._room_of(event), object_only=True)
                self._activities[event.message_id] = _Activity(folding, event.activity_type, event.subagent_run_id)
                return [event]
            activity.folding.replace(event.content)
        except LimitExceeded:
            return [*self._forget(event.message_id), event]
        activity.folding.whole = True
        activity.activity_type, activity.owner = event.activity_type, event.subagent_run_id
        if activity.metadata is UNSET:
            activity.folding.count = 0
        activity.wait(event)
        return []

    def activity_delta(self, event: e.ActivityDeltaEvent) -> list[e.Event]:
        activity = self._activities.get(event.message_id)
        if activity is None:
            return [event]
        folding = activity.folding
        room = folding.has_room(event.patch, size_of(event.metadata) or 0)
        before = UNSET if room else folding.value
        try:
            applied = folding.apply(event.patch)
        except LimitExceeded:
            return [*self._forget(event.message_id), event]
        if not applied and event.metadata is UNSET:
            return []
        released = [] if room else activity.release(before)
        if applied:
            activity.activity_type = event.activity_type
            folding.join(event.patch)
        activity.wait(event)
        return released

    def _room_of(self, event: e.ActivitySnapshotEvent) -> int:
        names = len(event.message_id) + len(event.activity_type) + len(event.subagent_run_id or "")
        return max(0, self._document_bound - 6 * names)

    def _forget(self, id: str) -> list[e.Event]:
        activity = self._activities.pop(id, None)
        return [] if activity is None else activity.release()

    def _release_activities(self) -> list[e.Event]:
        return [event for activity in self._activities.values() for event in activity.release()]

    # --- what something that waits depends on -----------------------------------------------------------------------

    def result(self, event: e.ToolCallResultEvent) -> list[e.Event]:
        """A result may come to stand before an activity with its id, and then hides it."""
        activity = self._activities.get(event.message_id)
        return [event] if activity is None else [*activity.release(), event]

    def messages_snapshot(self, event: e.MessagesSnapshotEvent) -> list[e.Event]:
        released = [*self._release_text(), *self._release_activities()]
        self._activities.clear()
        messages = {message.id for message in event.messages}
        calls = {
            call.id
            for message in event.messages
            if isinstance(message, AssistantMessage)
            for call in message.tool_calls or ()
        }
        for (family, id), item in self._items.items():
            item.dropped = id not in (calls if family == "call" else messages)
        return [*released, event]

    def subagent_end(self, event: e.Event) -> list[e.Event]:
        """Text with a subagent's tag is expected while it is active (SUB-18)."""
        return [*self._release_text(), event]

    def run_start(self, event: e.Event) -> list[e.Event]:
        released = self.release()
        self._items.clear()
        self._activities.clear()
        return [*released, event]

    def run_end(self, event: e.Event) -> list[e.Event]:
        return [*self.release(), event]


def _key(event: Any) -> _Key:
    family = FAMILY_OF[type(event)]
    return family.name, getattr(event, family.id)


# What is not listed is passed on at once and overtakes what waits.
_HANDLERS: dict[type[e.Event], Callable[[_Compactor, Any], list[e.Event]]] = {
    e.TextMessageStartEvent: _Compactor.start,
    e.TextMessageContentEvent: _Compactor.content,
    e.TextMessageEndEvent: _Compactor.end,
    e.ToolCallStartEvent: _Compactor.call_start,
    e.ToolCallArgsEvent: _Compactor.content,
    e.ToolCallEndEvent: _Compactor.end,
    e.ToolCallResultEvent: _Compactor.result,
    e.ReasoningMessageStartEvent: _Compactor.start,
    e.ReasoningMessageContentEvent: _Compactor.content,
    e.ReasoningMessageEndEvent: _Compactor.end,
    e.StateSnapshotEvent: _Compactor.state_snapshot,
    e.StateDeltaEvent: _Compactor.state_delta,
    e.ActivitySnapshotEvent: _Compactor.activity_snapshot,
    e.ActivityDeltaEvent: _Compactor.activity_delta,
    e.MessagesSnapshotEvent: _Compactor.messages_snapshot,
    e.SubagentFinishedEvent: _Compactor.subagent_end,
    e.SubagentErrorEvent: _Compactor.subagent_end,
    e.RunStartedEvent: _Compactor.run_start,
    e.RunFinishedEvent: _Compactor.run_end,
    e.RunErrorEvent: _Compactor.run_end,
}
