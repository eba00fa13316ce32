"""The decision of a model, as a `decide` function gives it: a final answer, or one or more calls.

Only the shape is checked here; names and argument texts are judged later. A decision that has none of the shapes below
is refused whole, because half a decision is another decision. Costs one pass over it.

| given                                                        | read as                                   |
|--------------------------------------------------------------|-------------------------------------------|
| a str                                                        | the final answer                          |
| `{"name": ..., "arguments": ...}` (or `args`), `id` optional | a call; arguments as an object or as text |
| `{"function": {"name": ..., "arguments": ...}}`, a `ToolCall`| a call, as chat completions write it      |
| a list or tuple of calls                                     | these calls, in this order                |
| `{"content": ..., "toolCalls": [...]}` (or `tool_calls`)     | text and calls; without calls the answer  |
| an `AssistantMessage`                                        | the same                                  |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agui_core._text import shown
from agui_core.errors import AGUIError
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import AssistantMessage, ToolCall
from agui_core.tools.errors import InvalidArguments
from agui_core.tools.json_arguments import read_arguments
from agui_core.wire.json_values import clean_text

__all__ = ["Asked", "BadDecision", "Decision", "normalise"]

_MESSAGE = {"content", "toolCalls", "tool_calls"}
"""Members that only a message has."""
_SHAPES = "a text, a call, several calls, or an assistant message"


class BadDecision(AGUIError):
    """The value that `decide` gave is not a decision. The text says why."""


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One call as it was asked for. Nothing of it is to be trusted."""

    name: str
    arguments: str
    """Text that may be no JSON."""
    id: str = ""
    """As the model named it; `""` when it did not."""

    @property
    def sameness(self) -> tuple[str, str]:
        """Equal for calls of the same name with the same arguments, however these are written."""
        try:
            written = msgspec.json.encode(read_arguments(self.arguments), order="deterministic").decode()
        except InvalidArguments:
            written = self.arguments
        return self.name, written


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """Without calls, `text` is the final answer."""

    text: str = ""
    calls: tuple[Asked, ...] = ()


def normalise(given: object) -> Decision:
    """Read a decision. Raises `BadDecision` and nothing else."""
    if isinstance(given, str):
        return _message(given, UNSET)
    if isinstance(given, AssistantMessage):
        return _message(given.content, given.tool_calls)
    if isinstance(given, ToolCall):
        return Decision(calls=(_call(given),))
    if isinstance(given, Mapping):
        # A message may have a name too: that of who speaks.
        if ("name" in given or "function" in given) and not _MESSAGE & given.keys():
            return Decision(calls=(_call(given),))
        return _message(given.get("content"), given.get("toolCalls", given.get("tool_calls")))
    if isinstance(given, Sequence) and not isinstance(given, bytes | bytearray) and given:
        return Decision(calls=tuple(_call(each) for each in given))
    raise BadDecision(f"the decision is {_named(given)}, but takes {_SHAPES}")


def _message(content: object, calls: object) -> Decision:
    text = "" if content is None or content is UNSET else content
    asked = () if calls is None or calls is UNSET else calls
    if not isinstance(text, str):
        raise BadDecision(f"the content of the decision is {_named(text)}, but takes a text")
    if not isinstance(asked, Sequence) or isinstance(asked, str | bytes | bytearray):
        raise BadDecision(f"the calls of the decision are {_named(asked)}, but take a list")
    if not text.strip() and not asked:
        raise BadDecision(f"the decision is empty: it holds neither a text nor calls, but takes {_SHAPES}")
    return Decision(text=clean_text(text), calls=tuple(_call(each) for each in asked))


def _call(given: object) -> Asked:
    if isinstance(given, ToolCall):
        return Asked(
            name=clean_text(given.function.name),
            arguments=clean_text(given.function.arguments),
            id=clean_text(given.id),
        )
    function = given.get("function", given) if isinstance(given, Mapping) else None
    if not isinstance(given, Mapping) or not isinstance(function, Mapping):
        raise BadDecision(f"a call of the decision is {_named(given)}, but takes an object with name and arguments")
    name, id = function.get("name"), given.get("id")
    if not isinstance(name, str) or not name:
        raise BadDecision(f"a call of the decision has the name {_named(name)}, but takes a text")
    return Asked(
        name=clean_text(name),
        arguments=_arguments(name, function.get("arguments", function.get("args"))),
        id=clean_text(id) if isinstance(id, str) else "",
    )


def _arguments(name: str, given: object) -> str:
    """The argument text: as it is, or an object written as JSON. None is a call without arguments."""
    if given is None:
        return "{}"
    if isinstance(given, str):
        return clean_text(given)
    if not isinstance(given, Mapping):
        raise BadDecision(f"the arguments of {shown(name)} are {_named(given)}, but take an object or a text")
    try:
        return msgspec.json.encode(read_arguments(given)).decode()
    except InvalidArguments as error:
        raise BadDecision(f"the arguments of {shown(name)} cannot be written as JSON: {error.message}") from None


def _named(value: Any) -> str:
    """A value for a message. Containers and objects are named by their type, as they may show anything."""
    plain = value is None or isinstance(value, bool | int | float | str)
    return shown(value) if plain else f"a {type(value).__name__}"
