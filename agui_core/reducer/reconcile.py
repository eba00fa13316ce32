"""MESSAGES_SNAPSHOT against what is held (protocol section 13.3). Pure: it says which messages stay or are made.

A message is identified by its id, a tool message by (id, toolCallId), as several results may share an id (OPEN-12).
O(held + snapshot).
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec
from msgspec.structs import replace

from agui_core._text import quoted
from agui_core.limits import Limits
from agui_core.protocol import messages as m
from agui_core.reducer.builders import MessageBuilder
from agui_core.reducer.message_store import MessageStore

__all__ = ["reconcile"]

Identity: TypeAlias = tuple[str, str | None]
Finding: TypeAlias = tuple[str, str]
"""A rule id and what to tell."""

_KEPT_UNLESS_RESTATED = ("activity", "reasoning")
_encode = msgspec.json.encode


def reconcile(
    store: MessageStore, messages: tuple[m.Message, ...], *, lenient: bool
) -> tuple[list[MessageBuilder], list[Finding]]:
    """The messages after the snapshot, in order, and what is odd about it. Expects a settled store and does not
    change it.
    """
    findings: list[Finding] = []
    messages = _clean_calls(store, messages, findings, lenient=lenient)
    roles = {message.role for message in messages}
    kept_roles = [role for role in _KEPT_UNLESS_RESTATED if role not in roles]
    last: dict[Identity, m.Message] = {}
    for message in messages:
        if _identity(message) in last:
            findings.append(("OPEN-13", f"message {quoted(message.id)} occurs twice in the snapshot"))
        last[_identity(message)] = message
    held = list(store.entries())
    held_identities = {_identity(entry.base) for entry in held}
    # A message that changed its identity but not its id still replaces the one that is held.
    renamed = {message.id: identity for identity, message in last.items() if identity not in held_identities}
    used: set[Identity] = set()
    entries: list[MessageBuilder] = []
    for entry in held:
        identity = _identity(entry.base)
        if identity not in last and entry.id in renamed:
            identity = renamed.pop(entry.id)
        restated = last.get(identity)
        if restated is not None:
            if identity not in used:
                entries.append(_restated(entry, restated, store.limits))
            used.add(identity)
        elif entry.role in kept_roles:
            entries.append(entry)
    entries += [MessageBuilder.of(message, store.limits) for message in messages if _identity(message) not in used]
    return entries, findings


def _identity(message: m.Message) -> Identity:
    return message.id, message.tool_call_id if isinstance(message, m.ToolMessage) else None


def _restated(entry: MessageBuilder, message: m.Message, limits: Limits) -> MessageBuilder:
    """The held entry if the snapshot says the same, so that it keeps its identity; else a new one."""
    held = entry.message or entry.build()
    # Equal structs may still differ in open data, where `True == 1`.
    if held == message and _encode(held) == _encode(message):
        return entry
    fresh = MessageBuilder.of(message, limits)
    fresh.added = entry.added  # it was there, only otherwise
    return fresh


def _clean_calls(
    store: MessageStore, messages: tuple[m.Message, ...], findings: list[Finding], *, lenient: bool
) -> tuple[m.Message, ...]:
    seen: set[str] = set()
    cleaned: list[m.Message] = []
    for message in messages:
        if isinstance(message, m.AssistantMessage) and message.tool_calls:
            inside: set[str] = set()
            calls: list[m.ToolCall] = []
            for call in message.tool_calls:
                if call.id in seen:
                    findings.append(("OPEN-13", f"tool call {quoted(call.id)} occurs twice in the snapshot"))
                if not (lenient and call.id in inside):
                    calls.append(_better_arguments(store, call, findings) if lenient else call)
                inside.add(call.id)
                seen.add(call.id)
            if lenient:
                message = replace(message, tool_calls=tuple(calls))
        cleaned.append(message)
    return tuple(cleaned)


def _better_arguments(store: MessageStore, call: m.ToolCall, findings: list[Finding]) -> m.ToolCall:
    """Lenient: arguments that are no JSON document do not replace held ones that are."""
    held = store.calls.get(call.id)
    if held is None or not held.text or _is_json(call.function.arguments) or not _is_json(held.text):
        return call
    findings.append(("TOOL-3", f"tool call {quoted(call.id)} keeps its arguments; the snapshot's are no JSON document"))
    return replace(call, function=m.FunctionCall(name=call.function.name, arguments=held.text))


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text, type=Any)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return False
    return True
