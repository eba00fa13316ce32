"""LangGraph's older form of an interrupt, and of its answer.

There a `CUSTOM` event named `on_interrupt` comes before a plain finish, and the answer is in
`forwardedProps.command.resume`. The middleware turns the event into an interrupt outcome of this protocol. It marks
these interrupts in their metadata, and `Calls.next_input` gives their answers in the older form.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from agui_core.protocol.base import UNSET
from agui_core.protocol.run import Interrupt, ResumeEntry
from agui_core.wire.json_values import too_deep

__all__ = ["LangGraphInterrupts", "command_of", "is_legacy", "langgraph_interrupts"]

MARK = "agui_core.langgraph"
"""The metadata key of an interrupt that this middleware made."""

REASON = "langgraph:interrupt"
_NESTING = 100
_FIELDS: dict[str, tuple[str, type]] = {
    "message": ("message", str),
    "tool_call_id": ("toolCallId", str),
    "response_schema": ("responseSchema", dict),
    "expires_at": ("expiresAt", str),
}


class LangGraphInterrupts:
    """A middleware (PROC-3) for one stream. Remembers the interrupts since the run started."""

    __slots__ = ("_found", "_run_id")

    def __init__(self) -> None:
        self._run_id = ""
        self._found: list[dict[str, Any]] = []

    def __call__(self, events: Iterator[dict[str, Any]]) -> Iterable[dict[str, Any]]:
        """The same events; a plain finish after an `on_interrupt` becomes an interrupted one."""
        for event in events:
            kind = event.get("type")
            if kind == "RUN_STARTED":
                self._found = []
                self._run_id = event["runId"] if isinstance(event.get("runId"), str) else ""
            elif kind == "CUSTOM" and event.get("name") == "on_interrupt":
                self._found.append(self._interrupt(event))
            elif kind == "RUN_FINISHED" and self._found and event.get("outcome") is None:
                event = {**event, "outcome": {"type": "interrupt", "interrupts": self._found}}
                self._found = []
            yield event

    def _interrupt(self, event: dict[str, Any]) -> dict[str, Any]:
        value = _decoded(event.get("value"))
        raw = event.get("rawEvent")
        id = raw.get("id") if isinstance(raw, dict) else None
        interrupt: dict[str, Any] = {
            "id": id if isinstance(id, str) else f"{self._run_id}:interrupt:{len(self._found) + 1}",
            "reason": REASON,
            "metadata": {"langgraph": {"raw": value}, MARK: "command"},
        }
        if isinstance(value, str):
            interrupt["message"] = value
        elif isinstance(value, dict):
            for name, (wire_name, kind) in _FIELDS.items():
                item = value.get(name, value.get(wire_name))
                if isinstance(item, kind):
                    interrupt[wire_name] = item
        return interrupt


def langgraph_interrupts() -> LangGraphInterrupts:
    """A middleware that turns LangGraph's older interrupts into today's. Make one for each reducer."""
    return LangGraphInterrupts()


def _decoded(value: Any) -> Any:
    """The value of an `on_interrupt`: its text is often JSON in JSON."""
    if not isinstance(value, str):
        return value
    try:
        decoded = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError, ValueError, RecursionError):
        return value
    return value if too_deep(decoded, _NESTING) else decoded


def is_legacy(interrupt: Interrupt) -> bool:
    """Whether the answer to an interrupt has to take the older form."""
    return interrupt.metadata is not UNSET and interrupt.metadata.get(MARK) == "command"


def command_of(entries: Sequence[ResumeEntry]) -> dict[str, Any]:
    """The part of `forwardedProps` that answers all older interrupts of a run: `{"command": {"resume": payload}}`, with
    a mapping from interrupt id to payload where there are several. Cancelled ones are left out, as that form cannot
    say it; the agent asks again.
    """
    payloads = {
        entry.interrupt_id: None if entry.payload is UNSET else entry.payload
        for entry in entries
        if entry.status == "resolved"
    }
    if not payloads:
        return {}
    return {"command": {"resume": payloads if len(entries) > 1 else next(iter(payloads.values()))}}
