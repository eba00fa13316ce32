"""Which event may follow which: one rule per event type, and the table of each phase (protocol sections 5 to 10, 15).

A rule raises `ProtocolError` or `LimitExceeded` and changes nothing; or it notes in the `StreamState` what the event
opens, closes and claims, and returns the item concerned. Everything that decides about the order of expanded
events is in this file.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeAlias

from agui_core._text import listed, quoted
from agui_core.errors import LimitExceeded, ProtocolError
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.run import PROTOCOL_VERSION, InterruptOutcome, SuccessOutcome, SuspendedOutcome, TokenUsage
from agui_core.reducer.chunks import Owner, name_owner, refuse
from agui_core.reducer.families import CALL, FAMILIES, REASONING, TEXT, Family
from agui_core.reducer.items import OpenItem
from agui_core.reducer.stream_state import StreamState

__all__ = ["verify"]

Rule: TypeAlias = Callable[[StreamState, Any], OpenItem | None]


def _refuse_by_phase(stream: StreamState, event: e.Event) -> ProtocolError:
    """The refusal of an event that a phase's table does not have."""
    match stream.phase:
        case "idle":
            return refuse("RUN-1", event, "the first event must be RUN_STARTED or RUN_ERROR")
        case "running":
            return refuse(
                "RUN-2", event, f"run {quoted(stream.run_id)} is still active; finish it before the next run starts"
            )
        case "finished" | "finished+":
            return refuse(
                "RUN-2",
                event,
                "the run has finished; only RUN_STARTED or one late RUN_ERROR may follow",
                *_run(stream),
            )
        case _:
            return refuse("RUN-7", event, "the run has failed; only RUN_STARTED may follow", *_run(stream))


def _run(stream: StreamState) -> tuple[str, ...]:
    return () if stream.run_id is None else (stream.run_id,)


def _owner_of(tag: str | UnsetType) -> Owner:
    return None if tag is UNSET else tag


# --- runs ---------------------------------------------------------------------------------------------------------


def _run_started(stream: StreamState, event: e.RunStartedEvent) -> None:
    if stream.thread_id is not None and event.thread_id != stream.thread_id:
        stream.warn(
            "RUN-10",
            event,
            f"threadId {quoted(event.thread_id)} differs from the earlier run's {quoted(stream.thread_id)}",
        )
    if event.run_id in stream.run_ids:
        stream.warn("RUN-10", event, f"runId {quoted(event.run_id)} was used by an earlier run of this stream")
    elif len(stream.run_ids) < stream.limits.open_items:
        stream.run_ids[event.run_id] = None
    if event.protocol_version is not UNSET:
        _note_version(stream, event, event.protocol_version)
    stream.begin_run(event)
    if event.input is not UNSET:
        stream.own_messages(event, event.input.messages, authoritative=False)


def _note_version(stream: StreamState, event: e.Event, declared: str) -> None:
    """VER-2, VER-3: compare number by number; newer or unreadable is a warning."""
    major, dot, minor = declared.partition(".")
    readable = bool(dot) and all(part.isascii() and part.isdigit() and len(part) < 10 for part in (major, minor))
    if not readable:
        stream.warn(
            "VER-3", event, f"protocolVersion {quoted(declared)} cannot be interpreted; read as {PROTOCOL_VERSION}"
        )
    elif (int(major), int(minor)) > tuple(int(part) for part in PROTOCOL_VERSION.split(".")):
        stream.warn(
            "VER-3", event, f"protocolVersion {declared} is newer than {PROTOCOL_VERSION}, which is spoken here"
        )


def _run_finished(stream: StreamState, event: e.RunFinishedEvent) -> None:
    if stream.anything_open:
        noun, ids = _what_is_open(stream)
        raise refuse(
            "RUN-4", event, f"{noun} still open: {listed(ids)}; close everything before the run finishes", *ids[:100]
        )
    if event.run_id != stream.run_id:
        stream.warn("OPEN-1", event, f"runId {quoted(event.run_id)} differs from RUN_STARTED's {quoted(stream.run_id)}")
    if event.thread_id != stream.thread_id:
        stream.warn(
            "OPEN-1",
            event,
            f"threadId {quoted(event.thread_id)} differs from RUN_STARTED's {quoted(stream.thread_id)}",
        )
    outcome = event.outcome
    raised: set[str] = set()
    if isinstance(outcome, InterruptOutcome):
        for interrupt in outcome.interrupts:
            if interrupt.id in raised:
                stream.warn("INT-2", event, f"two interrupts carry the id {quoted(interrupt.id)}")
            raised.add(interrupt.id)
    elif isinstance(outcome, SuccessOutcome) and outcome.pending_tool_call_ids:
        if list(outcome.pending_tool_call_ids) != list(stream.pending):
            stream.warn("FT-3", event, "pendingToolCallIds differs from the calls without a result in this run")
    elif outcome is not UNSET and outcome.type == "cancelled" and event.result is not UNSET:
        stream.warn("RUN-14", event, "a cancelled run carries a result")
    _note_usage(stream, event, event.usage)
    unknown = [id for id in stream.suspended_on if id not in raised]
    if unknown:
        told = f"a suspended subagent waits for interrupts that the run does not raise: {listed(unknown)}"
        stream.warn("SUB-7", event, told)
    stream.phase = "finished"


