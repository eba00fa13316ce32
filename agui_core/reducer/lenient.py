"""What the lenient policy does with an event that the sequence rules refuse: a few named repairs, else it is skipped.

A repair names other events to judge in the refused one's place; so a repaired stream is one that a conforming producer
could have sent. Each repair is reported with the rule that was broken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from agui_core.errors import ProtocolError
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.reducer.chunks import CHUNKS, Expander, contents
from agui_core.reducer.items import OpenItem
from agui_core.reducer.stream_state import StreamState

__all__ = ["find_repair"]

Repair: TypeAlias = tuple[str, list[e.Event]]
"""How it was repaired, in words, and the events that take the refused one's place."""


def find_repair(
    stream: StreamState, expander: Expander, event: e.Event, error: ProtocolError, assumed: tuple[str, str]
) -> Repair | None:
    """The repair for a refused event, or None to skip it. `assumed`: thread and run id of a run that nobody started."""
    if stream.phase == "idle":
        thread, run = (event.thread_id, event.run_id) if isinstance(event, e.RunFinishedEvent) else assumed
        return "a run is assumed", [e.RunStartedEvent(thread_id=thread, run_id=run), event]
    if stream.phase in ("finished", "failed") and not isinstance(event, _RUN_ENDS):
        stream.reopen_run()
        return "applied to the run that had ended", [event]
    if isinstance(event, e.RunFinishedEvent) and stream.phase == "running":
        return "closed what was open", [*_ends(stream, expander), event]
    repair = _REPAIRS.get(type(event))
    return None if repair is None else repair(stream, event, error)


def _ends(stream: StreamState, expander: Expander) -> list[e.Event]:
    """Ends for all that is open, save for what the expander closes by itself."""
    ends: list[e.Event] = []
    ends += [
        e.TextMessageEndEvent(message_id=item.id)
        for item in stream.texts.values()
        if not expander.holds("text", item.id)
    ]
    ends += [
        e.ToolCallEndEvent(tool_call_id=item.id)
        for item in stream.calls.values()
        if not expander.holds("call", item.id)
    ]
    ends += [
        e.ReasoningMessageEndEvent(message_id=item.id)
        for item in stream.reasonings.values()
        if not expander.holds("reasoning", item.id)
    ]
    ends += [e.ReasoningEndEvent(message_id=id) for id in stream.spans]
    ends += [
        e.StepFinishedEvent(step_name=name, subagent_run_id=UNSET if owner is None else owner)
        for owner, name in stream.steps
    ]
    ends += [e.SubagentFinishedEvent(subagent_run_id=id) for id in stream.subagents]
    return ends


def _open_first(stream: StreamState, event: Any, error: ProtocolError) -> Repair | None:
    """Content for an item that is not open: open it, as it was opened before or with what the event says."""
    if error.rule != "STR-2":
        return None
    tag = event.subagent_run_id
    start: e.Event
    if isinstance(event, e.ToolCallArgsEvent):
        known = event.tool_call_id in stream.call_owners
        # The name "" marks a call that nobody may run.
        name = stream.started_calls.get(event.tool_call_id, "")
        start = e.ToolCallStartEvent(tool_call_id=event.tool_call_id, tool_call_name=name, subagent_run_id=tag)
    elif isinstance(event, e.TextMessageContentEvent):
        known = event.message_id in stream.message_owners
        start = e.TextMessageStartEvent(message_id=event.message_id, subagent_run_id=tag)
    else:
        known = event.message_id in stream.reasoning_owners
        start = e.ReasoningMessageStartEvent(message_id=event.message_id, role="reasoning", subagent_run_id=tag)
    return ("reopened" if known else "opened"), [start, event]


def _merge_start(stream: StreamState, event: Any, error: ProtocolError) -> Repair | None:
    """A start of an open item: only its metadata counts."""
    if error.rule != "STR-1" or event.metadata is UNSET:
        return None
    metadata, tag = event.metadata, event.subagent_run_id
    content: e.Event
    if isinstance(event, e.ToolCallStartEvent):
        content = e.ToolCallArgsEvent(tool_call_id=event.tool_call_id, delta="", metadata=metadata, subagent_run_id=tag)
    elif isinstance(event, e.TextMessageStartEvent):
        content = e.TextMessageContentEvent(
            message_id=event.message_id, delta="", metadata=metadata, subagent_run_id=tag
        )
    else:
        content = e.ReasoningMessageContentEvent(
            message_id=event.message_id, delta="", metadata=metadata, subagent_run_id=tag
        )
    return "only its metadata is merged", [content]


def _continue_explicitly(stream: StreamState, event: Any, error: ProtocolError) -> Repair | None:
    """A chunk for an item that was opened explicitly adds to it; one for a closed call finds the call's name again."""
    if error.rule == "STR-1":
        kind = CHUNKS[type(event)]
        item: OpenItem = {"text": stream.texts, "call": stream.calls, "reasoning": stream.reasonings}[kind.family][
            error.ids[0]
        ]
        return "added to the open item", contents(event, item.id, item.owner, opened=False)
    if error.rule == "CHUNK-3" and isinstance(event, e.ToolCallChunkEvent) and event.tool_call_id is not UNSET:
        known = stream.started_calls.get(event.tool_call_id)
        return ("opened" if known is None else "reopened"), [replace(event, tool_call_name=known or "")]
    return None


_RUN_ENDS = (e.RunFinishedEvent, e.RunErrorEvent)

_REPAIRS: dict[type[e.Event], Callable[[StreamState, Any, ProtocolError], Repair | None]] = {
    e.TextMessageContentEvent: _open_first,
    e.ToolCallArgsEvent: _open_first,
    e.ReasoningMessageContentEvent: _open_first,
    e.TextMessageStartEvent: _merge_start,
    e.ToolCallStartEvent: _merge_start,
    e.ReasoningMessageStartEvent: _merge_start,
    e.TextMessageChunkEvent: _continue_explicitly,
    e.ToolCallChunkEvent: _continue_explicitly,
    e.ReasoningMessageChunkEvent: _continue_explicitly,
}
