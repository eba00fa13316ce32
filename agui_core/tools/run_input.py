"""The next run input: the history, the tools, the answers; enforced before it leaves (IN-1..13).

A function of its arguments, which `Calls.next_input` gathers and checks. Costs one walk over the history: a few
microseconds a message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from agui_core.errors import ProtocolError
from agui_core.limits import Limits
from agui_core.protocol.base import UNSET, NotNull, UnsetType
from agui_core.protocol.messages import ActivityMessage, Message
from agui_core.protocol.run import PROTOCOL_VERSION, Context, Interrupt, ResumeEntry, RunAgentInput
from agui_core.tools.langgraph import command_of, is_legacy
from agui_core.tools.toolset import Toolset
from agui_core.warnings import WarningLog
from agui_core.wire.json_values import DEEPEST
from agui_core.wire.outgoing import enforce_input, readable

__all__ = ["InputOptions", "build_input"]

_HELD = Limits(nesting=DEEPEST)
"""All parts have passed the reducer's limits one by one; in one document they are nested deeper."""


class InputOptions(TypedDict, total=False):
    """What the application adds to every input of a thread; see `Calls.next_input`."""

    context: Iterable[Context | Mapping[str, Any]]
    forwarded_props: NotNull | UnsetType
    tools: Toolset | None


def build_input(
    *,
    thread_id: str,
    run_id: str,
    parent_run_id: str | UnsetType,
    messages: Iterable[Message],
    state: Any,
    tools: Toolset,
    context: Iterable[Context | Mapping[str, Any]],
    forwarded_props: NotNull | UnsetType,
    interrupts: Iterable[Interrupt],
    entries: Iterable[ResumeEntry],
    log: WarningLog,
) -> RunAgentInput:
    """The input as it may be sent: without activities (ACT-10) and unknown members, for which `log` gets a warning.

    Raises: `ProtocolError` when a known field is malformed, as a struct built by hand may be.
    """
    legacy = {interrupt.id for interrupt in interrupts if is_legacy(interrupt)}
    entries = tuple(entries)
    resume = tuple(entry for entry in entries if entry.interrupt_id not in legacy)
    command = command_of([entry for entry in entries if entry.interrupt_id in legacy])
    if state is None:
        log.add("STATE-6", "a state of null cannot be sent; the agent reads its absence as {}", type="RunAgentInput")
    run_input = RunAgentInput(
        thread_id=thread_id,
        run_id=run_id,
        protocol_version=PROTOCOL_VERSION,
        parent_run_id=parent_run_id,
        messages=tuple(message for message in readable(messages, log) if not isinstance(message, ActivityMessage)),
        state=UNSET if state is None else state,
        tools=tools.as_tools(),
        context=tuple(context),  # type: ignore[arg-type]  # dicts become structs by enforcement
        forwarded_props=_with_command(forwarded_props, command),
        resume=resume or UNSET,
    )
    return enforce_input(run_input, log, _HELD)


def _with_command(props: NotNull | UnsetType, command: dict[str, Any]) -> NotNull | UnsetType:
    if not command:
        return props
    if props is UNSET:
        return command
    if not isinstance(props, dict):
        raise ProtocolError("forwardedProps has to be an object to carry the answer to an interrupt", rule="IN-7")
    held = props.get("command")
    return {**props, "command": {**(held if isinstance(held, dict) else {}), **command["command"]}}
