"""The plan for one call: run it, ask a person, or answer it without running it.

All functions of the call, the tool and a person's verdict; nothing is remembered and nothing runs. A call is judged
again right before it runs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import sha256
from typing import Any, Literal, TypeAlias

import msgspec

from agui_core.protocol.base import UNSET
from agui_core.protocol.run import Interrupt
from agui_core.reducer.views import ToolCallView
from agui_core.tools.errors import InvalidArguments
from agui_core.tools.json_arguments import MAX_NESTING, canonical, read_arguments
from agui_core.tools.outcomes import Outcome, denied, invalid, ruled_out, unknown_tool
from agui_core.tools.tool import Tool
from agui_core.wire.json_values import clean_text

__all__ = [
    "ApprovalRequest",
    "Confirm",
    "DecidedBy",
    "Plan",
    "Verdict",
    "digest_of",
    "own_verdict",
    "plan_of",
    "prefixed",
]


class Verdict(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What a person says about a call. Only `approved=True` approves.

    approved: whether the call may run.
    edited_args: a full replacement of the arguments; None leaves them as they are.
    reason: for the model, and for the record.
    cancelled: the question was given up rather than answered (`cancelled` on the wire); then nothing is approved.
    """

    approved: bool
    edited_args: dict[str, Any] | None = None
    reason: str | None = None
    cancelled: bool = False

    def __post_init__(self) -> None:
        # A form's "false" is true to Python.
        if type(self.approved) is not bool or type(self.cancelled) is not bool:
            raise TypeError(f"approved and cancelled are True or False, not {self.approved!r} and {self.cancelled!r}")
        if not isinstance(self.edited_args, Mapping | None):
            raise TypeError(f"edited_args is a dict or None, not {type(self.edited_args).__name__}")
        if not isinstance(self.reason, str | None):
            raise TypeError(f"the reason is a text or None, not {type(self.reason).__name__}")


class ApprovalRequest(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What a person is asked about a call or an interrupt.

    call_id: None for an interrupt that names no call that is held.
    tool_name: the tool that the call names.
    arguments: the exact JSON text that would run; show it, inert (SEC-3).
    args: its value.
    message: a line that says what is asked.
    digest: what is decided on: SHA-256 of the call (id, generation, name, arguments) and of the interrupts that name
      it. A decision that carries it holds for nothing else.
    tool: None when the agent's own tool is in question.
    interrupt: the interrupt that the answer goes to, the first of several; None when the call is ours.
    interrupts: all the interrupts that are decided on.
    """

    call_id: str | None
    tool_name: str
    arguments: str
    args: Any
    message: str
    digest: str
    tool: Tool | None = None
    interrupt: Interrupt | None = None
    interrupts: tuple[Interrupt, ...] = ()


Confirm: TypeAlias = Callable[[ApprovalRequest], Awaitable[bool | Verdict | None]]
"""Asks a person: True or False, a `Verdict`, or None for no decision yet."""


DecidedBy: TypeAlias = Literal["person", "policy"]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """The next step of a call, with all that it needs."""

    action: Literal["run", "ask", "answer", "leave"]
    """`run` it; `ask` a person; `answer` it with `outcome`; `leave` it, as its tool was declared without a handler."""
    tool: Tool | None = None
    arguments: dict[str, Any] | None = None
    """Converted, for a run."""
    edited: dict[str, Any] | None = None
    """As a person wrote them."""
    outcome: Outcome | None = None
    by: DecidedBy | None = None
    """None for a tool that never asks, and when nobody has decided."""


def prefixed(*parts: str) -> bytes:
    """Texts as bytes, each after its length, so that no two lists of texts give the same."""
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    return b"".join([len(part).to_bytes(8, "big") + part for part in encoded])


def digest_of(call: ToolCallView | None, generation: int, interrupts: Iterable[Interrupt] = ()) -> str:
    """The digest of all that a person is shown. Costs one hash of it."""
    parts = ["", "", "", ""] if call is None else [call.id, str(generation), call.name, call.arguments]
    for each in interrupts:
        metadata, schema = (
            "" if open_data is UNSET else canonical(open_data).decode()
            for open_data in (each.metadata, each.response_schema)
        )
        parts += [each.id, each.message or "", metadata, schema]
    return sha256(prefixed(*parts)).hexdigest()


def plan_of(
    call: ToolCallView, tool: Tool | None, verdict: Verdict | None, *, asked: bool, nesting: int = MAX_NESTING
) -> Plan:
    """Judge one unanswered call of ours. A policy that denies wins over an approval. Never raises.

    `tool`: None when it may not be used in this run.
    `asked`: a person was asked before, so it does not run without their verdict.
    """
    if verdict is not None and not verdict.approved:
        return Plan(action="answer", outcome=denied(verdict.reason), by="person")
    if tool is None:
        return _answer(unknown_tool(call.name))
    if not call.complete:
        return _answer(invalid("the call was cut off before its arguments were whole.", "incomplete arguments"))
    fault = call.error
    if fault is not None:
        return _answer(invalid(f"the arguments are no JSON document: {fault}.", "broken arguments"))
    edited = None if verdict is None else verdict.edited_args
    try:
        arguments = tool.convert(call.arguments if edited is None else edited, nesting=nesting)
    except InvalidArguments as error:
        whose = "" if edited is None else "as a person changed them, "
        return _answer(invalid(f"{whose}{error.message}"))
    judged = tool.judge(arguments)
    if judged == "deny":
        return Plan(action="answer", outcome=ruled_out(), by="policy")
    if verdict is None and (asked or judged == "ask"):
        return Plan(action="ask", tool=tool, arguments=arguments)
    return Plan(
        action="leave" if tool.handler is None else "run",
        tool=tool,
        arguments=arguments,
        edited=edited,
        by="person" if verdict is not None else None if tool.approval == "never" else "policy",
    )


def _answer(outcome: Outcome) -> Plan:
    return Plan(action="answer", outcome=outcome)


def own_verdict(verdict: Verdict) -> Verdict:
    """A copy that the application cannot change, and that is JSON."""
    edited = verdict.edited_args if verdict.approved else None
    return Verdict(
        approved=verdict.approved,
        edited_args=None if edited is None else read_arguments(edited),
        reason=None if verdict.reason is None else clean_text(verdict.reason),
        cancelled=verdict.cancelled,
    )
