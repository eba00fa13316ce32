"""Small streams, readable: a builder per event and message, a case per rule, and a check that runs it every way in.

Builders take wire names; `by` stands for `subagentRunId` and `meta` for `metadata`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from harness import canonical

import agui_core as agui

__all__ = [
    "Case",
    "accept",
    "activity",
    "activity_patch",
    "args",
    "call",
    "call_chunk",
    "call_end",
    "check",
    "custom",
    "ending",
    "event",
    "failed",
    "finished",
    "msg",
    "op",
    "patch",
    "raw",
    "reason",
    "reason_chunk",
    "reason_end",
    "reason_start",
    "refuse",
    "result",
    "run",
    "say",
    "sealed",
    "snapshot",
    "span",
    "span_end",
    "started",
    "state",
    "step",
    "step_end",
    "subagent",
    "subagent_end",
    "subagent_error",
    "text",
    "text_chunk",
    "text_end",
    "tool_call",
]

Wire = dict[str, Any]
_SHORT = {"by": "subagentRunId", "meta": "metadata"}


def event(type: str, **fields: Any) -> Wire:
    """Any event."""
    return {"type": type, **{_SHORT.get(name, name): value for name, value in fields.items()}}


# --- runs ---------------------------------------------------------------------------------------------------------


def started(run: str = "r1", thread: str = "t1", **fields: Any) -> Wire:
    return event("RUN_STARTED", threadId=thread, runId=run, **fields)


def finished(run: str = "r1", thread: str = "t1", **fields: Any) -> Wire:
    return event("RUN_FINISHED", threadId=thread, runId=run, **fields)


def failed(message: str = "boom", **fields: Any) -> Wire:
    return event("RUN_ERROR", message=message, **fields)


def run(*events: Wire) -> list[Wire]:
    """A whole run around the events."""
    return [started(), *events, finished()]


def ending(*events: Wire) -> list[Wire]:
    """A run that has begun; the events are its last."""
    return [started(), *events]


# --- items --------------------------------------------------------------------------------------------------------


def step(name: str = "plan", **fields: Any) -> Wire:
    return event("STEP_STARTED", stepName=name, **fields)


def step_end(name: str = "plan", **fields: Any) -> Wire:
    return event("STEP_FINISHED", stepName=name, **fields)


def text(id: str = "m", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_START", messageId=id, **fields)


def say(id: str = "m", delta: str = "x", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_CONTENT", messageId=id, delta=delta, **fields)


def text_end(id: str = "m", **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_END", messageId=id, **fields)


def text_chunk(id: str | None = None, delta: str | None = None, **fields: Any) -> Wire:
    return event("TEXT_MESSAGE_CHUNK", **_given(messageId=id, delta=delta), **fields)


def call(id: str = "c", name: str = "f", **fields: Any) -> Wire:
    return event("TOOL_CALL_START", toolCallId=id, toolCallName=name, **fields)


def args(id: str = "c", delta: str = "{}", **fields: Any) -> Wire:
    return event("TOOL_CALL_ARGS", toolCallId=id, delta=delta, **fields)


def call_end(id: str = "c", **fields: Any) -> Wire:
    return event("TOOL_CALL_END", toolCallId=id, **fields)


def call_chunk(id: str | None = None, delta: str | None = None, name: str | None = None, **fields: Any) -> Wire:
    return event("TOOL_CALL_CHUNK", **_given(toolCallId=id, toolCallName=name, delta=delta), **fields)


def result(call: str = "c", content: Any = "ok", id: str = "t", **fields: Any) -> Wire:
    return event("TOOL_CALL_RESULT", messageId=id, toolCallId=call, content=content, **fields)


def span(id: str = "s", **fields: Any) -> Wire:
    return event("REASONING_START", messageId=id, **fields)


def span_end(id: str = "s", **fields: Any) -> Wire:
    return event("REASONING_END", messageId=id, **fields)


def reason_start(id: str = "q", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_START", messageId=id, role="reasoning", **fields)


def reason(id: str = "q", delta: str = "hm", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_CONTENT", messageId=id, delta=delta, **fields)


def reason_end(id: str = "q", **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_END", messageId=id, **fields)


def reason_chunk(id: str | None = None, delta: str | None = None, **fields: Any) -> Wire:
    return event("REASONING_MESSAGE_CHUNK", **_given(messageId=id, delta=delta), **fields)


def sealed(entity: str, value: str = "AA", subtype: str = "message", **fields: Any) -> Wire:
    return event("REASONING_ENCRYPTED_VALUE", subtype=subtype, entityId=entity, encryptedValue=value, **fields)


# --- standalone ---------------------------------------------------------------------------------------------------


def state(value: Any, **fields: Any) -> Wire:
    return event("STATE_SNAPSHOT", snapshot=value, **fields)


def patch(*operations: Wire, **fields: Any) -> Wire:
    return event("STATE_DELTA", delta=list(operations), **fields)


def op(name: str, path: str, *value: Any, **fields: Any) -> Wire:
    """A patch operation."""
    return {"op": name, "path": path, **({"value": value[0]} if value else {}), **fields}


def snapshot(*messages: Wire, **fields: Any) -> Wire:
    return event("MESSAGES_SNAPSHOT", messages=list(messages), **fields)


def activity(id: str = "a", kind: str = "todo", content: Any = None, **fields: Any) -> Wire:
    return event("ACTIVITY_SNAPSHOT", messageId=id, activityType=kind, content=content or {}, **fields)


def activity_patch(id: str, kind: str, *operations: Wire, **fields: Any) -> Wire:
    return event("ACTIVITY_DELTA", messageId=id, activityType=kind, patch=list(operations), **fields)


def subagent(id: str = "s1", name: str = "helper", **fields: Any) -> Wire:
    return event("SUBAGENT_STARTED", subagentRunId=id, name=name, **fields)


def subagent_end(id: str = "s1", **fields: Any) -> Wire:
    return event("SUBAGENT_FINISHED", subagentRunId=id, **fields)


def subagent_error(id: str = "s1", message: str = "no", **fields: Any) -> Wire:
    return event("SUBAGENT_ERROR", subagentRunId=id, message=message, **fields)


def raw(value: Any = None, **fields: Any) -> Wire:
    return event("RAW", event=value, **fields)


def custom(name: str = "x.tick", value: Any = 1, **fields: Any) -> Wire:
    return event("CUSTOM", name=name, value=value, **fields)


# --- messages -----------------------------------------------------------------------------------------------------


def msg(role: str, id: str, content: Any = None, **fields: Any) -> Wire:
    """A message; `content=None` leaves it out."""
    return {"id": id, "role": role, **_given(content=content), **{_SHORT.get(k, k): v for k, v in fields.items()}}


def tool_call(id: str = "c", name: str = "f", arguments: str = "", **fields: Any) -> Wire:
    """A call inside an assistant message."""
    function = {"name": name, "arguments": arguments}
    return {"id": id, "type": "function", "function": function, **{_SHORT.get(k, k): v for k, v in fields.items()}}


def _given(**fields: Any) -> Wire:
    return {name: value for name, value in fields.items() if value is not None}


# --- cases --------------------------------------------------------------------------------------------------------

_ANYTHING: Any = object()


class Case(NamedTuple):
    """One stream and what must come of it."""

    rules: str
    """The rule ids that it shows."""
    title: str
    events: list[Any]
    options: dict[str, Any]
    refused: bool
    messages: Any = _ANYTHING
    state: Any = _ANYTHING
    status: str = "finished"
    warns: tuple[str, ...] = ()
    """The warnings' rule ids, all of them; `A|B`: either will do; `A /path`: at that path; `A?`: it may be missing."""
    run: Mapping[str, Any] = MappingProxyType({})
    seen: tuple[str, ...] | None = None
    """The types that observers see, in short: `START`, `CONTENT`, `END` and so on, without the family."""
    ids: tuple[str, ...] = ()
    """Ids that the refusal names, as data and in its text."""
    says: tuple[str, ...] = ()
    """Words of the refusal: what to do."""
    error: type[agui.AGUIError] = agui.ProtocolError

    def __str__(self) -> str:
        return f"{self.rules}: {self.title}"


