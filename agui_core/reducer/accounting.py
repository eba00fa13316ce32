"""Limits: how many characters may come before they are counted, and what one event may add. What fails here is refused
whole.

Text is counted when its pieces are joined. A budget of characters is granted ahead, so that the hot loops subtract the
length of a read and compare; where little is left, every event is counted before it is applied. What is held besides
text is measured only when the events since the last measuring could be too much.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agui_core.errors import LimitExceeded
from agui_core.protocol import events as e
from agui_core.protocol import messages as m
from agui_core.reducer.builders import MessageBuilder
from agui_core.reducer.state import ReducerState
from agui_core.wire import encode

__all__ = [
    "allow_overhead",
    "bound",
    "bound_text",
    "charge",
    "event_size",
    "grant",
    "measure_overhead",
    "one_more_message",
    "prepare_call",
    "prepare_content",
    "prepare_message",
    "prepare_result",
]

_encode = msgspec.json.encode
_BUDGET = 1024 * 1024
"""Characters that may come between two countings, at most; it also bounds the pieces that wait to be joined."""
_SLACK = 16
"""What is held besides text may exceed its bound by this part of it, so that measuring it stays linear."""


def event_size(event: Any) -> int:
    """Bytes of an event as JSON."""
    try:
        return len(_encode(event))
    except UnicodeEncodeError:  # half a character waits in its text
        return len(encode(event))


def grant(state: ReducerState, size: int) -> None:
    """Grant a budget for `size` characters and for more to come. Text that is not counted yet never exceeds what the
    limits leave. Near a limit, every event is counted before it is applied.
    """
    store, limits = state.store, state.limits
    store.settle(state.now)
    left = min(limits.characters - store.characters, limits.item_characters - store.largest)
    state.near_limit = left < size
    state.refresh_fast()
    granted = max(size, min(_BUDGET, left, limits.event_bytes))
    # A budget below 0 keeps every event off the fast path, which no middleware sees.
    state.char_budget = -1 if state.middleware else granted - size


def allow_overhead(state: ReducerState) -> None:
    """Say how much may come before what is held is measured again."""
    limit = state.limits.characters
    state.overhead_allowed = max(limit - state.overhead_chars, limit // _SLACK)


def measure_overhead(state: ReducerState) -> None:
    store, limit = state.store, state.limits.characters
    store.settle(state.now)
    document = len(_encode(state.document.value)) if state.state_version or state.state_unstamped else 0
    inside = sum([entry.other_characters for entry in store.entries()])
    state.overhead_chars = document + inside + state.verifier.stream.characters
    state.overhead_since = 0
    allow_overhead(state)
    if state.overhead_chars > limit:
        raise state.reject(
            LimitExceeded(
                f"ids, names, metadata, activities and state hold {state.overhead_chars:,} characters, which is more"
                f" than Limits(characters={limit}) allows",
                limit="characters",
            )
        )


def charge(state: ReducerState, event: Any) -> None:
    """Take an event that did not come as bytes off the budget of characters."""
    delta = getattr(event, "delta", None)
    # One more: half a character that waits in the item becomes a whole one.
    size = len(delta) + 1 if isinstance(delta, str) else len(_encode(event))
    state.char_budget -= size
    if state.char_budget < 0:
        grant(state, size)


def characters_with(state: ReducerState, more: int) -> int:
    state.store.settle(state.now)
    return state.store.characters + more


# --- what one event may add ---


def bound(event: e.Event, name: str, wanted: int, limit: int) -> None:
    if wanted > limit:
        raise LimitExceeded(
            f"{wanted:,} {name.replace('_', ' ')} are more than Limits({name}={limit}) allows",
            limit=name,
            type=event.type,
        )


def bound_text(state: ReducerState, event: e.Event, entry: MessageBuilder, *, sum_too: bool = True) -> None:
    characters = entry.characters
    longest = max(
        [characters if not entry.calls else len(entry.text or ""), *(len(c.text or "") for c in entry.calls or ())]
    )
    bound(event, "item_characters", longest, state.limits.item_characters)
    if sum_too:
        bound(event, "characters", characters_with(state, characters), state.limits.characters)


def one_more_message(state: ReducerState, event: e.Event) -> None:
    if state.store.count >= state.limits.messages:
        bound(event, "messages", state.store.count + 1, state.limits.messages)


def prepare_message(state: ReducerState, event: Any) -> None:
    if event.message_id not in state.store.index:
        one_more_message(state, event)


def prepare_call(state: ReducerState, event: e.ToolCallStartEvent) -> None:
    store, limits = state.store, state.limits
    if event.tool_call_id in store.calls:
        return
    if store.call_count >= limits.tool_calls:
        bound(event, "tool_calls", store.call_count + 1, limits.tool_calls)
    holder = store.index.get(event.parent_message_id) if event.parent_message_id else None
    if holder is None or holder.role != "assistant":
        one_more_message(state, event)
    else:
        bound(event, "tool_calls_per_message", len(holder.calls or ()) + 1, limits.tool_calls_per_message)


def prepare_result(state: ReducerState, event: e.ToolCallResultEvent) -> None:
    one_more_message(state, event)
    if state.near_limit:
        made = m.ToolMessage(id=event.message_id, tool_call_id=event.tool_call_id, content=event.content)
        bound_text(state, event, MessageBuilder.of(made, state.limits))


def prepare_content(state: ReducerState, event: Any) -> None:
    """Count exactly, but only near a limit."""
    if state.near_limit:
        state.fold()
        store = state.store
        if isinstance(event, e.ToolCallArgsEvent):
            call = store.calls.get(event.tool_call_id)
            held = "" if call is None else call.text
        else:
            message = store.index.get(event.message_id)
            held = "" if message is None else message.text
        bound(event, "item_characters", len(held or "") + len(event.delta), state.limits.item_characters)
        bound(event, "characters", characters_with(state, len(event.delta)), state.limits.characters)
