"""The states of a tool call, and who has to act on it: two tables, which decide alone.

A call is opened, its arguments stream in, it is closed, perhaps a person is asked and decides, and it is answered.
Within one generation it only moves forward. A new generation starts when a call without an answer is reopened (TOOL-6)
or a snapshot restates it (MSGS-4); an answered call stays answered. Costs one look-up a step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

import msgspec

__all__ = [
    "ANSWERED",
    "TRANSITIONS",
    "WHO_ACTS",
    "Actor",
    "Phase",
    "Signal",
    "CallState",
    "Waiting",
    "advance",
    "sum_up",
    "who_acts",
]

CallState: TypeAlias = Literal[
    "input-streaming",
    "input-available",
    "approval-requested",
    "approval-responded",
    "output-available",
    "output-error",
    "output-denied",
]
"""Where a tool call stands."""

Signal: TypeAlias = Literal["opened", "closed", "restated", "asked", "decided", "answered", "failed", "denied"]
"""`opened`: TOOL_CALL_START; `closed`: TOOL_CALL_END; `restated`: a snapshot holds the call; `asked`, `decided`: a
person was asked, has decided; `answered`, `failed`, `denied`: a tool message answers the call."""

_ANSWERS: dict[Signal, CallState] = {
    "answered": "output-available",
    "failed": "output-error",
    "denied": "output-denied",
}
_UNANSWERED: dict[Signal, CallState] = {"opened": "input-streaming", "restated": "input-available", **_ANSWERS}


def _stays(state: CallState) -> dict[Signal, CallState]:
    """OPEN-12: nothing moves an answered call but a snapshot that takes the answer away."""
    return {**dict.fromkeys(("opened", "closed", *_ANSWERS), state), "restated": "input-available"}


TRANSITIONS: dict[CallState, dict[Signal, CallState]] = {
    "input-streaming": {**_UNANSWERED, "closed": "input-available"},
    "input-available": {**_UNANSWERED, "asked": "approval-requested"},
    "approval-requested": {**_UNANSWERED, "decided": "approval-responded"},
    "approval-responded": _UNANSWERED,
    "output-available": _stays("output-available"),
    "output-error": _stays("output-error"),
    "output-denied": _stays("output-denied"),
}
"""The next state by state and signal. A pair that is not listed cannot happen."""

ANSWERED: frozenset[CallState] = frozenset(_ANSWERS.values())


def advance(state: CallState, *signals: Signal) -> CallState:
    """The state after some signals. Raises `KeyError` for one that the state does not admit."""
    for signal in signals:
        state = TRANSITIONS[state][signal]
    return state


Phase: TypeAlias = Literal["none", "going", "over", "broken"]
"""Of the last run: `none` before the first one; `going`; `over` when it finished or was interrupted; `broken` when it
failed, was cancelled, cut off or refused, so that its calls are not executed (FT-7)."""

Actor: TypeAlias = Literal["application", "approver", "agent", "nobody"]

_ANY = None
_BEFORE_APPROVAL: frozenset[CallState] = frozenset({"input-streaming", "input-available", "approval-requested"})

WHO_ACTS: tuple[tuple[Phase | None, bool | None, bool | None, frozenset[CallState] | None, Actor], ...] = (
    # run, ours, named by an open interrupt, state: who acts. None is any; the first row that fits decides.
    (_ANY, _ANY, _ANY, ANSWERED, "nobody"),
    ("going", _ANY, _ANY, _ANY, "agent"),
    (_ANY, _ANY, True, _BEFORE_APPROVAL, "approver"),
    (_ANY, _ANY, True, _ANY, "agent"),
    ("none", _ANY, _ANY, _ANY, "nobody"),
    ("broken", _ANY, _ANY, _ANY, "nobody"),
    ("over", False, _ANY, _ANY, "agent"),
    ("over", True, _ANY, frozenset({"approval-requested"}), "approver"),
    ("over", True, _ANY, _ANY, "application"),
)
"""Who acts on one call of the last run. A call named by an open interrupt is answered through its resume entry (FT-11);
a call that is not ours is the agent's (FT-9)."""


def who_acts(phase: Phase, state: CallState, *, ours: bool, named: bool) -> Actor:
    """Who has to act on one call of the last run."""
    for of_phase, of_owner, of_naming, of_states, actor in WHO_ACTS:
        if (
            of_phase in (None, phase)
            and of_owner in (None, ours)
            and of_naming in (None, named)
            and (of_states is None or state in of_states)
        ):
            return actor
    raise AssertionError(f"no row for {phase}, {state}, ours={ours}, named={named}")


class Waiting(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Who has to act after the last run, and on what.

    who: who acts first: the application before the approver, these before the agent. `"agent"` with `Calls.ready`
      means: send the next input. `"nobody"`: the user goes on, or not.
    application: ids of the calls to run and to answer, in call order.
    approver: ids of the calls that a person has to decide on, in call order.
    interrupts: ids of the interrupts that have no answer yet.
    agent: ids of the calls that are the agent's to answer, in call order.
    """

    who: Actor
    application: tuple[str, ...] = ()
    approver: tuple[str, ...] = ()
    interrupts: tuple[str, ...] = ()
    agent: tuple[str, ...] = ()


def sum_up(
    phase: Phase, acting: Iterable[tuple[str, Actor]], interrupts: tuple[str, ...], *, answered: bool
) -> Waiting:
    """Sum up a run from who acts on each call; `answered`: something was answered since the run ended."""
    by: dict[Actor, list[str]] = {"application": [], "approver": [], "agent": [], "nobody": []}
    for id, actor in acting:
        by[actor].append(id)
    if phase == "going":
        who: Actor = "agent"
    elif by["application"]:
        who = "application"
    elif by["approver"] or interrupts:
        who = "approver"
    else:
        who = "agent" if answered or by["agent"] else "nobody"
    return Waiting(
        who=who,
        application=tuple(by["application"]),
        approver=tuple(by["approver"]),
        interrupts=interrupts,
        agent=tuple(by["agent"]),
    )
