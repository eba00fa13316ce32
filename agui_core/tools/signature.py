"""A Python callable becomes a tool: its signature becomes a JSON Schema and a strict converter.

The parameters become the fields of a struct, so that msgspec gives both the schema and the conversion, and the two
cannot drift apart. This is done once, at declaration, and refuses functions that no model could call. A conversion
costs one `msgspec.convert` and a dict.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import msgspec

from agui_core._text import cut, shown, written
from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError, InvalidArguments, invalid_whole
from agui_core.tools.json_arguments import EXACT, value_at, with_integers

__all__ = ["ToolSignature", "context_parameter", "describe", "is_async", "name_of", "refuse_generators"]


class ToolSignature:
    """The parameters of one callable: `parameters` is the JSON Schema, `context` the parameter for the `ToolContext`.

    Raises: `DeclarationError` for `*args`, `**kwargs`, positional-only and unbound `self` parameters, annotations that
    cannot be resolved, and types that JSON cannot carry. A parameter without an annotation takes any JSON value.
    """

    __slots__ = ("_defaults", "_fields", "_struct", "context", "parameters")

    def __init__(self, function: Callable[..., Any]) -> None:
        if isinstance(_inner(function), type):
            _refuse(function, "is a class; declare a function that makes one, or a method of an object")
        signature, hints = _inspect(function)
        self.context = _find_context(function, hints)
        taken = {name: item for name, item in signature.parameters.items() if name != self.context}
        for item in taken.values():
            _check_parameter(function, item)
        preset = _preset(function)
        offered = {name: item for name, item in taken.items() if name not in preset}
        self._defaults = {name: item.default for name, item in offered.items() if item.default is not item.empty}
        annotations = {name: _json_type(function, name, hints.get(name, Any)) for name in offered}
        self._fields = {name: f"p{index}" for index, name in enumerate(offered)}
        self._struct = _make_struct(self._fields, annotations, self._defaults)
        self.parameters = self._make_schema(annotations)

    def convert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The keyword arguments to call with, defaults filled in. Raises `InvalidArguments` and nothing else.

        Strict: no text becomes a number and no number a truth value; only keys of mappings, which JSON has as text,
        are read as what they should be. A float with a zero fraction counts as an integer where one is expected;
        values nested in that same argument without a type of their own may then come as integers too.
        """
        unknown = [name for name in arguments if name not in self._fields]
        if unknown:
            known = ", ".join(self._fields) or "none"
            raise InvalidArguments(
                f"argument {cut(unknown[0])} is unknown; the arguments are: {known}",
                path=cut(unknown[0]),
                expected=f"one of: {known}",
                value=shown(arguments[unknown[0]]),
            )
        values = self._convert(arguments)
        return {
            name: getattr(values, field) if name in arguments else self._defaults[name]
            for name, field in self._fields.items()
        }

    def _convert(self, arguments: dict[str, Any]) -> Any:
        tried: set[str] = set()
        while True:
            try:
                return msgspec.convert(arguments, self._struct, strict=True, str_keys=True)
            except msgspec.ValidationError as error:
                problem, steps = _read_problem(str(error))
                name = str(steps[0]) if steps else ""
                if "got `float`" not in problem or name in tried or name not in arguments:
                    raise _explain(problem, steps, arguments, self.parameters) from None
                tried.add(name)
                arguments = {**arguments, name: with_integers(arguments[name], EXACT)}
            except Exception as error:  # a hook of the application's own type failed, or it recursed
                raise invalid_whole("the arguments could not be converted", arguments, "other values") from error

    def _make_schema(self, annotations: dict[str, Any]) -> dict[str, Any]:
        (root,), definitions = msgspec.json.schema_components((self._struct,), ref_template="#/$defs/{name}")
        schema: dict[str, Any] = definitions.pop(root["$ref"].removeprefix("#/$defs/"))
        del schema["title"]
        for name, member in schema["properties"].items():
            member.pop("default", None)
            if name in self._defaults:
                member.update(_json_default(self._defaults[name], annotations[name]))
        if not schema["required"]:
            del schema["required"]
        return {**schema, "$defs": definitions} if definitions else schema


def name_of(function: Callable[..., Any]) -> str:
    """The name that a tool gets from its callable."""
    target = _inner(function)
    return str(getattr(target, "__name__", type(target).__name__))


