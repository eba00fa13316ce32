"""Attacks on the time that checking arguments takes: what a schema costs has to be what its limit says."""

from __future__ import annotations

from typing import Any

import pytest

import agui_core as agui
from agui_core.tools import InvalidArguments
from support.call_streams import call, kinds, run, thread

pytest.importorskip("jsonschema_rs")

LONG = 10**4_200
BIG = 2**63


def tool(**schema: Any) -> agui.Tool:
    parameters = {"type": "object", "properties": {"a": schema}}
    return agui.Toolset().add({"name": "t", "description": "d", "parameters": parameters}, handler=dict)


UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}
TEXT = "x" * 1_000_000


def either(number: int, one: Any, other: Any) -> list[Any]:
    return [one if number >> bit & 1 else other for bit in range(20)]


def many(schema: dict[str, Any], times: int) -> dict[str, Any]:
    """A schema that is asked so many times about the same value."""
    return {"$defs": {"x": schema}, "allOf": [{"$ref": "#/properties/a/$defs/x"} for _ in range(times)]}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (UNIQUE, [LONG + n for n in range(80)]),  # 336 KB: it took 48 s
        (UNIQUE, [-LONG - n for n in range(80)]),
        (UNIQUE, [BIG + n for n in range(2_000)]),
        (UNIQUE, [[[BIG + n]] for n in range(2_000)]),
        (UNIQUE, [{"x": LONG + n} for n in range(80)]),
        (UNIQUE, [*range(2_000), BIG]),
        (UNIQUE, [{"x": n} for n in range(2_000)]),
        (UNIQUE, [[{"x": n}] for n in range(2_000)]),
        ({"items": {"const": LONG}}, [LONG] * 3_000),
        ({"items": {"const": [LONG]}}, [[LONG]] * 3_000),
        ({"items": {"enum": [LONG - n for n in range(50)]}}, [LONG - 100] * 100),
        ({"items": {"multipleOf": 3}}, [LONG] * 300),
        ({"items": {"multipleOf": 0.01}}, [LONG] * 300),
        ({"items": {"multipleOf": 1e-300}}, [12345] * 40_000),
        ({"items": {"multipleOf": 0.1}}, [1e-300] * 40_000),
        ({"items": {"minimum": 1, "maximum": 10 * LONG}}, [LONG] * 2_000),
        ({"contains": {"const": LONG}}, [LONG + 1] * 2_000),
        ({"allOf": [UNIQUE] * 20}, [BIG + n for n in range(300)]),
        ({"items": UNIQUE}, [[BIG + n for n in range(300)]] * 20),
        (UNIQUE, [either(n, [0], 0) for n in range(10_000)]),  # they are hashed alike, as the next ones are
        (UNIQUE, [either(n, False, 0) for n in range(10_000)]),
        (UNIQUE, [either(n, True, 5e-324) for n in range(10_000)]),
        (UNIQUE, [either(n, None, 3221225473 * 5e-324) for n in range(10_000)]),
        (UNIQUE, [2**61 + n for n in range(100_000)]),  # 512 of them are one float
        (UNIQUE, [[2**61 + n % 100, 2**61 + n // 100] for n in range(10_000)]),
        (UNIQUE, [{**dict.fromkeys(map(str, range(400)), 0), "x": either(n, [0], 0)} for n in range(800)]),
        ({"items": UNIQUE}, [[n + 0.5 for n in range(15)]] * 20_000),  # so few are compared without hashes
        (many(UNIQUE, 4_000), [TEXT + str(n) for n in range(10)]),
        (many({"const": TEXT}, 6_000), TEXT),
        ({"items": {"not": {"const": 1e-300}}}, [1e-301] * 50_000),
        ({"items": {"not": {"enum": [1e-300 * n for n in range(1, 1_000)]}}}, [5] * 300),
        ({"items": {"not": {"enum": [LONG + n for n in range(1_000)]}}}, [5] * 300),
        ({"items": {"not": {"const": [LONG]}}}, [[5]] * 50_000),
        ({"items": {"multipleOf": 1e-300}}, [12_345_678_901] * 100_000),
        ({"items": {"multipleOf": 5}}, [1e300] * 100_000),
        ({"items": {"type": "number"}}, [LONG] * 3_000),
        (many({"format": "iri"}, 100), TEXT),
        (many({"contentMediaType": "application/json"}, 100), TEXT),
        (many({"contentEncoding": "base64"}, 100), TEXT),
    ],
)
def test_too_much_comparing_is_refused_before_it_begins(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(InvalidArguments, match="too large or too nested to be checked"):
        tool(**schema).convert({"a": value})


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (UNIQUE, list(range(20_000))),
        (UNIQUE, [f"name {n}" for n in range(20_000)]),
        (UNIQUE, [n + 0.5 for n in range(5_000)]),
        (UNIQUE, [{"id": n} for n in range(500)]),
        (UNIQUE, [{f"x{m}": n + 0.5 for m in range(5)} for n in range(400)]),
        (UNIQUE, [BIG + n for n in range(300)]),
        ({"type": "array"}, [LONG] * 1_000),
        ({"const": LONG}, LONG),
        ({"multipleOf": 10}, LONG),
        ({"enum": [LONG, "x"]}, LONG),
        ({"items": {"multipleOf": 0.5}}, [1.5] * 10_000),
        ({"items": {"multipleOf": 0.01}}, list(range(50_000))),
        ({"items": {"multipleOf": 5}}, list(range(0, 500_000, 5))),
        ({"items": {"type": "number"}}, [n + 0.5 for n in range(50_000)]),
        ({"items": {"enum": ["a", "b", 0.5]}}, ["a"] * 50_000),
        ({"items": {"minimum": 0, "maximum": 1}}, [0.5] * 50_000),
        (UNIQUE, [[n, n + 0.5] for n in range(20_000)]),
        (UNIQUE, [[[n, n], [n, n + 1]] for n in range(20_000)]),
        (UNIQUE, [["name", n, n % 2 == 0, None] for n in range(20_000)]),
        (UNIQUE, [1_700_000_000_000_000_000 + 1_000_003 * n for n in range(20_000)]),
        ({"items": UNIQUE}, [[f"tag {n}" for n in range(10)]] * 20_000),
        ({"contentEncoding": "base64"}, "abcd" * 2_000_000),
        ({"maxLength": 10_000_000}, "x" * 10_000_000),
    ],
)
def test_what_is_affordable_is_checked(schema: dict[str, Any], value: Any) -> None:
    assert tool(**schema).convert({"a": value}) == {"a": value}