def accept(
    rules: str,
    title: str,
    events: list[Any],
    *,
    warns: str = "",
    held: Iterable[Wire] = (),
    baseline: Any = agui.UNSET,
    policy: str = "strict",
    seen: str | None = None,
    **expected: Any,
) -> Case:
    """A stream that is consumed. `held`, `baseline`: messages and state from before. `warns`: separated by commas."""
    return Case(
        rules,
        title,
        events,
        {"messages": list(held), "state": baseline, "policy": policy},
        refused=False,
        warns=tuple(part.strip() for part in warns.split(",") if part),
        seen=None if seen is None else tuple(seen.split()),
        **expected,
    )


def refuse(
    rules: str,
    title: str,
    events: list[Any],
    *,
    ids: tuple[str, ...] = (),
    says: tuple[str, ...] = (),
    held: Iterable[Wire] = (),
    error: type[agui.AGUIError] = agui.ProtocolError,
) -> Case:
    """A stream whose last event is refused by one of the rules; what came before stays."""
    options = {"messages": list(held), "state": agui.UNSET, "policy": "strict"}
    return Case(rules, title, events, options, refused=True, ids=ids, says=says, error=error)


def check(case: Case) -> None:
    """Run the case every way in, and ask of each the same answer."""
    for name, feed in _WAYS.items():
        seen: list[str] = []
        reducer = agui.Reducer(**case.options, on_event=lambda event, seen=seen: seen.append(event.type))
        error: agui.AGUIError | None = None
        try:
            fed = feed(reducer, case.events)
            if not fed:
                continue
            reducer.end()
        except agui.AGUIError as refusal:
            error = refusal
        if case.refused:
            _check_refusal(case, name, reducer, error, seen)
        else:
            assert error is None, f"{name}: refused: {error}"
            _check_result(case, name, reducer, seen)
    _check_conform(case)


