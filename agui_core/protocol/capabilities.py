"""What an agent may say about itself (CAP-1..6). Informs only; unknown members are ignored (CAP-4)."""

from __future__ import annotations

from typing import Any

import msgspec

from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.run import Tool

__all__ = ["AgentCapabilities"]


class _Group(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class IdentityCapabilities(_Group, frozen=True, kw_only=True):
    """Who the agent is."""

    name: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    provider: str | UnsetType = UNSET
    documentation_url: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class TransportCapabilities(_Group, frozen=True, kw_only=True):
    """How it can be reached."""

    streaming: bool | UnsetType = UNSET
    websocket: bool | UnsetType = UNSET
    http_binary: bool | UnsetType = UNSET
    push_notifications: bool | UnsetType = UNSET
    resumable: bool | UnsetType = UNSET


class ToolCapabilities(_Group, frozen=True, kw_only=True):
    """Its own tools; never merged with an input's (CAP-5)."""

    supported: bool | UnsetType = UNSET
    items: tuple[Tool, ...] | UnsetType = UNSET
    parallel_calls: bool | UnsetType = UNSET
    client_provided: bool | UnsetType = UNSET


class OutputCapabilities(_Group, frozen=True, kw_only=True):
    """What it can produce."""

    structured_output: bool | UnsetType = UNSET
    supported_mime_types: tuple[str, ...] | UnsetType = UNSET


class StateCapabilities(_Group, frozen=True, kw_only=True):
    """How it keeps state."""

    snapshots: bool | UnsetType = UNSET
    deltas: bool | UnsetType = UNSET
    memory: bool | UnsetType = UNSET
    persistent_state: bool | UnsetType = UNSET


class SubagentDescription(_Group, frozen=True, kw_only=True):
    """One subagent by name."""

    name: str
    description: str | UnsetType = UNSET


class MultiAgentCapabilities(_Group, frozen=True, kw_only=True):
    """How it works with others (VER-18: the key of the list is `subagents`)."""

    supported: bool | UnsetType = UNSET
    delegation: bool | UnsetType = UNSET
    handoffs: bool | UnsetType = UNSET
    subagents: tuple[SubagentDescription, ...] | UnsetType = UNSET


class ReasoningCapabilities(_Group, frozen=True, kw_only=True):
    """Whether it shows its reasoning."""

    supported: bool | UnsetType = UNSET
    streaming: bool | UnsetType = UNSET
    encrypted: bool | UnsetType = UNSET


class InputModalities(_Group, frozen=True, kw_only=True):
    """What it can read."""

    image: bool | UnsetType = UNSET
    audio: bool | UnsetType = UNSET
    video: bool | UnsetType = UNSET
    pdf: bool | UnsetType = UNSET
    file: bool | UnsetType = UNSET


class OutputModalities(_Group, frozen=True, kw_only=True):
    """What it can write."""

    image: bool | UnsetType = UNSET
    audio: bool | UnsetType = UNSET


class MultimodalCapabilities(_Group, frozen=True, kw_only=True):
    """Media it reads and writes."""

    input: InputModalities | UnsetType = UNSET
    output: OutputModalities | UnsetType = UNSET


class ExecutionCapabilities(_Group, frozen=True, kw_only=True):
    """How it runs code. `max_execution_time` in the unit that the agent documents."""

    code_execution: bool | UnsetType = UNSET
    sandboxed: bool | UnsetType = UNSET
    max_iterations: int | UnsetType = UNSET
    max_execution_time: int | UnsetType = UNSET


class HumanInTheLoopCapabilities(_Group, frozen=True, kw_only=True):
    """How people take part."""

    supported: bool | UnsetType = UNSET
    approvals: bool | UnsetType = UNSET
    interventions: bool | UnsetType = UNSET
    feedback: bool | UnsetType = UNSET
    interrupts: bool | UnsetType = UNSET
    approve_with_edits: bool | UnsetType = UNSET


class AgentCapabilities(_Group, frozen=True, kw_only=True):
    """Every group is optional, and a missing field says nothing either way: only an explicit `false` denies (CAP-2)."""

    identity: IdentityCapabilities | UnsetType = UNSET
    transport: TransportCapabilities | UnsetType = UNSET
    tools: ToolCapabilities | UnsetType = UNSET
    output: OutputCapabilities | UnsetType = UNSET
    state: StateCapabilities | UnsetType = UNSET
    multi_agent: MultiAgentCapabilities | UnsetType = UNSET
    reasoning: ReasoningCapabilities | UnsetType = UNSET
    multimodal: MultimodalCapabilities | UnsetType = UNSET
    execution: ExecutionCapabilities | UnsetType = UNSET
    human_in_the_loop: HumanInTheLoopCapabilities | UnsetType = UNSET
    custom: dict[str, Any] | UnsetType = UNSET
