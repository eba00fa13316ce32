"""The protocol's shapes as a table of nodes, built once from the structs that decode them.

The structs are the one source: a field added there is known here. Each node sanitizes one place of a document, from the
inside out (PROC-5..18). It returns the value that may stay, or an `Unrecognised`, which its holder removes by position
(PROC-9), or raises `Malformed`. Nothing is changed in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import msgspec
from msgspec import inspect

from agui_core._text import described, place, pointer, quoted
from agui_core.protocol.patch import OPERATIONS, is_pointer
from agui_core.protocol.run import InterruptOutcome
from agui_core.wire.malformed import Malformed, Path

__all__ = ["Findings", "Node", "Unrecognised", "node_of"]

_FIELD_RULES = {"timestamp": "EVT-3", "metadata": "META-1", "interrupts": "INT-1"}
_MINIMUM_ITEMS: dict[tuple[type[msgspec.Struct], str], int] = {(InterruptOutcome, "interrupts"): 1}


class Unrecognised:
    """A value that the protocol does not describe: tolerated, and removed with the values that require it."""

    __slots__ = ("path", "what")

    def __init__(self, what: str, path: Path) -> None:
        self.what = what
        self.path = path

    def __str__(self) -> str:
        return f"{self.what} at `{place(self.path)}`" if self.path else self.what


class Findings:
    """The warnings of one value so far. `lenient` repairs null in optional fields and malformed operations."""

    __slots__ = ("lenient", "notes", "repairs")

    def __init__(self, lenient: bool = False) -> None:
        self.lenient = lenient
        self.notes: list[tuple[str, str, str]] = []
        self.repairs: list[tuple[str, str, str]] = []

    def note(self, rule: str, message: str, path: Path) -> None:
        """Remember a warning about `path`."""
        self.notes.append((rule, message, pointer(path)))

    def repair(self, rule: str, message: str, path: Path) -> None:
        """Remember a repair, which the strict policy refuses."""
        self.repairs.append((rule, message, pointer(path)))


class Node(ABC):
    """One place of a document. `expected` names what fits there; `rule` is cited when it does not."""

    __slots__ = ("rule",)
    expected = "a JSON value"

    def __init__(self, rule: str = "PROC-7") -> None:
        self.rule = rule

    @abstractmethod
    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        """The part of `value` that may stay, or an `Unrecognised`. Raises `Malformed`."""

    def lean(self, value: Any) -> Any:
        """The value without the nulls in optional fields of closed objects, which some writers put for absent fields.
        Values that do not fit stay.
        """
        return value

    def problem(self, value: Any, path: Path) -> Malformed:
        """The error of a value that this place cannot hold."""
        return Malformed(
            f"must be {self.expected}, but is {described(value)}; correct it in the producer, or leave the event out",
            rule=self.rule,
            path=path,
        )


class _Anything(Node):
    __slots__ = ()

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        return value


class _NotNull(Node):
    __slots__ = ()
    expected = "a JSON value other than null (a field without a value is left out)"

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if value is None:
            raise self.problem(value, path)
        return value


class _Simple(Node):
    __slots__ = ("_type", "expected")

    def __init__(self, type_: type, expected: str, rule: str) -> None:
        super().__init__(rule)
        self._type = type_
        self.expected = expected

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is not self._type:
            raise self.problem(value, path)
        return value


class _Whole(Node):
    __slots__ = ("_high", "_low", "expected")

    def __init__(self, low: int | None, high: int | None, rule: str) -> None:
        super().__init__(rule)
        self._low = low
        self._high = high
        self.expected = "an integer" + ("" if low is None else f" from {low} to {high}")

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is float and value.is_integer():
            value = int(value)
        if (
            type(value) is not int
            or (self._low is not None and value < self._low)
            or (self._high is not None and value > self._high)
        ):
            raise self.problem(value, path)
        return value


class _Closed(Node):
    __slots__ = ("_known", "expected")

    def __init__(self, known: tuple[str, ...], rule: str) -> None:
        super().__init__(rule)
        self._known = known
        self.expected = "one of the strings " + ", ".join(known) if len(known) > 1 else f"the string {known[0]}"

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is not str:
            raise self.problem(value, path)
        return value if value in self._known else Unrecognised(f"unknown value {quoted(value, 60)}", path)


class _Items(Node):
    __slots__ = ("_item", "_minimum")
    expected = "an array"

    def __init__(self, item: Node, minimum: int, rule: str) -> None:
        super().__init__(rule)
        self._item = item
        self._minimum = minimum

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is not list:
            raise self.problem(value, path)
        kept = []
        for index, item in enumerate(value):
            where = (*path, index)
            sanitized = self._item.sanitize(item, where, findings)
            if isinstance(sanitized, Unrecognised):
                findings.note("PROC-9", f"{sanitized}: the element was removed", where)
            else:
                kept.append(sanitized)
        if len(kept) < self._minimum:
            raise Malformed(f"must have at least {self._minimum} element", rule=self.rule, path=path)
        return kept

    def lean(self, value: Any) -> Any:
        return [self._item.lean(item) for item in value] if type(value) is list else value


class _TextOrItems(Node):
    __slots__ = ("_items",)
    expected = "a string or an array of content parts"

    def __init__(self, items: Node, rule: str) -> None:
        super().__init__(rule)
        self._items = items

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is str:
            return value
        if type(value) is not list:
            raise self.problem(value, path)
        return self._items.sanitize(value, path, findings)

    def lean(self, value: Any) -> Any:
        return self._items.lean(value)


class _Patch(Node):
    """A JSON Patch: open operations, told apart by `op` (PATCH-2..4)."""

    __slots__ = ()
    expected = "an array of patch operations"

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is not list:
            raise self.problem(value, path)
        kept = []
        for index, operation in enumerate(value):
            where = (*path, index)
            try:
                known = self._operation(operation, where)
            except Malformed as problem:
                if not findings.lenient:
                    raise
                findings.repair(problem.rule, f"{problem}: the patch was skipped", path)
                return []
            if known:
                kept.append(operation)
            else:
                findings.note("PATCH-3", f"unknown operation {quoted(operation['op'], 60)}: it was removed", where)
        return kept

    def _operation(self, operation: Any, path: Path) -> bool:
        if type(operation) is not dict:
            raise Malformed(f"must be an operation object, but is {described(operation)}", rule=self.rule, path=path)
        op = operation.get("op")
        if type(op) is not str:
            raise _no_discriminator(operation, "op", path)
        if op not in OPERATIONS:
            return False
        for member in OPERATIONS[op]:
            if member not in operation:
                raise Malformed(f"({op}) lacks its `{member}`", rule=self.rule, path=path)
            if member != "value" and not is_pointer(operation[member]):
                raise Malformed(
                    "must be a JSON Pointer (empty, or tokens each behind a slash, with ~0 and ~1 as the only "
                    f"escapes), but is {described(operation[member])}",
                    rule=self.rule,
                    path=(*path, member),
                )
        return True


def _no_discriminator(holder: dict[str, Any], name: str, path: Path) -> Malformed:
    if name not in holder:
        return Malformed(f"has no `{name}`, which has to say what it is", rule="PROC-10a", path=path)
    return Malformed(f"must be a string, but is {described(holder[name])}", rule="PROC-10a", path=(*path, name))


class Shape(Node):
    """A closed object: one struct. `known` are its wire names."""

    __slots__ = ("_fields", "_flat", "_required", "_tag_field", "known", "struct", "tag")
    expected = "an object"

    def __init__(self, struct: type[msgspec.Struct], tag_field: str | None, tag: str) -> None:
        super().__init__()
        self.struct = struct
        self._tag_field = tag_field
        self.tag = tag
        self._fields: dict[str, Node] = {}
        self._flat = True
        self._required: tuple[str, ...] = ()
        self.known: frozenset[str] = frozenset()

    def fill(self, fields: dict[str, Node], required: tuple[str, ...]) -> None:
        """Add the fields. Apart from `__init__`, as they may hold this very shape again."""
        self._fields = fields
        self._flat = all(type(node).lean is Node.lean for node in fields.values())
        self._required = required
        self.known = frozenset(fields) | ({self._tag_field} if self._tag_field else set())

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is not dict:
            raise self.problem(value, path)
        if self._tag_field is not None:
            tag = value.get(self._tag_field)
            if type(tag) is not str:
                raise _no_discriminator(value, self._tag_field, path)
            if tag != self.tag:
                return Unrecognised(f"unknown `{self._tag_field}` {quoted(tag, 60)}", (*path, self._tag_field))
        before = len(findings.notes)
        kept: dict[str, Any] = {}
        lost: Unrecognised | None = None
        for name, item in value.items():
            sanitized = self._member(name, item, path, findings)
            if not isinstance(sanitized, Unrecognised):
                if sanitized is not msgspec.UNSET:
                    kept[name] = sanitized
            elif name in self._required:
                lost = lost or sanitized
            else:
                findings.note("PROC-9", f"{sanitized}: the field was removed", (*path, name))
        for name in self._required:
            if name not in value:
                raise Malformed("is missing; the producer has to send it", rule="PROC-7", path=(*path, name))
        if lost is not None:
            del findings.notes[before:]
            return lost
        return kept

    def lean(self, value: Any) -> Any:
        if type(value) is not dict or (self._flat and None not in value.values()):
            return value
        fields, required = self._fields, self._required
        return {
            name: fields[name].lean(item) if name in fields else item
            for name, item in value.items()
            if item is not None or name in required or name not in fields
        }

    def _member(self, name: str, item: Any, path: Path, findings: Findings) -> Any:
        """The part of one member that may stay; UNSET when nothing does."""
        node = self._fields.get(name)
        if node is None:
            if name == self._tag_field:
                return item
            findings.note("PROC-5", f"unknown property `{place((*path, name))}` was removed", (*path, name))
            return msgspec.UNSET
        if item is None and findings.lenient and name not in self._required:
            findings.repair("EVT-8", f"null at `{place((*path, name))}` counts as absent", (*path, name))
            return msgspec.UNSET
        try:
            return node.sanitize(item, (*path, name), findings)
        except Malformed as problem:
            if name != "timestamp" or type(item) is not float or not findings.lenient:
                raise
            findings.repair(problem.rule, f"`{place((*path, name))}` has a fraction: it was removed", (*path, name))
            return msgspec.UNSET


class Union(Node):
    """Closed objects told apart by one member. `shapes` maps its values to them."""

    __slots__ = ("shapes", "tag_field")
    expected = "an object"

    def __init__(self, tag_field: str, shapes: dict[str, Shape]) -> None:
        super().__init__()
        self.tag_field = tag_field
        self.shapes = shapes

    def sanitize(self, value: Any, path: Path, findings: Findings) -> Any:
        if type(value) is not dict:
            raise self.problem(value, path)
        tag = value.get(self.tag_field)
        if type(tag) is not str:
            raise _no_discriminator(value, self.tag_field, path)
        shape = self.shapes.get(tag)
        if shape is None:  # removed unread: what else it holds has no known shape (PROC-17)
            return Unrecognised(f"unknown `{self.tag_field}` {quoted(tag, 60)}", (*path, self.tag_field))
        return shape.sanitize(value, path, findings)

    def lean(self, value: Any) -> Any:
        tag = value.get(self.tag_field) if type(value) is dict else None
        shape = self.shapes.get(tag) if type(tag) is str else None
        return value if shape is None else shape.lean(value)


_shapes: dict[type[msgspec.Struct], Shape] = {}


def node_of(type_: Any) -> Node:
    """The node of a struct, or of a union of structs, as the protocol modules define them."""
    return _node(inspect.type_info(type_), "PROC-7", 0)


def _shape(info: inspect.StructType) -> Shape:
    shape = _shapes.get(info.cls)
    if shape is None:
        shape = _shapes[info.cls] = Shape(info.cls, info.tag_field, str(info.tag))
        fields = {
            field.encode_name: _node(
                field.type,
                _rule(field.encode_name, field.type),
                _MINIMUM_ITEMS.get((info.cls, field.name), 0),
            )
            for field in info.fields
        }
        shape.fill(fields, tuple(field.encode_name for field in info.fields if field.required))
    return shape


def _rule(name: str, info: inspect.Type) -> str:
    if name == "metadata" and not isinstance(info, inspect.DictType):
        return "PROC-7"  # the metadata of a content part is any value but null
    return _FIELD_RULES.get(name, "PROC-7")


def _node(info: inspect.Type, rule: str, minimum: int) -> Node:
    match info:
        case inspect.AnyType():
            return _Anything(rule)
        case inspect.StrType():
            return _Simple(str, "a string", rule)
        case inspect.BoolType():
            return _Simple(bool, "true or false", rule)
        case inspect.DictType():
            return _Simple(dict, "an object", rule)
        case inspect.IntType():
            return _Whole(info.ge, info.le, rule)
        case inspect.LiteralType():
            return _Closed(tuple(str(value) for value in info.values), rule)
        case inspect.VarTupleType():
            return _Items(_node(info.item_type, "PROC-7", 0), minimum, rule)
        case inspect.ListType():
            return _Patch("PATCH-2")
        case inspect.StructType():
            return _shape(info)
        case inspect.UnionType():
            return _union(info.types, rule)
    raise TypeError(f"the protocol uses no {info}")


def _union(types: tuple[inspect.Type, ...], rule: str) -> Node:
    structs = [_shape(member) for member in types if isinstance(member, inspect.StructType)]
    if len(structs) == len(types):
        tag_field = structs[0].struct.__struct_config__.tag_field
        assert tag_field is not None
        return Union(tag_field, {shape.tag: shape for shape in structs})
    items = [member for member in types if isinstance(member, inspect.VarTupleType)]
    return _TextOrItems(_node(items[0], rule, 0), rule) if items else _NotNull(rule)
