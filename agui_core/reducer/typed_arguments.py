"""Arguments as typed values: whole ones exactly, growing ones as far as they fit.

`whole` is `msgspec.convert`, strict, of a complete and valid text. `partial` gives, for a Struct, a dataclass or a
TypedDict, an object of a *derived* class: a frozen Struct `Partial{Name}` with the same fields, each of which is UNSET
until there is a value that fits it. What fits is decided field by field, all the way down:

- an object for a struct-like type becomes its derived class, also inside lists, mappings, unions and annotations;
- a list, set or tuple of any length has its elements up to the first that does not fit, a mapping the entries that do;
- anything else is there as soon as its own type takes it: a growing string at once, a literal or an enum when it is
  whole, a string of at least five characters when it has five.

Defaults are not filled in, wire names and tags stay those of the type, unknown members are left out, and bounds on the
length of lists and mappings do not count. A union of tagged Structs is UNSET until the tag is there. What was handed
out does not change when the arguments grow on.

A derived class is made once per type. A conversion costs time in proportion to the value so far.
"""

from __future__ import annotations

import dataclasses
import re
from collections import abc
from collections.abc import Callable, Iterable
from functools import lru_cache, reduce
from operator import or_
from types import UnionType
from typing import Annotated, Any, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec

from agui_core._text import quoted
from agui_core.errors import AGUIError
from agui_core.protocol.base import UNSET

__all__ = ["ArgumentsError", "partial", "whole"]

T = TypeVar("T")
_Convert: TypeAlias = Callable[[Any], Any]
"""Gives UNSET for a value that does not fit (yet)."""

