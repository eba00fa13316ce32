"""Run inputs on their way out: enforced like received ones, cut down to what the peer reads, declared (PROC-16, IN-3).

Pure functions from one shape to another. A run input costs some microseconds per message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from agui_core._text import quoted
from agui_core.errors import ProtocolError
from agui_core.limits import Limits
from agui_core.protocol.base import UNSET
from agui_core.protocol.content import TextPart
from agui_core.protocol.messages import ActivityMessage, AssistantMessage, Message, ToolCall, ToolMessage
from agui_core.protocol.run import PROTOCOL_VERSION, RunAgentInput
from agui_core.warnings import WarningLog
from agui_core.wire.compat import upgrade_message
from agui_core.wire.framing import Bytes
from agui_core.wire.malformed import Malformed
from agui_core.wire.old_peers import NO_PARENTS, NO_SUBAGENTS, Peer
from agui_core.wire.pydantic_models import is_model
from agui_core.wire.sanitize import log_notes, own_object, sanitize
from agui_core.wire.shapes import Findings, Unrecognised

__all__ = ["address_input", "enforce_input", "enforced", "readable"]

_scan = msgspec.json.Decoder(msgspec.Raw).decode
"""Reads one JSON document and makes nothing of it."""

S = TypeVar("S", bound=msgspec.Struct)


def enforce_input(
    run_input: RunAgentInput | Mapping[str, Any] | bytes | str | object, log: WarningLog, limits: Limits | None = None
) -> RunAgentInput:
    """The run input without unknown members, and with legacy content parts upgraded (OLD-2).

    `run_input`: a struct (not trusted here), a wire dict, JSON, or an object of `ag_ui.core`.
    `log` gets a warning for each stripped member.

    Raises: `ProtocolError`, `DecodeError` or `LimitExceeded` when a known field is malformed.
    """
    if isinstance(run_input, Mapping):
        run_input = dict(run_input)
    elif not isinstance(run_input, Bytes | msgspec.Struct) and not is_model(run_input):
        raise TypeError(f"a run input is a RunAgentInput, a dict or JSON, not a {type(run_input).__name__}")
    try:
        wire = own_object(run_input, RunAgentInput, limits or Limits())
    except Malformed as problem:
        raise problem.error("the RunAgentInput", type="RunAgentInput") from None
    messages = wire.get("messages")
    for message in messages if isinstance(messages, list) else ():  # nulls, which `upgrade_input` drops, stay errors
        upgrade_message(message)
    kept = enforced(RunAgentInput, wire, log)
    if kept is None:
        raise ProtocolError("nothing of the run input is known to the protocol", rule="PROC-9", type="RunAgentInput")
    return kept


def address_input(run_input: RunAgentInput, log: WarningLog, peer: Peer | None = None) -> RunAgentInput:
    """What of an enforced input goes over the wire to `peer`; None: a current peer.

    Activity messages stay here (ACT-10). A current peer is told our version, unless the input names one. An older peer
    gets what it reads (OLD-3..5), and `log` a warning for each loss (VER-11, VER-12). `tools`, `context` and
    `forwardedProps` that the input leaves out are sent empty (IN-5, VER-8): many agents from before 1.0 refuse an input
    without them.
    """
    peer = peer or Peer.current()
    messages = tuple(
        _message_for(message, index, peer, log)
        for index, message in enumerate(readable(run_input.messages, log))
        if not isinstance(message, ActivityMessage)
    )
    declared = run_input.protocol_version
    if not peer.reads_version:
        declared = UNSET
    elif declared is UNSET:
        declared = PROTOCOL_VERSION
    parent = run_input.parent_run_id
    if peer.at_most(NO_PARENTS) and parent is not UNSET:
        log.add("OLD-4", f"parentRunId was removed: {peer} does not know it", type="RunAgentInput", path="/parentRunId")
        parent = UNSET
    forwarded = run_input.forwarded_props
    return replace(
        run_input,
        messages=messages,
        protocol_version=declared,
        parent_run_id=parent,
        tools=run_input.tools or (),
        context=run_input.context or (),
        forwarded_props={} if forwarded is UNSET else forwarded,
    )


def readable(messages: Iterable[Message], log: WarningLog) -> tuple[Message, ...]:
    """The messages as an agent can read them. Costs a scan of all arguments.

    Adapters refuse a whole request, for ever, when the arguments of one call are not JSON, or a call has two results.
    So arguments that are not one JSON document are sent as `{}` (TOOL-5), and only the first result of a call is sent
    (OPEN-12), each with a warning in `log`. Empty arguments become `{}` without a warning.
    """
    kept: list[Message] = []
    answered: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in answered:
                told = f"tool call {quoted(message.tool_call_id)} has several results: only the first one is sent"
                log.add("OPEN-12", told, type="RunAgentInput")
                continue
            answered.add(message.tool_call_id)
        elif isinstance(message, AssistantMessage) and message.tool_calls is not UNSET:
            calls = [_readable_call(call, log) for call in message.tool_calls]
            if any(new is not old for new, old in zip(calls, message.tool_calls, strict=True)):
                message = replace(message, tool_calls=tuple(calls))
        kept.append(message)
    return tuple(kept)


def _readable_call(call: ToolCall, log: WarningLog) -> ToolCall:
    text = call.function.arguments
    try:
        _scan(text)
        return call
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        if text.strip():
            told = f"the arguments of tool call {quoted(call.id)} are no one JSON document: they are sent as {{}}"
            log.add("TOOL-5", told, type="RunAgentInput")
        return replace(call, function=replace(call.function, arguments="{}"))


def enforced(shape: type[S], wire: Mapping[str, Any], log: WarningLog, *, said: bool = False) -> S | None:
    """The struct of what may be sent of `wire`, plain JSON; None when a part that it needs is unknown (PROC-9).

    `log` gets a warning for each stripped member.
    `said`: the application has just said it, so that a part of no known kind raises.

    Raises: `ProtocolError` when a known field is malformed.
    """
    findings = Findings()
    name = shape.__name__
    try:
        kept = sanitize(shape, wire, findings)
    except Malformed as problem:
        raise problem.error(f"the {name}", type=name) from None
    log_notes(findings, log, name, said=said)
    if isinstance(kept, Unrecognised):
        log.add("PROC-9", f"{kept}: the {name} was removed", type=name)
        return None
    assert isinstance(kept, shape)
    return kept


def _message_for(message: Message, index: int, peer: Peer, log: WarningLog) -> Message:
    if peer.at_most(NO_SUBAGENTS) and message.subagent_run_id is not UNSET:
        message = replace(message, subagent_run_id=UNSET)
    if not peer.at_most(NO_PARENTS):
        return message
    content: Any = message.content
    if isinstance(content, tuple):
        texts = [part.text for part in content if isinstance(part, TextPart)]
        lost = sorted({part.type for part in content if not isinstance(part, TextPart)})
        if lost:
            what = f"the {', '.join(lost)} parts of message {quoted(message.id)} were dropped"
            why = f"{peer} reads text only; upgrade it to keep them"
            log.add("OLD-4", f"{what}: {why}", type="RunAgentInput", path=f"/messages/{index}/content")
        return replace(message, content="".join(texts))
    if isinstance(message, AssistantMessage) and content is UNSET:
        return replace(message, content="")
    return message
