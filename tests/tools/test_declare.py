"""Functions become tools: the schema that the model sees, and what the function then gets."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Optional, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError, InvalidArguments
from agui_core.tools.tool import Tool
from agui_core.tools.toolset import Toolset

if TYPE_CHECKING:
    from nowhere import Missing


class Address(msgspec.Struct):
    city: str
    floor: int = 0
    neighbour: Optional[Address] = None  # noqa: UP045


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Options(TypedDict):
    depth: int
    label: NotRequired[str]


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


def declare(function: Callable[..., Any], **options: Any) -> Tool:
    toolset = Toolset()
    toolset.tool(**options)(function)
    return next(iter(toolset))


def refusal(tool: Tool, arguments: Any) -> InvalidArguments:
    with pytest.raises(InvalidArguments) as caught:
        tool.convert(arguments)
    return caught.value


def book(
    city: Annotated[str, Meta(description="Where to.", max_length=40)],
    nights: Annotated[int, Meta(ge=1)] = 1,
    room: Literal["single", "double"] = "single",
    *,
    guest: Address | None = None,
    notes=None,
) -> str:
    """Book a room
    in a hotel.

    The rest is for programmers.
    """
    return f"{city} {nights} {room} {guest} {notes}"


def test_a_signature_becomes_a_schema_with_its_root_inlined() -> None:
    tool = declare(book)
    assert (tool.name, tool.description) == ("book", "Book a room in a hotel.")
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to.", "maxLength": 40},
            "nights": {"type": "integer", "minimum": 1, "default": 1},
            "room": {"enum": ["double", "single"], "default": "single"},
            "guest": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}], "default": None},
            "notes": {"default": None},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {
            "Address": {
                "title": "Address",
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "floor": {"type": "integer", "default": 0},
                    "neighbour": {"anyOf": [{"$ref": "#/$defs/Address"}, {"type": "null"}], "default": None},
                },
                "required": ["city"],
            }
        },
    }
    json.dumps(tool.parameters)


def test_without_parameters_the_schema_is_an_empty_object() -> None:
    def now() -> str:
        return "now"

    assert declare(now).parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_arguments_become_what_the_signature_says_with_defaults() -> None:
    tool = declare(book)
    assert tool.convert('{"city": "Rome", "guest": {"city": "Oslo"}}') == {
        "city": "Rome",
        "nights": 1,
        "room": "single",
        "guest": Address(city="Oslo"),
        "notes": None,
    }


def test_every_kind_of_type_that_json_carries() -> None:
    def draw(
        point: Point,
        options: Options,
        size: Size,
        price: Decimal,
        counts: dict[int, list[int]],
        pair: tuple[int, str],
        anything: object,
        union: int | str | None,
    ) -> None: ...

    arguments = {
        "point": {"x": 1, "y": 2},
        "options": {"depth": 3},
        "size": "l",
        "price": "1.10",
        "counts": {"7": [1, 2]},
        "pair": [1, "a"],
        "anything": {"deep": [None]},
        "union": "x",
    }
    assert declare(draw).convert(json.dumps(arguments)) == {
        "point": Point(1, 2),
        "options": {"depth": 3},
        "size": Size.LARGE,
        "price": Decimal("1.10"),
        "counts": {7: [1, 2]},
        "pair": (1, "a"),
        "anything": {"deep": [None]},
        "union": "x",
    }


def test_defaults_are_shown_only_where_the_type_admits_them() -> None:
    marker = object()

    def find(limit: int = None, after: Any = marker, where: list[int] = [1, 2], size: Size = Size.SMALL) -> None: ...  # type: ignore[assignment]  # noqa: B006, RUF013

    tool = declare(find)
    assert isinstance(tool.parameters, dict)
    shown = {name: item.get("default", "nothing") for name, item in tool.parameters["properties"].items()}
    assert shown == {"limit": "nothing", "after": "nothing", "where": [1, 2], "size": "s"}
    assert tool.convert("{}") == {"limit": None, "after": marker, "where": [1, 2], "size": Size.SMALL}
    assert refusal(tool, '{"limit": null}').path == "limit"


def test_parameters_may_have_any_name() -> None:
    def odd(copy: int, _private: str, __class__: int, p0: int, ﬁ: int = 0) -> None: ...

    tool = declare(odd)
    arguments = {"copy": 1, "_private": "x", "__class__": 2, "p0": 3, "fi": 4}
    assert tool.convert(arguments) == arguments
    assert refusal(tool, {**arguments, "\ufb01": 5}).path == "\ufb01"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"n": 3.0}', 3),
        ('{"n": -0.0}', 0),
        ('{"n": 1e3}', 1000),
        ('{"n": 12345678901234567890123}', 12345678901234567890123),
    ],
)
def test_a_float_with_a_zero_fraction_counts_as_an_integer(given: str, expected: int) -> None:
    def count(n: int) -> None: ...

    value = declare(count).convert(given)["n"]
    assert (value, type(value)) == (expected, int)


def test_zero_fractions_count_inside_structs_lists_and_mappings_too() -> None:
    def move(points: list[Point], by: dict[str, int], lit: Literal[1, 2], scale: float, raw: Any) -> None: ...

    tool = declare(move)
    values = tool.convert('{"points": [{"x": 1.0, "y": 2}], "by": {"a": 4.0}, "lit": 2.0, "scale": 5.0, "raw": 6.0}')
    assert values == {"points": [Point(1, 2)], "by": {"a": 4}, "lit": 2, "scale": 5.0, "raw": 6.0}
    assert [type(values[name]) for name in ("lit", "scale", "raw")] == [int, float, float]
    assert type(values["points"][0].x) is int


@pytest.mark.parametrize("value", ["1.5", "1e300", '"1"', "true", "null", "[1]", '"1.0"'])
def test_nothing_else_counts_as_an_integer(value: str) -> None:
    def count(n: int) -> None: ...

    error = refusal(declare(count), f'{{"n": {value}}}')
    assert (error.path, error.expected) == ("n", "int")


@pytest.mark.parametrize("value", ["1", "1.0", "0", '"true"', '"yes"', "null"])
def test_only_true_and_false_are_truth_values(value: str) -> None:
    def switch(on: bool) -> None: ...

    assert refusal(declare(switch), f'{{"on": {value}}}').expected == "bool"


@pytest.mark.parametrize("value", ["1", "1.0", "true", "null"])
def test_only_text_is_text(value: str) -> None:
    def say(text: str) -> None: ...

    assert refusal(declare(say), f'{{"text": {value}}}').expected == "str"


@pytest.mark.parametrize(
    ("given", "path", "expected", "value", "text"),
    [
        ({}, "city", '{"type": "string", "maxLength": 40}', "", "argument city is missing"),
        ({"city": 5}, "city", "str", "5", "argument city: expected str, got 5"),
        ({"city": "x", "nights": 0}, "nights", "int >= 1", "0", "argument nights: expected int >= 1, got 0"),
        ({"city": "x", "room": "triple"}, "room", 'one of "double", "single"', '"triple"', 'got "triple"'),
        ({"city": "x", "guest": {"city": "y", "floor": "z"}}, "guest.floor", "int", '"z"', "argument guest.floor"),
        ({"city": "x", "guest": {}}, "guest.city", "string", "", "argument guest.city is missing"),
        ({"city": "x", "guest": []}, "guest", "object | null", "[]", "argument guest"),
        ({"city": "x", "smoking": True}, "smoking", "one of: city, nights, room, guest, notes", "true", "is unknown"),
        ({"city": "x", "__class__": "y"}, "__class__", "one of: city, nights, room, guest, notes", '"y"', "is unknown"),
    ],
)
def test_a_failure_names_the_argument_what_was_expected_and_the_value(
    given: dict[str, Any], path: str, expected: str, value: str, text: str
) -> None:
    error = refusal(declare(book), given)
    assert (error.path, error.expected, error.value) == (path, expected, value)
    assert text in str(error)


def test_a_failure_in_a_list_or_a_mapping_is_located() -> None:
    def plan(stops: list[Address], by: dict[int, int]) -> None: ...

    tool = declare(plan)
    error = refusal(tool, {"stops": [{"city": "a"}, {"city": "b", "neighbour": {"city": 7}}], "by": {}})
    assert (error.path, error.value) == ("stops[1].neighbour.city", "7")
    assert refusal(tool, {"stops": [], "by": {"x": 1}}).path == "by"
    assert refusal(tool, {"stops": [], "by": {"1": "x"}}).path == "by.*"


def test_an_offending_value_is_cut_to_100_characters() -> None:
    def count(n: int) -> None: ...

    tool = declare(count)
    for value in ("x" * 10_000_000, ["y" * 50] * 10_000, {"k" * 1_000_000: 1}):
        error = refusal(tool, {"n": value})
        assert len(error.value) == 100
        assert error.value.endswith("…")
        assert len(str(error)) < 200
    assert len(str(refusal(tool, {"k" * 1_000_000: 1}))) < 400


def test_a_hostile_value_cannot_forge_the_path() -> None:
    def pick(a: Literal["x"], admin: Any = None) -> None: ...

    error = refusal(declare(pick), {"a": "y' - at `$.admin`"})
    assert error.path == "a"


def test_the_context_is_injected_and_not_in_the_schema() -> None:
    seen: list[Any] = []

    def note(text: str, ctx: ToolContext | None = None) -> None:
        seen.append((text, ctx))

    tool = declare(note)
    assert isinstance(tool.parameters, dict)
    assert list(tool.parameters["properties"]) == ["text"]
    assert refusal(tool, {"text": "a", "ctx": {}}).path == "ctx"
    context = ToolContext(call_id="c", thread_id="t", run_id="r", state={"k": 1})
    tool.bind(tool.convert({"text": "a"}), context)()
    assert seen == [("a", context)]


def starred(*names: str) -> None: ...
def double_starred(**names: str) -> None: ...
def positional(name: str, /) -> None: ...
def unresolvable(name: Missing) -> None: ...
def generator(n: int) -> Iterator[int]:
    yield n


async def async_generator(n: int) -> AsyncIterator[int]:
    yield n


def no_json(value: complex) -> None: ...
def bad_union(value: list[int] | set[int]) -> None: ...
def raw(value: msgspec.Raw) -> None: ...
def two_contexts(a: ToolContext, b: ToolContext) -> None: ...


class Service:
    """A service."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix

    def greet(self, name: str) -> str:
        """Greet somebody."""
        return f"{self.prefix} {name}"

    async def __call__(self, name: str) -> str:
        """Greet somebody later."""
        return f"{self.prefix}, later, {name}"


