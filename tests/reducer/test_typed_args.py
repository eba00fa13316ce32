"""Reading a call's arguments as a type: whole ones exactly, growing ones as far as they fit."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Generic, Literal, NotRequired, TypedDict, TypeVar

import msgspec
import pytest

import agui_core as agui

UNSET = agui.UNSET
T = TypeVar("T")


class Guest(msgspec.Struct):
    name: str
    age: int = 0


class Booking(msgspec.Struct, rename="camel"):
    city: str
    room_kind: Literal["single", "double"]
    guests: list[Guest] = []
    when: date | None = None
    prices: dict[str, float] = {}


@dataclasses.dataclass
class Point:
    x: int
    y: int = 7
    near: list[Point] = dataclasses.field(default_factory=list)


class Query(TypedDict):
    text: str
    limit: NotRequired[int]
    top: NotRequired[Point]


class Circle(msgspec.Struct, tag="circle"):
    radius: float


class Square(msgspec.Struct, tag="square"):
    side: float
    corner: Guest | None = None


class Shapes(msgspec.Struct):
    main: Circle | Square
    more: list[Circle | Square | str] = []


class Box(msgspec.Struct, Generic[T]):
    content: T


class Colour(enum.Enum):
    RED = "red"


class Bounds(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=3)]
    tags: Annotated[list[str], msgspec.Meta(min_length=2)] = []
    colour: Colour = Colour.RED
    unique: set[int] = set()
    pair: tuple[int, str] = (0, "")
    anything: Any = None
    by_number: dict[int, Guest] = {}


def view(text: str, *, end: bool = False, name: str = "book") -> agui.ToolCallView:
    reducer = agui.Reducer()
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    reducer.apply({"type": "TOOL_CALL_START", "toolCallId": "c1", "toolCallName": name})
    if text:
        reducer.apply({"type": "TOOL_CALL_ARGS", "toolCallId": "c1", "delta": text})
    if end:
        reducer.apply({"type": "TOOL_CALL_END", "toolCallId": "c1"})
    return reducer.tool_calls["c1"]


def shown(value: Any) -> Any:
    """A partial object as plain JSON, so that it can be compared."""
    return msgspec.json.decode(msgspec.json.encode(value))


# --- args_as --------------------------------------------------------------------------------------------------------


def test_whole_arguments_become_the_type() -> None:
    text = (
        '{"city": "Rome", "roomKind": "double", "guests": [{"name": "Ann"}], "when": "2026-01-02", "prices": {"a": 1}}'
    )
    assert view(text, end=True).args_as(Booking) == Booking(
        "Rome", "double", [Guest("Ann")], date(2026, 1, 2), {"a": 1.0}
    )
    assert view('{"x": 1}', end=True).args_as(Point) == Point(1)
    assert view('{"text": "q", "top": {"x": 1}}', end=True).args_as(Query) == {"text": "q", "top": Point(1)}
    assert view('{"1": 2}', end=True).args_as(dict[int, int]) == {1: 2}
    assert view("", end=True).args_as(dict[str, int]) == {}


def test_what_comes_out_is_the_callers_own() -> None:
    call = view('{"a": [1, {"b": 2}]}', end=True)
    call.args_as(dict[str, Any])["a"][1]["b"] = 3
    assert call.args == {"a": [1, {"b": 2}]}


@pytest.mark.parametrize(
    ("text", "path", "problem"),
    [
        ('{"roomKind": "single"}', "city", "Object missing required field `city`"),
        ('{"city": 1, "roomKind": "single"}', "city", "Expected `str`, got `int`"),
        ('{"city": "x", "roomKind": "suite"}', "roomKind", "Invalid enum value 'suite'"),
        (
            '{"city": "x", "roomKind": "single", "guests": [{"name": "a"}, {"name": "b", "age": "9"}]}',
            "guests[1].age",
            "Expected `int`, got `str`",
        ),
        (
            '{"city": "x", "roomKind": "single", "guests": [{}]}',
            "guests[0].name",
            "Object missing required field `name`",
        ),
        ("[1]", "", "Expected `object`, got `array`"),
    ],
)
def test_what_does_not_fit_is_named(text: str, path: str, problem: str) -> None:
    with pytest.raises(agui.ArgumentsError) as caught:
        view(text, end=True).args_as(Booking)
    error = caught.value
    assert (error.call_id, error.tool, error.path, error.problem) == ("c1", "book", path, problem)
    for part in ("'c1'", "'book'", path, problem):
        assert part in str(error)


def test_a_bad_key_is_called_one() -> None:
    with pytest.raises(agui.ArgumentsError, match="a key: Expected `int`"):
        view('{"a": 1}', end=True).args_as(dict[int, int])


def test_open_and_broken_arguments_are_refused() -> None:
    with pytest.raises(agui.ArgumentsError, match=r"not complete.*\[TOOL-4\]"):
        view('{"x": 1}').args_as(Point)
    with pytest.raises(agui.ArgumentsError, match=r"no JSON document: character 5.*\[TOOL-5\]"):
        view('{"x":}', end=True).args_as(Point)
    with pytest.raises(agui.ArgumentsError, match="missing required field"):
        view("", end=True).args_as(Point)


def test_a_check_of_the_type_itself_counts() -> None:
    class Even(msgspec.Struct):
        n: int

        def __post_init__(self) -> None:
            if self.n % 2:
                raise ValueError("it has to be even\x1b[31m")

    with pytest.raises(agui.ArgumentsError, match="it has to be even") as caught:
        view('{"n": 3}', end=True).args_as(Even)
    assert "\x1b" not in str(caught.value)


# --- partial_as -----------------------------------------------------------------------------------------------------


def test_fields_appear_as_they_fit() -> None:
    text = '{"city": "Rome", "roomKind": "double", "guests": [{"name": "Ann", "age": 41}, {"name": "B'
    expected = {
        2: {},
        11: {"city": "R"},
        17: {"city": "Rome"},
        32: {"city": "Rome"},  # a literal is there when it is whole
        38: {"city": "Rome", "roomKind": "double"},
        len(text): {
            "city": "Rome",
            "roomKind": "double",
            "guests": [{"name": "Ann", "age": 41}, {"name": "B"}],
        },
    }
    for length, value in expected.items():
        assert shown(view(text[:length]).partial_as(Booking)) == value
    last = view(text).partial_as(Booking)
    assert type(last).__name__ == "PartialBooking"
    assert last.room_kind == "double"
    assert last.guests[1].name == "B"
    assert last.guests[1].age is UNSET
    assert last.when is UNSET
    with pytest.raises(AttributeError):
        last.city = "x"


def test_it_always_is_an_object() -> None:
    for text in ("", "[", '"x', "{}", "nul"):
        assert view(text).partial_as(Guest).name is UNSET
    assert view("").partial_as(list[int]) is UNSET


def test_dataclasses_and_typed_dicts() -> None:
    deep = view('{"x": 1, "near": [{"y": 2, "near": [{"x": ').partial_as(Point)
    assert (deep.x, deep.y) == (1, UNSET)
    assert deep.near[0].y == 2
    assert deep.near[0].near[0].x is UNSET
    query = view('{"text": "wh", "top": {"x": 3, ').partial_as(Query)
    assert (query.text, query.limit, query.top.x) == ("wh", UNSET, 3)


def test_unions_by_tag() -> None:
    assert view('{"main": {"radius": 1.5').partial_as(Shapes).main is UNSET
    text = '{"main": {"type": "square", "corner": {"name": "N'
    assert shown(view(text).partial_as(Shapes)) == {"main": {"type": "square", "corner": {"name": "N"}}}
    more = view('{"more": ["a", {"type": "circle"}, {"type": "squ').partial_as(Shapes).more
    assert more[0] == "a"
    assert type(more[1]).__name__ == "PartialCircle"
    assert len(more) == 2


def test_what_does_not_fit_stays_away() -> None:
    text = """{"name": "ab", "tags": ["x"], "colour": "blue", "unique": [1, 2, "x", 3], "pair": [1],
        "by_number": {"1": {"age": 3}, "x": {}}, "unknown": 1, "anything": {"a": [1, {"b":"""
    value = view(text).partial_as(Bounds)
    assert value.name is UNSET  # at least three characters
    assert value.tags == ["x"]  # bounds on the length of a list do not count
    assert value.colour is UNSET
    assert value.unique == {1, 2}
    assert value.pair is UNSET  # not whole yet
    assert value.by_number[1].age == 3
    assert list(value.by_number) == [1]
    assert value.anything == {"a": [1, {}]}
    assert view('{"name": "abc", "colour": "red", "pair": [1, "x"]').partial_as(Bounds).pair == (1, "x")


def test_generics_and_containers_at_the_top() -> None:
    assert view('{"content": {"name": "x').partial_as(Box[Guest]).content.name == "x"
    assert view('{"content": "x').partial_as(Box[int]).content is UNSET
    assert view('[{"name": "a"}, {').partial_as(Sequence[Guest])[0].name == "a"
    assert view('[1, 2, "x"').partial_as(tuple[int, ...]) == (1, 2)
    assert shown(view('{"a": {"name": "x').partial_as(dict[str, Guest])) == {"a": {"name": "x"}}


def test_broken_arguments_show_their_last_good_value() -> None:
    assert view('{"name": "Ann", "age": 1x', end=True).partial_as(Guest).name == "Ann"


def test_what_was_handed_out_does_not_grow() -> None:
    reducer = agui.Reducer()
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    reducer.apply({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "f"})
    seen = []
    for delta in ('{"content": [1, ', '{"a": [', "2, ", "3"):
        reducer.apply({"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": delta})
        seen.append(reducer.tool_calls["c"].partial_as(Box[Any]))
    assert [box.content for box in seen] == [[1], [1, {"a": []}], [1, {"a": [2]}], [1, {"a": [2]}]]


def test_derived_classes_are_made_once() -> None:
    assert type(view("{").partial_as(Booking)) is type(view('{"city": "x').partial_as(Booking))


# --- odd types and deep values --------------------------------------------------------------------------------------


class Chain(msgspec.Struct):
    next: Chain | None = None


def test_what_the_stack_has_no_room_for_is_left_out() -> None:
    def below(frames: int) -> Any:
        return below(frames - 1) if frames else view('{"next":' * 199).partial_as(Chain)

    found, depth = below(400), 0
    while found is not UNSET:
        found, depth = found.next, depth + 1
    assert depth > 20


@pytest.mark.parametrize("type", [Guest | None, Any, str, int | None, object, tuple[int, str]])
def test_there_is_nothing_before_the_first_character(type: Any) -> None:
    assert view("").partial_as(type) is UNSET


class Model:
    """As a class of pydantic looks."""

    __pydantic_validator__ = None


def test_a_pydantic_model_is_refused_with_the_way_out() -> None:
    for read in (view("{}").partial_as, view("{}", end=True).args_as):
        with pytest.raises(TypeError, match=r"Model is a pydantic model; .* Model\.model_validate\(call\.args\)"):
            read(Model)


def test_a_key_that_is_no_name_cannot_be_an_attribute() -> None:
    with pytest.raises(TypeError, match="Dashed has a key that is no name of an attribute: 'x-y'"):
        view("{}").partial_as(TypedDict("Dashed", {"x-y": int}))