def _what_is_open(stream: StreamState) -> tuple[str, list[str]]:
    for noun, ids in (
        ("text messages are", list(stream.texts)),
        ("tool calls are", list(stream.calls)),
        ("reasoning messages are", list(stream.reasonings)),
        ("reasoning spans are", list(stream.spans)),
        ("steps are", [name for _, name in stream.steps]),
    ):
        if ids:
            return noun, ids
    return "subagents are", list(stream.subagents)


def _note_usage(stream: StreamState, event: e.Event, usage: tuple[TokenUsage, ...] | UnsetType) -> None:
    for entry in usage or ():
        counts = (entry.input_tokens, entry.output_tokens, entry.total_tokens)
        if UNSET not in counts and counts[0] + counts[1] != counts[2]:  # type: ignore[operator]
            stream.warn("USE-1", event, f"totalTokens {counts[2]} is not inputTokens + outputTokens")


def _run_error(stream: StreamState, event: e.RunErrorEvent) -> None:
    _note_usage(stream, event, event.usage)
    stream.phase = "failed"


# --- triads -------------------------------------------------------------------------------------------------------


def _own(stream: StreamState, event: e.Event, owners: dict[str, Owner], id: str, owner: Owner) -> Owner:
    """Note the owner of an id unless it has one; returns the owner that stands. Bounds the ids known in one run, which
    may be more than what is held: a snapshot can drop what is open.
    """
    if id in owners:
        return owners[id]
    limit = 2 * (stream.limits.tool_calls if owners is stream.call_owners else stream.limits.messages)
    if len(owners) >= limit:
        name = "tool_calls" if owners is stream.call_owners else "messages"
        raise LimitExceeded(f"more than {limit} ids of {name} in one run", limit=name, type=event.type)
    owners[id] = owner
    return owner


def _opening(family: Family) -> Rule:
    table_of, owners_of, id_of = attrgetter(family.open), attrgetter(family.owners), attrgetter(family.id)

    def start(stream: StreamState, event: Any) -> OpenItem:
        table, owners, id = table_of(stream), owners_of(stream), id_of(event)
        if id in table:
            raise _already_open(event, family.noun, id)
        if id in owners:
            stream.agree(event, event.subagent_run_id, owners[id], family.noun, id, "SUB-10")
        stream.room_for_one(event)
        owner = _own(stream, event, owners, id, _owner_of(event.subagent_run_id))
        item: OpenItem = OpenItem(id, owner, event)
        table[id] = item
        return item

    return start


def _already_open(event: e.Event, noun: str, id: str) -> ProtocolError:
    return refuse("STR-1", event, f"{noun} {quoted(id)} is already open; end it before it is started again", id)


def _going_on(family: Family, *, ends: bool) -> Rule:
    """The rule of content, or of what `ends` an item."""
    table_of, id_of = attrgetter(family.open), attrgetter(family.id)

    def go_on(stream: StreamState, event: Any) -> OpenItem:
        table, id = table_of(stream), id_of(event)
        item: OpenItem | None = table.get(id)
        if item is None:
            raise refuse("STR-2", event, f"{family.noun} {quoted(id)} is not open; start it first", id)
        if event.subagent_run_id is not UNSET:
            stream.agree(event, event.subagent_run_id, item.owner, family.noun, id)
        if ends:
            del table[id]
        return item

    return go_on


