"""Enforcement of any shape of the protocol: messages, run inputs, whole events, and what they are made of (PROC-5..18).

`schema` holds the table and the verdicts; here a dict becomes a struct by it, and a struct built by hand is checked.
"""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from agui_core.errors import ProtocolError
from agui_core.wire.encode import to_wire
from agui_core.wire.json_values import DEEPEST, Copier
from agui_core.wire.malformed import Malformed, Path
from agui_core.wire.shapes import Findings, Node, Unrecognised, node_of

__all__ = ["judge", "lean", "refuse_unknown_kind", "validate"]


@functools.lru_cache(maxsize=128)
def _node(shape: Any) -> Node:
    return node_of(shape)


def judge(shape: Any, value: Any, court: Findings) -> Any:
    """The struct of what may stay of `value`, or an `Unrecognised`; `court` gathers the warnings. Raises `Malformed`.

    `shape` is a struct type or a union of them. `value` is plain JSON and is not changed.
    """
    judged = _node(shape).judge(value, (), court)
    return judged if isinstance(judged, Unrecognised) else converted(judged, shape)


def lean(shape: Any, value: Any) -> Any:
    """Plain JSON without the nulls in optional fields of closed objects, as `shape` knows them. `value` stays."""
    return _node(shape).lean(value)


def refuse_unknown_kind(rule: str, message: str, path: str, type: str | None) -> None:
    """Raise `ProtocolError` for a finding that something of no known kind was removed: the application has just said
    it, and nobody would hear of it.
    """
    if rule == "PROC-9":
        problem = message.partition(": the ")[0]
        raise ProtocolError(f"`{path}` would be lost: {problem}; send a known kind", rule=rule, type=type)


def converted(judged: Any, shape: Any) -> Any:
    """The struct of what enforcement let stand."""
    try:
        return msgspec.convert(judged, shape)
    except msgspec.ValidationError as error:
        raise Malformed(f"is malformed: {error}") from None


def validate(struct: msgspec.Struct) -> None:
    """Check a struct that was built by hand, since structs are trusted as they are.

    Raises `ProtocolError`, naming the path, when a field holds what the wire would not accept: a wrong type, a value
    outside a closed set, a missing required field, a value that is no JSON. Costs some microseconds per struct.
    """
    kind = type(struct)
    name = getattr(kind, "__name__", "value")
    court = Findings()
    try:
        _check_open(struct, ())
        judged = judge(kind, to_wire(struct), court)
    except Malformed as verdict:
        raise ProtocolError(f"{name}: {verdict}", rule=verdict.rule, type=_tag(kind)) from None
    if isinstance(judged, Unrecognised):
        raise ProtocolError(f"{name}: {judged}", rule="PROC-9", type=_tag(kind))
    for rule, message, _ in court.notes:
        raise ProtocolError(f"{name}: {message}", rule=rule, type=_tag(kind))


def _check_open(value: Any, path: Path) -> None:
    """Raise `Malformed` for open data that is no JSON, which an encoder might write all the same (a set, a date)."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            _check_open(getattr(value, field.name), (*path, field.encode_name))
    elif isinstance(value, list | tuple) and any(isinstance(item, msgspec.Struct) for item in value):
        for index, item in enumerate(value):
            _check_open(item, (*path, index))
    elif value is not msgspec.UNSET:
        try:
            Copier(DEEPEST).copy(value)
        except Malformed as verdict:
            raise Malformed(verdict.problem, path=path + verdict.path) from None


def _tag(kind: type[msgspec.Struct]) -> str | None:
    tag = kind.__struct_config__.tag
    return tag if isinstance(tag, str) else None
