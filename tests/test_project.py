"""What the project says of itself: its licence, and the Pythons and frameworks it names."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

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
