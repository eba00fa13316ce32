"""`agui rules`: the rule ids of errors and warnings, explained."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agui_core.rules import AREAS, RULES

Run = Callable[..., Any]


def test_one_rule_is_one_line(agui: Run) -> None:
    assert agui("rules", "STR-2") == (0, f"STR-2  {RULES['STR-2']}\n", "")


@pytest.mark.parametrize("name", ["str-2", "[STR-2]", "STR-2,"])
def test_an_id_is_found_as_it_is_pasted(agui: Run, name: str) -> None:
    assert agui("rules", name).out.startswith("STR-2 ")


def test_an_area_stands_for_its_rules_in_order(agui: Run) -> None:
    ran = agui("rules", "STR", "PROC-10a")
    assert ran.status == 0
    assert [line.split()[0] for line in ran.out.splitlines()] == [*(f"STR-{n}" for n in range(1, 9)), "PROC-10a"]


def test_all_rules_are_headed_by_their_area(agui: Run) -> None:
    lines = agui("rules").out.splitlines()
    assert [line.split()[0] for line in lines if line[:1].isalpha() and "-" in line.split()[0]] == list(RULES)
    assert [line for line in lines if line.partition(": ")[0] in AREAS] == [
        f"{a}: {title}" for a, title in AREAS.items()
    ]


def test_json_is_an_object_by_id(agui: Run) -> None:
    assert agui("rules", "--json").json == RULES
    assert agui("rules", "--json", "CAP-2").json == {"CAP-2": RULES["CAP-2"]}


@pytest.mark.parametrize(("name", "near"), [("STR-99", "STR-"), ("STRR", "STR"), ("OPN-2", "OPEN-2"), ("", "")])
def test_an_unknown_id_is_wrong_use_and_names_what_is_near(agui: Run, name: str, near: str) -> None:
    ran = agui("rules", "STR-1", name)
    assert (ran.status, ran.out) == (2, "")
    assert f"there is no rule {name!r}" in ran.err
    assert near in ran.err.partition("near it: ")[2]


def test_an_unknown_id_cannot_write_to_the_terminal(agui: Run) -> None:
    ran = agui("rules", "\x1b[2J\nSTR-1")
    assert ran.status == 2
    assert ran.err.count("\n") == 1
    assert "\x1b" not in ran.err