_LISTS: dict[Any, Callable[[Iterable[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    tuple: tuple,
    abc.Collection: list,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Set: set,
    abc.MutableSet: set,
}
_MAPPINGS = (dict, abc.Mapping, abc.MutableMapping)
_QUALIFIERS = ("Required", "NotRequired", "ReadOnly")
_PROBLEM = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)
_FIELD = re.compile(r"Object (?:missing required|contains unknown) field `(.*)`", re.DOTALL)
_LONGEST = 500


class ArgumentsError(AGUIError):
    """A call's arguments are not what was asked for: not complete, no JSON, or of another shape.

    `call_id` and `tool` name the call. `path` is the member concerned, as `items[0].price`; `""` means all of it.
    `problem` says what was expected.
    """

    def __init__(self, problem: str, *, call_id: str, tool: str, path: str = "") -> None:
        where = f" at `{path}`" if path else ""
        super().__init__(f"arguments of call {quoted(call_id)} to tool {quoted(tool)}{where}: {problem}")
        self.problem = problem
        self.call_id = call_id
        self.tool = tool
        self.path = path


def whole(value: Any, type: type[T], *, call_id: str, tool: str) -> T:
    """The value of complete and valid arguments as `type`, strictly: no string becomes a number.

    Shares nothing with `value`. Raises `ArgumentsError` when it does not fit, `TypeError` for a pydantic model.
    """
    _refuse_model(type)
    try:
        return msgspec.convert(msgspec.to_builtins(value), type, strict=True, str_keys=True)
    except msgspec.ValidationError as error:
        problem, path = _read_problem(str(error))
        raise ArgumentsError(problem, call_id=call_id, tool=tool, path=path) from None
    except RecursionError:
        raise ArgumentsError("nested too deeply for the stack that is left", call_id=call_id, tool=tool) from None


def _refuse_model(type: Any) -> None:
    if hasattr(type, "__pydantic_validator__"):
        raise TypeError(
            f"{type.__name__} is a pydantic model; take a Struct, a dataclass or a TypedDict,"
            f" or call {type.__name__}.model_validate(call.args)"
        )


def _read_problem(text: str) -> tuple[str, str]:
    """What msgspec says, apart: the problem and the path of the member concerned."""
    match = _PROBLEM.fullmatch(text)
    assert match is not None  # the pattern takes any text
    problem, key, path = match[1], match[2], (match[3] or "").removeprefix(".")
    field = _FIELD.fullmatch(problem)
    if field is not None:
        path = f"{path}.{field[1]}" if path else field[1]
    if key:
        problem = f"a key: {problem}"
    return _printable(problem), _printable(path)


def _printable(text: str) -> str:
    return "".join([each if each.isprintable() else repr(each)[1:-1] for each in text[:_LONGEST]])


def partial(value: Any, type: Any) -> Any:
    """What fits `type` of the value of growing arguments; UNSET for no value. See the head of this module.

    For a struct-like `type` there always is an object, if need be one without anything in it. What is nested too deeply
    for the stack that is left is left out. Raises `TypeError` for a pydantic model.
    """
    _refuse_model(type)
    convert = _converter(type)
    found = UNSET if value is UNSET else convert(value)
    return convert({}) if found is UNSET and isinstance(convert, _Derived) else found


def _converter(annotation: Any) -> _Convert:
    try:
        hash(annotation)
    except TypeError:  # a `Meta` may hold a dict
        return _build(annotation)
    return _remembered(annotation)


@lru_cache(maxsize=1024)
def _remembered(annotation: Any) -> _Convert:
    return _build(annotation)


def _build(annotation: Any) -> _Convert:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if getattr(origin, "_name", "") in _QUALIFIERS:
        return _converter(arguments[0])
    if origin is Annotated:
        inner = _converter(arguments[0])
        return _leaf(annotation) if isinstance(inner, _Leaf) else inner
    if origin is Union or origin is UnionType:
        return _union(arguments)
    if _is_struct_like(origin or annotation):
        return _Derived(annotation)
    kind = origin or annotation
    if kind in _LISTS and (kind is not tuple or arguments[1:] in ((), (...,))):
        return _list(_LISTS[kind], _converter(arguments[0] if arguments else Any))
    if kind in _MAPPINGS:
        key, value = arguments or (Any, Any)
        return _mapping(_leaf(key), _converter(value))
    return _leaf(annotation)


class _Leaf:
    """Converts what is there whole or not at all."""

    __slots__ = ("_type",)

    def __init__(self, type: Any) -> None:
        self._type = type

    def __call__(self, value: Any) -> Any:
        try:
            return msgspec.convert(msgspec.to_builtins(value), self._type, strict=True, str_keys=True)
        except (msgspec.ValidationError, RecursionError):
            return UNSET

    def key(self, text: str) -> Any:
        """A key of a mapping, which is always text in JSON."""
        try:
            return next(iter(msgspec.convert({text: None}, dict[self._type, None], str_keys=True)))  # type: ignore[name-defined]
        except msgspec.ValidationError:
            return UNSET


def _leaf(annotation: Any) -> _Leaf:
    return _Leaf(annotation)


def _list(make: Callable[[Iterable[Any]], Any], convert: _Convert) -> _Convert:
    def read(value: Any) -> Any:
        if type(value) is not list:
            return UNSET
        fitting: list[Any] = []
        for element in value:
            converted = convert(element)
            if converted is UNSET:
                break
            fitting.append(converted)
        try:
            return make(fitting)
        except TypeError:  # a set of what cannot be hashed
            return UNSET

    return read


def _mapping(key: _Leaf, convert: _Convert) -> _Convert:
    def read(value: Any) -> Any:
        if type(value) is not dict:
            return UNSET
        pairs = [(key.key(name), convert(member)) for name, member in value.items()]
        return {name: member for name, member in pairs if name is not UNSET and member is not UNSET}

    return read


def _union(members: tuple[Any, ...]) -> _Convert:
    converters = [_converter(member) for member in members]
    plain = [member for member, convert in zip(members, converters, strict=True) if isinstance(convert, _Leaf)]
    tagged = [convert.when_tagged if isinstance(convert, _Derived) else convert for convert in converters]
    options = [convert for convert in tagged if not isinstance(convert, _Leaf)]
    if plain:
        options.append(_leaf(reduce(or_, plain)))  # as one, so that msgspec chooses among them

    def read(value: Any) -> Any:
        return next((found for found in (convert(value) for convert in options) if found is not UNSET), UNSET)

    return read


# --- derived classes ----------------------------------------------------------------------------------------------


def _is_struct_like(kind: Any) -> bool:
    if not isinstance(kind, type):
        return False
    if issubclass(kind, msgspec.Struct):
        return not kind.__struct_config__.array_like
    return dataclasses.is_dataclass(kind) or is_typeddict(kind)


def _fields(kind: Any) -> list[tuple[str, str, Any]]:
    """Of a struct-like type: name, name on the wire, and annotation of each field."""
    plain = get_origin(kind) or kind
    if issubclass(plain, msgspec.Struct):
        return [(field.name, field.encode_name, field.type) for field in msgspec.structs.fields(kind)]
    hints = get_type_hints(plain, include_extras=True)
    names = (
        [field.name for field in dataclasses.fields(plain) if field.init] if not is_typeddict(plain) else list(hints)
    )
    return [(name, name, hints[name]) for name in names]


class _Derived:
    """Makes objects of the class derived from a struct-like type. Fields are looked at late: types may be recursive."""

    __slots__ = ("_converters", "_kind", "_make", "_tag", "_tag_field")

    def __init__(self, kind: Any) -> None:
        plain = get_origin(kind) or kind
        config = getattr(plain, "__struct_config__", None)
        self._kind = kind
        self._tag_field = None if config is None else config.tag_field
        self._tag = None if config is None else config.tag
        fields = _fields(kind)
        for name, _, _ in fields:
            if not name.isidentifier():
                raise TypeError(f"{plain.__name__} has a key that is no name of an attribute: {name!r}")
        self._make = msgspec.defstruct(
            f"Partial{plain.__name__}",
            [(name, Any, UNSET) for name, _, _ in fields],
            rename={name: wire for name, wire, _ in fields},
            module=plain.__module__,
            namespace={"__doc__": f"What is there so far of a {plain.__name__}; UNSET is what is not."},
            frozen=True,
            kw_only=True,
            omit_defaults=True,
            tag_field=self._tag_field,
            tag=self._tag,
        )
        self._converters: dict[str, tuple[str, _Convert]] | None = None

    def __call__(self, value: Any) -> Any:
        if type(value) is not dict or value.get(self._tag_field, self._tag) != self._tag:
            return UNSET
        if self._converters is None:
            self._converters = {wire: (name, _converter(type)) for name, wire, type in _fields(self._kind)}
        members = {}
        for wire, member in value.items():
            if wire in self._converters:
                name, convert = self._converters[wire]
                try:
                    members[name] = convert(member)
                except RecursionError:
                    members[name] = UNSET
        return self._make(**members)

    def when_tagged(self, value: Any) -> Any:
        """As one of several: where there are tags, one has to be there."""
        if self._tag_field is not None and type(value) is dict and self._tag_field not in value:
            return UNSET
        return self(value)
