"""Messages and run inputs as people have them: structs, wire dicts, JSON, and the official package's objects.

They pass the boundary and enforcement as events do (IN-3): retired shapes are translated, unknown material is stripped
with a warning, malformed known fields are refused.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agui_core.errors import DecodeError, LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol import messages as m
from agui_core.protocol.run import RunAgentInput
from agui_core.warning import WarningLog
from agui_core.wire.boundary import Boundary, translate
from agui_core.wire.enforce import judge
from agui_core.wire.foreign import is_model, plain
from agui_core.wire.schema import Court, Unrecognised
from agui_core.wire.values import Copier, Malformed, Path, pointer

__all__ = ["as_input", "as_messages"]

_MESSAGES = m.Message.__args__


def as_messages(values: Any, limits: Limits, log: WarningLog) -> tuple[m.Message, ...]:
    """Message structs of any mixture of structs, dicts and the official package's objects; structs are trusted.

    Raises `ProtocolError` for a malformed one; one of an unknown role is dropped with a warning (MSGS-7).
    """
    return tuple([made for value in values if (made := _as_message(value, limits, log)) is not None])


def as_input(value: Any, limits: Limits, log: WarningLog) -> RunAgentInput:
    """A run input of a struct, a dict, JSON as bytes or str, or the official package's object."""
    if isinstance(value, RunAgentInput):
        return value
    if isinstance(value, bytes | bytearray | memoryview | str):
        try:
            value = msgspec.json.decode(value)
        except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
            raise DecodeError(f"the run input is not JSON: {error}", rule="IN-1") from None
    wire = _plain(value, "run input", limits)
    _translate({"type": "RUN_STARTED", "input": wire}, log)
    return _judged(RunAgentInput, wire, "run input", log)  # type: ignore[no-any-return]


def _as_message(value: Any, limits: Limits, log: WarningLog) -> m.Message | None:
    if isinstance(value, _MESSAGES):
        return value  # type: ignore[no-any-return]
    wire = _plain(value, "message", limits)
    _translate({"type": "MESSAGES_SNAPSHOT", "messages": [wire]}, log)
    judged: m.Message | Unrecognised = _judged(m.Message, wire, "message", log)
    if isinstance(judged, Unrecognised):
        log.add("MSGS-7", f"a message was dropped: {judged}")
        return None
    return judged


def _plain(value: Any, what: str, limits: Limits) -> dict[str, Any]:
    """A private plain dict of whatever holds the shape."""
    try:
        copy = Copier(limits.nesting + 1).copy(plain(value) if is_model(value) else value)
    except Malformed as verdict:
        raise ProtocolError(f"the {what} is malformed: {verdict}", rule=verdict.rule) from None
    except RecursionError:
        raise LimitExceeded(f"the {what} is nested more than {limits.nesting} deep", limit="nesting") from None
    if not isinstance(copy, dict):
        raise ProtocolError(
            f"a {what} is a struct, a dict or an ag_ui.core object, not {type(value).__name__}", rule="IN-1"
        )
    return copy


def _translate(event: dict[str, Any], log: WarningLog) -> None:
    def warn(rule: str, message: str, path: Path) -> None:
        if rule != "OLD-2":  # the application's own legacy parts lose nothing that it could mend
            log.add(rule, message, path=pointer(path))

    translate(event, Boundary(), warn)


def _judged(shape: Any, wire: dict[str, Any], what: str, log: WarningLog) -> Any:
    court = Court()
    try:
        judged = judge(shape, wire, court)
    except Malformed as verdict:
        raise ProtocolError(f"the {what} is malformed: {verdict}", rule=verdict.rule) from None
    for rule, message, path in court.notes:
        log.add(rule, f"{what}: {message}", path=path)
    return judged
