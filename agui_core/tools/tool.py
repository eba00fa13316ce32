"""`Tool`: a name, a description and a JSON Schema for the model; checks arguments, knows its policy and its handler.

It runs nothing itself. A tool without a handler is only advertised, and its calls are answered elsewhere.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, TypeAlias

from agui_core._options import SECONDS, SWITCH, TEXT, Option, check_options
from agui_core._text import plain
from agui_core.protocol import run as protocol
from agui_core.protocol.base import UNSET, Metadata, UnsetType
from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError
from agui_core.tools.json_arguments import MAX_NESTING, read_arguments

__all__ = ["Approval", "Handler", "PolicyDecision", "Tool", "check_tool"]

PolicyDecision: TypeAlias = Literal["run", "ask", "deny"]
"""The word of a policy on one call."""

Approval: TypeAlias = Literal["never", "always"] | Callable[[dict[str, Any]], "bool | PolicyDecision"]
"""When a person has to agree: never, always, or by a function of the converted arguments.

The function gives True or "ask" to ask, False or "run" to go ahead, "deny" to refuse without asking. An error or any
other value asks.
"""

Handler: TypeAlias = Callable[..., Any]

_DECISIONS: dict[object, PolicyDecision] = {True: "ask", False: "run", "ask": "ask", "run": "run", "deny": "deny"}
_DECIDING = (bool, str)
"""Types of decisions: to Python 0 is False, and 1 is True."""

_OPTIONS = {
    "description": TEXT,
    "effects": SWITCH,
    "approval": Option(
        "never, always or a function",
        (str, Callable),
        lambda approval: callable(approval) or approval in ("never", "always"),
    ),
    "timeout": SECONDS,
    "result_bytes": Option(
        "a whole number, 1 at least, None or UNSET",
        (int, NoneType, UnsetType),
        lambda number: not isinstance(number, int) or number >= 1,
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True, eq=False, repr=False)
class Tool:
    """One tool of the application. Made by `Toolset.tool` and `Toolset.add`, and not changed afterwards.

    name: what a call names it by.
    description: what it does, for the model.
    parameters: the JSON Schema that the model sees; not to be changed. UNSET: any object.
    effects: whether a call may change something outside, so that it must not be run twice.
    approval: when a person has to agree.
    timeout: seconds that one call may take; None: no bound of its own.
    result_bytes: bytes of UTF-8 that an answer may have; None: no bound; UNSET: that of whoever runs it.
    handler: what runs the call; None: somebody else does.
    is_async: whether a call of the handler gives a coroutine. A sync handler belongs in a thread, and one that
      wraps something else may still give an awaitable.
    metadata: goes to the agent with the declaration.
    by_name: whether the handler takes its arguments by name, or as one dict.
    context: the parameter of the handler that gets the `ToolContext`.
    """

    name: str
    description: str
    parameters: dict[str, Any] | UnsetType
    effects: bool
    approval: Approval
    timeout: float | None
    result_bytes: int | UnsetType | None
    handler: Handler | None
    is_async: bool
    metadata: Metadata | UnsetType = UNSET
    by_name: bool = False
    context: str | None = None
    _fit: Callable[[dict[str, Any]], dict[str, Any]]

    def __repr__(self) -> str:
        effects = ", with effects" if self.effects else ""
        return f"<{type(self).__name__} {plain(self.name)}{effects}>"

    def convert(self, arguments: str | Mapping[str, Any], *, nesting: int = MAX_NESTING) -> dict[str, Any]:
        """The arguments of a call as the handler takes them: by name with defaults filled in, or as one dict. Costs one
        decoding and one conversion.

        `arguments`: the text of a call, or a JSON object, which is copied.

        Raises: `InvalidArguments` and nothing else.
        """
        return self._fit(read_arguments(arguments, nesting))

    def judge(self, arguments: dict[str, Any]) -> PolicyDecision:
        """The policy's word on converted arguments. Never raises; in doubt it asks."""
        if self.approval == "never":
            return "run"
        if self.approval == "always" or not callable(self.approval):
            return "ask"
        try:
            said = self.approval(dict(arguments))
            return _DECISIONS.get(said, "ask") if type(said) in _DECIDING else "ask"
        except Exception:
            return "ask"

    def bind(self, arguments: dict[str, Any], context: ToolContext) -> Callable[[], Any]:
        """A function without parameters that runs the call with converted arguments.

        Raises: `LookupError` for a tool without a handler.
        """
        if self.handler is None:
            raise LookupError(f"{self.name} has no handler here: whoever declared it runs it")
        injected = {} if self.context is None else {self.context: context}
        if self.by_name:
            return functools.partial(self.handler, **arguments, **injected)
        return functools.partial(self.handler, arguments, **injected)

    def as_wire(self) -> protocol.ToolDeclaration:
        """The tool as `RunAgentInput.tools` carries it."""
        return protocol.ToolDeclaration(
            name=self.name, description=self.description, parameters=self.parameters, metadata=self.metadata
        )


def check_tool(tool: Tool) -> None:
    if not isinstance(tool.name, str) or not tool.name.strip() or not tool.name.isprintable():
        raise DeclarationError(f"{tool.name!a} is no name for a tool: it must be visible text; give one with name=")
    if tool.name == "<lambda>":
        raise DeclarationError("a lambda has no name of its own; give one with name=")
    try:
        check_options(_OPTIONS, **{name: getattr(tool, name) for name in _OPTIONS})
    except (TypeError, ValueError) as error:
        raise DeclarationError(f"the tool {tool.name} cannot be declared: {error}") from None
    if inspect.iscoroutinefunction(tool.approval):
        raise DeclarationError(f"the approval of {tool.name} is async, but a policy answers at once")