def describe(function: Callable[..., Any]) -> str:
    """The first paragraph of the docstring as one line, `""` without one."""
    target = _inner(function)
    if not hasattr(target, "__name__"):  # an object with `__call__`
        target = target.__call__ if target.__call__.__doc__ else type(target)
    paragraph = (inspect.getdoc(target) or "").strip().split("\n\n", 1)[0]
    return " ".join(paragraph.split())


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a call gives a coroutine."""
    return any(map(inspect.iscoroutinefunction, _bodies(function)))


def refuse_generators(function: Callable[..., Any]) -> None:
    """Refuse generators, as a call has exactly one answer, and objects that cannot be called."""
    if not callable(function):
        raise DeclarationError(f"{shown(function)} cannot be called; declare a function or a method")
    for body in map(inspect.unwrap, _bodies(function)):
        if inspect.isgeneratorfunction(body) or inspect.isasyncgenfunction(body):
            _refuse(function, "is a generator, but a call has one answer; return it, and report with `ctx.progress`")


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The parameter annotated `ToolContext` of a handler that takes its arguments as one dict, if it has one."""
    try:
        signature, hints = _inspect(function)
    except DeclarationError:  # a builtin, or foreign annotations: it takes the arguments and nothing else
        return None
    name = _find_context(function, hints)
    if name is not None and list(signature.parameters).index(name) == 0:
        _refuse(function, f"takes {name} first; a handler takes the arguments first and the context after them")
    return name


def _inner(function: Callable[..., Any]) -> Any:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _bodies(function: Callable[..., Any]) -> tuple[Callable[..., Any], ...]:
    """The functions whose kind decides what a call gives."""
    target = _inner(function)
    return target, type(target).__call__


def _refuse(function: Callable[..., Any], problem: str) -> NoReturn:
    raise DeclarationError(f"{name_of(function)} {problem}")


def _inspect(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    """The signature, and the resolved annotations of its parameters, not of the result."""
    try:
        signature = inspect.signature(function)
        annotated = {
            name: item.annotation for name, item in signature.parameters.items() if item.annotation is not item.empty
        }
        return signature, _resolve(function, annotated)
    except Exception as error:  # resolving runs annotation code: any error can come
        _refuse(
            function,
            f"cannot be read ({type(error).__name__}: {error}); its annotations must be names that the module of the "
            "function holds when it is declared",
        )


def _resolve(function: Callable[..., Any], annotated: dict[str, Any]) -> dict[str, Any]:
    target = _inner(function)
    if not hasattr(target, "__name__"):
        target = target.__call__
    namespace = getattr(inspect.unwrap(target), "__globals__", {})
    holder = types.FunctionType((lambda: None).__code__, namespace)
    holder.__annotations__ = annotated
    return typing.get_type_hints(holder, include_extras=True)


def _find_context(function: Callable[..., Any], hints: dict[str, Any]) -> str | None:
    found = [name for name, hint in hints.items() if _is_context(hint)]
    if len(found) > 1:
        _refuse(function, f"takes the context twice, as {' and '.join(found)}; one is enough")
    return found[0] if found else None


def _is_context(hint: Any) -> bool:
    if typing.get_origin(hint) is Annotated:
        return _is_context(typing.get_args(hint)[0])
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_context(item) for item in typing.get_args(hint))
    return isinstance(hint, type) and issubclass(hint, ToolContext)


_REFUSED_KINDS: dict[object, str] = {
    inspect.Parameter.VAR_POSITIONAL: "takes *{name}; name each argument, so that a model can fill it",
    inspect.Parameter.VAR_KEYWORD: "takes **{name}; name each argument, so that a model can fill it",
    inspect.Parameter.POSITIONAL_ONLY: "takes {name} by position only; arguments come by name",
}


def _check_parameter(function: Callable[..., Any], parameter: inspect.Parameter) -> None:
    problem = _REFUSED_KINDS.get(parameter.kind)
    if problem is not None:
        _refuse(function, problem.format(name=parameter.name))
    if parameter.name in ("self", "cls") and parameter.annotation is parameter.empty:
        _refuse(
            function, f"is not bound; declare the method of an object, as in `toolset.tool(it.{name_of(function)})`"
        )


def _preset(function: Callable[..., Any]) -> frozenset[str]:
    """The parameters that `functools.partial` has filled in by name; the model does not see them."""
    return frozenset(function.keywords) if isinstance(function, functools.partial) else frozenset()