class Streaming:
    async def __call__(self, name: str) -> AsyncIterator[str]:
        yield name


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (starred, r"starred takes \*names"),
        (double_starred, r"double_starred takes \*\*names"),
        (positional, "takes name by position only"),
        (unresolvable, r"cannot be read \(NameError.*Missing"),
        (generator, "generator is a generator"),
        (async_generator, "async_generator is a generator"),
        (functools.partial(async_generator, 1), "async_generator is a generator"),
        (Streaming(), "Streaming is a generator"),
        (no_json, "takes value, whose type no JSON can carry.*complex"),
        (bad_union, "takes value, whose type no JSON can carry"),
        (raw, "use Any"),
        (two_contexts, "takes the context twice, as a and b"),
        (Service.greet, r"is not bound; declare the method of an object, as in `toolset.tool\(it.greet\)`"),
        (Service, "Service is a class"),
        (7, "7 cannot be called"),
        (dict.fromkeys, "fromkeys"),
        (lambda: None, "a lambda has no name"),
    ],
)
def test_what_no_model_could_call_is_refused_at_declaration(function: Any, text: str) -> None:
    toolset = Toolset()
    with pytest.raises(DeclarationError, match=text):
        toolset.tool(function)
    assert len(toolset) == 0


def test_an_annotation_of_the_result_may_be_anything() -> None:
    def fetch(n: int) -> Missing: ...

    assert declare(fetch).convert({"n": 1}) == {"n": 1}


