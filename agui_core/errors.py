"""The errors of this library: one small tree. Wire input raises nothing else.

A text names the event, the id, the remedy, and the rule in brackets, as in `[STR-2]`.
"""

from __future__ import annotations

from typing import Any

from agui_core._text import event_place, one_line

__all__ = [
    "AGUIError",
    "ApprovalError",
    "DecodeError",
    "LimitExceeded",
    "PatchError",
    "ProtocolError",
    "ResumeError",
    "TransportError",
    "StillWaiting",
]


class AGUIError(Exception):
    """The root of all errors here. They survive `pickle` and `copy`, with all they carry. As text each is one line
    of bounded length, whatever came over the wire.
    """

    def __str__(self) -> str:
        return one_line(super().__str__())

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception would call the class with `args` alone, without the keyword arguments of a subclass.
        return _remade, (type(self), self.args, self.__dict__)


def _remade(kind: type[AGUIError], args: tuple[Any, ...], attributes: dict[str, Any]) -> AGUIError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class _StreamError(AGUIError):
    """An error of one event: its place in the stream and the rule that it breaks.

    `message`: the text without place and rule.
    `rule`: the protocol's rule id.
    `index`: the event, counted from 0; None outside a stream.
    `type`: the event's wire name where it is known.
    `ids`: the ids concerned.
    """

    def __init__(
        self,
        message: str,
        *,
        rule: str,
        index: int | None = None,
        type: str | None = None,
        ids: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.rule = rule
        self.index = index
        self.type = type
        self.ids = ids

    def __str__(self) -> str:
        return f"{event_place(self.index, self.type)}{one_line(self.message)} [{self.rule}]"


class DecodeError(_StreamError):
    """The bytes are not an event: not JSON, or JSON that is not an object (SSE-8)."""


class ProtocolError(_StreamError):
    """A known field holds a malformed value (PROC-7), or an event comes where the protocol forbids it."""


class LimitExceeded(_StreamError):
    """A bound of `Limits` was exceeded; `limit` is its name. Raise it there if the stream is trusted."""

    def __init__(
        self,
        message: str,
        *,
        limit: str,
        index: int | None = None,
        type: str | None = None,
        ids: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, rule=f"Limits.{limit}", index=index, type=type, ids=ids)
        self.limit = limit


class PatchError(AGUIError):
    """A JSON Patch does not apply (PATCH-5). `operation` is the index of the failing operation in the patch."""

    def __init__(self, message: str, *, operation: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.operation = operation


class ResumeError(AGUIError):
    """A resume list or a next input must not be sent (INT-5..9, FT-5)."""


class ApprovalError(AGUIError):
    """An approval or an answer that the state of the call does not allow."""


class TransportError(AGUIError):
    """The peer could not be reached, or did not answer with an event stream (SSE-11).

    `status`: the HTTP status where there was one.
    `body`: the beginning of the answer, at most 2 KiB of text.
    """

    def __init__(self, message: str, *, status: int | None = None, body: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class StillWaiting(AGUIError):
    """The user cannot go on in a conversation yet.

    `who` has to act first: `"application"`, `"approver"` or `"agent"`.
    `calls`, `interrupts`: the ids to act on.
    """

    def __init__(
        self, message: str, *, who: str, calls: tuple[str, ...] = (), interrupts: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message)
        self.who = who
        self.calls = calls
        self.interrupts = interrupts
