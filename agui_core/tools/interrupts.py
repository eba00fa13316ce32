"""Interrupts: their answers checked before anything is sent, written, and read back; and interrupts for calls.

The consumer answers every open interrupt of the last interrupted run, each once and none after its expiry (INT-5..9,
INT-15). The agent makes an interrupt from a call that needs approval, and reads the answer. Both use the form of the
frameworks: reason `tool_call`, payload `{"approved": bool, "editedArgs": object, "reason": text}`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeAlias

from agui_core._text import listed, quoted
from agui_core.errors import ApprovalError, ResumeError
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.messages import ToolCall
from agui_core.protocol.run import Interrupt, InterruptOutcome, ResumeEntry
from agui_core.reducer.views import ToolCallView
from agui_core.tools.approval import Verdict
from agui_core.tools.json_arguments import read_arguments
from agui_core.tools.outcomes import DECIDED
from agui_core.tools.toolset import Toolset
from agui_core.warnings import WarningLog
from agui_core.wire.encode import to_wire
from agui_core.wire.json_values import clean_text
from agui_core.wire.outgoing import enforced

__all__ = [
    "APPROVAL",
    "Answers",
    "agreed",
    "asks_approval",
    "check_open",
    "check_resume",
    "decisions",
    "entries_of",
    "entry_of",
    "expired",
    "interrupt_for",
    "not_voted",
    "vote",
]

APPROVAL = "tool_call"
"""The reason of an interrupt that asks for approval of a tool call."""

Answer: TypeAlias = bool | Verdict | None
"""Approve, deny, say it in full, or give up (None)."""

Answers: TypeAlias = Mapping[str, Answer] | Iterable[ResumeEntry | Mapping[str, Any]]
"""Answers by interrupt id, or resume entries as structs or wire dicts, with any payload."""


def asks_approval(interrupt: Interrupt) -> bool:
    """Whether an interrupt asks a person about a call: True and False answer it then."""
    return interrupt.reason == APPROVAL or isinstance(interrupt.tool_call_id, str)


# --- checking -----------------------------------------------------------------------------------------------------


def expired(interrupt: Interrupt, now: datetime | None = None) -> bool:
    """Whether it is too late to resolve an interrupt (INT-8): `expiresAt` is now or earlier. Dates (ISO 8601) without
    an offset are UTC. Text that is not a date never expires.
    """
    if interrupt.expires_at is UNSET:
        return False
    try:
        deadline = datetime.fromisoformat(interrupt.expires_at.strip())
    except ValueError:
        return False
    return _aware(deadline) <= (datetime.now(UTC) if now is None else _aware(now))


def _aware(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def check_resume(interrupts: Iterable[Interrupt], entries: Iterable[ResumeEntry], now: datetime | None = None) -> None:
    """Check that the entries answer all these interrupts, each once, and resolve no expired one.

    Raises: `ResumeError`.
    """
    open_ones = {interrupt.id: interrupt for interrupt in interrupts}
    entries = tuple(entries)
    answered = Counter(entry.interrupt_id for entry in entries)
    _refuse(
        [id for id in answered if id not in open_ones],
        "name no open interrupt; leave them out",
        "INT-5" if open_ones else "INT-12",
    )
    _refuse(
        [id for id, times in answered.items() if times > 1],
        "are answered twice; answer each once",
        "INT-15",
    )
    _refuse(
        [id for id in open_ones if id not in answered],
        "have no answer; resolve them or give them up (cancelled)",
        "INT-6",
    )
    _refuse(
        [e.interrupt_id for e in entries if e.status == "resolved" and expired(open_ones[e.interrupt_id], now)],
        "have expired and can only be given up (cancelled)",
        "INT-8",
    )
    _refuse(
        [entry.interrupt_id for entry in entries if entry.payload is None],
        "are answered with null; leave the payload out",
        "INT-9",
    )


def _refuse(ids: list[str], problem: str, rule: str) -> None:
    if ids:
        raise ResumeError(f"interrupts {listed(ids)} {problem} [{rule}]")


# --- writing answers ----------------------------------------------------------------------------------------------


def entries_of(answers: Answers, interrupts: Iterable[Interrupt], log: WarningLog) -> tuple[ResumeEntry, ...]:
    """The resume entries of an application's answers. Entries are enforced like those of the wire (INT-10): one with an
    unknown status is removed with a warning, a malformed one raises `ProtocolError`.
    """
    if isinstance(answers, Mapping):
        open_ones = {interrupt.id: interrupt for interrupt in interrupts}
        return tuple(entry_of(open_ones.get(id, Interrupt(id=id, reason="")), answer) for id, answer in answers.items())
    wire = to_wire([entry if isinstance(entry, ResumeEntry) else dict(entry) for entry in answers])  # type: ignore[misc]
    judged = [enforced(ResumeEntry, entry, log) for entry in wire]
    return tuple(entry for entry in judged if entry is not None)


def entry_of(interrupt: Interrupt, answer: Answer) -> ResumeEntry:
    """The resume entry of one answer, in the form that the interrupt's `responseSchema` allows.

    Raises: `ResumeError` when the schema has no place for it. Edited arguments that the agent would ignore are never
    dropped silently, as the tool would then run with arguments that nobody agreed to.
    """
    if answer is None:
        return ResumeEntry(interrupt_id=interrupt.id, status="cancelled")
    verdict = Verdict(approved=answer) if isinstance(answer, bool) else answer
    if not isinstance(verdict, Verdict):
        raise TypeError(
            f"{quoted(interrupt.id)} is answered with {quoted(answer)}, but takes True, False, None or a Verdict here;"
            " any other payload goes into a resume entry"
        )
    reason = clean_text(verdict.reason) if verdict.reason else None
    if verdict.cancelled:
        given: dict[str, Any] | UnsetType = {"reason": reason} if reason else UNSET
        return ResumeEntry(interrupt_id=interrupt.id, status="cancelled", payload=given)
    schema = {} if interrupt.response_schema is UNSET else interrupt.response_schema
    payload = _payload(interrupt.id, verdict, schema)
    # A reason that the schema has no place for is said beside the payload.
    told = not reason or (isinstance(payload, dict) and "reason" in payload)
    return ResumeEntry(
        interrupt_id=interrupt.id,
        status="resolved",
        payload=payload,
        metadata=UNSET if told else {DECIDED: {"by": "person", "reason": reason}},
    )


def _payload(id: str, verdict: Verdict, schema: dict[str, Any]) -> bool | dict[str, Any]:
    kind = schema.get("type", "object")
    if kind == "boolean" and not (verdict.approved and verdict.edited_args is not None):
        return verdict.approved
    if kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise ResumeError(
            f"interrupt {quoted(id)} takes no approval but {quoted(kind)}; answer it with a resume entry [INT-3]"
        )
    listed = schema.get("properties")
    known = listed if isinstance(listed, dict) else None
    payload: dict[str, Any] = {_approval_key(known): verdict.approved}
    if verdict.approved and verdict.edited_args is not None:
        if known is not None and "editedArgs" not in known:
            raise ResumeError(
                f"interrupt {quoted(id)} takes no edited arguments; approve it as it is, or deny it [INT-3]"
            )
        payload["editedArgs"] = read_arguments(verdict.edited_args)
    if verdict.reason and (known is None or "reason" in known or schema.get("additionalProperties") is not False):
        payload["reason"] = clean_text(verdict.reason)
    return payload


def check_open(interrupt: Interrupt, now: datetime | None = None) -> None:
    """Raise `ApprovalError` when it is too late to decide on an interrupt."""
    if expired(interrupt, now):
        raise ApprovalError(
            f"interrupt {quoted(interrupt.id)} has expired and can only be given up, by `resume` [INT-8]"
        )


Votes: TypeAlias = dict[str, dict[str, Verdict]]
"""By the id that several interrupts share: the verdict on each, by its place among them."""


def vote(votes: Votes, interrupts: Iterable[Interrupt], interrupt: Interrupt, verdict: Verdict) -> ResumeEntry | None:
    """The entry for an interrupt that a person has decided on. Where several share its id (INT-15), the verdict is
    noted in `votes`, and one entry comes when all were asked: a yes only if all said yes. None until then.
    """
    sharing = [each for each in interrupts if each.id == interrupt.id]
    if len(sharing) < 2:
        return entry_of(interrupt, verdict)
    entry_of(interrupt, verdict)  # a verdict that this one does not take is refused before it counts
    said = votes.setdefault(interrupt.id, {})
    said.update({str(place): verdict for place, each in enumerate(sharing) if each == interrupt})
    if len(said) < len(sharing):
        return None
    return entry_of(sharing[0], _together([said[str(place)] for place in range(len(sharing))]))


def not_voted(votes: Votes, interrupts: Iterable[Interrupt]) -> list[Interrupt]:
    """The interrupts without a verdict."""
    places, found = Counter[str](), []
    for each in interrupts:
        place, places[each.id] = places[each.id], places[each.id] + 1
        if str(place) not in votes.get(each.id, ()):
            found.append(each)
    return found


def agreed(interrupt: Interrupt, entries: list[ResumeEntry]) -> ResumeEntry:
    """One entry of the answers to several interrupts that share an id (INT-15): a yes only if all said yes.

    Raises: `ResumeError` for different answers that are not approvals.
    """
    if all(each == entries[0] for each in entries):
        return entries[0]
    verdicts = [verdict for each in entries if (verdict := _said_in(each)) is not None]
    if len(verdicts) < len(entries):
        raise ResumeError(
            f"interrupts that share the id {quoted(interrupt.id)} have different answers; agree on one [INT-15]"
        )
    return entry_of(interrupt, _together(verdicts))


def _said_in(entry: ResumeEntry) -> Verdict | None:
    """The verdict in an entry of ours, in any form that `entry_of` writes; None for any other payload."""
    if entry.status != "resolved":
        return _read(entry)
    payload: dict[str, Any] = entry.payload if isinstance(entry.payload, dict) else {"approved": entry.payload}
    note = {} if entry.metadata is UNSET else entry.metadata.get(DECIDED)
    try:
        return Verdict(
            approved=payload.get("approved", payload.get("accepted")),  # type: ignore[arg-type]  # checked there
            edited_args=payload.get("editedArgs"),
            reason=payload.get("reason") or (note.get("reason") if isinstance(note, dict) else None),
        )
    except TypeError:
        return None


def _together(verdicts: list[Verdict]) -> Verdict:
    edits = [each.edited_args for each in verdicts if each.edited_args is not None]
    approved = all(each.approved for each in verdicts)
    if approved and edits and any(each != edits[0] for each in (*edits, *(v.edited_args for v in verdicts))):
        raise ResumeError("interrupts that share one id were approved with different arguments; agree on one [INT-15]")
    reasons = dict.fromkeys(each.reason for each in verdicts if each.reason)
    return Verdict(
        approved=approved,
        edited_args=edits[0] if approved and edits else None,
        reason="; ".join(reasons) or None,
        cancelled=not approved and all(each.approved or each.cancelled for each in verdicts),
    )


def _approval_key(known: dict[str, Any] | None) -> str:
    """`approved`, unless only its older name is described."""
    return "accepted" if known is not None and "accepted" in known and "approved" not in known else "approved"


# --- the agent's side ---------------------------------------------------------------------------------------------


def interrupt_for(
    *calls: ToolCall | ToolCallView,
    tools: Toolset | None = None,
    message: str | None = None,
    expires_at: datetime | str | None = None,
) -> InterruptOutcome:
    """The outcome of a run that waits for a person to approve these calls; send it with `RUN_FINISHED`.

    Each call gets one interrupt with the deterministic id `{callId}:approval`. `decisions` reads the answers back.

    `tools`: their schemas describe `editedArgs`.
    `message`: the prompt, "Approve name?" unless given.
    `expires_at`: a date; without an offset it is UTC.
    """
    deadline: str | UnsetType = UNSET
    if expires_at is not None:
        deadline = expires_at if isinstance(expires_at, str) else _aware(expires_at).isoformat()
    return InterruptOutcome(
        interrupts=tuple(
            Interrupt(
                id=f"{call.id}:approval",
                reason=APPROVAL,
                message=f"Approve {_name(call)}?" if message is None else message,
                tool_call_id=call.id,
                response_schema=_response_schema(_name(call), tools),
                expires_at=deadline,
            )
            for call in calls
        )
    )


def _name(call: ToolCall | ToolCallView) -> str:
    return call.function.name if isinstance(call, ToolCall) else call.name


def _response_schema(name: str, tools: Toolset | None) -> dict[str, Any]:
    tool = None if tools is None else tools.get(name)
    edited = {"type": "object"} if tool is None or tool.parameters is UNSET else tool.parameters
    # References count from the root of a schema, so what they point to moves there.
    shared = {key: edited[key] for key in ("$defs", "definitions") if key in edited}
    own = {key: value for key, value in edited.items() if key not in shared}
    return {
        "type": "object",
        "properties": {
            "approved": {"type": "boolean"},
            "editedArgs": {**own, "description": "Replaces all arguments; leave it out to keep them."},
            "reason": {"type": "string"},
        },
        "required": ["approved"],
        **shared,
    }


def decisions(
    entries: Iterable[ResumeEntry | Mapping[str, Any]] | UnsetType,
    interrupts: InterruptOutcome | Iterable[Interrupt],
    now: datetime | None = None,
) -> dict[str, Verdict]:
    """The verdicts of people, by interrupt id.

    Only an explicit `approved: true` approves: not `cancelled`, not `true` by itself, no text, no number, and not with
    `editedArgs` that is not an object. Edited arguments are as untrusted as any (FT-10).

    Raises: `ResumeError`, as `check_resume` does (INT-13).
    """
    asked = interrupts.interrupts if isinstance(interrupts, InterruptOutcome) else tuple(interrupts)
    read = () if isinstance(entries, UnsetType) else entries_of(entries, asked, WarningLog())
    check_resume(asked, read, now)
    return {entry.interrupt_id: _read(entry) for entry in read}


def _read(entry: ResumeEntry) -> Verdict:
    payload = entry.payload if isinstance(entry.payload, dict) else {}
    reason = payload.get("reason")
    if entry.status != "resolved":
        return Verdict(approved=False, cancelled=True, reason=reason if isinstance(reason, str) else None)
    edited = payload.get("editedArgs")
    approved = payload.get("approved") is True and (edited is None or isinstance(edited, dict))
    return Verdict(
        approved=approved,
        edited_args=edited if approved else None,
        reason=reason if isinstance(reason, str) else None,
    )
