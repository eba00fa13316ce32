"""Tools known by a JSON Schema that somebody else wrote, and schemas and arguments made to do harm."""

from __future__ import annotations

import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError, InvalidArguments
from agui_core.tools.tool import Tool
from agui_core.tools.toolset import Toolset

CONTEXT = ToolContext(call_id="c", thread_id="t", run_id="r")


def add(schema: Any, **options: Any) -> Tool:
    options.setdefault("handler", dict)
    return Toolset().add({"name": "it", "description": "", "parameters": schema}, **options)


def refusal(tool: Tool, arguments: Any) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        tool.convert(arguments)
    return caught.value


SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "pattern": "^[A-Z]"},
        "count": {"type": "integer", "minimum": 1},
        "unit": {"enum": ["c", "f"]},
        "stops": {"type": "array", "items": {"$ref": "#/$defs/stop"}},
    },
    "required": ["city"],
    "additionalProperties": False,
    "$defs": {"stop": {"type": "object", "properties": {"at": {"type": ["string", "null"]}}, "required": ["at"]}},
}


def test_arguments_that_fit_reach_the_handler_as_one_dict() -> None:
    seen: list[Any] = []
    tool = add(SCHEMA, handler=seen.append)
    tool.bind(tool.convert('{"city": "Rome", "count": 2.0, "stops": [{"at": null}]}'), CONTEXT)()
    assert seen == [{"city": "Rome", "count": 2.0, "stops": [{"at": None}]}]


@pytest.mark.parametrize(
    ("arguments", "path", "expected", "value"),
    [
        ({}, "city", "a value", ""),
        ({"city": 1}, "city", "expected string", "1"),
        ({"city": "rome"}, "city", 'the value does not match "^[A-Z]"', '"rome"'),
        ({"city": "R", "count": 0}, "count", "the value is less than the minimum of 1", "0"),
        ({"city": "R", "count": 1.5}, "count", "expected integer", "1.5"),
        ({"city": "R", "unit": "k" * 1000}, "unit", 'expected one of "c", "f"', '"' + "k" * 98 + "…"),
        ({"city": "R", "stops": [{"at": "x"}, {}]}, "stops[1].at", "a value", ""),
        ({"city": "R", "stops": [{"at": 1}]}, "stops[0].at", "expected null or string", "1"),
        ({"city": "R", "__class__": 1}, "", "Additional properties are not allowed ('__class__' was unexpected)", None),
    ],
)
def test_ft10_a_failure_names_the_argument_what_was_expected_and_the_value(
    arguments: dict[str, Any], path: str, expected: str, value: str | None
) -> None:
    error = refusal(add(SCHEMA), arguments)
    assert (error.path, error.expected) == (path, expected)
    if value is not None:
        assert error.value == value
    assert path in str(error)


def test_without_a_schema_any_object_fits_and_nothing_else() -> None:
    tool = Toolset().add({"name": "it", "description": ""}, handler=dict)
    assert tool.convert('{"a": [1]}') == {"a": [1]}
    refusal(tool, "[1]")
    refusal(tool, '{"a": 1, "a": 2}')


def test_an_own_copy_of_the_schema_is_advertised() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"type": "string"}}}
    tool = add(schema)
    schema["properties"]["a"]["type"] = "integer"
    assert tool.parameters == {"properties": {"a": {"type": "string"}}}
    assert tool.as_wire().parameters == tool.parameters


def with_context(arguments: dict[str, Any], ctx: ToolContext) -> tuple[dict[str, Any], ToolContext]:
    return arguments, ctx


def context_first(ctx: ToolContext, arguments: dict[str, Any]) -> None: ...


def generating(arguments: dict[str, Any]) -> Iterator[int]:
    yield 1


async def later(arguments: dict[str, Any]) -> None: ...


def test_a_handler_may_take_the_context_too() -> None:
    assert add({}, handler=with_context).bind({"a": 1}, CONTEXT)() == ({"a": 1}, CONTEXT)
    assert add({}, handler=later).is_async
    assert not add({}, handler=print).is_async
    with pytest.raises(DeclarationError, match="takes ctx first"):
        add({}, handler=context_first)
    with pytest.raises(DeclarationError, match="is a generator"):
        add({}, handler=generating)