def test_bound_methods_partials_and_callable_objects_are_tools() -> None:
    context = ToolContext(call_id="c", thread_id="t", run_id="r")
    service = Service("hello")
    method = declare(service.greet)
    assert (method.name, method.description, method.is_async) == ("greet", "Greet somebody.", False)
    assert method.bind(method.convert('{"name": "you"}'), context)() == "hello you"

    instance = declare(service)
    assert (instance.name, instance.description, instance.is_async) == ("Service", "Greet somebody later.", True)

    preset = declare(functools.partial(book, "Rome", nights=3), name="book_rome")
    assert isinstance(preset.parameters, dict)
    assert list(preset.parameters["properties"]) == ["room", "guest", "notes"]
    assert preset.description == "Book a room in a hotel."
    assert preset.bind(preset.convert("{}"), context)() == "Rome 3 single None None"
    assert refusal(preset, {"nights": 100}).path == "nights"


def test_a_wrapped_function_keeps_its_signature() -> None:
    @functools.wraps(book)
    def logged(*args: Any, **kwargs: Any) -> str:
        return book(*args, **kwargs)

    assert declare(logged).parameters == declare(book).parameters


def test_whether_a_handler_is_async_is_told() -> None:
    async def later(n: int) -> int:
        return n

    def now(n: int) -> int:
        return n

    assert declare(later).is_async
    assert declare(functools.partial(later, n=1)).is_async
    assert not declare(now).is_async


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "no JSON"),
        ('{"n": 1', "no JSON"),
        ('{"n": 1}}', "no JSON"),
        ('{"n": 01}', "no JSON"),
        ("{'n': 1}", "no JSON"),
        ('\ufeff{"n": 1}', "no JSON"),
        ('{"n": "\n"}', "no JSON"),
        ("null", "no JSON object: null"),
        ("[1]", "no JSON object"),
        ('"{}"', "no JSON object"),
        ('{"n": NaN}', "no number"),
        ('{"n": -Infinity}', "no number"),
        ('{"n": 1e999}', "no number"),
        ('{"n": ' + "9" * 5000 + "}", "too many digits"),
        ('{"n": 1, "n": 2}', 'the key "n" occurs twice'),
        ('{"n": 1, "\\u006e": 2}', 'the key "n" occurs twice'),
        ('{"n": "\\ud800"}', "no JSON value"),
        ('{"\\ud800": 1}', "is no text"),
        ('{"n": "\ud800"}', "no JSON value"),
        ('{"n":' + "[" * 201 + "]" * 201 + "}", "deeper than 200"),
        ('{"n":' + "[" * 100_000 + "]" * 100_000 + "}", "deeper than 200"),
        ('{"n":' + '{"n":' * 100_000, "deeper than 200"),
    ],
)
def test_broken_or_ambiguous_text_is_refused(text: str, problem: str) -> None:
    def take(n: Any = None) -> None: ...

    error = refusal(declare(take), text)
    assert problem in str(error)
    str(error).encode()
    error.value.encode()


