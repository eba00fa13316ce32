"""The work of checking one value by a JSON Schema, counted before the validator sees either.

A validator that follows references can need 2**n steps for n levels of a schema or of a value, and one that recurses
can overflow the stack of its thread. Schemas come from servers and values from models, so both are hostile. Here a
schema is read once into a graph of subschemas. For a value, the number of times that each subschema would meet each
part is added up from the root downwards, without recursion. Each step adds at least one to the sum, so counting itself
stops after a budget of steps.

Only `#` and `#/pointer` references are followed, which is enough to describe a tool. All others are refused, and all
keywords that change their meaning (`$id` inside a schema, `$dynamicRef`, `$recursiveRef`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple
from urllib.parse import unquote

from agui_core._text import cut
from agui_core.reducer.json_pointer import split
from agui_core.tools.errors import DeclarationError
from agui_core.tools.json_value_cost import Values, division, weigh

__all__ = ["Cost", "SchemaGraph"]

MAX_SUBSCHEMAS = 10_000
MAX_VALUES = 100_000
"""JSON values in a schema."""
MAX_PATTERN = 10_000
"""Characters of one pattern."""
MAX_NESTING = 100
"""Containers inside containers of the schema itself."""
MAX_HEIGHT = 32
"""Subschemas inside one another for the same value, as in `allOf` inside `allOf`."""
MAX_STACK = 2_000
"""Nesting of the value times height of the schema: a validator's recursion, some 200 bytes of stack each."""
MAX_UNEVALUATED_REFERENCES = 50
"""With `unevaluated...`, compiling recurses through references, at some 8 KB of stack each."""
_CHARACTERS = 25
"""Characters that a format or an encoding reads in one step."""
REPEATS = 3
"""How often `unevaluated...` and `contains` may look at the same subschema again."""

_SAME_LISTS = ("allOf", "anyOf", "oneOf")
_SAME_SINGLES = ("not", "if", "then", "else")
_SAME_MAPS = ("dependentSchemas", "dependencies")
_COMPARING = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_READING = ("format", "contentMediaType", "contentEncoding")
_COUNTED = ("enum", "const", "required", "type", "dependentRequired", "dependencies")
_REFUSED = ("$dynamicRef", "$recursiveRef")
_ROOT = 0


class _Subschema:
    """One subschema: its cost for one value, and the subschemas for the same value and for its parts.

    These are given by their numbers, as a chain of thousands of objects would overflow a small stack when it is freed.
    """

    __slots__ = (
        "branches",
        "comparisons",
        "divisor",
        "elements",
        "every_member",
        "members",
        "name_patterns",
        "names",
        "options",
        "pattern",
        "prefix",
        "reads",
        "same",
        "unique",
        "weight",
    )

    def __init__(self) -> None:
        self.weight = 1
        self.pattern = False
        self.reads = 0
        """How many keywords read each character of a text."""
        self.comparisons = 0
        """With how many values a value is compared."""
        self.options = 0
        """Steps to convert the numbers of `const` and `enum` once."""
        self.divisor: int | None = None
        """What the divisor adds to each division."""
        self.unique = False
        self.branches = 0
        """How many subschemas of `anyOf` and `oneOf` are tried, of which a failure tells each with the value."""
        self.name_patterns = 0
        self.same: list[int] = []
        self.members: dict[str, int] = {}
        self.every_member: list[int] = []
        self.names: list[int] = []
        self.prefix: list[int] = []
        self.elements: list[int] = []


class Cost(NamedTuple):
    """What one value costs."""

    steps: int
    """Steps to check it; any number above the budget means at least so many, or too deep a recursion."""
    shown: int
    """JSON values (a long text counts for more) that explaining a failure has to look at besides."""