def _check_result(case: Case, way: str, reducer: agui.Reducer, seen: list[str]) -> None:
    assert reducer.status == case.status, way
    assert reducer.error is None, way
    if case.messages is not _ANYTHING:
        assert canonical(agui.to_wire(reducer.messages)) == canonical(case.messages), way
    if case.state is not _ANYTHING:
        assert canonical(reducer.state) == canonical(case.state), way
    if case.seen is not None:
        assert tuple(_short(type) for type in seen) == case.seen, way
    for name, value in case.run.items():
        assert getattr(reducer.run, name) == value, f"{way}: run.{name}"
    _check_warnings(case, way, reducer)


def _check_warnings(case: Case, way: str, reducer: agui.Reducer) -> None:
    expected = list(case.warns)
    for warning in reducer.warnings:
        names = {warning.rule, f"{warning.rule} {warning.path}"}
        match = next((item for item in expected if names.intersection(item.rstrip("?").split("|"))), None)
        assert match is not None, f"{way}: unexpected warning: {warning} at {warning.path!r}"
        expected.remove(match)
        assert f"[{warning.rule}]" in str(warning)
        assert warning.index is not None, warning
        assert _type_of(case.events[warning.index]) == warning.type, warning
    missing = [item for item in expected if not item.endswith("?")]
    assert not missing, f"{way}: warnings that did not come: {missing}"