@pytest.mark.parametrize(
    "tool",
    [
        {},
        {"name": "a"},
        {"name": 1, "description": ""},
        {"name": "a", "description": "", "paramters": {}},
        {"name": "a", "description": "", "parameters": None},
        {"name": "a", "description": "", "parameters": True},
        {"name": "a", "description": "", "parameters": []},
        {"name": "a", "description": "", "parameters": {"default": {1}}},
        {"name": "a", "description": "", "parameters": {"default": "\ud800"}},
        [],
        None,
    ],
)
def test_what_is_no_tool_is_refused(tool: Any) -> None:
    tools = Toolset()
    with pytest.raises(DeclarationError) as caught:
        tools.add(tool, handler=dict)
    str(caught.value).encode()
    assert len(tools) == 0


REFERENCES = [
    {"$ref": "file:///etc/passwd"},
    {"$ref": "/etc/passwd"},
    {"$ref": "http://127.0.0.1:{port}/schema"},
    {"$ref": "//127.0.0.1:{port}/schema"},
    {"$ref": "schema.json"},
    {"$ref": "schema.json#/a"},
    {"$ref": "#anchor"},
    {"$id": "http://127.0.0.1:{port}/a", "$ref": "b"},
    {"$schema": "http://127.0.0.1:{port}/meta"},
    {"$schema": "file:///etc/passwd"},
    {"$dynamicRef": "http://127.0.0.1:{port}/a"},
    {"$recursiveRef": "http://127.0.0.1:{port}/a"},
    {"properties": {"a": {"$id": "http://127.0.0.1:{port}/a", "$ref": "#/b"}}},
    {"properties": {"a": {"$ref": "#/x/y/z"}}, "x": {"y": {"$id": "http://127.0.0.1:{port}/", "z": {"$ref": "q"}}}},
    {"properties": {"a": {"items": {"not": {"if": {"$ref": "http://127.0.0.1:{port}/"}}}}}},
    {"patternProperties": {"x": {"$ref": "http://127.0.0.1:{port}/"}}},
    {"dependencies": {"x": {"$ref": "http://127.0.0.1:{port}/"}}},
    {"$ref": "#/nowhere"},
    {"$ref": "#/$defs/a/9999999999999999999", "$defs": {"a": []}},
    {"$ref": 5},
    {"$ref": "#"},
    {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}},
]


@pytest.mark.parametrize("schema", REFERENCES, ids=str)
def test_references_are_never_fetched(schema: Any) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        server.setblocking(False)
        text = str(schema).replace("{port}", str(server.getsockname()[1]))
        with pytest.raises(DeclarationError):
            add(eval(text))
        with pytest.raises(BlockingIOError):
            server.accept()


def test_local_references_are_followed() -> None:
    tool = add(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "$id": "http://nowhere.invalid/x",
            "properties": {
                "a": {"$ref": "#/definitions/b~1c%20d/allOf/0"},
                "$ref": {"type": "string"},
                "tree": {"$ref": "#"},
            },
            "definitions": {"b/c d": {"allOf": [{"type": "string"}]}},
        }
    )
    arguments = {"a": "x", "$ref": "http://nowhere.invalid", "tree": {"tree": {"a": "y"}}}
    assert tool.convert(arguments) == arguments
    assert refusal(tool, {"tree": {"tree": {"a": 1}}}).path == "tree.tree.a"


def test_a_property_may_be_named_like_a_keyword() -> None:
    names = ["$ref", "$id", "$dynamicRef", "allOf", "properties", "pattern", "enum"]
    tool = add({"properties": {name: {"type": "integer"} for name in names}, "default": {"$ref": "http://x"}})
    assert tool.convert(dict.fromkeys(names, 1)) == dict.fromkeys(names, 1)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)*$", "^([a-z]+)*!$", "(.*)*b", "^(a|a)*$"])
def test_catastrophic_patterns_take_linear_time(pattern: str) -> None:
    tool = add({"properties": {"a": {"pattern": pattern}}})
    refusal(tool, {"a": "a" * 100_000 + "!?"})