class SchemaGraph:
    """A schema as a graph of subschemas; `patterns` counts its patterns. O(size of the schema).

    Raises: `DeclarationError` for a schema that cannot be bounded.
    """

    __slots__ = ("_height", "_order", "_ranks", "_subschemas", "_weighs", "patterns")

    def __init__(self, schema: dict[str, Any]) -> None:
        self.patterns = _survey(schema)
        self._subschemas = _Reader(schema).subschemas
        self._weighs = any(each.comparisons or each.unique or each.branches for each in self._subschemas)
        self._order, self._height = _sort(self._subschemas)
        self._ranks = {number: rank for rank, number in enumerate(self._order)}

    def cost(self, value: Any, *, budget: int, character: int) -> Cost:
        """What a JSON value costs, counted up to `budget` steps.

        `character`: steps of one character that a pattern looks at. O(min(steps, budget)).
        """
        total = shown = 0
        values = Values(value if self._weighs else {})
        stack: list[tuple[Any, dict[int, int], int]] = [(value, {_ROOT: 1}, 1)]
        while stack and total <= budget:
            value, counts, depth = stack.pop()
            if depth * self._height > MAX_STACK:
                return Cost(budget + 1, shown)
            total += self._spread(counts)
            parts: dict[Any, dict[int, int]] = {}
            for number, times in counts.items():
                subschema = self._subschemas[number]
                total += times * _price(subschema, value, character, values)
                if subschema.branches:
                    shown += times * subschema.branches * values.extent(value)
                if total > budget:
                    return Cost(total, shown)
                for part, targets in _targets(subschema, value):
                    total += times * len(targets)
                    if total > budget:
                        return Cost(total, shown)
                    _add(parts.setdefault(part, {}), targets, times)
                if subschema.names and type(value) is dict:
                    keys: dict[int, int] = {}
                    _add(keys, subschema.names, times)
                    stack.extend((name, dict(keys), depth + 1) for name in value)
                    total += times * len(value)
            stack.extend((value[part], met, depth + 1) for part, met in parts.items())
        return Cost(total, shown)

    def _spread(self, counts: dict[int, int]) -> int:
        """Add the subschemas for the same value, by rank, so that each count is complete before it is passed on."""
        steps = 0
        waiting = [self._ranks[number] for number in counts]
        heapq.heapify(waiting)
        while waiting:
            number = self._order[heapq.heappop(waiting)]
            for target in self._subschemas[number].same:
                steps += 1
                if target not in counts:
                    heapq.heappush(waiting, self._ranks[target])
                counts[target] = counts.get(target, 0) + counts[number]
        return steps


def _price(subschema: _Subschema, value: Any, character: int, values: Values) -> int:
    price = subschema.weight
    if subschema.comparisons:
        price += subschema.comparisons * values.of(value).long
        if isinstance(value, int | float | list | dict):
            price += subschema.options
    if subschema.divisor is not None:
        price += subschema.divisor + division(value)
    if subschema.unique and type(value) is list:
        price += values.uniqueness(value)
    if type(value) is str:
        if subschema.pattern:
            price += len(value) * character
        price += subschema.reads * len(value) // _CHARACTERS
    elif type(value) is dict and subschema.name_patterns:
        price += sum(map(len, value)) * subschema.name_patterns * character
    return price


def _targets(subschema: _Subschema, value: Any) -> Iterator[tuple[str | int, list[int]]]:
    """The parts of a value, each with the subschemas for it. Names that match no part are in the weight."""
    if type(value) is dict:
        for name, target in subschema.members.items():
            if name in value:
                yield name, [target]
        if subschema.every_member:
            for name in value:
                yield name, subschema.every_member
    elif type(value) is list:
        for index, target in enumerate(subschema.prefix[: len(value)]):
            yield index, [target]
        if subschema.elements:
            for index in range(len(value)):
                yield index, subschema.elements


def _add(counts: dict[int, int], targets: Iterable[int], times: int) -> None:
    for target in targets:
        counts[target] = counts.get(target, 0) + times