def _json_type(function: Callable[..., Any], name: str, annotation: Any) -> Any:
    """The annotation, once msgspec has agreed that JSON can carry it."""
    if annotation is object:
        return Any
    try:
        msgspec.json.schema_components((annotation,))
    except Exception as error:
        reason = str(error).strip().splitlines()[-1]
        _refuse(function, f"takes {name}, whose type no JSON can carry ({reason}); use types that msgspec knows")
    if annotation is msgspec.Raw:
        _refuse(function, f"takes {name} as msgspec.Raw; arguments come decoded, so use Any")
    return annotation


def _make_struct(fields: dict[str, str], annotations: dict[str, Any], defaults: dict[str, Any]) -> type[msgspec.Struct]:
    """Fields have made-up names, as a parameter may have any; `None` only marks a field as optional."""
    return msgspec.defstruct(
        "ToolArguments",
        [
            (field, annotations[name], None) if name in defaults else (field, annotations[name])
            for name, field in fields.items()
        ],
        rename={field: name for name, field in fields.items()},
        forbid_unknown_fields=True,
        kw_only=True,
        frozen=True,
    )


def _json_default(default: Any, annotation: Any) -> dict[str, Any]:
    """The `default` to show, unless the value is no JSON or does not fit the type itself."""
    try:
        value = msgspec.to_builtins(default)
        msgspec.convert(value, annotation, strict=True, str_keys=True)
        msgspec.json.encode(value)
    except Exception:
        return {}
    return {"default": value}


_WHERE = re.compile(r"(?:`key` in )?`\$(.*)`\Z", re.DOTALL)
_STEP = re.compile(r"\[(\d+)\]|\[\.\.\.\]|\.?([^.\[]+)")
_EXPECTED = re.compile(r"Expected (.*?)(?:, got .*)?\Z", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`\Z")
_ANY_KEY = "*"


def _read_problem(text: str) -> tuple[str, list[str | int]]:
    """An error text of msgspec as problem and place; nothing else reads these. Keys of mappings are not in it: `*`."""
    problem, _, where = text.rpartition(" - at ")
    match = _WHERE.match(where)
    if not problem or match is None:
        return text, []
    steps: list[str | int] = [
        int(index) if index else name or _ANY_KEY for index, name in _STEP.findall(match.group(1))
    ]
    return problem, steps


def _explain(
    problem: str, steps: list[str | int], arguments: dict[str, Any], schema: dict[str, Any]
) -> InvalidArguments:
    missing = _MISSING.match(problem)
    if missing is not None:
        path = written([*steps, missing.group(1)])
        expected = _expectation("", _fragment(schema, [*steps, missing.group(1)]))
        return InvalidArguments(f"argument {path} is missing; expected {expected}", path=path, expected=expected)
    path = written(steps)
    expected = _expectation(problem, _fragment(schema, steps))
    value = shown(value_at(arguments, steps))
    return InvalidArguments(
        f"argument {path}: expected {expected}, got {value}", path=path, expected=expected, value=value
    )


def _expectation(problem: str, fragment: Any) -> str:
    match = _EXPECTED.match(problem)
    if match is not None:
        return cut(match.group(1).replace("`", ""), 200)
    if not isinstance(fragment, dict):
        return "a value"
    if "enum" in fragment:
        return cut("one of " + ", ".join(shown(item) for item in fragment["enum"]), 200)
    said = {name: item for name, item in fragment.items() if name not in ("description", "default", "title")}
    return str(said["type"]) if list(said) == ["type"] else shown(said) if said else "a value"


def _fragment(schema: dict[str, Any], steps: list[str | int]) -> Any:
    """The part of the schema that describes one path, as far as it can be followed; None where it cannot."""
    part: Any = schema
    for step in steps:
        part = next((found for item in _alternatives(schema, part) if (found := _member(item, step)) is not None), None)
    return next(iter(_alternatives(schema, part)), None) if isinstance(part, dict) and "$ref" in part else part


def _alternatives(schema: dict[str, Any], part: Any) -> list[dict[str, Any]]:
    if not isinstance(part, dict):
        return []
    if "$ref" in part:
        return _alternatives(schema, schema["$defs"].get(part["$ref"].removeprefix("#/$defs/")))
    return [part, *(found for item in part.get("anyOf", ()) for found in _alternatives(schema, item))]


def _member(part: dict[str, Any], step: str | int) -> Any:
    if isinstance(step, int):
        prefix = part.get("prefixItems", ())
        return prefix[step] if step < len(prefix) else part.get("items")
    return part.get("properties", {}).get(step, part.get("additionalProperties"))
