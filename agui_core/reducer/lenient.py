"""What the lenient policy does with an event that the rules refuse: a few named repairs, else it is skipped.

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
from agui_core.reducer.chunks import Expander, contents
from agui_core.reducer.families import CALL, FAMILIES, FAMILY_OF, REASONING, TEXT
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
    ends = [
        family.make(family.end, id)
        for family in (TEXT, CALL, REASONING)
        for id in getattr(stream, family.open)
        if not expander.holds(family.name, id)
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
    family = FAMILY_OF[type(event)]
    id = getattr(event, family.id)
    members: dict[str, Any] = {"subagent_run_id": event.subagent_run_id}
    if family is CALL:  # the name "" marks a call that nobody may run
        members["tool_call_name"] = stream.started_calls.get(id, "")
    elif family is REASONING:
        members["role"] = "reasoning"
    known = id in getattr(stream, family.owners)
    return ("reopened" if known else "opened"), [family.make(family.start, id, **members), event]


def _merge_start(stream: StreamState, event: Any, error: ProtocolError) -> Repair | None:
    """A start of an open item: only its metadata counts."""
    if error.rule != "STR-1" or event.metadata is UNSET:
        return None
    family = FAMILY_OF[type(event)]
    members = {"delta": "", "metadata": event.metadata, "subagent_run_id": event.subagent_run_id}
    return "only its metadata is merged", [family.make(family.content, getattr(event, family.id), **members)]


def _continue_explicitly(stream: StreamState, event: Any, error: ProtocolError) -> Repair | None:
    """A chunk for an item that was opened explicitly adds to it; one for a closed call finds the call's name again."""
    if error.rule == "STR-1":
        item: OpenItem = getattr(stream, FAMILY_OF[type(event)].open)[error.ids[0]]
        return "added to the open item", contents(event, item.id, item.owner, opened=False)
    if error.rule == "CHUNK-3" and isinstance(event, e.ToolCallChunkEvent) and event.tool_call_id is not UNSET:
        known = stream.started_calls.get(event.tool_call_id)
        return ("opened" if known is None else "reopened"), [replace(event, tool_call_name=known or "")]
    return None


_RUN_ENDS = (e.RunFinishedEvent, e.RunErrorEvent)

_REPAIRS: dict[type[e.Event], Callable[[StreamState, Any, ProtocolError], Repair | None]] = {
    **{family.content: _open_first for family in FAMILIES},
    **{family.start: _merge_start for family in FAMILIES},
    **{family.chunk: _continue_explicitly for family in FAMILIES},
}