def _call_start(stream: StreamState, event: e.ToolCallStartEvent) -> OpenItem:
    # EVT-6: an empty parentMessageId counts as absent.
    id, parent, tag = event.tool_call_id, event.parent_message_id or UNSET, event.subagent_run_id
    if id in stream.calls:
        raise _already_open(event, CALL.noun, id)
    owner = None if tag is UNSET else tag
    if parent is not UNSET and parent in stream.message_owners:
        stream.agree(event, tag, stream.message_owners[parent], "its parent message", parent, "SUB-12")
        owner = stream.message_owners[parent]
    if id in stream.call_owners:
        # SUB-10; an untagged start speaks for the owner of the parent that it names, which must be the call's.
        named = tag if tag is not UNSET or owner is None else owner
        stream.agree(event, named, stream.call_owners[id], "tool call", id, "SUB-10")
        owner = stream.call_owners[id]
    stream.room_for_one(event)
    _own(stream, event, stream.call_owners, id, owner)
    stream.started_calls[id] = event.tool_call_name
    item = stream.calls[id] = OpenItem(id, owner, event)
    return item


def _call_result(stream: StreamState, event: e.ToolCallResultEvent) -> None:
    owner = _owner_of(event.subagent_run_id)
    _own(stream, event, stream.message_owners, event.message_id, owner)
    stream.message_owners[event.message_id] = owner
    stream.answered.add(event.tool_call_id)


def _reasoning_start(stream: StreamState, event: e.ReasoningMessageStartEvent) -> OpenItem | None:
    if event.message_id in stream.spans:
        owner = stream.reasoning_owners[event.message_id]
        stream.agree(event, event.subagent_run_id, owner, "reasoning span", event.message_id, "REAS-1")
    return _open_reasoning(stream, event)


_open_reasoning = _opening(REASONING)


# --- spans, steps, subagents --------------------------------------------------------------------------------------


def _span_start(stream: StreamState, event: e.ReasoningStartEvent) -> None:
    id = event.message_id
    if id in stream.spans:
        raise refuse(
            "REAS-3", event, f"reasoning span {quoted(id)} is already open; end it before it is started again", id
        )
    if id in stream.reasoning_owners:
        stream.agree(event, event.subagent_run_id, stream.reasoning_owners[id], "reasoning span", id, "REAS-1")
    stream.room_for_one(event)
    _own(stream, event, stream.reasoning_owners, id, _owner_of(event.subagent_run_id))
    stream.spans[id] = None


def _span_end(stream: StreamState, event: e.ReasoningEndEvent) -> None:
    id = event.message_id
    if id not in stream.spans:
        raise refuse("REAS-3", event, f"reasoning span {quoted(id)} is not open; start it first", id)
    stream.agree(event, event.subagent_run_id, stream.reasoning_owners[id], "reasoning span", id, "OPEN-18")
    del stream.spans[id]


def _step_started(stream: StreamState, event: e.StepStartedEvent) -> None:
    key = (_owner_of(event.subagent_run_id), event.step_name)
    if key in stream.steps:
        raise refuse(
            "STEP-2",
            event,
            f"step {quoted(key[1])} of {name_owner(key[0])} is already open; finish it before it is started again",
            key[1],
        )
    stream.room_for_one(event)
    stream.steps[key] = None


def _step_finished(stream: StreamState, event: e.StepFinishedEvent) -> None:
    key = (_owner_of(event.subagent_run_id), event.step_name)
    if key not in stream.steps:
        others = [owner for owner, name in stream.steps if name == key[1]]
        hint = f"; {name_owner(others[0])} has one open, and a step is finished by whoever started it" if others else ""
        raise refuse(
            "STEP-3",
            event,
            f"step {quoted(key[1])} of {name_owner(key[0])} was not started; start it first{hint}",
            key[1],
        )
    del stream.steps[key]


def _subagent_started(stream: StreamState, event: e.SubagentStartedEvent) -> None:
    id, parent = event.subagent_run_id, event.parent_subagent_run_id
    if id in stream.subagents:
        raise refuse(
            "SUB-4",
            event,
            f"subagent {quoted(id)} is already active; an invocation is announced once, and a new one needs a new id",
            id,
        )
    if id in stream.ended_subagents:
        raise refuse(
            "SUB-4", event, f"subagent {quoted(id)} has ended in this run; a new invocation needs a new id", id
        )
    if parent is not UNSET and parent not in stream.subagents and parent not in stream.ended_subagents:
        raise refuse(
            "SUB-13",
            event,
            f"parentSubagentRunId {quoted(parent)} names no subagent announced in this run; announce the parent first",
            id,
            parent,
        )
    if len(stream.subagents) + len(stream.ended_subagents) >= stream.limits.subagents:
        raise LimitExceeded(
            f"more than {stream.limits.subagents} subagents in one run", limit="subagents", type=event.type
        )
    if id in stream.tags:
        stream.warn("SUB-3", event, f"subagent {quoted(id)} is announced after events that carry its tag")
    stream.subagents[id] = None


