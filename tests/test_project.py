"""What the project says of itself: its licence and classifiers, and where its documents send people."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_licence_text_is_in_the_package_and_named_as_license_file() -> None:
    [name] = PROJECT["license-files"]
    assert PROJECT["license"] == "MIT"
    assert (ROOT / name).parent.name == "agui_core"
    assert (ROOT / name).read_text(encoding="utf-8").startswith("MIT License\n")


def test_the_classifiers_are_sorted_and_leave_the_licence_to_its_field() -> None:
    classifiers = PROJECT["classifiers"]
    assert classifiers == sorted(set(classifiers))
    assert not [each for each in classifiers if each.startswith("License ::")]


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "SECURITY.md"])
def test_the_documents_name_files_that_are_there(name: str) -> None:
    text = (ROOT / ".github" / name).read_text(encoding="utf-8")
    named = set(re.findall(r"(?<![\w/.])(?:agui_core|tests|benches|\.ci)/[\w./]+\w", text))
    assert not {path for path in named if not (ROOT / path).exists()}


def test_the_tables_that_contributors_are_sent_to_are_in_their_files() -> None:
    text = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = re.findall(r"`(agui_core/[\w/]+\.py)`[^`\n]*`(_[A-Z]+)`", text)
    named += [(path, table) for table, path in re.findall(r"`(_[A-Z]+)` in `(agui_core/[\w/]+\.py)`", text)]
    assert len(named) >= 5
    for path, table in named:
        assert re.search(rf"^{table}\b", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, table)


def test_the_security_document_is_short_and_the_readme_has_what_it_points_to() -> None:
    text = (ROOT / ".github" / "SECURITY.md").read_text(encoding="utf-8")
    [title] = re.findall(r'"(Security: [^"]+)"', text)
    assert f"## {title}\n" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 25