def _sort(subschemas: list[_Subschema]) -> tuple[list[int], int]:
    """Each subschema before those it asks about the same value, and the longest such chain."""
    sorter = TopologicalSorter({number: item.same for number, item in enumerate(subschemas)})
    try:
        order = list(sorter.static_order())
    except CycleError:
        raise DeclarationError("the schema refers to itself for the same value, which never ends") from None
    heights: dict[int, int] = {}
    for number in order:
        heights[number] = 1 + max((heights[target] for target in subschemas[number].same), default=0)
    height = max(heights.values())
    if height > MAX_HEIGHT:
        raise DeclarationError(
            f"the schema puts {height} subschemas inside one another; at most {MAX_HEIGHT} are checked"
        )
    order.reverse()
    return order, height


class _Reader:
    """Reads a schema into a list of subschemas, each dict once and the root first, without recursion."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self.subschemas: list[_Subschema] = []
        self._known: dict[int, int] = {}
        self._waiting: list[tuple[dict[str, Any], _Subschema]] = []
        self._references: set[str] = set()
        self._unevaluated = False
        self._subschema(schema)
        while self._waiting:
            self._read(*self._waiting.pop())
        if self._unevaluated:
            self._repeat()

    def _subschema(self, schema: Any) -> int:
        """The number of a dict; any other value in its place (`true`, `false`, nonsense) costs one step."""
        if isinstance(schema, dict) and id(schema) in self._known:
            return self._known[id(schema)]
        number = len(self.subschemas)
        if number == MAX_SUBSCHEMAS:
            raise DeclarationError(f"the schema has more than {MAX_SUBSCHEMAS} subschemas")
        self.subschemas.append(_Subschema())
        if isinstance(schema, dict):
            self._known[id(schema)] = number
            self._waiting.append((schema, self.subschemas[number]))
        return number

    def _read(self, schema: dict[str, Any], into: _Subschema) -> None:
        for keyword in _REFUSED:
            if keyword in schema:
                raise DeclarationError(f"the schema uses {keyword}, which is not followed; use $ref with '#/...'")
        if schema is not self._schema:
            _check_base(schema)
        into.weight += sum(_size(schema[keyword]) for keyword in _COUNTED if keyword in schema)
        into.pattern = "pattern" in schema
        into.reads = sum(keyword in schema for keyword in _READING)
        options = [*_list(schema.get("enum")), *(schema[keyword] for keyword in ("const",) if keyword in schema)]
        into.comparisons = sum(keyword in schema for keyword in _COMPARING) + len(options)
        into.comparisons += schema.get("type") == "number"
        into.options = weigh(options).long
        if "multipleOf" in schema:
            into.divisor = division(schema["multipleOf"])
        into.unique = schema.get("uniqueItems") is True
        into.branches = len(_list(schema.get("anyOf"))) + len(_list(schema.get("oneOf")))
        self._read_same(schema, into)
        self._read_members(schema, into)
        self._read_elements(schema, into)

    def _read_same(self, schema: dict[str, Any], into: _Subschema) -> None:
        for keyword in _SAME_LISTS:
            into.same += map(self._subschema, _list(schema.get(keyword)))
        for keyword in _SAME_SINGLES:
            into.same += (self._subschema(schema[keyword]) for _ in (0,) if keyword in schema)
        for keyword in _SAME_MAPS:
            into.same += (
                self._subschema(item) for item in _dict(schema.get(keyword)).values() if isinstance(item, dict)
            )
        if "$ref" in schema:
            into.same.append(self._subschema(self._follow(schema["$ref"])))

    def _read_members(self, schema: dict[str, Any], into: _Subschema) -> None:
        into.members = {name: self._subschema(item) for name, item in _dict(schema.get("properties")).items()}
        into.weight += len(into.members)
        patterns = _dict(schema.get("patternProperties"))
        into.name_patterns = len(patterns)
        into.every_member += map(self._subschema, patterns.values())
        if "additionalProperties" in schema:
            into.every_member.append(self._subschema(schema["additionalProperties"]))
        if "unevaluatedProperties" in schema:
            self._unevaluated = True
            into.every_member += [self._subschema(schema["unevaluatedProperties"])] * REPEATS
        if "propertyNames" in schema:
            into.names.append(self._subschema(schema["propertyNames"]))

    def _read_elements(self, schema: dict[str, Any], into: _Subschema) -> None:
        items = schema.get("items")
        into.prefix = [self._subschema(item) for item in items] if isinstance(items, list) else []
        into.prefix += map(self._subschema, _list(schema.get("prefixItems")))
        into.weight += len(into.prefix)
        into.elements += (
            self._subschema(schema[keyword])
            for keyword in ("items", "additionalItems")
            if isinstance(schema.get(keyword), dict | bool)
        )
        for keyword in ("contains", "unevaluatedItems"):
            if keyword in schema:
                self._unevaluated = self._unevaluated or keyword == "unevaluatedItems"
                into.elements += [self._subschema(schema[keyword])] * REPEATS

    def _follow(self, reference: Any) -> Any:
        """The target of a local reference."""
        shown = cut(str(reference))
        if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
            raise DeclarationError(f"the schema refers to {shown}, which is not fetched; only '#/...' is followed")
        target: Any = self._schema
        for step in split(unquote(reference[1:])):
            if target is not self._schema:
                _check_base(target)
            target = _step(target, step)
        if not isinstance(target, dict | bool):
            raise DeclarationError(f"the schema refers to {shown}, where it holds no schema")
        self._references.add(reference)
        return target

    def _repeat(self) -> None:
        if len(self._references) > MAX_UNEVALUATED_REFERENCES:
            raise DeclarationError(
                f"the schema uses unevaluated... keywords together with {len(self._references)} references; "
                f"at most {MAX_UNEVALUATED_REFERENCES} can be checked"
            )
        for item in self.subschemas:
            item.same *= REPEATS


def _check_base(schema: Any) -> None:
    if isinstance(schema, dict) and any(isinstance(schema.get(keyword), str) for keyword in ("$id", "id")):
        raise DeclarationError(
            "the schema holds a subschema with an id of its own, which would change what '#/...' means"
        )


def _survey(schema: Any) -> int:
    """Bound a schema as a JSON value, reachable parts or not, and count its patterns: one walk, where `too_deep` and
    `_size` would be two more.
    """
    patterns = values = 0
    stack: list[tuple[Any, int]] = [(schema, 1)]
    while stack:
        value, depth = stack.pop()
        values += len(value)
        if depth > MAX_NESTING:
            raise DeclarationError(f"the schema nests deeper than {MAX_NESTING} containers")
        if values > MAX_VALUES:
            raise DeclarationError(f"the schema holds more than {MAX_VALUES} values")
        if isinstance(value, dict):
            found = [value.get("pattern"), *_dict(value.get("patternProperties"))]
            for pattern in found:
                if isinstance(pattern, str) and len(pattern) > MAX_PATTERN:
                    raise DeclarationError(f"the pattern {cut(pattern)} is longer than {MAX_PATTERN} characters")
            patterns += sum(isinstance(pattern, str) for pattern in found)
        parts = value.values() if isinstance(value, dict) else value
        stack.extend((part, depth + 1) for part in parts if isinstance(part, dict | list))
    return patterns


def _size(value: Any) -> int:
    """JSON values in a value."""
    size = 0
    stack = [value]
    while stack:
        value = stack.pop()
        size += 1
        if isinstance(value, dict | list):
            stack.extend(value.values() if isinstance(value, dict) else value)
    return size


def _step(target: Any, step: str) -> Any:
    if isinstance(target, dict):
        return target.get(step)
    if isinstance(target, list) and step.isdecimal() and step.isascii() and len(step) < 10 and int(step) < len(target):
        return target[int(step)]
    return None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
