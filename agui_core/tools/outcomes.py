"""Outcomes: the tool messages that answer calls, for the model and for people.

`content` is the text for the model and is never empty. `error` is a short text for people and marks failure; a denial
has none. The metadata key `agui_core.answer` names the kind of answer, so that restored histories tell the states of
their calls. Neither text holds anything internal: of an exception only the words of a `ToolError` are shown.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from agui_core._text import cut, quoted
from agui_core.errors import AGUIError, ProtocolError
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.content import ContentPart, TextPart
from agui_core.protocol.messages import ToolMessage
from agui_core.tools.errors import ToolError
from agui_core.tools.states import Signal
from agui_core.wire.compat import upgrade_message
from agui_core.wire.encode import encode, to_wire
from agui_core.wire.json_values import DEEPEST, Copier, clean_text
from agui_core.wire.malformed import Malformed
from agui_core.wire.pydantic_models import dumped, encode_hook, is_model

__all__ = [
    "ANSWER",
    "DECIDED",
    "AnswerKind",
    "Outcome",
    "content_of",
    "kind_of",
    "outcome_of_error",
    "outcome_of_result",
    "signal_of",
]

ANSWER = "agui_core.answer"
"""The metadata key of the kind of an answer."""

DECIDED = "agui_core.approval"
"""The metadata key of the decision on a call: `by` (`person` or `policy`), `reason`, and whether `edited`."""

AnswerKind: TypeAlias = Literal["ok", "error", "denied", "cancelled", "timeout", "invalid"]

Content: TypeAlias = str | tuple[ContentPart, ...]

_SIGNALS: dict[str, Signal] = {"ok": "answered", "denied": "denied"}
_KNOWN = frozenset({"text", "image", "audio", "video", "document"})
_PARTS = _KNOWN | {"binary"}
"""Known and retired types of content parts (OLD-2)."""
_PART_TYPES: tuple[type[msgspec.Struct], ...] = ContentPart.__args__
_EMPTY = "(no output)"

EXPOSED = 2_000
"""Characters of an exception that are shown where the application asks for them."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a call went, before it is a message."""

    kind: AnswerKind
    content: Content
    error: str | UnsetType = UNSET
    approval: dict[str, Any] | None = None
    """The decision, as it goes into the metadata; None where there was none."""

    def message(self, run_id: str, call_id: str) -> ToolMessage:
        """The tool message; its id is fresh because run ids are (FT-12, IN-8)."""
        return ToolMessage(
            id=f"{run_id}:{call_id}:answer",
            tool_call_id=call_id,
            content=self.content or _EMPTY,
            error=self.error,
            metadata={ANSWER: self.kind} if self.approval is None else {ANSWER: self.kind, DECIDED: self.approval},
        )

    def decided(self, by: Literal["person", "policy"], reason: str | None = None, *, edited: bool = False) -> Outcome:
        """The same, with a note of who decided on the call, and why."""
        note: dict[str, Any] = {"by": by, "edited": edited}
        if reason:
            note["reason"] = clean_text(reason)
        return replace(self, approval=note)

    def after_edit(self, arguments: dict[str, Any]) -> Outcome:
        """The same, with a note of the arguments it ran with: the history keeps the old ones."""
        said = f"A person changed the arguments; it ran with {msgspec.json.encode(arguments).decode()}"
        content: Content
        if isinstance(self.content, str):
            content = f"{said}\n\n{self.content or _EMPTY}"
        else:
            content = (TextPart(text=said), *self.content)
        return replace(self, content=content)


def kind_of(message: ToolMessage) -> str | None:
    """The kind of an answer of ours, perhaps of a later version; None for an answer that is not ours."""
    kind = None if message.metadata is UNSET else message.metadata.get(ANSWER)
    return kind if isinstance(kind, str) else None


def signal_of(message: ToolMessage) -> Signal:
    """The signal of any answer for the state of its call."""
    kind = kind_of(message)
    if kind is not None:
        return _SIGNALS.get(kind, "failed")
    return "answered" if message.error is UNSET else "failed"


# --- results ------------------------------------------------------------------------------------------------------


def outcome_of_result(name: str, result: Any) -> Outcome:
    """A tool gave this result. Strings and content parts pass through; other values are written as JSON."""
    try:
        return Outcome(kind="ok", content=content_of(result))
    except ProtocolError as error:
        return failed(name, error.message)
    except (TypeError, ValueError, OverflowError, RecursionError, AGUIError, Malformed):
        return failed(name, "its result cannot be written as JSON")
    except Exception:  # writing may run code of the application's own types
        return failed(name, "its result cannot be read")


def content_of(result: Any) -> Content:
    """The content of the message for a result.

    Raises: any error of writing it; `ProtocolError` for a content part of no known kind.
    """
    if type(result) is str:
        return clean_text(result)
    return _parts(result) or _written(result)


