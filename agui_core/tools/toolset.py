"""`Toolset`: the tools that an application offers, by name, in the order in which they were declared.

Functions, schemas and declarations become tools here. Nothing needs an event loop.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

import msgspec

from agui_core._text import cut, shown
from agui_core.protocol import run as protocol
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.tools.errors import DeclarationError, InvalidArguments
from agui_core.tools.json_arguments import read_arguments
from agui_core.tools.json_schema import SchemaChecker
from agui_core.tools.signature import ToolSignature, context_parameter, describe, is_async, name_of, refuse_generators
from agui_core.tools.tool import Approval, Handler, Tool, check_tool

__all__ = ["Toolset"]

F = TypeVar("F", bound=Handler)


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
        check_tool(tool)
        if tool.name in self._tools:
            raise DeclarationError(f"there are two tools named {tool.name}; give one of them another name")
        self._tools[tool.name] = tool


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
