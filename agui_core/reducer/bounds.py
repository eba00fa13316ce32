"""What `Limits` bound of each event, before it is applied: what fails here is refused whole."""

from __future__ import annotations

from typing import Any

from agui_core.errors import LimitExceeded
from agui_core.protocol import events as e
from agui_core.protocol import messages as m
from agui_core.reducer.builders import MessageBuilder
from agui_core.reducer.state import Standing

__all__ = [
    "bound",
    "bound_text",
    "one_more_message",
    "prepare_call",
    "prepare_content",
    "prepare_message",
    "prepare_result",
]


def bound(event: e.Event, name: str, wanted: int, limit: int) -> None:
    if wanted > limit:
        raise LimitExceeded(
            f"{wanted:,} {name.replace('_', ' ')} are more than Limits({name}={limit}) allows",
            limit=name,
            type=event.type,
        )


def bound_text(reducer: Standing, event: e.Event, entry: MessageBuilder, *, sum_too: bool = True) -> None:
    characters = entry.characters
    longest = max(
        [characters if not entry.calls else len(entry.text or ""), *(len(c.text or "") for c in entry.calls or ())]
    )
    bound(event, "item_characters", longest, reducer._limits.item_characters)
    if sum_too:
        bound(event, "characters", reducer._characters_with(characters), reducer._limits.characters)


def one_more_message(reducer: Standing, event: e.Event) -> None:
    if reducer._conversation.count >= reducer._limits.messages:
        bound(event, "messages", reducer._conversation.count + 1, reducer._limits.messages)


def prepare_message(reducer: Standing, event: Any) -> None:
    if event.message_id not in reducer._conversation.index:
        one_more_message(reducer, event)


def prepare_call(reducer: Standing, event: e.ToolCallStartEvent) -> None:
    conversation, limits = reducer._conversation, reducer._limits
    if event.tool_call_id in conversation.calls:
        return
    if conversation.call_count >= limits.tool_calls:
        bound(event, "tool_calls", conversation.call_count + 1, limits.tool_calls)
    holder = conversation.index.get(event.parent_message_id) if event.parent_message_id else None
    if holder is None or holder.role != "assistant":
        one_more_message(reducer, event)
    else:
        bound(event, "tool_calls_per_message", len(holder.calls or ()) + 1, limits.tool_calls_per_message)


def prepare_result(reducer: Standing, event: e.ToolCallResultEvent) -> None:
    one_more_message(reducer, event)
    if reducer._careful:
        made = m.ToolMessage(id=event.message_id, tool_call_id=event.tool_call_id, content=event.content)
        bound_text(reducer, event, MessageBuilder.of(made, reducer._limits))


def prepare_content(reducer: Standing, event: Any) -> None:
    """Count exactly, but only when the room that was granted is used up."""
    if reducer._careful:
        reducer._settle()
        conversation = reducer._conversation
        if isinstance(event, e.ToolCallArgsEvent):
            call = conversation.calls.get(event.tool_call_id)
            held = "" if call is None else call.text
        else:
            message = conversation.index.get(event.message_id)
            held = "" if message is None else message.text
        bound(event, "item_characters", len(held or "") + len(event.delta), reducer._limits.item_characters)
        bound(event, "characters", reducer._characters_with(len(event.delta)), reducer._limits.characters)