def test_patterns_with_many_states_are_bounded_too() -> None:
    text = "".join(random.Random(1).choices("ab", k=200_000))
    for count, length in ((200, 200_000), (200, 20_000), (5_000, 200_000), (5_000, 2_000)):
        refusal(add({"properties": {"a": {"pattern": f"^[ab]*a[ab]{{{count}}}c$"}}}), {"a": text[:length]})
        refusal(add({"patternProperties": {f"^[ab]*a[ab]{{{count}}}$": False}, "maxProperties": 0}), {text[:length]: 1})
        refusal(add({"propertyNames": {"pattern": f"^[ab]*a[ab]{{{count}}}c$"}}), {text[:length]: 1})


@pytest.mark.parametrize("count", [5, 50, 150, 1_500, 4_500])
def test_empty_repetitions_are_bounded_too(count: int) -> None:
    tool = add({"properties": {"a": {"pattern": f"^(?:x?x?x?x?|x*){{{count}}}y$"}}})
    for length in (300, 3_000, 30_000, 150_000, 1_000_000):
        refusal(tool, {"a": "x" * length})


def test_a_plain_pattern_admits_large_texts() -> None:
    tool = add(
        {"properties": {"image": {"pattern": "^[A-Za-z0-9+/=]+$"}, "name": {"pattern": r"^\p{L}[\p{L}\d]{0,63}$"}}}
    )
    assert tool.convert({"name": "é" * 60}) == {"name": "é" * 60}
    plain = add({"properties": {"image": {"pattern": "^[A-Za-z0-9+/=]+$"}}})
    assert plain.convert({"image": "Zm9v" * 200_000}) == {"image": "Zm9v" * 200_000}


@pytest.mark.parametrize("pattern", ["(?=a)b", r"(a)\1", "(?<!a)b", "(", "(((a{1000}){1000}){1000})"])
def test_patterns_without_linear_time_are_refused(pattern: str) -> None:
    with pytest.raises(DeclarationError, match="at properties/a/pattern") as caught:
        add({"properties": {"a": {"pattern": pattern}}})
    assert len(str(caught.value)) <= 300


def test_many_or_long_patterns_are_refused() -> None:
    for properties in (
        {"a": {"pattern": "a" * 20_000_000}},
        {f"a{i}": {"pattern": "x"} for i in range(5_000)},
        {f"a{i}": {"pattern": f"^(?:x{{1,400}}){{1,{i + 90}}}y$"} for i in range(200)},
    ):
        with pytest.raises(DeclarationError, match="pattern"):
            add({"properties": properties})
    with pytest.raises(DeclarationError, match="more than 100000 values"):
        add({"enum": [*range(200_000)]})


def doubled(levels: int, keyword: str) -> dict[str, Any]:
    definitions: dict[str, Any] = {
        f"a{level}": {keyword: [{"$ref": f"#/$defs/a{level + 1}"}] * 2} for level in range(levels)
    }
    return {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**definitions, f"a{levels}": {"type": "integer"}}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("levels", [5, 10, 14])
def test_schemas_that_double_at_each_level_are_bounded(keyword: str, levels: int) -> None:
    refusal(add(doubled(levels, keyword)), {"x": "no integer"})


def test_chains_that_would_overflow_a_stack_are_refused() -> None:
    for levels in (100, 5_000, 50_000):
        with pytest.raises(DeclarationError):
            add(doubled(levels, "allOf"))
    nested: dict[str, Any] = {"type": "integer"}
    for _ in range(60):
        nested = {"items": {"not": nested}}
    with pytest.raises(DeclarationError, match="nests deeper than 100"):
        add(nested)
    cycle: dict[str, Any] = {}
    cycle["items"] = cycle
    with pytest.raises(DeclarationError):
        add(cycle)


def test_unevaluated_keywords_are_bounded() -> None:
    schema: dict[str, Any] = {"properties": {"a": True}}
    for _ in range(15):
        schema = {"unevaluatedProperties": False, "allOf": [schema]}
    refusal(add(schema), {"a": 1})
    assert add({"unevaluatedProperties": False, "allOf": [{"properties": {"a": True}}]}).convert({"a": 1}) == {"a": 1}
    links = {
        f"a{i}": {"properties": {"x": {"$ref": f"#/$defs/a{i + 1}"}}, "unevaluatedItems": False} for i in range(99)
    }
    with pytest.raises(DeclarationError, match="unevaluated"):
        add({"$defs": {**links, "a99": {}}, "properties": {"x": {"$ref": "#/$defs/a0"}}})


