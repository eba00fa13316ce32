"""The result of a run of a tool loop: how it ended, and its calls one by one, as the conversation tells them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from agui_core._text import cut
from agui_core.protocol.base import UNSET
from agui_core.protocol.content import ContentPart
from agui_core.protocol.messages import ToolMessage
from agui_core.reducer.views import ToolCallView
from agui_core.tools.outcomes import AnswerKind, kind_of

__all__ = ["Failure", "LoopResult", "LoopStatus", "Observation", "observe", "on_the_wire"]

LoopStatus: TypeAlias = Literal["ok", "needs_confirmation", "needs_review", "failed"]

CallStatus: TypeAlias = AnswerKind | Literal["pending"]
"""`pending`: nobody has answered yet; a person has to agree, or the client runs the tool."""

_LONGEST = 10_000
_DEEPEST = 100
_KINDS = frozenset(get_args(AnswerKind))
_FAILED = frozenset({"error", "timeout", "invalid", "cancelled"})


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """One call and what came of it.

    id: the call's.
    name: the tool that it names.
    arguments: the JSON value; the text as it came when it is none.
    result: what the tool gave. None unless `status` is `"ok"`: where a tool failed, there is no result.
    status: what came of it.
    """

    id: str
    name: str
    arguments: Any
    result: str | tuple[ContentPart, ...] | None
    status: CallStatus


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One call that failed, was refused, or was not run; a denial is none.

    id: the call's.
    name: the tool that it names.
    status: what came of it.
    error: what the model was told.
    """

    id: str
    name: str
    status: CallStatus
    error: str


class LoopResult(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """How a run of a tool loop went. The `result` of its RUN_FINISHED holds the same as JSON (`on_the_wire`).

    status: `ok`: the model gave its answer, or the rest is the client's. `needs_confirmation`: a person has to
      agree to a call. `needs_review`: the cap was reached or a call was repeated. `failed`: the run ended with
      RUN_ERROR.
    final_output: the model's answer; None unless it gave one.
    tool_results: all calls since the last user message, those of interrupted runs before this one too, in the order
      asked.
    tool_errors: those of them that failed, were refused, or were not run.
    tool_call_count: calls attempted since the last user message, whatever came of them. Those beyond the cap are
      not attempted.
    metadata: `thread_id`, `run_id`, `decisions` (how often this run asked for one), and `reason` of a review or a
      failure.
    """

    status: LoopStatus
    final_output: str | None = None
    tool_results: tuple[Observation, ...] = ()
    tool_errors: tuple[Failure, ...] = ()
    tool_call_count: int = 0
    metadata: dict[str, Any] = {}


def on_the_wire(result: LoopResult) -> dict[str, Any]:
    """The result as JSON. Arguments and results that are long (10,000 bytes) or deep are left out, as the event has to
    stay small; the conversation holds them under the call's id.
    """
    made: dict[str, Any] = msgspec.to_builtins(result)
    for observation in made["tool_results"]:
        for name in ("arguments", "result"):
            if not _is_small(observation[name]):
                del observation[name]
    for failure in made["tool_errors"]:
        failure["error"] = cut(failure["error"], _LONGEST)
    return made


def _is_small(value: Any) -> bool:
    # The text is needed for its length, and counting its brackets is cheaper than a walk over the value.
    text = msgspec.json.encode(value)
    return len(text) <= _LONGEST and text.count(b"[") + text.count(b"{") <= _DEEPEST


def observe(calls: Iterable[ToolCallView]) -> tuple[tuple[Observation, ...], tuple[Failure, ...]]:
    """The results of these calls, as the conversation tells them, and those that failed."""
    results, failures = [], []
    for call in calls:
        answer = call.result
        status = _status_of(answer)
        results.append(
            Observation(
                id=call.id,
                name=call.name,
                arguments=call.args if call.valid else call.arguments,
                result=answer.content if answer is not None and status == "ok" else None,
                status=status,
            )
        )
        if answer is not None and status in _FAILED:
            failures.append(Failure(id=call.id, name=call.name, status=status, error=_text_of(answer)))
    return tuple(results), tuple(failures)


def _status_of(answer: ToolMessage | None) -> CallStatus:
    """Our answers tell their kind. Others, such as a client's, only tell whether they failed."""
    if answer is None:
        return "pending"
    kind = kind_of(answer)
    if kind in _KINDS:
        return kind  # type: ignore[return-value]  # it is one of them
    return "ok" if answer.error is UNSET else "error"


def _text_of(answer: ToolMessage) -> str:
    if isinstance(answer.content, str):
        return answer.content
    return "" if answer.error is UNSET else answer.error
