"""The tool messages that answer calls: what the model reads, what people read, and how it went.

`content` is the text for the model and is never empty. `error` is a short text for people and marks failure; a denial
has none. The metadata key `agui_core.answer` says which kind of answer it is, so that restored histories tell the
states of their calls. Nothing internal gets into either text: of an exception only what a tool words itself
(`ToolError`).
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
from agui_core.wire.json_values import DEEPEST, Copier, paired
from agui_core.wire.malformed import Malformed
from agui_core.wire.pydantic_models import dumped, is_model

__all__ = [
    "ANSWER",
    "AnswerKind",
    "Outcome",
    "clean",
    "content_of",
    "outcome_of_error",
    "outcome_of_result",
    "signal_of",
]

ANSWER = "agui_core.answer"
"""The metadata key that says what kind of answer a tool message is."""

APPROVAL = "agui_core.approval"
"""The metadata key that says who decided on a call: `by` (`person` or `policy`), `reason`, and whether `edited`."""

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
    """Who decided, as the metadata says it; None where nobody had to."""

    def message(self, run_id: str, call_id: str) -> ToolMessage:
        """The tool message; its id is fresh because run ids are (FT-12, IN-8)."""
        return ToolMessage(
            id=f"{run_id}:{call_id}:answer",
            tool_call_id=call_id,
            content=self.content or _EMPTY,
            error=self.error,
            metadata={ANSWER: self.kind} if self.approval is None else {ANSWER: self.kind, APPROVAL: self.approval},
        )

    def decided(self, by: Literal["person", "policy"], reason: str | None = None, *, edited: bool = False) -> Outcome:
        """The same, saying who decided on the call, and why."""
        note: dict[str, Any] = {"by": by, "edited": edited}
        if reason:
            note["reason"] = clean(reason)
        return replace(self, approval=note)

    def after_edit(self, arguments: dict[str, Any]) -> Outcome:
        """The same, saying with which arguments it ran: those in the history are not changed."""
        said = f"A person changed the arguments; it ran with {msgspec.json.encode(arguments).decode()}"
        content: Content
        if isinstance(self.content, str):
            content = f"{said}\n\n{self.content or _EMPTY}"
        else:
            content = (TextPart(text=said), *self.content)
        return replace(self, content=content)


def signal_of(message: ToolMessage) -> Signal:
    """What an answer, ours or anybody's, means for the state of its call."""
    kind = None if message.metadata is UNSET else message.metadata.get(ANSWER)
    if isinstance(kind, str):
        return _SIGNALS.get(kind, "failed")
    return "answered" if message.error is UNSET else "failed"


def clean(text: str) -> str:
    """Text that UTF-8 can carry."""
    return text if text.isascii() else paired(text)


# --- results ------------------------------------------------------------------------------------------------------


def outcome_of_result(name: str, result: Any) -> Outcome:
    """What a tool gave. Strings and content parts pass through, everything else is written as JSON."""
    try:
        return Outcome(kind="ok", content=content_of(result))
    except ProtocolError as error:
        return failed(name, error.message)
    except (TypeError, ValueError, OverflowError, RecursionError, AGUIError, Malformed):
        return failed(name, "its result cannot be written as JSON")
    except Exception:  # writing may run code of the application's own types
        return failed(name, "its result cannot be read")


def content_of(result: Any) -> Content:
    """What a message holds of a result. Raises whatever goes wrong; `ProtocolError` for a content part of no known kind
    among others.
    """
    if type(result) is str:
        return clean(result)
    return _parts(result) or _written(result)


def _parts(result: Any) -> tuple[ContentPart, ...] | None:
    """The content parts that a result is made of, whether structs or dicts; None when it is anything else."""
    parts = (result,) if isinstance(result, _PART_TYPES) or is_model(result) else result
    if not isinstance(parts, list | tuple) or not parts:
        return None
    if any(map(is_model, parts)):
        parts = [dumped(part) if is_model(part) else part for part in parts]
    if not all(isinstance(part, _PART_TYPES) for part in parts):
        kinds = [_kind_of(part) for part in parts]
        if None in kinds or not any(kind in _PARTS for kind in kinds):
            return None
        holder = {"content": [to_wire(part) if isinstance(part, msgspec.Struct) else part for part in parts]}
        upgrade_message(holder, (), lambda rule, message, path: None)
        if strange := [kind for kind in map(_kind_of, holder["content"]) if kind not in _KNOWN]:
            raise ProtocolError(
                f"its result holds a content part of no known kind, {quoted(strange[0])}", rule="PROC-9"
            )
        try:
            parts = msgspec.convert(holder["content"], tuple[ContentPart, ...], strict=True)
        except msgspec.ValidationError:
            return None
    return tuple(replace(part, text=clean(part.text)) if isinstance(part, TextPart) else part for part in parts)


def _kind_of(part: Any) -> str | None:
    """The type of a content part, known or not; None for what looks like no part."""
    kind = part.get("type") if isinstance(part, dict) else getattr(part, "type", None)
    return kind if isinstance(kind, str) else None


def _written(result: Any) -> str:
    if isinstance(result, str):
        return clean(str(result))
    try:
        text = _encoder.encode(result)
    except UnicodeEncodeError:
        text = encode(msgspec.to_builtins(result, enc_hook=_foreign))
    if b"null" in text:  # msgspec writes it for NaN and infinity too, which are no JSON
        Copier(DEEPEST).copy(msgspec.to_builtins(result, enc_hook=_foreign))
    return text.decode()


def _foreign(value: Any) -> Any:
    """What msgspec does not know: models, and then nothing else."""
    if is_model(value):
        return dumped(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


_encoder = msgspec.json.Encoder(enc_hook=_foreign)

# --- failures -----------------------------------------------------------------------------------------------------


def outcome_of_error(name: str, error: BaseException, *, exposed: bool) -> Outcome:
    """What a tool raised. Its text stays out of the answer unless it is a `ToolError`, or `exposed`."""
    if isinstance(error, ToolError):
        return Outcome(
            kind="error",
            content=clean(error.model_text) or f"The tool {cut(name)} failed.",
            error=clean(error.human_text) or f"{cut(name)} failed",
        )
    return failed(name, _told(error) if exposed else "")


def _told(error: BaseException) -> str:
    try:
        return cut(clean(f"{type(error).__name__}: {error}"), EXPOSED)
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


def crowded_out(left_behind: int) -> Outcome:
    """No thread could be begun for a sync tool."""
    return Outcome(
        kind="cancelled",
        content=f"Not run: {left_behind} earlier calls never came back; try again later.",
        error="not run: earlier calls never came back",
    )


def cancelled() -> Outcome:
    """Answering was cancelled while the tool ran."""
    return Outcome(kind="cancelled", content="cancelled: it may have taken effect", error="cancelled while it ran")


def interrupted() -> Outcome:
    """A begun mark was found after a restart: a tool with effects is not run twice."""
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
    return Outcome(kind="denied", content=f"{said} Reason: {clean(reason)}" if reason else said)


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


def not_run(status: str | None) -> Outcome:
    """OPEN-17: the run ended badly, so its calls are not executed; None when another run began since."""
    ending = "the conversation went on" if status is None else f"the run {_ENDINGS[status]}"
    why = f"{ending} before this call was answered"
    return Outcome(kind="cancelled", content=f"Not run: {why}.", error="not run")
