"""The table of rules: complete, one sentence each, and loaded by nobody who does not ask for it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agui_core.rules import AREAS, RULES, explain, near, rules_of
from support.corpora import PROJECT, shared_root

ID = re.compile(r"(?<![\w-])([A-Z][A-Z0-9]*)-(\d+[a-z]?)(?:\.\.(\d+))?(?![\w-])")
NO_AREAS = {"UTF", "SHA"}  # encodings and digests are written like rules


def cited(text: str) -> set[str]:
    """The rule ids in a text; `STR-1..3` names three."""
    found = set()
    for area, number, last in ID.findall(text):
        if area not in NO_AREAS:
            numbers = range(int(number), int(last) + 1) if last else [number]
            found.update(f"{area}-{each}" for each in numbers)
    return found


def test_citations_are_found() -> None:
    text = '[STR-2] "OPEN-24", PROC-10a; RUN-20..23 (UTF-8, SHA-256) x-ABC-1 NEW-7'
    assert cited(text) == {"STR-2", "OPEN-24", "PROC-10a", "RUN-20", "RUN-21", "RUN-22", "RUN-23", "NEW-7"}


@pytest.mark.parametrize("folder", ["agui_core", "tests", "benches", ".github", "README.md", "CHANGELOG.md"])
def test_every_rule_that_is_cited_is_in_the_table(folder: str) -> None:
    root = PROJECT / folder
    files = [root] if root.is_file() else [each for each in root.rglob("*") if each.suffix in (".py", ".md", ".mjs")]
    unknown = {
        f"{path.relative_to(PROJECT)}: {id}"
        for path in files
        if path != Path(__file__) and path.name != "test_cli_rules.py"
        for id in cited(path.read_text(encoding="utf-8"))
        if id not in RULES
    }
    assert not unknown


def test_each_rule_is_one_sentence_of_its_own() -> None:
    for id, text in RULES.items():
        assert re.fullmatch(r"(?:[A-Z]|`)(?:(?![.!?]\s)[^\n])+\.", text), id
        assert text == text.strip(), id
    assert len({text.lower() for text in RULES.values()}) == len(RULES)


def test_ids_are_in_the_order_of_areas_and_numbers() -> None:
    def place(id: str) -> tuple[int, int, str]:
        area, number, letter = re.fullmatch(r"(\w+)-(\d+)([a-z]?)", id).groups()  # type: ignore[union-attr]
        return list(AREAS).index(area), int(number), letter

    assert list(RULES) == sorted(RULES, key=place)
    assert {id.partition("-")[0] for id in RULES} == set(AREAS)


def test_the_table_has_the_ids_of_the_protocol_and_no_other() -> None:
    root = shared_root()
    if root is None or not (root / "PROTOCOL.md").is_file():
        pytest.skip("the protocol's rules are not here")
    text = (root / "PROTOCOL.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^- \*\*([A-Z][A-Z0-9]*-\d+[a-z]?)\*\*", text, re.MULTILINE)) == set(RULES)


def test_a_rule_is_looked_up_as_errors_write_it() -> None:
    assert explain("STR-2") == explain("[str-2]") == RULES["STR-2"]
    assert rules_of("PROC-10a") == {"PROC-10a": RULES["PROC-10a"]}
    assert list(rules_of("use")) == ["USE-1", "USE-2", "USE-3", "USE-4", "USE-5"]
    assert rules_of("USE-6") == rules_of("") == {}
    assert "PROC-10a" in near("PROC-10b")
    with pytest.raises(KeyError, match=r"STR-99.*STR-"):
        explain("STR-99")


def test_the_package_does_not_load_the_table() -> None:
    program = (
        "import agui_core as agui, sys; agui.Reducer().apply({'type': 'RUN_ERROR', 'message': 'x'});"
        "sys.exit(any(name.endswith(('.rules', '_rules')) and 'reducer' not in name for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program], cwd=PROJECT, check=False).returncode == 0
