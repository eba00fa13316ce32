"""What goes to the agent, and how a run may end (protocol sections 3.2 and 3.5)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal, TypeAlias

from agui_core.protocol.base import UNSET, Count, Metadata, NotNull, TypedStruct, UnsetType, WireStruct
from agui_core.protocol.messages import Message

__all__ = [
    "PROTOCOL_VERSION",
    "CancelledOutcome",
    "Context",
    "Interrupt",
    "InterruptOutcome",
    "ResumeEntry",
    "RunAgentInput",
    "RunFinishedOutcome",
    "SubagentFinishedOutcome",
    "SubagentSuccessOutcome",
    "SuccessOutcome",
    "SuspendedOutcome",
    "TokenUsage",
    "ToolDeclaration",
]

PROTOCOL_VERSION = "1.0"
"""The version that this library speaks (VER-1)."""


class ToolDeclaration(WireStruct, frozen=True, kw_only=True):
    """A tool that the application offers.

    name: what a call names it by.
    description: what it does, for the model.
    parameters: the JSON Schema of its arguments.
    metadata: free, for the application and the agent.
    """

    name: str
    description: str
    parameters: NotNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class Context(WireStruct, frozen=True, kw_only=True):
    """A piece of background for the agent: what it is (`description`) and what it says (`value`)."""

    description: str
    value: str


class ResumeEntry(WireStruct, frozen=True, kw_only=True):
    """The answer to one interrupt.

    interrupt_id: the interrupt that is answered.
    status: `resolved` for an answer, `cancelled` when it is given up (INT-6).
    payload: the answer; a null answer is expressed by leaving it out (INT-9).
    metadata: about the response, and no part of the answer.
    """

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: NotNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class RunAgentInput(WireStruct, frozen=True, kw_only=True):
    """The one thing a consumer sends per exchange (IN-1..13).

    thread_id: the conversation, named by the application.
    run_id: new for each run of the thread (IN-8).
    messages: the whole history (IN-4).
    protocol_version: the version that the sender speaks (VER-1).
    parent_run_id: the run that spawned this one.
    state: the last known state; absent means an empty object (IN-6).
    tools: what the application offers.
    context: background for the agent.
    forwarded_props: any JSON value but null, for the agent alone (IN-7).
    resume: an entry for each open interrupt (INT-6).
    """

    thread_id: str
    run_id: str
    messages: tuple[Message, ...]
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    state: NotNull | UnsetType = UNSET
    tools: tuple[ToolDeclaration, ...] | UnsetType = UNSET
    context: tuple[Context, ...] | UnsetType = UNSET
    forwarded_props: NotNull | UnsetType = UNSET
    resume: tuple[ResumeEntry, ...] | UnsetType = UNSET


class Interrupt(WireStruct, frozen=True, kw_only=True):
    """A question that the next run has to answer (INT-1..16).

    id: what the answer names.
    reason: any string (INT-3).
    message: the question, for people.
    tool_call_id: the call that waits for approval.
    response_schema: the JSON Schema of an answer, never checked by the protocol.
    expires_at: free text, by convention a date (INT-8).
    metadata: free data of the producer's.
    subagent_run_id: the invocation that asks (SUB-17).
    """

    id: str
    reason: str
    message: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    response_schema: dict[str, Any] | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    subagent_run_id: str | UnsetType = UNSET


class TokenUsage(WireStruct, frozen=True, kw_only=True):
    """Tokens spent with one provider and model; an absent count is unknown, not zero (USE-1..3).

    provider: who served the model.
    model: which model.
    input_tokens: all tokens read.
    output_tokens: all tokens written.
    total_tokens: the sum of the two.
    reasoning_tokens: the share of the output that was reasoning.
    cached_input_tokens: the share of the input that was read from a cache.
    cache_write_input_tokens: the share of the input that was written to a cache.
    """

    provider: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    input_tokens: Count | UnsetType = UNSET
    output_tokens: Count | UnsetType = UNSET
    total_tokens: Count | UnsetType = UNSET
    reasoning_tokens: Count | UnsetType = UNSET
    cached_input_tokens: Count | UnsetType = UNSET
    cache_write_input_tokens: Count | UnsetType = UNSET


class SuccessOutcome(TypedStruct, frozen=True, kw_only=True, tag="success"):
    """The run did what it was asked.

    pending_tool_call_ids: the calls that wait for answers; absent or empty means that the stream tells them (FT-3).
    """

    type: ClassVar[Literal["success"]] = "success"
    pending_tool_call_ids: tuple[str, ...] | UnsetType = UNSET


class InterruptOutcome(TypedStruct, frozen=True, kw_only=True, tag="interrupt"):
    """The run waits for answers to `interrupts`, at least one (INT-1)."""

    type: ClassVar[Literal["interrupt"]] = "interrupt"
    interrupts: tuple[Interrupt, ...]

    def __post_init__(self) -> None:
        if not self.interrupts:
            raise ValueError("an interrupt outcome needs at least one interrupt")


class CancelledOutcome(TypedStruct, frozen=True, kw_only=True, tag="cancelled"):
    """The run was stopped on request: neither success nor failure (RUN-15)."""

    type: ClassVar[Literal["cancelled"]] = "cancelled"


RunFinishedOutcome: TypeAlias = SuccessOutcome | InterruptOutcome | CancelledOutcome


class SubagentSuccessOutcome(TypedStruct, frozen=True, kw_only=True, tag="success"):
    """The invocation is done."""

    type: ClassVar[Literal["success"]] = "success"


class SuspendedOutcome(TypedStruct, frozen=True, kw_only=True, tag="suspended"):
    """The invocation waits for outside input (SUB-7).

    interrupt_ids: the interrupts of the run that it waits for; a descendant may have raised them instead.
    """

    type: ClassVar[Literal["suspended"]] = "suspended"
    interrupt_ids: tuple[str, ...] | UnsetType = UNSET


SubagentFinishedOutcome: TypeAlias = SubagentSuccessOutcome | SuspendedOutcome