def _parts(result: Any) -> tuple[ContentPart, ...] | None:
    """The content parts of a result that has only these, as structs or dicts; else None."""
    parts = (result,) if isinstance(result, _PART_TYPES) or is_model(result) else result
    if not isinstance(parts, list | tuple) or not parts:
        return None
    if any(map(is_model, parts)):
        parts = [dumped(part) if is_model(part) else part for part in parts]
    if not all(isinstance(part, _PART_TYPES) for part in parts):
        kinds = [_type_of(part) for part in parts]
        if None in kinds or not any(kind in _PARTS for kind in kinds):
            return None
        holder = {"content": [to_wire(part) if isinstance(part, msgspec.Struct) else part for part in parts]}
        upgrade_message(holder)
        if strange := [kind for kind in map(_type_of, holder["content"]) if kind not in _KNOWN]:
            raise ProtocolError(
                f"its result holds a content part of no known kind, {quoted(strange[0])}", rule="PROC-9"
            )
        try:
            parts = msgspec.convert(holder["content"], tuple[ContentPart, ...], strict=True)
        except msgspec.ValidationError:
            return None
    return tuple(replace(part, text=clean_text(part.text)) if isinstance(part, TextPart) else part for part in parts)


def _type_of(part: Any) -> str | None:
    """The type of a content part, known or not; None for a value that is not one."""
    kind = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return kind if isinstance(kind, str) else None


def _written(result: Any) -> str:
    if isinstance(result, str):
        return clean_text(str(result))
    try:
        text = _encoder.encode(result)
    except UnicodeEncodeError:
        text = encode(msgspec.to_builtins(result, enc_hook=encode_hook))
    if b"null" in text:  # msgspec writes it for NaN and infinity too, which are no JSON
        Copier(DEEPEST).copy(msgspec.to_builtins(result, enc_hook=encode_hook))
    return text.decode()


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


# --- failures -----------------------------------------------------------------------------------------------------


def outcome_of_error(name: str, error: BaseException, *, exposed: bool) -> Outcome:
    """A tool raised this error. Its text stays out of the answer, unless it is a `ToolError` or `exposed`."""
    if isinstance(error, ToolError):
        return Outcome(
            kind="error",
            content=clean_text(error.model_text) or f"The tool {cut(name)} failed.",
            error=clean_text(error.human_text) or f"{cut(name)} failed",
        )
    return failed(name, _told(error) if exposed else "")


def _told(error: BaseException) -> str:
    try:
        return cut(clean_text(f"{type(error).__name__}: {error}"), EXPOSED)
    except Exception:  # the text of an exception is the tool's own code
        return type(error).__name__


def failed(name: str, why: str = "") -> Outcome:
    """The tool failed."""
    reason = f": {why}" if why else " and gave no result."
    return Outcome(kind="error", content=f"The tool {cut(name)} failed{reason}", error=f"{cut(name)} failed")


def timed_out(name: str, seconds: float, *, abandoned: bool) -> Outcome:
    """Our timeout. `abandoned`: the work goes on in a thread that cannot be stopped."""
    fate = "it goes on in the background and may still take effect" if abandoned else "it was stopped"
    return Outcome(
        kind="timeout",
        content=f"The tool {cut(name)} took longer than {seconds:g} s: {fate}.",
        error=f"{cut(name)} took longer than {seconds:g} s",
    )


def not_run(why: str, human: str = "not run") -> Outcome:
    """The call may not run any more, or not now."""
    return Outcome(kind="cancelled", content=f"Not run: {why}.", error=human)


def crowded_out(left_behind: int) -> Outcome:
    """There was no thread for a sync tool."""
    why = f"{left_behind} earlier calls never came back; try again later"
    return not_run(why, "not run: earlier calls never came back")


def cancelled() -> Outcome:
    """Answering was cancelled while the tool ran."""
    return Outcome(kind="cancelled", content="cancelled: it may have taken effect", error="cancelled while it ran")


def interrupted() -> Outcome:
    """A mark was found after a restart: a tool with effects is not run twice."""
    return Outcome(
        kind="cancelled",
        content="The application was restarted while this call ran: it may or may not have run.",
        error="may or may not have run",
    )


def went_on() -> Outcome:
    """The user did not wait for an answer."""
    return Outcome(
        kind="cancelled",
        content="No result: the user went on before this call was answered.",
        error="the user went on",
    )


def invalid(why: str, human: str = "the arguments do not fit") -> Outcome:
    """The call cannot be executed as it is (TOOL-5, FT-10)."""
    return Outcome(kind="invalid", content=f"Not run: {why}", error=human)


def unknown_tool(name: str) -> Outcome:
    """The call names a tool that nobody has here."""
    return invalid(f"there is no tool named {cut(name)} here.", "unknown tool")


def denied(reason: str | None = None) -> Outcome:
    """A person said no (FT-6)."""
    said = "Denied: a person did not allow this call; it was not run."
    return Outcome(kind="denied", content=f"{said} Reason: {clean_text(reason)}" if reason else said)


def ruled_out() -> Outcome:
    """The tool's policy said no."""
    return Outcome(
        kind="denied", content="Denied: the rules of the application do not allow this call; it was not run."
    )


_ENDINGS = {
    "failed": "failed",
    "cancelled": "was cancelled",
    "truncated": "was cut off",
    "rejected": "was refused",
}


def run_ended(status: str | None) -> Outcome:
    """OPEN-17: the run ended badly, so its calls are not executed; None when another run began since."""
    ending = "the conversation went on" if status is None else f"the run {_ENDINGS[status]}"
    return not_run(f"{ending} before this call was answered")
