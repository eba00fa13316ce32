"""The public shapes corpus: valid documents decode and encode to themselves, invalid ones are judged as PROC-9 says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agui_core.errors import ProtocolError
from agui_core.protocol import content, events, messages, run
from agui_core.warnings import WarningLog
from agui_core.wire import Decoder, to_wire, validate

SHARED = Path(os.environ.get("AGUI_SHARED") or Path(__file__).parents[3] / "shared")
CORPUS = SHARED / "conformance" / "shapes.json"
CASES: list[dict[str, Any]] = json.loads(CORPUS.read_text()) if CORPUS.is_file() else []


def struct_of(name: str) -> Any:
    name = {"Tool": "ToolDeclaration"}.get(name, name)  # `Tool` is what an application declares
    return next(getattr(module, name) for module in (events, messages, run, content) if hasattr(module, name))


def read(case: dict[str, Any], log: WarningLog) -> Any:
    if case["definition"].endswith("Event"):
        return Decoder(log).to_event(case["instance"])
    return Decoder(log).to_shape(case["instance"], struct_of(case["definition"]))


def name(case: dict[str, Any]) -> str:
    return f"{case['definition']}-{case['name']}"


@pytest.mark.parametrize("case", [case for case in CASES if case["valid"]], ids=name)
def test_a_valid_shape_survives_reading_and_writing(case: dict[str, Any]) -> None:
    log = WarningLog()
    struct = read(case, log)
    assert type(struct) is struct_of(case["definition"])
    validate(struct)
    expected = dict(case["instance"])
    if expected.get("rawEvent", 0) is None:  # OPEN-20
        del expected["rawEvent"]
        assert [warning.rule for warning in log] == ["OPEN-20"]
    else:
        assert list(log) == []
    assert to_wire(struct) == expected


REMOVED = ("const", "enum", "unevaluatedProperties")
"""What the corpus calls the violation where the protocol removes and goes on."""


def tolerated(case: dict[str, Any]) -> bool:
    """Whether the document is stripped (PROC-9), or translated (OPEN-20, OLD-2), and not refused."""
    if case["name"] in ("outcome-null", "parent-message-id-null"):
        return case["definition"] != "SubagentFinishedEvent"
    part = case["keyword"] == "oneOf" and any(word in case["name"] for word in ("unknown", "shaped-like", "legacy"))
    return part or (case["keyword"] in REMOVED and case["definition"] != "ResumeEntry")


@pytest.mark.parametrize("case", [case for case in CASES if not case["valid"] and tolerated(case)], ids=name)
def test_tolerated_shapes(case: dict[str, Any]) -> None:
    log = WarningLog()
    struct = read(case, log)
    assert len(log) > 0
    assert all(warning.path.startswith(case["at"]) or case["at"].startswith(warning.path) for warning in log)
    if struct is not None:
        assert to_wire(struct) != case["instance"]
        validate(struct)


@pytest.mark.parametrize("case", [case for case in CASES if not case["valid"] and not tolerated(case)], ids=name)
def test_an_invalid_shape_is_refused_at_its_place(case: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError) as caught:
        read(case, WarningLog())
    assert case["at"] in str(caught.value)
