"""What each accepted event does to messages and state: plain functions in a table by event type (protocol sections 8 to
14).

An event is *prepared* before it is applied: preparing is all that can fail, which is limits and patches, so that an
event is refused before anything of it was applied. Both expect what the gate accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from agui_core._text import quoted
from agui_core.errors import PatchError
from agui_core.protocol import events as e
from agui_core.protocol import messages as m
from agui_core.protocol.base import UNSET
from agui_core.protocol.run import CancelledOutcome, InterruptOutcome, SuccessOutcome
from agui_core.reducer.bounds import (
    bound,
    bound_text,
    one_more_message,
    prepare_call,
    prepare_content,
    prepare_message,
    prepare_result,
)
from agui_core.reducer.builders import CallBuilder, MessageBuilder
from agui_core.reducer.items import OpenItem
from agui_core.reducer.reconcile import reconcile
from agui_core.reducer.state import Standing, Status

__all__ = ["HANDLERS"]

_TEXT_MESSAGES: dict[str, Callable[..., m.Message]] = {
    "assistant": m.AssistantMessage,
    "user": m.UserMessage,
    "system": m.SystemMessage,
    "developer": m.DeveloperMessage,
}

# --- text and reasoning messages ----------------------------------------------------------------------------------


def _new_text(event: Any) -> m.Message:
    if isinstance(event, e.ReasoningMessageStartEvent):
        return m.ReasoningMessage(id=event.message_id, content="", subagent_run_id=event.subagent_run_id)
    make = _TEXT_MESSAGES["assistant" if event.role is UNSET else event.role]
    return make(id=event.message_id, content="", name=event.name, subagent_run_id=event.subagent_run_id)


def _message_start(reducer: Standing, event: Any, item: OpenItem) -> None:
    conversation = reducer._conversation
    entry = conversation.index.get(event.message_id)
    if entry is None:
        entry = conversation.append(_new_text(event))
    elif entry.document is None:
        _note_reopened(reducer, event, entry)
        if entry.parts is not None:
            conversation.settle(reducer._upcoming)
            if entry.text is not None:
                entry.settle_part()
                conversation.touch(entry)  # so that an increment of a checkpoint tells that its part has ended
    item.entry = entry
    _merge(reducer, event, entry)
    reducer._heat(item)


def _note_reopened(reducer: Standing, event: Any, entry: MessageBuilder) -> None:
    """OPEN-5, TEXT-3: the established role and name stand."""
    role = "reasoning" if isinstance(event, e.ReasoningMessageStartEvent) else event.role
    if role is UNSET:
        role = "assistant" if entry.role not in _TEXT_MESSAGES else entry.role
    if role != entry.role:
        rule = "TEXT-3" if entry.role in _TEXT_MESSAGES and role in _TEXT_MESSAGES else "OPEN-5"
        reducer._warn(rule, event, f"message {quoted(entry.id)} is held as a {entry.role} message; it keeps that role")
    elif getattr(event, "name", UNSET) is not UNSET and event.name != getattr(entry.base, "name", UNSET):
        reducer._warn("TEXT-3", event, f"message {quoted(entry.id)} keeps its name")


def _message_content(reducer: Standing, event: Any, item: OpenItem) -> None:
    entry = item.entry or _recreate_message(reducer, event, item)
    if entry.document is None:
        entry.pieces.append(event.delta)
        reducer.piece_added()
        reducer._conversation.touch(entry)
    _merge(reducer, event, entry)
    reducer._heat(item)


def _message_end(reducer: Standing, event: Any, item: OpenItem) -> None:
    reducer._cool(item)
    reducer._speaks = True
    if item.entry is not None and item.entry.document is None:
        _merge(reducer, event, item.entry)


def _merge(reducer: Standing, event: Any, entry: MessageBuilder) -> None:
    """What start, content and end of a message have in common: META-3, and that an activity takes nothing (OPEN-5)."""
    if entry.document is not None:
        reducer._warn(
            "OPEN-5", event, f"text for activity message {quoted(entry.id)} is ignored; it would overwrite its content"
        )
    elif event.metadata is not UNSET:
        entry.merge_metadata(event.metadata)
        reducer._conversation.touch(entry)


def _recreate_message(reducer: Standing, event: Any, item: OpenItem) -> MessageBuilder:
    reducer._warn(
        "OPEN-6", event, f"message {quoted(item.id)} was dropped by a snapshot while it was open; it is made again"
    )
    entry = item.entry = reducer._conversation.append(_new_text(item.start))
    return entry


# --- tool calls ---------------------------------------------------------------------------------------------------


def _call_start(reducer: Standing, event: e.ToolCallStartEvent, item: OpenItem) -> None:
    conversation = reducer._conversation
    sequence = reducer._gate.sequence
    if reducer._speaks or sequence.texts or sequence.reasonings:
        conversation.settle(reducer._upcoming)
        reducer._note_speech(event.tool_call_id)
    started = len(sequence.started_calls)
    if reducer._quiet_from >= started and event.tool_call_id not in conversation.results:
        _begin_anew(reducer, event.tool_call_id, started)
    call = conversation.calls.get(event.tool_call_id)
    if call is None:
        call = _make_call(reducer, event)
    else:
        if _is_reused(reducer, event.tool_call_id):
            reducer._warn(
                "EVT-7",
                event,
                f"tool call {quoted(call.id)} was answered in an earlier run: its texts are joined, and it is not run;"
                " give each call an id of its own",
            )
        call.complete = False
        if event.tool_call_name not in (call.name, ""):
            reducer._warn(
                "TOOL-6",
                event,
                f"tool call {quoted(call.id)} is renamed from {quoted(call.name)} to {quoted(event.tool_call_name)}",
            )
            call.name = event.tool_call_name
        if event.parent_message_id and event.parent_message_id != call.holder.id:
            reducer._warn("TOOL-6", event, f"tool call {quoted(call.id)} stays in message {quoted(call.holder.id)}")
        conversation.touch(call)
    item.entry = call
    reducer._run_changes = True  # one more call is pending
    if event.metadata is not UNSET:
        call.merge_metadata(event.metadata)
    reducer._heat(item)


def _begin_anew(reducer: Standing, id: str, started: int) -> None:
    """What was said since the latest call first began is not behind it any more, whenever that was noted."""
    if id == next(reversed(reducer._gate.sequence.started_calls), None):
        reducer._quiet_from = started - 1


def _is_reused(reducer: Standing, id: str) -> bool:
    """EVT-7: whether a call of the run has the id of one that was answered before the run began."""
    result = reducer._conversation.results.get(id)
    return result is not None and 0 <= result.added <= reducer._begun and id not in reducer._gate.sequence.answered


def _make_call(reducer: Standing, event: e.ToolCallStartEvent) -> CallBuilder:
    holder = _call_holder(reducer, event)
    call = CallBuilder(event.tool_call_id, "", UNSET, holder, len(holder.calls or ()), event.tool_call_name)
    reducer._conversation.add_call(call)
    return call


def _call_holder(reducer: Standing, event: e.ToolCallStartEvent) -> MessageBuilder:
    """TOOL-2, OPEN-4: the assistant message for a new call, minted if need be."""
    conversation = reducer._conversation
    id = event.parent_message_id or event.tool_call_id
    held = conversation.index.get(id)
    if event.parent_message_id and held is not None:
        if held.role == "assistant":
            return held
        id = event.tool_call_id
        reducer._warn(
            "OPEN-4", event, f"parentMessageId names a {held.role} message; the call gets message {quoted(id)}"
        )
        held = conversation.index.get(id)
    if held is not None:
        reducer._warn("OPEN-4", event, f"a message {quoted(id)} is held already; the call gets a second one")
    # TOOL-14, SUB-12: whose call it is made for, is whose message it is, for all that name it later in this run. Only
    # who holds the messages knows that it is made here; a conformer lets pass what disagrees with it.
    if event.subagent_run_id is not UNSET:
        reducer._gate.sequence.message_owners.setdefault(id, event.subagent_run_id)
    return conversation.append(m.AssistantMessage(id=id, subagent_run_id=event.subagent_run_id))


def _call_args(reducer: Standing, event: e.ToolCallArgsEvent, item: OpenItem) -> None:
    call = item.entry
    if call is None:
        reducer._warn(
            "OPEN-6",
            event,
            f"tool call {quoted(item.id)} was dropped by a snapshot while it was open; it is made again",
        )
        assert isinstance(item.start, e.ToolCallStartEvent)
        call = item.entry = _make_call(reducer, item.start)
    call.pieces.append(event.delta)
    reducer.piece_added()
    if event.metadata is not UNSET:
        call.merge_metadata(event.metadata)
    reducer._conversation.touch(call)
    reducer._heat(item)


def _call_end(reducer: Standing, event: e.ToolCallEndEvent, item: OpenItem) -> None:
    reducer._cool(item)
    call = item.entry
    if call is not None:
        call.complete = True
        call.broken = call.broken or item.broken
        if event.metadata is not UNSET:
            call.merge_metadata(event.metadata)
        reducer._conversation.touch(call)


def _call_result(reducer: Standing, event: e.ToolCallResultEvent, item: None) -> None:
    if event.tool_call_id in reducer._conversation.results:
        reducer._warn("OPEN-12", event, f"tool call {quoted(event.tool_call_id)} has a result already; both are kept")
    held = reducer._conversation.index.get(event.message_id)
    if held is not None and held.role != "tool":
        reducer._warn(
            "EVT-7", event, f"its messageId {quoted(held.id)} is that of a {held.role} message; both are kept"
        )
    reducer._run_changes = True
    reducer._said_something()
    reducer._conversation.place_result(
        m.ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=event.content,
            metadata=event.metadata if event.metadata is UNSET else dict(event.metadata),
            subagent_run_id=event.subagent_run_id,
        )
    )


def _encrypted_value(reducer: Standing, event: e.ReasoningEncryptedValueEvent, item: None) -> None:
    conversation = reducer._conversation
    if event.subtype == "tool-call":
        call = conversation.calls.get(event.entity_id)
        if call is not None:
            call.encrypted_value = event.encrypted_value
            conversation.touch(call)
            return
    else:
        entry = conversation.index.get(event.entity_id)
        if entry is not None and entry.document is None:
            entry.base = replace(entry.base, encrypted_value=event.encrypted_value)
            conversation.touch(entry)
            return
    reducer._warn(
        "REAS-11", event, f"no {event.subtype} {quoted(event.entity_id)} is held that could have an encrypted value"
    )


# --- state, snapshots, activities ---------------------------------------------------------------------------------


def _prepare_state_snapshot(reducer: Standing, event: e.StateSnapshotEvent) -> None:
    reducer._state.replace(event.snapshot)


def _prepare_state_delta(reducer: Standing, event: e.StateDeltaEvent) -> None:
    reducer._prepared = None
    try:
        reducer._state.apply(event.delta)
    except PatchError as error:
        reducer._prepared = error


def _reason(error: PatchError) -> str:
    return str(error).removesuffix(" [PATCH-5]")


def _state_snapshot(reducer: Standing, event: e.StateSnapshotEvent, item: None) -> None:
    reducer._state_changed()


def _state_delta(reducer: Standing, event: e.StateDeltaEvent, item: None) -> None:
    error = reducer._prepared
    if isinstance(error, PatchError):
        reducer._warn("PATCH-5", event, f"the state patch does not apply and is skipped: {_reason(error)}")
    else:
        reducer._state_changed()


def _prepare_messages_snapshot(reducer: Standing, event: e.MessagesSnapshotEvent) -> None:
    reducer._settle()
    entries, warnings = reconcile(reducer._conversation, event.messages, lenient=reducer._gate.lenient)
    limits = reducer._limits
    bound(event, "messages", len(entries), limits.messages)
    bound(event, "tool_calls", sum(len(entry.calls or ()) for entry in entries), limits.tool_calls)
    for entry in entries:
        bound(event, "tool_calls_per_message", len(entry.calls or ()), limits.tool_calls_per_message)
        if entry.number < 0:
            bound_text(reducer, event, entry, sum_too=False)
    bound(event, "characters", sum(entry.characters for entry in entries), limits.characters)
    reducer._prepared = (entries, warnings)


def _messages_snapshot(reducer: Standing, event: e.MessagesSnapshotEvent, item: None) -> None:
    entries, warnings = reducer._prepared
    for rule, message in warnings:
        reducer._warn(rule, event, message)
    conversation, sequence = reducer._conversation, reducer._gate.sequence
    # Before they are dropped: what would be made again if text for it still comes (OPEN-6).
    for open_item in (*sequence.texts.values(), *sequence.reasonings.values(), *sequence.calls.values()):
        _remember(open_item)
    reducer._settle()
    conversation.restate(entries, reducer._upcoming)
    reducer._chill()
    for item_table in (sequence.texts, sequence.reasonings):
        for open_item in item_table.values():
            open_item.entry = conversation.index.get(open_item.id)
            reducer._heat(open_item)
    for open_item in sequence.calls.values():
        open_item.entry = conversation.calls.get(open_item.id)
        if open_item.entry is not None:
            open_item.entry.complete = False
            reducer._heat(open_item)
    _find_quiet(reducer)


def _find_quiet(reducer: Standing) -> None:
    """After a snapshot: the calls that still stand behind all that was said."""
    last: set[str] = set()
    for entry in reversed([*reducer._conversation.entries()]):
        last.update([call.id for call in entry.calls or ()])
        if entry.role == "tool" or (entry.role in ("assistant", "reasoning") and entry.text):
            break
    started = list(reducer._gate.sequence.started_calls)
    while len(started) > reducer._quiet_from and started[-1] in last:
        started.pop()
    reducer._quiet_from = len(started)


def _remember(item: OpenItem) -> None:
    """Keep established role, name and owner in the start of an open item, whoever made it."""
    entry, start = item.entry, item.start
    if entry is None:
        return
    if isinstance(start, e.ToolCallStartEvent):
        item.start = replace(
            start,
            tool_call_name=entry.name,
            parent_message_id=entry.holder.id,
            subagent_run_id=entry.holder.base.subagent_run_id,
        )
    elif isinstance(start, e.TextMessageStartEvent) and entry.role in _TEXT_MESSAGES:
        base = entry.base
        item.start = replace(start, role=entry.role, name=base.name, subagent_run_id=base.subagent_run_id)
    else:
        item.start = replace(start, subagent_run_id=entry.base.subagent_run_id)


def _prepare_activity_snapshot(reducer: Standing, event: e.ActivitySnapshotEvent) -> None:
    entry = reducer._conversation.index.get(event.message_id)
    if entry is None:
        one_more_message(reducer, event)
        made = m.ActivityMessage(
            id=event.message_id,
            activity_type=event.activity_type,
            content=event.content,
            metadata=event.metadata if event.metadata is UNSET else dict(event.metadata),
            subagent_run_id=event.subagent_run_id,
        )
        reducer._prepared = MessageBuilder.of(made, reducer._limits)
    elif entry.document is not None and event.replace is not False:
        entry.document.replace(event.content)


def _activity_snapshot(reducer: Standing, event: e.ActivitySnapshotEvent, item: None) -> None:
    conversation = reducer._conversation
    entry = conversation.index.get(event.message_id)
    if entry is None:
        conversation.append_entry(reducer._prepared)
        return
    if entry.document is None:
        reducer._warn(
            "OPEN-11", event, f"message {quoted(entry.id)} is a {entry.role} message, which an activity may not replace"
        )
        return
    if event.replace is not False:
        entry.base = replace(entry.base, activity_type=event.activity_type, subagent_run_id=event.subagent_run_id)
        conversation.touch(entry)
    if event.metadata is not UNSET:
        entry.merge_metadata(event.metadata)
        conversation.touch(entry)


def _prepare_activity_delta(reducer: Standing, event: e.ActivityDeltaEvent) -> None:
    reducer._prepared = None
    entry = reducer._conversation.index.get(event.message_id)
    if entry is not None and entry.document is not None:
        try:
            entry.document.apply(event.patch, object_only=True)
        except PatchError as error:
            reducer._prepared = error


def _activity_delta(reducer: Standing, event: e.ActivityDeltaEvent, item: None) -> None:
    conversation = reducer._conversation
    entry = conversation.index.get(event.message_id)
    if entry is None or entry.document is None:
        held = "no message" if entry is None else f"no activity but a {entry.role} message"
        reducer._warn("ACT-6", event, f"{held} {quoted(event.message_id)} is held; the patch is skipped")
        return
    if event.subagent_run_id is not UNSET and event.subagent_run_id != entry.base.subagent_run_id:
        reducer._warn("OPEN-24", event, f"activity {quoted(entry.id)} keeps the owner that an earlier run gave it")
    error = reducer._prepared
    if isinstance(error, PatchError):
        reducer._warn(
            "PATCH-5",
            event,
            f"the patch of activity {quoted(entry.id)} does not apply and is skipped: {_reason(error)}",
        )
    else:
        entry.base = replace(entry.base, activity_type=event.activity_type)
        conversation.touch(entry)
    if event.metadata is not UNSET:
        entry.merge_metadata(event.metadata)
        conversation.touch(entry)


# --- runs ---------------------------------------------------------------------------------------------------------


def _prepare_run_started(reducer: Standing, event: e.RunStartedEvent) -> None:
    if event.input is not UNSET:
        bound(event, "messages", reducer._conversation.count + len(event.input.messages), reducer._limits.messages)
        reducer._prepared = [MessageBuilder.of(message, reducer._limits) for message in event.input.messages]
        calls = sum(len(entry.calls or ()) for entry in reducer._prepared)
        bound(event, "tool_calls", reducer._conversation.call_count + calls, reducer._limits.tool_calls)
        for entry in reducer._prepared:
            bound_text(reducer, event, entry)


def _take_out_superseded(reducer: Standing) -> None:
    """What the run that begins takes the place of goes before it, as by a snapshot."""
    if reducer._superseded is None:
        return
    gone, textless = reducer._superseded
    reducer._superseded = None
    conversation = reducer._conversation
    conversation.settle(reducer._upcoming)
    kept = [entry for entry in conversation.entries() if entry.id not in gone or entry.role == "tool"]
    for entry in kept:
        if entry.id in textless and entry.role == "assistant":
            entry.text = None
            conversation.touch(entry)
    reducer._settle()
    conversation.restate(kept, reducer._upcoming)


def _run_started(reducer: Standing, event: e.RunStartedEvent, item: None) -> None:
    _take_out_superseded(reducer)
    reducer._chill()
    reducer._begin(event)
    if event.input is not UNSET:
        # OPEN-2: only what is not held, and the state is not touched.
        for entry in reducer._prepared:
            held = reducer._conversation.index.get(entry.id)
            if held is None or (entry.role == "tool" and not reducer._conversation.holds_result(entry.base)):
                reducer._conversation.append_entry(entry)
        reducer._conversation.settle(reducer._upcoming)  # they were there when the run began (EVT-7)


def _run_finished(reducer: Standing, event: e.RunFinishedEvent, item: None) -> None:
    outcome = event.outcome
    reducer._conversation.settle(reducer._upcoming)
    reducer._note_speech()
    calls = list(reducer._gate.sequence.started_calls)
    changes: dict[str, Any] = {
        "result": event.result,
        "usage": () if event.usage is UNSET else event.usage,
        "last_calls": tuple(calls[reducer._quiet_from :]),
        "reused_calls": tuple([id for id in calls if _is_reused(reducer, id)]),
    }
    status: Status = "finished"
    if isinstance(outcome, InterruptOutcome):
        status = "interrupted"
        changes["interrupts"] = outcome.interrupts
    elif isinstance(outcome, CancelledOutcome):
        status = "cancelled"
    elif isinstance(outcome, SuccessOutcome) and outcome.pending_tool_call_ids:
        reducer._named_pending = changes["named_calls"] = outcome.pending_tool_call_ids
    reducer._chill()
    reducer._end_run(status, changes)


def _run_error(reducer: Standing, event: e.RunErrorEvent, item: None) -> None:
    _take_out_superseded(reducer)
    changes: dict[str, Any] = {"error": event, "interrupts": ()}
    if event.usage is not UNSET:
        changes["usage"] = event.usage
    reducer._chill()
    reducer._named_pending = ()
    reducer._end_run("failed", changes)


Prepare: TypeAlias = Callable[[Standing, Any], None]
Apply: TypeAlias = Callable[[Standing, Any, Any], None]

# What is not listed (steps, spans, subagents, RAW, CUSTOM) changes neither messages nor state.
_HANDLERS: dict[Any, tuple[Prepare | None, Apply]] = {
    e.RunStartedEvent: (_prepare_run_started, _run_started),
    e.RunFinishedEvent: (None, _run_finished),
    e.RunErrorEvent: (None, _run_error),
    e.TextMessageStartEvent: (prepare_message, _message_start),
    e.TextMessageContentEvent: (prepare_content, _message_content),
    e.TextMessageEndEvent: (None, _message_end),
    e.ReasoningMessageStartEvent: (prepare_message, _message_start),
    e.ReasoningMessageContentEvent: (prepare_content, _message_content),
    e.ReasoningMessageEndEvent: (None, _message_end),
    e.ReasoningEncryptedValueEvent: (None, _encrypted_value),
    e.ToolCallStartEvent: (prepare_call, _call_start),
    e.ToolCallArgsEvent: (prepare_content, _call_args),
    e.ToolCallEndEvent: (None, _call_end),
    e.ToolCallResultEvent: (prepare_result, _call_result),
    e.StateSnapshotEvent: (_prepare_state_snapshot, _state_snapshot),
    e.StateDeltaEvent: (_prepare_state_delta, _state_delta),
    e.MessagesSnapshotEvent: (_prepare_messages_snapshot, _messages_snapshot),
    e.ActivitySnapshotEvent: (_prepare_activity_snapshot, _activity_snapshot),
    e.ActivityDeltaEvent: (_prepare_activity_delta, _activity_delta),
}
HANDLERS: dict[Any, tuple[Prepare | None, Apply | None]] = {
    kind: _HANDLERS.get(kind, (None, None)) for kind in e.EVENT_TYPES.values()
}
"""What prepares, and what applies, each type of event."""
