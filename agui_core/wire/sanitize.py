"""Enforcement of any shape of the protocol: messages, run inputs, whole events, and their parts (PROC-5..18).

The one way in for a single value: `own_object` makes it a dict of our own, `compat` upgrades that, `sanitize` makes it
the struct of what may stay. `read_shape` does all three. `shapes` holds the table.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from agui_core._text import described
from agui_core.errors import DecodeError, ProtocolError
from agui_core.limits import Limits
from agui_core.warnings import WarningLog
from agui_core.wire.encode import to_wire
from agui_core.wire.framing import Bytes
from agui_core.wire.json_values import DEEPEST, Copier, nesting_exceeded, stack_exceeded, too_deep
from agui_core.wire.malformed import Malformed, Path
from agui_core.wire.parse import parse
from agui_core.wire.pydantic_models import dumped, is_model
from agui_core.wire.shapes import Findings, Node, Unrecognised, node_of

__all__ = ["converted", "log_notes", "own_object", "read_shape", "sanitize", "validate"]


@functools.lru_cache(maxsize=128)
def _node(shape: Any) -> Node:
    return node_of(shape)


def own_object(
    value: Any, shape: Any, limits: Limits, copy: Callable[[dict[str, Any]], dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The dict that a value says, sharing nothing with it: JSON text, a struct, a model of `shape`, or a dict.

    Copied at most once, by `copy` (a `Copier`, unless given): our own parser and encoder give clean dicts.

    Raises: `Malformed` or `LimitExceeded`; `DecodeError` for a value that is no JSON object.
    """
    own = False
    if isinstance(value, Bytes):
        value, suspect = parse(value, limits)
        own = not suspect
    elif isinstance(value, msgspec.Struct):
        try:
            value, own = to_wire(value), True
        except ProtocolError as error:
            raise Malformed(f"holds what is no JSON: {error.message}") from None
        if too_deep(value, limits.nesting + 1):
            raise nesting_exceeded(limits.nesting)
    elif is_model(value):
        try:
            value = _node(shape).lean(dumped(value))
        except RecursionError:
            raise stack_exceeded(limits.nesting) from None
    if not isinstance(value, dict):
        raise DecodeError(
            f"an event is a JSON object (a struct, a dict, JSON text or an ag_ui.core object), not {described(value)}",
            rule="SSE-8",
        )
    return value if own else (copy or Copier(limits.nesting).copy)(value)


def read_shape(
    value: Any, shape: Any, limits: Limits, findings: Findings, upgrade: Callable[[dict[str, Any]], object]
) -> Any:
    """The struct of what may stay of a value in any form, or an `Unrecognised`.

    `upgrade` changes the dict in place before it is judged; `findings` gathers the warnings.

    Raises: as `own_object` does.
    """
    wire = own_object(value, shape, limits)
    upgrade(wire)
    return sanitize(shape, wire, findings)


def sanitize(shape: Any, value: Any, findings: Findings) -> Any:
    """The struct of what may stay of plain JSON, or an `Unrecognised`. `value` is not changed.

    `shape` is a struct type or a union of them; `findings` gathers the warnings.

    Raises: `Malformed`.
    """
    kept = _node(shape).sanitize(value, (), findings)
    return kept if isinstance(kept, Unrecognised) else converted(kept, shape)


def converted(kept: Any, shape: Any) -> Any:
    """The struct of a dict that was sanitized."""
    try:
        return msgspec.convert(kept, shape)
    except msgspec.ValidationError as error:
        raise Malformed(f"is malformed: {error}") from None


def log_notes(findings: Findings, log: WarningLog, type: str | None, *, said: bool = False) -> None:
    """Move the warnings into `log`.

    `said`: the application has just said this value. Nobody would hear that a part of no known kind was removed, so
    that raises `ProtocolError`.
    """
    for rule, message, path in findings.notes:
        if said and rule == "PROC-9":
            problem = message.partition(": the ")[0]
            raise ProtocolError(f"`{path}` would be lost: {problem}; send a known kind", rule=rule, type=type)
        log.add(rule, message, type=type, path=path)


def validate(struct: msgspec.Struct) -> None:
    """Check a struct that was built by hand, since structs are trusted as they are. Costs some microseconds.

    Raises: `ProtocolError`, naming the path, for a value that the wire would refuse: a wrong type, a value outside a
    closed set, a missing required field, no JSON.
    """
    kind = type(struct)
    name = getattr(kind, "__name__", "value")
    findings = Findings()
    try:
        _check_open(struct, ())
        kept = sanitize(kind, to_wire(struct), findings)
    except Malformed as problem:
        raise ProtocolError(f"{name}: {problem}", rule=problem.rule, type=_tag(kind)) from None
    if isinstance(kept, Unrecognised):
        raise ProtocolError(f"{name}: {kept}", rule="PROC-9", type=_tag(kind))
    for rule, message, _ in findings.notes:
        raise ProtocolError(f"{name}: {message}", rule=rule, type=_tag(kind))


def _check_open(value: Any, path: Path) -> None:
    """Raise `Malformed` for open data that is no JSON and that an encoder might write all the same (a set, a date)."""
    if isinstance(value, msgspec.Struct):
        for field in msgspec.structs.fields(value):
            _check_open(getattr(value, field.name), (*path, field.encode_name))
    elif isinstance(value, list | tuple) and any(isinstance(item, msgspec.Struct) for item in value):
        for index, item in enumerate(value):
            _check_open(item, (*path, index))
    elif value is not msgspec.UNSET:
        try:
            Copier(DEEPEST).copy(value)
        except Malformed as problem:
            raise problem.inside(path) from None


def _tag(kind: type[msgspec.Struct]) -> str | None:
    tag = kind.__struct_config__.tag
    return tag if isinstance(tag, str) else None