def test_a_failure_is_not_explained_where_that_takes_longer_than_the_check() -> None:
    tries = {"anyOf": [{"type": "boolean"}] * 2_000}
    for value in ("x" * 1_000_000, list(range(100_000))):
        with pytest.raises(InvalidArguments, match="do not fit the schema of the tool"):
            tool(**tries).convert({"a": value})
    with pytest.raises(InvalidArguments, match="argument a: "):
        tool(**tries).convert({"a": "short"})


def test_what_is_wrong_is_still_found() -> None:
    for schema, value in ((UNIQUE, [LONG, LONG]), (UNIQUE, [{"a": 1}, {"a": 1}]), ({"multipleOf": 7}, LONG)):
        with pytest.raises(InvalidArguments):
            tool(**schema).convert({"a": value})


@pytest.mark.anyio
async def test_such_a_call_is_answered_as_invalid() -> None:
    toolset = agui.Toolset()
    toolset.add({"name": "t", "description": "d", "parameters": {"properties": {"a": UNIQUE}}}, dict, effects=False)
    numbers = ", ".join(str(LONG + n) for n in range(80))
    calls = thread(toolset, run("r", call("a", "t", f'{{"a": [{numbers}]}}')))
    await calls.answer()
    assert kinds(calls) == {"a": "invalid"}