def _subagent_ended(stream: StreamState, event: e.SubagentFinishedEvent | e.SubagentErrorEvent) -> None:
    id = event.subagent_run_id
    if id not in stream.subagents:
        raise refuse(
            "SUB-4", event, f"subagent {quoted(id)} is not active; announce it with SUBAGENT_STARTED first", id
        )
    del stream.subagents[id]
    stream.ended_subagents[id] = None
    if isinstance(event, e.SubagentFinishedEvent) and isinstance(event.outcome, SuspendedOutcome):
        stream.suspended_on.update(dict.fromkeys(event.outcome.interrupt_ids or ()))


# --- standalone ---------------------------------------------------------------------------------------------------


def _encrypted_value(stream: StreamState, event: e.ReasoningEncryptedValueEvent) -> None:
    id = event.entity_id
    tables = (stream.call_owners,) if event.subtype == "tool-call" else (stream.message_owners, stream.reasoning_owners)
    for owners in tables:
        if id in owners:
            stream.agree(event, event.subagent_run_id, owners[id], event.subtype, id)
            return


def _messages_snapshot(stream: StreamState, event: e.MessagesSnapshotEvent) -> None:
    stream.own_messages(event, event.messages, authoritative=True)


def _activity_snapshot(stream: StreamState, event: e.ActivitySnapshotEvent) -> None:
    id, owner = event.message_id, _owner_of(event.subagent_run_id)
    known = id in stream.activity_owners
    if known and event.replace is False:
        if owner is not None and owner != stream.activity_owners[id]:
            stream.warn(
                "ACT-3", event, f"activity {quoted(id)} keeps its owner, {name_owner(stream.activity_owners[id])}"
            )
    else:
        _own(stream, event, stream.activity_owners, id, owner)
        stream.activity_owners[id] = owner


def _activity_delta(stream: StreamState, event: e.ActivityDeltaEvent) -> None:
    id = event.message_id
    if id in stream.activity_owners:
        stream.agree(event, event.subagent_run_id, stream.activity_owners[id], "activity", id, "ACT-9")


def _anything(stream: StreamState, event: e.Event) -> None:
    """An active run is all that this event needs."""


_ACTIVE: dict[type[e.Event], Rule] = {
    **{family.content: _going_on(family, ends=False) for family in FAMILIES},
    **{family.end: _going_on(family, ends=True) for family in FAMILIES},
    TEXT.start: _opening(TEXT),
    CALL.start: _call_start,
    REASONING.start: _reasoning_start,
    e.StepStartedEvent: _step_started,
    e.StepFinishedEvent: _step_finished,
    e.ToolCallResultEvent: _call_result,
    e.ReasoningStartEvent: _span_start,
    e.ReasoningEndEvent: _span_end,
    e.ReasoningEncryptedValueEvent: _encrypted_value,
    e.StateSnapshotEvent: _anything,
    e.StateDeltaEvent: _anything,
    e.MessagesSnapshotEvent: _messages_snapshot,
    e.ActivitySnapshotEvent: _activity_snapshot,
    e.ActivityDeltaEvent: _activity_delta,
    e.SubagentStartedEvent: _subagent_started,
    e.SubagentFinishedEvent: _subagent_ended,
    e.SubagentErrorEvent: _subagent_ended,
    e.RawEvent: _anything,
    e.CustomEvent: _anything,
}
_STARTED: dict[type[e.Event], Rule] = {e.RunStartedEvent: _run_started}
_FAILED: dict[type[e.Event], Rule] = {e.RunErrorEvent: _run_error}

_TABLES: dict[str, dict[type[e.Event], Rule]] = {
    "idle": {**_STARTED, **_FAILED},
    "running": {**_ACTIVE, **_FAILED, e.RunFinishedEvent: _run_finished},
    "finished": {**_STARTED, **_FAILED},
    "failed": _STARTED,
    "finished+": {**_ACTIVE, **_STARTED, **_FAILED},
    "failed+": {**_ACTIVE, **_STARTED},
}


def verify(stream: StreamState, event: e.Event) -> OpenItem | None:
    """Judge one event; what it opens or closes is noted. Returns the item that a triad event concerns."""
    rule = _TABLES[stream.phase].get(type(event))
    if rule is None:
        raise _refuse_by_phase(stream, event)
    item = rule(stream, event)
    tag = getattr(event, "subagent_run_id", UNSET)
    if tag is not UNSET:
        stream.note_tag(event, tag)
    return item
