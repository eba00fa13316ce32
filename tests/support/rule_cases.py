"""A case for each rule: a stream, what must come of it, and a check that runs it every way in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

import agui_core as agui
from support.events import lines, sse, started
from support.folding import canonical

__all__ = ["Case", "accept", "check", "refuse"]

Wire = dict[str, Any]
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
    data = sse(events)
    half = len(data) // 2
    reducer.apply_sse(data[:half])
    reducer.apply_sse(data[half:])
    return True


def _as_lines(reducer: agui.Reducer, events: list[Any]) -> bool:
    reducer.apply_lines(lines(events))
    return True


_WAYS: dict[str, Callable[[agui.Reducer, list[Any]], bool]] = {
    "dicts": _one_by_one(lambda wire: wire),
    "bytes": _one_by_one(lambda wire: json.dumps(wire).encode()),
    "text": _one_by_one(json.dumps),
    "structs": _as_structs,
    "sse": _as_sse,
    "lines": _as_lines,
}
