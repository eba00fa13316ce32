"""`Persisted`: all that `Calls` keeps beyond the process, as JSON in the `extra` of the reducer's checkpoint.

Format 2 is written. Format 1 is read too, and its started calls become marks (see `effects`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from agui_core._text import quoted
from agui_core.errors import DecodeError
from agui_core.protocol.messages import ToolMessage
from agui_core.protocol.run import Interrupt, ResumeEntry
from agui_core.tools.approval import Verdict
from agui_core.tools.states import CallState

__all__ = ["Persisted", "CallRecord", "read_persisted"]


class CallRecord(msgspec.Struct, rename={"generation": "opening"}):
    """One call of the last run. Checkpoints call its generation `opening`."""

    message_id: str
    generation: int = 0
    """Counts up when the call starts anew."""
    state: CallState = "input-streaming"
    verdict: Verdict | None = None
    digest: str = ""
    """Of the call that the verdict is about."""


class Persisted(msgspec.Struct):
    """The decisions, answers and marks of one thread."""

    format: int = 2
    seen: int = 0
    """The version of the reducer up to which the records are right."""
    thread_id: str | None = None
    run_ids: list[str] = []
    """The latest run ids that went out."""
    offered: tuple[str, ...] | None = None
    """Names of the tools in the last input; None before the first one."""
    offered_ever: dict[str, None] = {}
    """Names of the tools in all inputs of the thread."""
    loaded: tuple[str, ...] = ()
    """Calls of a loaded history that wait, or waited, for an answer."""
    records: dict[str, CallRecord] = {}
    marks: list[str] = []
    """See `Effects.marks`."""
    ran: dict[str, tuple[str, ...]] = {}
    """See `Effects.ran`."""
    answers: dict[str, ToolMessage] = {}
    """Answers that are not in the conversation yet."""
    answers_to: dict[str, str] = {}
    """The digest of the call that each of them answers."""
    entries: dict[str, ResumeEntry] = {}
    """Answers to open interrupts."""
    votes: dict[str, dict[str, Verdict]] = {}
    """By the id that several interrupts share: the verdict on each so far, by its place among them."""
    decided_at: int = 0
    """The version at which the last of these came."""
    sent: bool = False
    """Whether they went into an input. Any run that then begins uses them up (OPEN-16)."""
    carried: tuple[Interrupt, ...] = ()
    """Interrupts that the reducer no longer shows, and that stay open because the input was refused (OPEN-16)."""
    carried_from: str | None = None


def read_persisted(extra: bytes) -> tuple[Persisted, dict[str, dict[str, Any] | None]]:
    """The struct in a checkpoint's `extra`. From format 1 also the calls that had begun, with the arguments that a
    person put in place of the agent's.

    Raises: `DecodeError`.
    """
    try:
        saved: dict[str, Any] = msgspec.json.decode(extra, type=dict[str, Any])
        form = saved.get("format")
        effect_started = _upgrade(saved) if form == 1 else {}
        if form not in (1, 2):
            raise DecodeError(f"the calls were kept in format {quoted(form)}, not known here", rule="CHECKPOINT")
        return msgspec.convert(saved, Persisted), effect_started
    except (msgspec.MsgspecError, ValueError, TypeError, AttributeError, KeyError, RecursionError) as error:
        raise DecodeError(f"the extra of the checkpoint is not that of Calls: {error}", rule="CHECKPOINT") from None


def _upgrade(saved: dict[str, Any]) -> dict[str, dict[str, Any] | None]:
    """Turn format 1 into format 2; gives the calls that had begun (see `read_persisted`)."""
    offers = saved.pop("offered", {})
    saved["run_ids"] = list(offers)
    if offers:
        saved["offered"] = list(offers.values())[-1]
    saved["offered_ever"] = dict.fromkeys(name for names in offers.values() for name in names)
    saved["format"] = 2
    effect_started: dict[str, dict[str, Any] | None] = {}
    answers = saved.get("answers", {})
    for id, record in saved.get("records", {}).items():
        verdict = record.pop("verdict", None)
        record.pop("digest", None)
        if record.pop("begun", False) or id in answers:
            effect_started[id] = None if verdict is None else verdict["edited_args"]
        elif verdict is not None and record.get("state") == "approval-responded":
            # Digests are made in another way now, so the verdict has to be given again.
            record["state"] = "approval-requested"
    return {**dict.fromkeys(answers), **effect_started}
