"""Enforcement of what is about to be sent (PROC-16): unknown material goes with a warning, what is malformed raises."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from agui_core.errors import ProtocolError
from agui_core.warning import WarningLog
from agui_core.wire.encode import to_wire
from agui_core.wire.enforce import judge
from agui_core.wire.schema import Court, Unrecognised
from agui_core.wire.values import Malformed

__all__ = ["enforced", "plain"]

S = TypeVar("S", bound=msgspec.Struct)


def plain(value: msgspec.Struct | Mapping[str, Any]) -> dict[str, Any]:
    """A struct or a mapping as a wire dict of its own. Raises `ProtocolError` for what is no JSON."""
    builtin = value if isinstance(value, msgspec.Struct) else dict(value)
    wire: dict[str, Any] = to_wire(builtin)  # type: ignore[arg-type]
    return wire


def enforced(shape: type[S], wire: Mapping[str, Any], log: WarningLog) -> S | None:
    """The struct of what may be sent of `wire`, or None when something that it needs is unknown (PROC-9). What was
    stripped is in `log`. Raises `ProtocolError` when a known field is malformed.
    """
    court = Court()
    name = shape.__name__
    try:
        judged = judge(shape, wire, court)
    except Malformed as verdict:
        raise ProtocolError(verdict.about(f"the {name}"), rule=verdict.rule, type=name) from None
    for rule, message, path in court.notes:
        log.add(rule, message, type=name, path=path)
    if isinstance(judged, Unrecognised):
        log.add("PROC-9", f"{judged}: the {name} was removed", type=name)
        return None
    assert isinstance(judged, shape)
    return judged