def test_blank_text_is_an_empty_object() -> None:
    def take(n: Any = None) -> None: ...

    assert declare(take).convert(" \n") == {"n": None}


def test_escaped_pairs_and_deep_but_bounded_values_pass() -> None:
    def take(n: Any) -> None: ...

    assert declare(take).convert('{"n": "\\ud83d\\ude00"}') == {"n": "😀"}
    deep = "[" * 199 + "]" * 199
    assert declare(take).convert('{"n":' + deep + "}") == {"n": json.loads(deep)}


def test_objects_that_are_no_json_are_refused() -> None:
    def take(n: Any) -> None: ...

    cycle: list[Any] = []
    cycle.append(cycle)
    shared: list[Any] = []
    for _ in range(150):
        shared = [shared, shared]
    tool = declare(take)
    for value in ({1, 2}, object(), b"x", (1,), Size.SMALL, {1: 2}, float("nan"), 10**5000, "\ud800", cycle, shared):
        str(refusal(tool, {"n": value})).encode()
    assert refusal(tool, {"n": [0, {"a": {1}}]}).path == "n[1].a"
    for whole in (None, [1], 5):
        assert refusal(tool, whole).expected == "a JSON object"


def test_converted_arguments_share_nothing_with_the_given_object() -> None:
    def take(n: Any) -> None: ...

    given = {"n": [1]}
    declare(take).convert(given)["n"].append(2)
    assert given == {"n": [1]}


def test_a_failing_hook_of_a_type_is_an_invalid_argument() -> None:
    error = refusal(declare(use_picky), {"value": {"n": 1}})
    assert "could not be converted" in str(error)
    assert "secret" not in str(error)


class Picky(msgspec.Struct):
    n: int

    def __post_init__(self) -> None:
        raise KeyError("secret")


def use_picky(value: Picky) -> None: ...


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(
    st.text()
    | json_values.map(json.dumps)
    | st.dictionaries(st.sampled_from(["city", "guest", "room", "x"]), json_values)
)
def test_nothing_but_invalid_arguments_comes_out(arguments: Any) -> None:
    tool = declare(book)
    try:
        values = tool.convert(arguments)
    except InvalidArguments as error:
        str(error).encode()
    else:
        assert type(values["city"]) is str
        assert type(values["nights"]) is int
        assert values["room"] in ("single", "double")
