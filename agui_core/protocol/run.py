"""What goes to the agent, and how a run may end (protocol sections 3.2 and 3.5)."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

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
    "Tool",
]

PROTOCOL_VERSION = "1.0"
"""The version that this library speaks (VER-1)."""


class Tool(WireStruct, frozen=True, kw_only=True):
    """A tool that the application offers; `parameters` is a JSON Schema."""

    name: str
    description: str
    parameters: NotNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class Context(WireStruct, frozen=True, kw_only=True):
    """A piece of background for the agent."""

    description: str
    value: str


class ResumeEntry(WireStruct, frozen=True, kw_only=True):
    """The answer to one interrupt. A null answer is expressed by leaving `payload` out (INT-9)."""

    interrupt_id: str
    status: Literal["resolved", "cancelled"]
    payload: NotNull | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET


class RunAgentInput(WireStruct, frozen=True, kw_only=True):
    """The one thing a consumer sends per exchange (IN-1..13)."""

    thread_id: str
    run_id: str
    messages: tuple[Message, ...]
    protocol_version: str | UnsetType = UNSET
    parent_run_id: str | UnsetType = UNSET
    state: NotNull | UnsetType = UNSET
    tools: tuple[Tool, ...] | UnsetType = UNSET
    context: tuple[Context, ...] | UnsetType = UNSET
    forwarded_props: NotNull | UnsetType = UNSET
    resume: tuple[ResumeEntry, ...] | UnsetType = UNSET


class Interrupt(WireStruct, frozen=True, kw_only=True):
    """A question that the next run has to answer (INT-1..16). `expires_at` is free text, by convention a date."""

    id: str
    reason: str
    message: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    response_schema: dict[str, Any] | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    metadata: Metadata | UnsetType = UNSET
    subagent_run_id: str | UnsetType = UNSET


class TokenUsage(WireStruct, frozen=True, kw_only=True):
    """Tokens spent with one provider and model; an absent count is unknown, not zero (USE-1..3)."""

    provider: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    input_tokens: Count | UnsetType = UNSET
    output_tokens: Count | UnsetType = UNSET
    total_tokens: Count | UnsetType = UNSET
    reasoning_tokens: Count | UnsetType = UNSET
    cached_input_tokens: Count | UnsetType = UNSET
    cache_write_input_tokens: Count | UnsetType = UNSET


class SuccessOutcome(TypedStruct, frozen=True, kw_only=True, tag="success"):
    """The run did what it was asked. An absent or empty list means: derive it (FT-3)."""

    pending_tool_call_ids: tuple[str, ...] | UnsetType = UNSET


class InterruptOutcome(TypedStruct, frozen=True, kw_only=True, tag="interrupt"):
    """The run waits for answers; at least one interrupt (INT-1)."""

    interrupts: tuple[Interrupt, ...]

    def __post_init__(self) -> None:
        if not self.interrupts:
            raise ValueError("an interrupt outcome needs at least one interrupt")


class CancelledOutcome(TypedStruct, frozen=True, kw_only=True, tag="cancelled"):
    """The run was stopped on request: neither success nor failure (RUN-15)."""


RunFinishedOutcome: TypeAlias = SuccessOutcome | InterruptOutcome | CancelledOutcome


class SubagentSuccessOutcome(TypedStruct, frozen=True, kw_only=True, tag="success"):
    """The invocation is done."""


class SuspendedOutcome(TypedStruct, frozen=True, kw_only=True, tag="suspended"):
    """The invocation waits for outside input (SUB-7)."""

    interrupt_ids: tuple[str, ...] | UnsetType = UNSET


SubagentFinishedOutcome: TypeAlias = SubagentSuccessOutcome | SuspendedOutcome
