"""Folding a stream to its end or its refusal, and comparing JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

import agui_core as agui

__all__ = ["Fold", "canonical", "fold", "fold_bytes", "text_of", "warnings_in"]

Json = Any
Wire = dict[str, Any]


class Fold(NamedTuple):
    """A reducer that read a stream, the error that refused it (or None), and the types that observers saw."""

    reducer: agui.Reducer
    error: agui.AGUIError | None
    index: int | None
    """Where in the input the refused event stands, from 0; None without a refusal, or when bytes were fed."""
    events: list[Any]

    @property
    def messages(self) -> list[Wire]:
        return agui.to_wire(self.reducer.messages)

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]


def _open(case_input: Wire | None, policy: str, seen: list[Any]) -> agui.Reducer:
    case_input = case_input or {}
    return agui.Reducer(
        messages=case_input.get("messages", []),
        state=case_input.get("state", {}),
        policy=policy,
        on_event=seen.append,
    )


def fold(events: Iterable[Json], case_input: Wire | None = None, policy: str = "strict", *, end: bool = True) -> Fold:
    """Apply the events one by one, until the end (said to the reducer when `end`) or the first refusal."""
    seen: list[Any] = []
    reducer = _open(case_input, policy, seen)
    for index, event in enumerate(events):
        try:
            reducer.apply(event)
        except agui.AGUIError as error:
            return Fold(reducer, error, index, seen)
    if end:
        reducer.end()
    return Fold(reducer, None, None, seen)


def fold_bytes(
    pieces: Iterable[bytes], case_input: Wire | None = None, policy: str = "strict", *, lines: bool = False
) -> Fold:
    """Apply bytes as they come off the wire, SSE or JSON Lines, until the end or the first refusal."""
    seen: list[Any] = []
    reducer = _open(case_input, policy, seen)
    apply = reducer.apply_lines if lines else reducer.apply_sse
    try:
        for piece in pieces:
            apply(piece)
        reducer.end()
    except agui.AGUIError as error:
        return Fold(reducer, error, None, seen)
    return Fold(reducer, None, None, seen)


def warnings_in(reducer: agui.Reducer) -> list[str]:
    """The rule ids of all warnings, repeats counted."""
    return [warning.rule for warning in reducer.warnings for _ in range(warning.count)]


def text_of(reducer: agui.Reducer) -> str:
    """The contents of all messages, one after the other."""
    return "".join(str(getattr(message, "content", "")) for message in reducer.messages)


def canonical(value: Json) -> str:
    """One text for equal JSON values: keys sorted, `1.0` as `1`, `true` never equal to `1`."""
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
