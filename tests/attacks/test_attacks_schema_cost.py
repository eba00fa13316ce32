"""Attacks on the time that checking arguments takes: what a schema costs has to be what its limit says."""

from __future__ import annotations

from typing import Any

import pytest
from call_streams import call, kinds, run, thread

import agui_core as agui
from agui_core.tools import InvalidArguments

pytest.importorskip("jsonschema_rs")

LONG = 10**4_200
BIG = 2**63


def tool(**schema: Any) -> agui.Tool:
    parameters = {"type": "object", "properties": {"a": schema}}
    return agui.Toolset().add({"name": "t", "description": "d", "parameters": parameters}, handler=dict)


UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}


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
        (UNIQUE, [BIG + n for n in range(300)]),
        ({"type": "array"}, [LONG] * 1_000),
        ({"const": LONG}, LONG),
        ({"multipleOf": 10}, LONG),
        ({"enum": [LONG, "x"]}, LONG),
        ({"items": {"multipleOf": 0.5}}, [1.5] * 10_000),
    ],
)
def test_what_is_affordable_is_checked(schema: dict[str, Any], value: Any) -> None:
    assert tool(**schema).convert({"a": value}) == {"a": value}


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
