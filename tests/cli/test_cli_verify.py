"""`agui verify`: every violation, with its line, event and rule."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import agui_core
from agui_core.cli.input import RecordedInput
from agui_core.cli.line_numbers import LineNumbers
from support.events import FINISHED, STARTED
from support.properties import examples
from support.strategies import mutated_streams

Run = Callable[..., Any]
Write = Callable[[Iterable[Any]], Path]
SAMPLE = Path(agui_core.__file__).parent / "cli" / "samples" / "weather.sse"

OPEN = {"type": "TEXT_MESSAGE_START", "messageId": "m"}
TEXT = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}
CLOSE = {"type": "TEXT_MESSAGE_END", "messageId": "m"}


def found(ran: Any) -> list[tuple[str, int, int | None, str]]:
    return [(it["level"], it["line"], it["index"], it["rule"]) for it in ran.json["violations"]]


def test_a_clean_stream_is_quiet(agui: Run) -> None:
    ran = agui("verify", SAMPLE)
    assert (ran.status, ran.out) == (0, "")
    assert ran.err == f"{SAMPLE}: 48 events, no violations\n"
    ran = agui("verify", "--json", SAMPLE)
    assert ran.status == 0
    assert ran.json == {
        "violations": [],
        "file": str(SAMPLE),
        "format": "SSE",
        "events": 48,
        "errors": 0,
        "warnings": 0,
        "status": "interrupted",
    }


def test_one_violation_does_not_hide_the_next(agui: Run, sse: Write) -> None:
    events: list[Any] = [
        STARTED,
        TEXT,  # 3: never opened
        OPEN,  # 5: open already, by the repair
        {"type": "STEP_FINISHED", "stepName": "s"},  # 7
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": 7},  # 9
        {"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "/a"}], "extra": 1},  # 11
        {"type": "SOMETHING_NEW"},  # 13
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "other"},  # 15
    ]
    path = sse(events)
    ran = agui("verify", path)
    assert ran.status == 1
    lines = ran.out.splitlines()
    heads = [line.removeprefix(f"{path}:").split(": ")[:3] for line in lines]
    rules = [line.rsplit(" ", 1)[1] for line in lines]
    assert [(*head, rule) for head, rule in zip(heads, rules, strict=True)] == [
        ("3", "error", "event 1 TEXT_MESSAGE_CONTENT", "[STR-2]"),
        ("5", "error", "event 2 TEXT_MESSAGE_START", "[STR-1]"),
        ("7", "error", "event 3 STEP_FINISHED", "[STEP-3]"),
        ("9", "error", "event 4 TEXT_MESSAGE_CONTENT", "[PROC-7]"),
        ("11", "warning", "event 5 STATE_DELTA", "[PROC-5]"),
        ("11", "warning", "event 5 STATE_DELTA", "[PATCH-5]"),
        ("13", "warning", "event 6 SOMETHING_NEW", "[PROC-4]"),
        ("15", "error", "event 7 RUN_FINISHED", "[RUN-4]"),
        ("15", "warning", "event 7 RUN_FINISHED", "[OPEN-1]"),
    ]
    assert ran.err == f"{path}: 8 events, 5 errors, 4 warnings\n"
    ran = agui("verify", "--json", path)
    assert [it[1:] for it in found(ran)] == [
        (int(line), int(event.split()[1]), rule[1:-1]) for (line, _, event), rule in zip(heads, rules, strict=True)
    ]
    assert (ran.json["errors"], ran.json["warnings"], ran.json["events"]) == (5, 4, 8)
    assert ran.json["violations"][4]["path"] == "/extra"


def test_repeats_are_reported_one_by_one(agui: Run, sse: Write) -> None:
    ran = agui("verify", "--json", sse([STARTED, OPEN, *[{**TEXT, "x": 1}] * 3, CLOSE, *[CLOSE] * 3, FINISHED]))
    assert found(ran) == [
        *(("warning", 2 * index + 1, index, "PROC-5") for index in (2, 3, 4)),
        *(("error", 2 * index + 1, index, "STR-2") for index in (6, 7, 8)),
    ]


def test_what_lenient_forgives_is_an_error_all_the_same(agui: Run, sse: Write) -> None:
    """EVT-8, PATCH-2, SSE-8."""
    path = sse(
        [STARTED, {**OPEN, "name": None, "metadata": None}, {"type": "STATE_DELTA", "delta": [{}]}, 7, CLOSE, FINISHED]
    )
    assert found(agui("verify", "--json", path)) == [
        ("error", 3, 1, "EVT-8"),
        ("error", 3, 1, "EVT-8"),
        ("error", 5, 2, "PROC-10a"),
        ("error", 7, 3, "SSE-8"),
    ]


def test_warnings_fail_only_when_asked(agui: Run, sse: Write) -> None:
    path = sse([STARTED, {"type": "NEWS"}, FINISHED])
    assert agui("verify", path).status == 0
    assert agui("verify", "--fail-on-warnings", path).status == 1


def test_a_failed_run_is_no_violation_but_an_open_one_is(agui: Run, sse: Write) -> None:
    """RUN-18, RUN-17."""
    ran = agui("verify", sse([STARTED, OPEN, {"type": "RUN_ERROR", "message": "no"}]))
    assert (ran.status, ran.out) == (0, "")
    assert found(agui("verify", "--json", sse([STARTED, OPEN]))) == [("error", 5, None, "RUN-17")]
    ran = agui("verify", "--json", "-", stdin=b"not a stream\n")
    assert (ran.status, found(ran)) == (1, [("error", 2, None, "RUN-17")])
    assert ran.json["file"] == "<stdin>"


def test_a_block_without_its_blank_line(agui: Run) -> None:
    """SSE-12."""
    stream = f"data: {json.dumps(STARTED)}\n\ndata: {json.dumps(FINISHED)}\n".encode()
    assert found(agui("verify", "--json", "-", stdin=stream)) == [
        ("warning", 3, None, "SSE-12"),
        ("error", 4, None, "RUN-17"),
    ]


def test_a_run_input_is_the_ground_to_stand_on(agui: Run, sse: Write, tmp_path: Path) -> None:
    path = sse([STARTED, {"type": "STATE_DELTA", "delta": [{"op": "test", "path": "/n", "value": 1}]}, FINISHED])
    assert [it[3] for it in found(agui("verify", "--json", path))] == ["PATCH-5"]
    run_input = tmp_path / "input.json"
    run_input.write_text(json.dumps({"threadId": "t", "runId": "r", "messages": [], "state": {"n": 1}}))
    assert found(agui("verify", "--json", "--input", run_input, path)) == []


def test_lines_are_those_of_the_file(agui: Run) -> None:
    bad = json.dumps(CLOSE)
    stream = (
        f"\ufeff: hello\r\n\r\nid: 1\r\nevent: x\r\ndata: {json.dumps(STARTED)}\r\n\r\n"  # 1 to 6
        f"retry: 3\r\rdata:{bad[:8]}\rdata: {bad[8:]}\r\r"  # 7 to 11; begins at 9
        f"\n\n:\ndata: {bad}\n\n"  # 12 to 16; begins at 15
        f"data: {json.dumps(FINISHED)}\n\n"
    )
    # The second \n here belongs to the \r before it.
    ran = agui("verify", "--json", "-", stdin=stream.encode())
    assert found(ran) == [("error", 9, 1, "STR-2"), ("error", 14, 2, "STR-2")]
    lines = f"\n\n{json.dumps(STARTED)}\r\n \t\r\n{bad}\n\r\n{bad}\n{json.dumps(FINISHED)}"
    assert found(agui("verify", "--json", "-", stdin=lines.encode())) == [
        ("error", 5, 1, "STR-2"),
        ("error", 7, 2, "STR-2"),
    ]


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(["\n", "\r", "\r\n", "data", "data: 1", "data:", ": c", "id", "{}", "d", "x"])), st.data()
)
def test_lines_do_not_depend_on_where_the_bytes_are_cut(parts: list[str], data: st.DataObject) -> None:
    text = "".join(parts).encode()
    for json_lines in (False, True):
        whole = list(LineNumbers(_Cut(text, [len(text)], json_lines), 1000))
        sizes = data.draw(st.lists(st.integers(1, 4), max_size=20))
        assert list(LineNumbers(_Cut(text, [*sizes, len(text)], json_lines), 1000)) == whole
        if json_lines:
            starts = [number for number, line in enumerate(text.split(b"\n"), 1) if line.strip(b" \t\r")]
            assert [line for line, _ in whole] == starts


class _Cut(RecordedInput):
    """A source of bytes in pieces of these sizes."""

    def __init__(self, text: bytes, sizes: list[int], json_lines: bool) -> None:
        super().__init__("-")
        self.json_lines = json_lines
        self._pieces = []
        for size in sizes:
            self._pieces.append(text[:size])
            text = text[size:]

    def __iter__(self) -> Any:
        return (piece for piece in self._pieces if piece)


def test_a_limit_ends_the_check(agui: Run, sse: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    ran = agui("verify", "--json", sse([STARTED, CLOSE, {"type": "STATE_SNAPSHOT", "snapshot": deep}, CLOSE]))
    assert ran.status == 1
    assert found(ran) == [("error", 3, 1, "STR-2"), ("error", 5, 2, "Limits.nesting")]
    huge = b"data: " + b" " * (17 * 1024 * 1024)
    ran = agui("verify", "--json", "-", stdin=f"data: {json.dumps(STARTED)}\n\n".encode() + huge)
    assert found(ran) == [("error", 3, 1, "Limits.event_bytes")]


def test_findings_cannot_act_on_the_terminal(agui: Run, sse: Write) -> None:
    evil = "\x1b[2J\n\u202e"
    path = sse([STARTED, {**CLOSE, "messageId": evil}, {"type": evil}, {**OPEN, evil: 1}, CLOSE, FINISHED])
    ran = agui("verify", path)
    assert not set(ran.out + ran.err) & set("\x1b\u202e")
    assert len(ran.out.splitlines()) == 3
    assert agui("verify", "--json", path).json["violations"][1]["type"] == evil


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(mutated_streams())
def test_errors_are_what_strict_refuses(agui: Run, case: dict[str, Any]) -> None:
    """The first error is the event that `reduce` stops at; there is none when it does not."""
    stream = "".join(f"{json.dumps(event)}\n" for event in case["events"]).encode()
    refusal = agui("reduce", "--json", "-", stdin=stream).json["error"]
    findings = agui("verify", "--json", "-", stdin=stream).json["violations"]
    errors = [it for it in findings if it["level"] == "error" and it["index"] is not None]
    if refusal is None:
        assert errors == []
    else:
        assert errors[0]["index"] == refusal["index"]
        # Of a null that it forgives, lenient says EVT-8, and strict the rule of the field.
        assert errors[0]["rule"] in (refusal["rule"], "EVT-8")