TREE = {
    "properties": {"x": {"$ref": "#/$defs/node"}},
    "$defs": {
        "node": {
            "oneOf": [{"type": "number"}]
            + [
                {
                    "type": "object",
                    "properties": {"of": {"$ref": "#/$defs/node"}, "op": {"const": op}},
                    "required": ["op"],
                }
                for op in ("add", "subtract", "multiply")
            ]
        }
    },
}


def tree(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"op": "multiply", "of": value}
    return {"x": value}


def test_recursive_schemas_are_checked_as_far_as_it_is_affordable() -> None:
    tool = add(TREE)
    assert tool.convert(tree(6)) == tree(6)
    assert "too large or too nested" in str(refusal(tool, tree(190)))
    assert add({"properties": {"next": {"$ref": "#"}}}).convert(chain(190)) == chain(190)


def chain(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels):
        value = {"next": value}
    return value


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({"properties": {"x": {"items": {"enum": [f"v{i}" for i in range(10_000)]}}}}, {"x": ["no"] * 100_000}),
        ({"properties": {"x": {"items": {"anyOf": [{"type": "string"}] * 3_000}}}}, {"x": [1] * 100_000}),
        ({"additionalProperties": {"required": [f"r{i}" for i in range(5_000)]}}, {f"k{i}": {} for i in range(50_000)}),
        ({"propertyNames": {"anyOf": [{"maxLength": 1}] * 3_000}}, {f"key{i}": 1 for i in range(50_000)}),
        ({"properties": {"x": {"contains": {"contains": {"const": 1}}}}}, {"x": [[2] * 1_000] * 1_000}),
    ],
    ids=["enum", "anyOf", "required", "names", "contains"],
)
def test_much_work_for_each_part_is_bounded(schema: Any, arguments: Any) -> None:
    refusal(add(schema), arguments)


def test_large_but_simple_arguments_pass() -> None:
    tool = add({"properties": {"x": {"type": "array", "items": {"type": "number"}}}})
    assert tool.convert({"x": [1.5] * 100_000}) == {"x": [1.5] * 100_000}
    assert refusal(tool, {"x": [1.5] * 1_000 + ["y"]}).path == "x[1000]"


def test_the_deepest_that_is_admitted_fits_a_small_stack() -> None:
    """A recursion of the validator that overflowed would end the process, so it is shown in another one."""
    program = """
import threading
from agui_core.tools.toolset import Toolset
from agui_core.tools.errors import InvalidArguments

def run():
    for height in (1, 4, 9, 14, 30):
        link = {"$ref": "#"}
        for _ in range(height):
            link = {"allOf": [link]}
        tool = Toolset().add({"name": "a", "description": "", "parameters": {"properties": {"c": link}}}, handler=dict)
        for depth in range(10, 200, 10):
            value = 1
            for _ in range(depth):
                value = {"c": value}
            try:
                tool.convert(value)
            except InvalidArguments:
                break
    for length, more in ((45, {"unevaluatedProperties": False}), (4_900, {})):
        links = {f"a{i}": {"properties": {"x": {"$ref": f"#/$defs/a{i + 1}"}}, **more} for i in range(length)}
        schema = {"properties": {"x": {"$ref": "#/$defs/a0"}}, "$defs": {**links, f"a{length}": {}}}
        Toolset().add({"name": "a", "description": "", "parameters": schema})
    print("done")

threading.stack_size(512 * 1024)
thread = threading.Thread(target=run)
thread.start()
thread.join()
"""
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


def test_the_validator_is_imported_only_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    tools = Toolset()
    tools.tool(test_large_but_simple_arguments_pass)
    tools.add({"name": "any", "description": ""}, handler=dict)
    with pytest.raises(DeclarationError, match=r"pip install 'agui_core\[schema\]'"):
        add({"type": "object"})


def test_one_tool_can_be_checked_in_many_threads() -> None:
    tool = add(SCHEMA)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(200):
                tool.convert('{"city": "Rome"}')
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
