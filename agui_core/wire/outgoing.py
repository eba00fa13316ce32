"""What is about to be sent: enforced as what is received, brought to what the peer can read, and declared (PROC-16,
IN-3).

Pure functions from one shape to another. A run input costs some microseconds per message, whatever becomes of it.
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
from agui_core.wire.encode import to_wire
from agui_core.wire.json_values import Copier
from agui_core.wire.malformed import Malformed, Path
from agui_core.wire.old_peers import NO_PARENTS, NO_SUBAGENTS, Peer
from agui_core.wire.parse import parse
from agui_core.wire.pydantic_models import dumped, is_model
from agui_core.wire.sanitize import judge, lean, refuse_unknown_kind
from agui_core.wire.shapes import Findings, Unrecognised

__all__ = ["address_input", "document", "enforce_input", "enforced", "readable"]

_scan = msgspec.json.Decoder(msgspec.Raw).decode
"""Reads one JSON document without making anything of it."""

S = TypeVar("S", bound=msgspec.Struct)


def enforce_input(
    run_input: RunAgentInput | Mapping[str, Any] | bytes | str | object, log: WarningLog, limits: Limits | None = None
) -> RunAgentInput:
    """The run input without unknown material, which is stripped with a warning in `log`, and with legacy content parts
    upgraded (OLD-2).

    `run_input` is a struct, which is not trusted here, a wire dict, JSON, or an object of `ag_ui.core`. Raises
    `ProtocolError`, `DecodeError` or `LimitExceeded` when a known field is malformed, so that nothing is sent.
    """
    try:
        wire = document(run_input, limits or Limits())
    except Malformed as verdict:
        raise ProtocolError(verdict.about("the RunAgentInput"), rule=verdict.rule, type="RunAgentInput") from None
    messages = wire.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        upgrade_message(message, ("messages", index), _quietly)
    judged = enforced(RunAgentInput, wire, log)
    if judged is None:
        raise ProtocolError("nothing of the run input is known to the protocol", rule="PROC-9", type="RunAgentInput")
    return judged


def address_input(run_input: RunAgentInput, log: WarningLog, peer: Peer | None = None) -> RunAgentInput:
    """What of an enforced input goes over the wire to `peer`, None for one of whom nothing is known.

    Activity messages stay here (ACT-10). A current peer is told our version, unless the input names one; an older one
    gets what it reads (OLD-3..5), with a warning in `log` for what that loses (VER-11, VER-12). `tools`,
    `context` and `forwardedProps` that the input leaves out are sent empty (IN-5, VER-8): many agents from before 1.0
    refuse an input without.
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
    """The messages as an agent can read them. Adapters refuse a whole request, for ever, when the arguments of one call
    in it are no JSON, or when a call is answered twice. So arguments that are no one JSON document are sent as `{}`
    (TOOL-5), and of several results for one call the first one is sent (OPEN-12), each with a warning in `log`. Empty
    arguments are `{}` without a word. Costs a scan of all arguments.
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
    """The struct of what may be sent of `wire`, or None when something that it needs is unknown (PROC-9). What was
    stripped is in `log`. Raises `ProtocolError` when a known field is malformed; in what the application has `said`
    just now, also for a part of no known kind.
    """
    court = Findings()
    name = shape.__name__
    try:
        judged = judge(shape, wire, court)
    except Malformed as verdict:
        raise ProtocolError(verdict.about(f"the {name}"), rule=verdict.rule, type=name) from None
    for rule, message, path in court.notes:
        if said:
            refuse_unknown_kind(rule, message, path, name)
        log.add(rule, message, type=name, path=path)
    if isinstance(judged, Unrecognised):
        log.add("PROC-9", f"{judged}: the {name} was removed", type=name)
        return None
    assert isinstance(judged, shape)
    return judged


def document(run_input: object, limits: Limits) -> dict[str, Any]:
    """A run input in any form as a wire dict of our own, not yet judged. Raises `Malformed`, `DecodeError`,
    `LimitExceeded`.
    """
    if isinstance(run_input, bytes | bytearray | memoryview | str):
        run_input, _ = parse(run_input, limits)
    elif isinstance(run_input, msgspec.Struct):
        run_input = to_wire(run_input)
    elif is_model(run_input):
        run_input = lean(RunAgentInput, dumped(run_input))
    if not isinstance(run_input, Mapping):
        raise TypeError(f"a run input is a RunAgentInput, a dict or JSON, not a {type(run_input).__name__}")
    document: dict[str, Any] = Copier(limits.nesting).copy(dict(run_input))
    return document


def _quietly(rule: str, message: str, path: Path) -> None:
    """An application's own legacy part is upgraded without a word: what cannot be is stripped by enforcement, with
    one.
    """


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
