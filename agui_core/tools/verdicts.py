"""Verdicts of people: the question, and the way of a verdict to its call or interrupt.

Functions over a `CallTracker`, which keeps the verdicts. A verdict is about the call that was shown: its digest, or the
call as this process showed it last, has to match the call as it is now.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from agui_core._text import quoted
from agui_core.errors import ApprovalError
from agui_core.protocol.base import UNSET
from agui_core.protocol.run import Interrupt, ResumeEntry
from agui_core.reducer.views import ToolCallView
from agui_core.tools.approval import ApprovalRequest, Verdict, digest_of, own_verdict
from agui_core.tools.interrupts import Answers, check_open, check_resume, entries_of, vote
from agui_core.tools.states import advance
from agui_core.tools.tracker import CallTracker

__all__ = ["decide", "decide_interrupt", "request", "resume"]


def request(tracker: CallTracker, about: str | Interrupt) -> ApprovalRequest:
    """The question to a person about a call, or about one interrupt."""
    view = tracker.view
    interrupts = (about,) if isinstance(about, Interrupt) else tuple(view.named.get(about, ()))
    call, generation = _subject(tracker, about.tool_call_id if isinstance(about, Interrupt) else about)
    name = "" if call is None else call.name
    messages = [each.message for each in interrupts if each.message is not UNSET and each.message]
    return ApprovalRequest(
        call_id=None if call is None else call.id,
        tool_name=name,
        arguments="{}" if call is None else call.arguments or "{}",
        args={} if call is None else call.args,
        message=" ".join(dict.fromkeys(messages)) or f"Approve {name or 'this step'}?",
        digest=digest_of(call, generation, interrupts),
        tool=None if interrupts or call is None else tracker.plan(call.id, view).tool,
        interrupt=interrupts[0] if interrupts else None,
        interrupts=interrupts,
    )


def decide(
    tracker: CallTracker,
    about: str | ApprovalRequest,
    verdict: Verdict,
    *,
    digest: str | None = None,
    strict: bool = True,
    now: datetime | None = None,
) -> None:
    """Apply the verdict on a call that waits for one, or on the interrupts of a request.

    Raises: `ApprovalError`, with nothing decided, when it does not wait or is not the one that was shown; when
    `strict`, `InvalidArguments` for edited arguments that do not fit.
    """
    view = tracker.sync()
    if isinstance(about, ApprovalRequest):
        digest = about.digest if digest is None else digest
        if about.interrupt is not None:
            _decide_interrupts(tracker, about.interrupts or (about.interrupt,), verdict, digest, now)
            return
        about = about.call_id or ""
    id = about
    if id not in tracker.reducer.tool_calls:
        raise ApprovalError(f"there is no tool call {quoted(id)}")
    record = tracker.look(id, view)
    if record.state != "approval-requested" or (view.phase == "broken" and id not in view.named):
        raise ApprovalError(f"tool call {quoted(id)} waits for no approval: it is {record.state}")
    call, naming = tracker.reducer.tool_calls[id], view.named.get(id, ())
    if digest is None:
        same = id not in tracker.shown or tracker.shown[id] == tracker.face(id, view)
    else:
        same = digest == digest_of(call, record.generation, naming)
    if not same:
        raise ApprovalError(
            f"tool call {quoted(id)} is another one than was shown; nothing was decided: look at it again [SEC-3]"
        )
    if naming:
        _decide_interrupts(tracker, naming, verdict, None, now)
    else:
        tool = tracker.plan(id, view).tool
        if strict and tool is not None and verdict.edited_args is not None:
            tool.convert(verdict.edited_args)
        tracker.accept(id, verdict)
    if not naming or all(each.id in tracker.persisted.entries for each in naming):
        record.state = advance(record.state, "decided")


def _decide_interrupts(
    tracker: CallTracker, interrupts: Iterable[Interrupt], verdict: Verdict, digest: str | None, now: datetime | None
) -> None:
    interrupts = tuple(interrupts)
    held = tracker.view.interrupts
    gone = [each.id for each in interrupts if each not in held]
    if gone or (digest is not None and digest != _digest_of(tracker, interrupts)):
        raise ApprovalError("the question is another one than was shown; nothing was decided: ask again [SEC-3]")
    for each in interrupts:
        check_open(each, now)
    for each in interrupts:
        decide_interrupt(tracker, each, verdict, now)


def _digest_of(tracker: CallTracker, interrupts: tuple[Interrupt, ...]) -> str:
    call, generation = _subject(tracker, interrupts[0].tool_call_id)
    return digest_of(call, generation, interrupts)


def _subject(tracker: CallTracker, id: object) -> tuple[ToolCallView | None, int]:
    """The call of an id, if there is one, and its generation."""
    call = tracker.reducer.tool_calls.get(id) if isinstance(id, str) else None
    return call, 0 if call is None else tracker.record(call.id).generation


def decide_interrupt(tracker: CallTracker, interrupt: Interrupt, verdict: Verdict, now: datetime | None = None) -> None:
    """Apply the verdict on an open interrupt."""
    check_open(interrupt, now)
    persisted = tracker.persisted
    entry = vote(persisted.votes, tracker.view.interrupts, interrupt, own_verdict(verdict))
    if entry is None:
        persisted.entries.pop(interrupt.id, None)
    else:
        persisted.entries[interrupt.id] = entry
        persisted.decided_at = tracker.reducer.version


def resume(tracker: CallTracker, answers: Answers, now: datetime | None) -> tuple[ResumeEntry, ...]:
    """The entries for all open interrupts, from these answers and earlier decisions; kept for the next input."""
    interrupts = tracker.sync().interrupts
    persisted = tracker.persisted
    given = entries_of(answers, interrupts, tracker.log)
    answered = {entry.interrupt_id for entry in given}
    entries = (*given, *(entry for id, entry in persisted.entries.items() if id not in answered))
    check_resume(interrupts, entries, now)
    by_id = {entry.interrupt_id: entry for entry in entries}
    persisted.entries = {interrupt.id: by_id[interrupt.id] for interrupt in interrupts}
    persisted.votes = {}
    if given:
        persisted.decided_at = tracker.reducer.version
    return tuple(persisted.entries.values())
