"""What an agent may say about itself (CAP-1..6). Informs only; unknown members are ignored (CAP-4)."""

from __future__ import annotations

from typing import Any

import msgspec

from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.run import ToolDeclaration

__all__ = [
    "AgentCapabilities",
    "ExecutionCapabilities",
    "HumanInTheLoopCapabilities",
    "IdentityCapabilities",
    "InputModalities",
    "MultiAgentCapabilities",
    "MultimodalCapabilities",
    "OutputCapabilities",
    "OutputModalities",
    "ReasoningCapabilities",
    "StateCapabilities",
    "SubagentDescription",
    "ToolCapabilities",
    "TransportCapabilities",
]


class _Group(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, repr_omit_defaults=True):
    pass


class IdentityCapabilities(_Group, frozen=True, kw_only=True):
    """Who the agent is.

    name: its name.
    type: what kind of agent or framework.
    description: what it is for.
    version: its own version.
    provider: who runs it.
    documentation_url: where to read about it.
    metadata: free keys, all kept (CAP-4).
    """

    name: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    provider: str | UnsetType = UNSET
    documentation_url: str | UnsetType = UNSET
    metadata: dict[str, Any] | UnsetType = UNSET


class TransportCapabilities(_Group, frozen=True, kw_only=True):
    """How it can be reached.

    streaming: events come while they happen.
    websocket: over a WebSocket.
    http_binary: in the binary form over HTTP (PB-1).
    push_notifications: it can call back.
    resumable: a broken stream can go on.
    """

    streaming: bool | UnsetType = UNSET
    websocket: bool | UnsetType = UNSET
    http_binary: bool | UnsetType = UNSET
    push_notifications: bool | UnsetType = UNSET
    resumable: bool | UnsetType = UNSET


class ToolCapabilities(_Group, frozen=True, kw_only=True):
    """Its own tools; never merged with an input's (CAP-5).

    supported: it calls tools.
    items: the tools.
    parallel_calls: several calls at a time.
    client_provided: it takes tools from the input.
    """

    supported: bool | UnsetType = UNSET
    items: tuple[ToolDeclaration, ...] | UnsetType = UNSET
    parallel_calls: bool | UnsetType = UNSET
    client_provided: bool | UnsetType = UNSET


class OutputCapabilities(_Group, frozen=True, kw_only=True):
    """What it can produce.

    structured_output: answers after a schema.
    supported_mime_types: the types of what it produces.
    """

    structured_output: bool | UnsetType = UNSET
    supported_mime_types: tuple[str, ...] | UnsetType = UNSET


class StateCapabilities(_Group, frozen=True, kw_only=True):
    """How it keeps state.

    snapshots: it sends whole states.
    deltas: it sends patches.
    memory: it remembers across runs.
    persistent_state: its state outlives the process.
    """

    snapshots: bool | UnsetType = UNSET
    deltas: bool | UnsetType = UNSET
    memory: bool | UnsetType = UNSET
    persistent_state: bool | UnsetType = UNSET


class SubagentDescription(_Group, frozen=True, kw_only=True):
    """One subagent: its `name`, and a `description` of what it is for."""

    name: str
    description: str | UnsetType = UNSET


class MultiAgentCapabilities(_Group, frozen=True, kw_only=True):
    """How it works with others.

    supported: it works with other agents.
    delegation: it hands over tasks and gets results.
    handoffs: it hands over the conversation.
    subagents: those it may invoke (VER-18).
    """

    supported: bool | UnsetType = UNSET
    delegation: bool | UnsetType = UNSET
    handoffs: bool | UnsetType = UNSET
    subagents: tuple[SubagentDescription, ...] | UnsetType = UNSET


class ReasoningCapabilities(_Group, frozen=True, kw_only=True):
    """Whether it shows its reasoning.

    supported: it reasons.
    streaming: reasoning comes while it happens.
    encrypted: it sends encrypted values (REAS-8).
    """

    supported: bool | UnsetType = UNSET
    streaming: bool | UnsetType = UNSET
    encrypted: bool | UnsetType = UNSET


class InputModalities(_Group, frozen=True, kw_only=True):
    """What it can read, besides text.

    image: pictures.
    audio: sounds.
    video: films.
    pdf: PDF documents.
    file: other files.
    """

    image: bool | UnsetType = UNSET
    audio: bool | UnsetType = UNSET
    video: bool | UnsetType = UNSET
    pdf: bool | UnsetType = UNSET
    file: bool | UnsetType = UNSET


class OutputModalities(_Group, frozen=True, kw_only=True):
    """What it can write, besides text: `image` and `audio`."""

    image: bool | UnsetType = UNSET
    audio: bool | UnsetType = UNSET


class MultimodalCapabilities(_Group, frozen=True, kw_only=True):
    """Media it reads, `input`, and writes, `output`."""

    input: InputModalities | UnsetType = UNSET
    output: OutputModalities | UnsetType = UNSET


class ExecutionCapabilities(_Group, frozen=True, kw_only=True):
    """How it runs code.

    code_execution: it runs code.
    sandboxed: apart from the rest of the system.
    max_iterations: how many rounds it takes at most.
    max_execution_time: how long it runs at most, in the unit that the agent documents.
    """

    code_execution: bool | UnsetType = UNSET
    sandboxed: bool | UnsetType = UNSET
    max_iterations: int | UnsetType = UNSET
    max_execution_time: int | UnsetType = UNSET


class HumanInTheLoopCapabilities(_Group, frozen=True, kw_only=True):
    """How people take part.

    supported: people can take part.
    approvals: it asks before it acts.
    interventions: people can step in.
    feedback: people can judge what it did.
    interrupts: it ends runs with questions (INT-1).
    approve_with_edits: an approval may change the arguments.
    """

    supported: bool | UnsetType = UNSET
    approvals: bool | UnsetType = UNSET
    interventions: bool | UnsetType = UNSET
    feedback: bool | UnsetType = UNSET
    interrupts: bool | UnsetType = UNSET
    approve_with_edits: bool | UnsetType = UNSET


class AgentCapabilities(_Group, frozen=True, kw_only=True):
    """Every group is optional, and a missing field says nothing either way: only an explicit `false` denies (CAP-2).

    identity: who the agent is.
    transport: how it can be reached.
    tools: its own tools.
    output: what it can produce.
    state: how it keeps state.
    multi_agent: how it works with others.
    reasoning: whether it shows its reasoning.
    multimodal: media it reads and writes.
    execution: how it runs code.
    human_in_the_loop: how people take part.
    custom: free keys, all kept (CAP-4).
    """

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