def _check_refusal(case: Case, way: str, reducer: agui.Reducer, error: agui.AGUIError | None, seen: list[str]) -> None:
    last = len(case.events) - 1
    assert error is not None, f"{way}: accepted, status {reducer.status}"
    assert type(error) is case.error, f"{way}: {error!r}"
    assert isinstance(error, agui.ProtocolError | agui.DecodeError | agui.LimitExceeded)
    assert error.rule in case.rules.split(), f"{way}: {error}"
    assert error.index == last, f"{way}: {error}"
    type_name = _type_of(case.events[last])
    assert error.type == type_name, f"{way}: {error}"
    assert set(case.ids) <= set(error.ids), f"{way}: {error.ids} {error}"
    for part in (f"[{error.rule}]", f"event {last}", *case.ids, *case.says, *([type_name] if type_name else [])):
        assert part in str(error), f"{way}: {part!r} is not in {error}"
    assert reducer.status == "rejected", way
    assert reducer.error is error, way
    before: list[str] = []
    prefix = agui.Reducer(**case.options, on_event=lambda event: before.append(event.type))
    for accepted in case.events[:last]:
        prefix.apply(accepted)
    assert canonical(agui.to_wire(reducer.messages)) == canonical(agui.to_wire(prefix.messages)), way
    assert canonical(reducer.state) == canonical(prefix.state), way
    assert seen == before, way
    for later in (started("again"), b'{"type":"RAW","event":1}'):
        with pytest.raises(agui.AGUIError) as again:
            reducer.apply(later)
        assert again.value is error, way


def _check_conform(case: Case) -> None:
    """What `conform` lets pass is what a reducer applies, and folds to the same."""
    passed: list[Any] = []
    error: agui.AGUIError | None = None
    try:
        passed.extend(agui.conform(case.events, policy=case.options["policy"]))
    except agui.AGUIError as refusal:
        error = refusal
    assert (error is not None) == case.refused, f"conform: {error}"
    if error is not None:
        assert type(error) is case.error
        assert error.rule in case.rules.split(), f"conform: {error}"  # type: ignore[attr-defined]
    again = agui.Reducer(**case.options)
    for accepted in passed:
        again.apply(accepted)
    again.end()
    straight = agui.Reducer(**case.options)
    for wire in case.events[: len(case.events) - case.refused]:
        straight.apply(wire)
    straight.end()
    assert canonical(agui.to_wire(again.messages)) == canonical(agui.to_wire(straight.messages)), "conform"
    assert canonical(again.state) == canonical(straight.state), "conform"
    assert again.status == straight.status, "conform"


def _type_of(wire: Any) -> str | None:
    type = wire.get("type") if isinstance(wire, dict) else None
    return type if isinstance(type, str) else None


def _short(type: str) -> str:
    for family in ("TEXT_MESSAGE_", "TOOL_CALL_", "REASONING_MESSAGE_"):
        if type.startswith(family):
            return type.removeprefix(family)
    return type


# --- ways in ------------------------------------------------------------------------------------------------------


def _one_by_one(prepare: Callable[[Any], object]) -> Callable[[agui.Reducer, list[Any]], bool]:
    def feed(reducer: agui.Reducer, events: list[Any]) -> bool:
        for wire in events:
            reducer.apply(prepare(wire))
        return True

    return feed


def _as_structs(reducer: agui.Reducer, events: list[Any]) -> bool:
    """Structs are what decoding made of clean events; streams with other ones have no such way in."""
    noted: list[Any] = []
    try:
        structs = [agui.decode(json.dumps(wire), on_warning=noted.append) for wire in events]
    except agui.AGUIError:
        return False
    if noted:
        return False
    for struct in structs:
        reducer.apply(struct)
    return True


def _as_sse(reducer: agui.Reducer, events: list[Any]) -> bool:
    data = b"".join(b"data: " + json.dumps(wire).encode() + b"\n\n" for wire in events)
    half = len(data) // 2
    reducer.apply_sse(data[:half])
    reducer.apply_sse(data[half:])
    return True


def _as_lines(reducer: agui.Reducer, events: list[Any]) -> bool:
    reducer.apply_lines(b"".join(json.dumps(wire).encode() + b"\n" for wire in events))
    return True


_WAYS: dict[str, Callable[[agui.Reducer, list[Any]], bool]] = {
    "dicts": _one_by_one(lambda wire: wire),
    "bytes": _one_by_one(lambda wire: json.dumps(wire).encode()),
    "text": _one_by_one(json.dumps),
    "structs": _as_structs,
    "sse": _as_sse,
    "lines": _as_lines,
}
