"""Arguments checked against a foreign JSON Schema, with `jsonschema-rs` (extra `schema`).

Neither the schema nor the value is trusted. Nothing is fetched, patterns are matched in linear time (look-around and
back references are refused), and `schema_cost` counts work and recursion before the validator runs. Costs a compilation
per tool; per call the counting, about a microsecond for each part of the arguments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agui_core._text import SHOWN, cut, shown, written
from agui_core.tools.errors import DeclarationError, InvalidArguments, invalid_whole
from agui_core.tools.json_arguments import value_at
from agui_core.tools.schema_cost import Cost, SchemaGraph

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["SchemaChecker"]

MAX_COST = 1_000_000
"""Steps to check one call, counting and checking together at worst a second or two."""
MAX_EXPLAINED_COST = 10_000
"""Steps up to which a failure is explained, as explaining builds a tree of all that was tried."""

MAX_SHOWN = 1_000_000
"""JSON values up to which it is explained: that tree has the value of each branch tried, some 200 ns for each in it."""

_MASK = "the value"


class _PatternRoom(NamedTuple):
    patterns: int
    """How many patterns a schema may have; a compilation takes longer the larger it may get."""
    size: int
    """Bytes that a compiled pattern may take, which bounds its states."""
    character: int
    """Steps that one character costs at worst with so many states."""


_PATTERN_ROOMS = (
    _PatternRoom(1_000, 2_000, 1),
    _PatternRoom(1_000, 20_000, 6),
    _PatternRoom(500, 100_000, 30),
    _PatternRoom(100, 1_000_000, 300),
    _PatternRoom(20, 10_000_000, 3_000),
)
"""The first one that a schema fits into is used. Matching is linear in the text and in the states."""


class SchemaChecker:
    """One compiled schema. Raises: `DeclarationError` when it is invalid, refers elsewhere or cannot be bounded."""

    __slots__ = ("_character", "_graph", "_validator")

    def __init__(self, schema: dict[str, Any]) -> None:
        self._graph = SchemaGraph(schema)
        self._validator, self._character = _compile(schema, self._graph.patterns)

    def check(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments, if they fit. Raises: `InvalidArguments` if not, or if checking is too much work."""
        cost = self._graph.cost(arguments, budget=MAX_COST, character=self._character)
        if cost.steps > MAX_COST:
            problem = "the arguments are too large or too nested to be checked"
            raise invalid_whole(problem, arguments, "fewer or flatter arguments")
        if not self._validator.is_valid(arguments):
            raise self._explain(arguments, cost)
        return arguments

    def _explain(self, arguments: dict[str, Any], cost: Cost) -> InvalidArguments:
        if cost.steps > MAX_EXPLAINED_COST or cost.shown > MAX_SHOWN:
            problem = "the arguments do not fit the schema of the tool"
            return invalid_whole(problem, arguments, "what the schema says")
        error = self._first_error(arguments)
        steps = [step if isinstance(step, int) else str(step) for step in error.instance_path]
        if error.kind.name == "required":
            path = written([*steps, error.kind.property])  # type: ignore[attr-defined]
            return InvalidArguments(f"argument {path} is missing", path=path, expected="a value")
        path, expected, value = written(steps), _expectation(error), shown(value_at(arguments, steps))
        where = f"argument {path}" if path else "the arguments"
        return InvalidArguments(f"{where}: {expected}, got {value}", path=path, expected=expected, value=value)

    def _first_error(self, arguments: dict[str, Any]) -> jsonschema_rs.ValidationError:
        import jsonschema_rs

        try:
            self._validator.validate(arguments)
        except jsonschema_rs.ValidationError as error:
            return error
        raise AssertionError("the validator contradicts itself")


def _expectation(error: jsonschema_rs.ValidationError) -> str:
    if error.kind.name == "type":
        return "expected " + " or ".join(error.kind.types)  # type: ignore[attr-defined]
    if error.kind.name == "enum":
        options = error.kind.options[:SHOWN]  # type: ignore[attr-defined]
        return cut("expected one of " + ", ".join(map(shown, options)), 2 * SHOWN)
    return cut(error.message, 2 * SHOWN)


def _compile(schema: dict[str, Any], patterns: int) -> tuple[jsonschema_rs.Validator, int]:
    try:
        import jsonschema_rs
    except ImportError:
        raise DeclarationError(
            "a tool that is known only by its JSON Schema needs the extra: pip install 'agui_core[schema]'"
        ) from None
    problem: Exception | str = f"it has {patterns} patterns"
    for room in _PATTERN_ROOMS:
        if patterns > room.patterns:
            continue
        options = jsonschema_rs.RegexOptions(size_limit=room.size, dfa_size_limit=room.size)
        try:
            validator = jsonschema_rs.validator_for(schema, pattern_options=options, offline=True, mask=_MASK)
        except Exception as error:
            problem = error
        else:
            return validator, room.character
    raise DeclarationError(f"the schema is not usable: {_reason(problem)}") from None


def _reason(problem: Exception | str) -> str:
    text = getattr(problem, "message", None) or str(problem)
    steps = [str(step) for step in getattr(problem, "instance_path", ())]
    if not steps:
        return cut(text, 3 * SHOWN)
    text = text.replace(_MASK, shown(getattr(problem, "instance", None)), 1)
    hint = "; look-around and back references are not matched" if steps[-1] == "pattern" else ""
    return cut(f"{text} (at {'/'.join(steps)}){hint}", 3 * SHOWN)
