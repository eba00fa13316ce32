"""Tools, and the sets of them that an application offers.

A `Tool` has a name, a description and a JSON Schema for the model, checks and converts arguments, knows its approval
policy and its handler, and runs nothing itself. A tool without a handler is only advertised, and its calls are answered
elsewhere. A `Toolset` is an ordered collection by name. Nothing here needs an event loop.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import NoneType
from typing import Any, Literal, TypeAlias, TypeVar, overload

import msgspec

from agui_core._options import SECONDS, SWITCH, TEXT, Option, check_options
from agui_core._text import cut, plain, shown
from agui_core.protocol import run as protocol
from agui_core.protocol.base import UNSET, Metadata, UnsetType
from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError, InvalidArguments
from agui_core.tools.json_arguments import MAX_NESTING, read_arguments
from agui_core.tools.json_schema import SchemaChecker
from agui_core.tools.signature import ToolSignature, context_parameter, describe, is_async, name_of, refuse_generators

__all__ = ["Approval", "PolicyDecision", "Tool", "Toolset"]

PolicyDecision: TypeAlias = Literal["run", "ask", "deny"]
"""The word of a policy on one call."""

Approval: TypeAlias = Literal["never", "always"] | Callable[[dict[str, Any]], "bool | PolicyDecision"]
"""When a person has to agree: never, always, or by a function of the converted arguments.

The function gives True or "ask" to ask, False or "run" to go ahead, "deny" to refuse without asking. An error or any
other value asks.
"""

Handler: TypeAlias = Callable[..., Any]
F = TypeVar("F", bound=Handler)

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


class Toolset:
    """Tools by name, in the order in which they were declared. Iterating gives the tools.

    ```python
    toolset = Toolset()

    @toolset.tool(effects=True)
    async def send_mail(to: str, subject: str = "") -> str:
        "Send a mail."
    ```
    """

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            self._put(tool)

    @overload
    def tool(self, function: F, /) -> F: ...

    # The options stand here and below, as type checkers read only the overloads.
    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        effects: bool = False,
        approval: Approval | None = None,
        timeout: float | None = None,
        result_bytes: int | UnsetType | None = UNSET,
    ) -> Callable[[F], F]: ...

    def tool(
        self,
        function: Handler | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        effects: bool = False,
        approval: Approval | None = None,
        timeout: float | None = None,
        result_bytes: int | UnsetType | None = UNSET,
    ) -> Any:
        """Declare a function, bound method, `functools.partial` or callable object as a tool; gives it back unchanged.

        The schema comes from the signature.

        `description`: the first paragraph of the docstring unless given.
        `effects`: a call may change something outside, so it is not run twice, and asks unless `approval` is given.
        `approval`: see `Approval`.
        `timeout`: seconds that one call may take.
        `result_bytes`: bytes of UTF-8 that an answer may have; None: no bound.

        Raises: `DeclarationError`.
        """

        def declare(function: F) -> F:
            refuse_generators(function)
            signature = ToolSignature(function)
            self._put(
                Tool(
                    name=name_of(function) if name is None else name,
                    description=describe(function) if description is None else description,
                    parameters=signature.parameters,
                    effects=effects,
                    approval=approval if approval is not None else "always" if effects else "never",
                    timeout=timeout,
                    result_bytes=result_bytes,
                    handler=function,
                    is_async=is_async(function),
                    by_name=True,
                    context=signature.context,
                    _fit=signature.convert,
                )
            )
            return function

        return declare if function is None else declare(function)

    def add(
        self,
        tool: protocol.ToolDeclaration | Mapping[str, Any],
        handler: Handler | None = None,
        *,
        effects: bool | None = None,
        approval: Approval | None = None,
        timeout: float | None = None,
        result_bytes: int | UnsetType | None = UNSET,
    ) -> Tool:
        """Add a tool that is known by its JSON Schema only, as the protocol's `Tool` or as a dict of the same fields.

        Arguments are checked by the extra `schema`.

        `handler`: gets the arguments as one dict, as they came (an integer may be `1.0`), and the context in a
        parameter annotated `ToolContext`. Without one the tool is only advertised.
        `effects`: unless False, the tool has effects and asks for approval.
        Other options are those of `tool`.

        Raises: `DeclarationError` for a schema that is invalid, refers elsewhere or cannot be checked in bounded time.
        """
        wire = _read_wire(tool)
        parameters = UNSET if wire.parameters is UNSET else _read_schema(wire.name, wire.parameters)
        if handler is not None:
            refuse_generators(handler)
        added = Tool(
            name=wire.name,
            description=wire.description,
            parameters=parameters,
            effects=True if effects is None else effects,
            approval=approval if approval is not None else "never" if effects is False else "always",
            timeout=timeout,
            result_bytes=result_bytes,
            handler=handler,
            is_async=handler is not None and is_async(handler),
            metadata=wire.metadata,
            context=None if handler is None else context_parameter(handler),
            _fit=_as_is if parameters is UNSET else SchemaChecker(parameters).check,
        )
        self._put(added)
        return added

    def filter(self, keep: Container[str] | Callable[[Tool], bool]) -> Toolset:
        """A new toolset with the tools that a predicate or a collection of names keeps, in the same order.

        Names that are not here are ignored, so that one list of permissions can serve many toolsets.
        """
        if isinstance(keep, str):
            raise TypeError(f"filter takes a collection of names, not one name; write [{keep!r}]")
        return Toolset(tool for tool in self if (keep(tool) if callable(keep) else tool.name in keep))

    @staticmethod
    def merge(*toolsets: Toolset) -> Toolset:
        """A new toolset with the tools of all, in order. A name that occurs twice is a `DeclarationError`."""
        return Toolset(tool for toolset in toolsets for tool in toolset)

    def as_tools(self) -> tuple[protocol.ToolDeclaration, ...]:
        """The tools as `RunAgentInput.tools` carries them."""
        return tuple(tool.as_wire() for tool in self)

    def get(self, name: str) -> Tool | None:
        """The tool of exactly this name, or None. Names are compared character by character."""
        return self._tools.get(name)

    def __or__(self, other: Toolset) -> Toolset:
        return Toolset.merge(self, other) if isinstance(other, Toolset) else NotImplemented

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"<Toolset {cut(', '.join(self._tools)) or 'without tools'}>"

    def _put(self, tool: Tool) -> None:
        _check_options(tool)
        if tool.name in self._tools:
            raise DeclarationError(f"there are two tools named {tool.name}; give one of them another name")
        self._tools[tool.name] = tool


def _check_options(tool: Tool) -> None:
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


def _as_is(arguments: dict[str, Any]) -> dict[str, Any]:
    return arguments


def _read_wire(tool: protocol.ToolDeclaration | Mapping[str, Any]) -> protocol.ToolDeclaration:
    if isinstance(tool, protocol.ToolDeclaration):
        return tool
    try:
        return msgspec.convert(dict(tool), protocol.ToolDeclaration, strict=True)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise DeclarationError(f"{shown(tool)} is no tool: {error}") from None


def _read_schema(name: str, parameters: Any) -> dict[str, Any]:
    """An own copy of a schema, so that the advertised and the checked one stay the same."""
    if not isinstance(parameters, dict):
        raise DeclarationError(
            f"the parameters of {name} are {shown(parameters)}, but take a JSON Schema for an object"
        )
    try:
        return read_arguments(parameters)
    except InvalidArguments as error:
        raise DeclarationError(f"the parameters of {name} are no JSON Schema: {error}") from None
