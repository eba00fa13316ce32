"""What each accepted event does to messages and state: plain functions in a table by event type (protocol sections 8 to
14).

An event is *prepared* before it is applied: preparing is all that can fail, which is limits and patches, so that an
event is refused before anything of it was applied. Both expect what the verifier accepted.
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
from agui_core.reducer.accounting import (
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
from agui_core.reducer.run_handlers import prepare_run_started, run_error, run_finished, run_started
from agui_core.reducer.state import ReducerState

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


def _message_start(state: ReducerState, event: Any, item: OpenItem) -> None:
    store = state.store
    entry = store.index.get(event.message_id)
    if entry is None:
        entry = store.append(_new_text(event))
    elif entry.document is None:
        _note_reopened(state, event, entry)
        if entry.parts is not None:
            store.settle(state.upcoming)
            if entry.text is not None:
                entry.settle_part()
                store.touch(entry)  # so that an increment of a checkpoint tells that its part has ended
    item.entry = entry
    _merge(state, event, entry)
    state.allow_fast(item)


def _note_reopened(state: ReducerState, event: Any, entry: MessageBuilder) -> None:
    """OPEN-5, TEXT-3: the established role and name stand."""
    role = "reasoning" if isinstance(event, e.ReasoningMessageStartEvent) else event.role
    if role is UNSET:
        role = "assistant" if entry.role not in _TEXT_MESSAGES else entry.role
    if role != entry.role:
        rule = "TEXT-3" if entry.role in _TEXT_MESSAGES and role in _TEXT_MESSAGES else "OPEN-5"
        state.warn(rule, event, f"message {quoted(entry.id)} is held as a {entry.role} message; it keeps that role")
    elif getattr(event, "name", UNSET) is not UNSET and event.name != getattr(entry.base, "name", UNSET):
        state.warn("TEXT-3", event, f"message {quoted(entry.id)} keeps its name")


def _message_content(state: ReducerState, event: Any, item: OpenItem) -> None:
    entry = item.entry or _recreate_message(state, event, item)
    if entry.document is None:
        entry.pieces.append(event.delta)
        state.piece_added()
        state.store.touch(entry)
    _merge(state, event, entry)
    state.allow_fast(item)


def _message_end(state: ReducerState, event: Any, item: OpenItem) -> None:
    state.deny_fast(item)
    state.may_have_spoken = True
    if item.entry is not None and item.entry.document is None:
        _merge(state, event, item.entry)


def _merge(state: ReducerState, event: Any, entry: MessageBuilder) -> None:
    """What start, content and end of a message have in common: META-3, and that an activity takes nothing (OPEN-5)."""
    if entry.document is not None:
        state.warn(
            "OPEN-5", event, f"text for activity message {quoted(entry.id)} is ignored; it would overwrite its content"
        )
    elif event.metadata is not UNSET:
        entry.merge_metadata(event.metadata)
        state.store.touch(entry)


def _recreate_message(state: ReducerState, event: Any, item: OpenItem) -> MessageBuilder:
    state.warn(
        "OPEN-6", event, f"message {quoted(item.id)} was dropped by a snapshot while it was open; it is made again"
    )
    entry = item.entry = state.store.append(_new_text(item.start))
    return entry


# --- tool calls ---------------------------------------------------------------------------------------------------


def _call_start(state: ReducerState, event: e.ToolCallStartEvent, item: OpenItem) -> None:
    store = state.store
    stream = state.verifier.stream
    if state.may_have_spoken or stream.texts or stream.reasonings:
        store.settle(state.upcoming)
        state.note_speech(event.tool_call_id)
    call = store.calls.get(event.tool_call_id)
    if call is None:
        call = _make_call(state, event)
    else:
        if state.is_reused(event.tool_call_id):
            state.warn(
                "EVT-7",
                event,
                f"tool call {quoted(call.id)} was answered in an earlier run: its texts are joined, and it is not run;"
                " give each call an id of its own",
            )
        call.complete = False
        if event.tool_call_name not in (call.name, ""):
            state.warn(
                "TOOL-6",
                event,
                f"tool call {quoted(call.id)} is renamed from {quoted(call.name)} to {quoted(event.tool_call_name)}",
            )
            call.name = event.tool_call_name
        if event.parent_message_id and event.parent_message_id != call.holder.id:
            state.warn("TOOL-6", event, f"tool call {quoted(call.id)} stays in message {quoted(call.holder.id)}")
        store.touch(call)
    item.entry = call
    state.run_unstamped = True  # one more call is pending
    if event.metadata is not UNSET:
        call.merge_metadata(event.metadata)
    state.allow_fast(item)


def _make_call(state: ReducerState, event: e.ToolCallStartEvent) -> CallBuilder:
    holder = _call_holder(state, event)
    call = CallBuilder(event.tool_call_id, "", UNSET, holder, len(holder.calls or ()), event.tool_call_name)
    state.store.add_call(call)
    return call


def _call_holder(state: ReducerState, event: e.ToolCallStartEvent) -> MessageBuilder:
    """TOOL-2, OPEN-4: the assistant message for a new call, minted if need be."""
    store = state.store
    id = event.parent_message_id or event.tool_call_id
    held = store.index.get(id)
    if event.parent_message_id and held is not None:
        if held.role == "assistant":
            return held
        id = event.tool_call_id
        state.warn("OPEN-4", event, f"parentMessageId names a {held.role} message; the call gets message {quoted(id)}")
        held = store.index.get(id)
    if held is not None:
        state.warn("OPEN-4", event, f"a message {quoted(id)} is held already; the call gets a second one")
    # TOOL-14, SUB-12: whose call it is made for, is whose message it is, for all that name it later in this run. Only
    # who holds the messages knows that it is made here; a conformer lets pass what disagrees with it.
    if event.subagent_run_id is not UNSET:
        state.verifier.stream.message_owners.setdefault(id, event.subagent_run_id)
    return store.append(m.AssistantMessage(id=id, subagent_run_id=event.subagent_run_id))


def _call_args(state: ReducerState, event: e.ToolCallArgsEvent, item: OpenItem) -> None:
    call = item.entry
    if call is None:
        state.warn(
            "OPEN-6",
            event,
            f"tool call {quoted(item.id)} was dropped by a snapshot while it was open; it is made again",
        )
        assert isinstance(item.start, e.ToolCallStartEvent)
        call = item.entry = _make_call(state, item.start)
    call.pieces.append(event.delta)
    state.piece_added()
    if event.metadata is not UNSET:
        call.merge_metadata(event.metadata)
    state.store.touch(call)
    state.allow_fast(item)


def _call_end(state: ReducerState, event: e.ToolCallEndEvent, item: OpenItem) -> None:
    state.deny_fast(item)
    call = item.entry
    if call is not None:
        call.complete = True
        call.broken = call.broken or item.broken
        if event.metadata is not UNSET:
            call.merge_metadata(event.metadata)
        state.store.touch(call)


def _call_result(state: ReducerState, event: e.ToolCallResultEvent, item: None) -> None:
    if event.tool_call_id in state.store.results:
        state.warn("OPEN-12", event, f"tool call {quoted(event.tool_call_id)} has a result already; both are kept")
    held = state.store.index.get(event.message_id)
    if held is not None and held.role != "tool":
        state.warn("EVT-7", event, f"its messageId {quoted(held.id)} is that of a {held.role} message; both are kept")
    state.run_unstamped = True
    state.said_something()
    state.store.place_result(
        m.ToolMessage(
            id=event.message_id,
            tool_call_id=event.tool_call_id,
            content=event.content,
            metadata=event.metadata if event.metadata is UNSET else dict(event.metadata),
            subagent_run_id=event.subagent_run_id,
        )
    )


def _encrypted_value(state: ReducerState, event: e.ReasoningEncryptedValueEvent, item: None) -> None:
    store = state.store
    if event.subtype == "tool-call":
        call = store.calls.get(event.entity_id)
        if call is not None:
            call.encrypted_value = event.encrypted_value
            store.touch(call)
            return
    else:
        entry = store.index.get(event.entity_id)
        if entry is not None and entry.document is None:
            entry.base = replace(entry.base, encrypted_value=event.encrypted_value)
            store.touch(entry)
            return
    state.warn(
        "REAS-11", event, f"no {event.subtype} {quoted(event.entity_id)} is held that could have an encrypted value"
    )


# --- state, snapshots, activities ---------------------------------------------------------------------------------


def _prepare_state_snapshot(state: ReducerState, event: e.StateSnapshotEvent) -> None:
    state.document.replace(event.snapshot)


def _prepare_state_delta(state: ReducerState, event: e.StateDeltaEvent) -> None:
    state.prepared = None
    try:
        state.document.apply(event.delta)
    except PatchError as error:
        state.prepared = error


def _reason(error: PatchError) -> str:
    return str(error).removesuffix(" [PATCH-5]")


def _state_snapshot(state: ReducerState, event: e.StateSnapshotEvent, item: None) -> None:
    state.state_changed()


def _state_delta(state: ReducerState, event: e.StateDeltaEvent, item: None) -> None:
    error = state.prepared
    if isinstance(error, PatchError):
        state.warn("PATCH-5", event, f"the state patch does not apply and is skipped: {_reason(error)}")
    else:
        state.state_changed()


def _prepare_messages_snapshot(state: ReducerState, event: e.MessagesSnapshotEvent) -> None:
    state.fold()
    entries, warnings = reconcile(state.store, event.messages, lenient=state.verifier.lenient)
    limits = state.limits
    bound(event, "messages", len(entries), limits.messages)
    bound(event, "tool_calls", sum(len(entry.calls or ()) for entry in entries), limits.tool_calls)
    for entry in entries:
        bound(event, "tool_calls_per_message", len(entry.calls or ()), limits.tool_calls_per_message)
        if entry.number < 0:
            bound_text(state, event, entry, sum_too=False)
    bound(event, "characters", sum(entry.characters for entry in entries), limits.characters)
    state.prepared = (entries, warnings)


def _messages_snapshot(state: ReducerState, event: e.MessagesSnapshotEvent, item: None) -> None:
    entries, warnings = state.prepared
    for rule, message in warnings:
        state.warn(rule, event, message)
    store, stream = state.store, state.verifier.stream
    # Before they are dropped: what would be made again if text for it still comes (OPEN-6).
    for open_item in (*stream.texts.values(), *stream.reasonings.values(), *stream.calls.values()):
        _remember(open_item)
    state.fold()
    store.restate(entries, state.upcoming)
    state.deny_all()
    for item_table in (stream.texts, stream.reasonings):
        for open_item in item_table.values():
            open_item.entry = store.index.get(open_item.id)
            state.allow_fast(open_item)
    for open_item in stream.calls.values():
        open_item.entry = store.calls.get(open_item.id)
        if open_item.entry is not None:
            open_item.entry.complete = False
            state.allow_fast(open_item)
    _find_quiet(state)


def _find_quiet(state: ReducerState) -> None:
    """After a snapshot: find the calls that still stand after all that was said."""
    last: set[str] = set()
    for entry in reversed([*state.store.entries()]):
        last.update([call.id for call in entry.calls or ()])
        if entry.role == "tool" or (entry.role in ("assistant", "reasoning") and entry.text):
            break
    started = list(state.verifier.stream.started_calls)
    while len(started) > state.quiet_from and started[-1] in last:
        started.pop()
    state.quiet_from = len(started)


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


def _prepare_activity_snapshot(state: ReducerState, event: e.ActivitySnapshotEvent) -> None:
    entry = state.store.index.get(event.message_id)
    if entry is None:
        one_more_message(state, event)
        made = m.ActivityMessage(
            id=event.message_id,
            activity_type=event.activity_type,
            content=event.content,
            metadata=event.metadata if event.metadata is UNSET else dict(event.metadata),
            subagent_run_id=event.subagent_run_id,
        )
        state.prepared = MessageBuilder.of(made, state.limits)
    elif entry.document is not None and event.replace is not False:
        entry.document.replace(event.content)


def _activity_snapshot(state: ReducerState, event: e.ActivitySnapshotEvent, item: None) -> None:
    store = state.store
    entry = store.index.get(event.message_id)
    if entry is None:
        store.append_entry(state.prepared)
        return
    if entry.document is None:
        state.warn(
            "OPEN-11", event, f"message {quoted(entry.id)} is a {entry.role} message, which an activity may not replace"
        )
        return
    if event.replace is not False:
        entry.base = replace(entry.base, activity_type=event.activity_type, subagent_run_id=event.subagent_run_id)
        store.touch(entry)
    if event.metadata is not UNSET:
        entry.merge_metadata(event.metadata)
        store.touch(entry)


def _prepare_activity_delta(state: ReducerState, event: e.ActivityDeltaEvent) -> None:
    state.prepared = None
    entry = state.store.index.get(event.message_id)
    if entry is not None and entry.document is not None:
        try:
            entry.document.apply(event.patch, object_only=True)
        except PatchError as error:
            state.prepared = error


def _activity_delta(state: ReducerState, event: e.ActivityDeltaEvent, item: None) -> None:
    store = state.store
    entry = store.index.get(event.message_id)
    if entry is None or entry.document is None:
        held = "no message" if entry is None else f"no activity but a {entry.role} message"
        state.warn("ACT-6", event, f"{held} {quoted(event.message_id)} is held; the patch is skipped")
        return
    if event.subagent_run_id is not UNSET and event.subagent_run_id != entry.base.subagent_run_id:
        state.warn("OPEN-24", event, f"activity {quoted(entry.id)} keeps the owner that an earlier run gave it")
    error = state.prepared
    if isinstance(error, PatchError):
        state.warn(
            "PATCH-5",
            event,
            f"the patch of activity {quoted(entry.id)} does not apply and is skipped: {_reason(error)}",
        )
    else:
        entry.base = replace(entry.base, activity_type=event.activity_type)
        store.touch(entry)
    if event.metadata is not UNSET:
        entry.merge_metadata(event.metadata)
        store.touch(entry)


Prepare: TypeAlias = Callable[[ReducerState, Any], None]
Apply: TypeAlias = Callable[[ReducerState, Any, Any], None]

# What is not listed (steps, spans, subagents, RAW, CUSTOM) changes neither messages nor state.
_HANDLERS: dict[Any, tuple[Prepare | None, Apply]] = {
    e.RunStartedEvent: (prepare_run_started, run_started),
    e.RunFinishedEvent: (None, run_finished),
    e.RunErrorEvent: (None, run_error),
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
