"""`agui demo`: the assistant's tools, its stream, and its answers."""

from __future__ import annotations

import io
import json
import subprocess
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from agui_core.cli.demo import demo_loop
from agui_core.cli.demo_agent import calculate_expression, toolset
from agui_core.cli.main import main
from agui_core.reducer import Reducer
from agui_core.tools import InvalidArguments, ToolError
from support.clocks import PATIENCE

Run = Callable[..., Any]
QUESTION = "What is the gain on 100 AAPL shares bought at 150?"
ANSWER = "The gain on 100 AAPL shares bought at 150 is 2815.00."


def test_the_stream_and_the_answer(agui: Run) -> None:
    ran = agui("demo", QUESTION)
    lines = [line.split(None, 1) for line in ran.out.splitlines()]
    assert (ran.status, ran.err) == (0, "")
    assert [line[0] for line in lines[:-2]] == [
        "RUN_STARTED",
        *["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"] * 2,
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert lines[4] == ["TOOL_CALL_RESULT", '{"symbol":"AAPL","price":"178.15"}']
    assert lines[6] == ["TOOL_CALL_ARGS", '{"expression":"(178.15 - 150) * 100"}']
    assert lines[8] == ["TOOL_CALL_RESULT", "2815.00"]
    assert ran.out.endswith(f"\n\n{ANSWER}\n")


def test_it_answers_the_same_each_time_and_by_default(agui: Run) -> None:
    assert agui("demo", "--json", QUESTION) == agui("demo", "--json", QUESTION) == agui("demo", "--json")


def test_as_json_it_is_a_stream_for_the_other_commands(agui: Run) -> None:
    lines = agui("demo", "--json", QUESTION).out
    reducer = Reducer()
    reducer.apply_lines(lines.encode())
    assert reducer.status == "finished"
    assert reducer.run.result["final_output"] == ANSWER
    assert reducer.run.result["tool_call_count"] == 2
    verified = agui("verify", "-", stdin=lines.encode())
    assert verified.status == 0, verified.out


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (
            "what is the gain on 1,000 msft shares bought for $400.5",
            "The gain on 1000 MSFT shares bought at 400.5 is 10720.00.",
        ),
        ("What is the price of MSFT?", "One MSFT share costs 411.22."),
        ("What is 2 * (3 + 4)?", "2 * (3 + 4) = 14"),
        ("What is AG-UI?", "AG-UI is an event protocol between agents and applications."),
        ("price of ZZZ", "I cannot say: there is no price for 'ZZZ', only for AAPL, GOOG, MSFT"),
        ("What is 1 / 0?", "I cannot say: a division by zero has no value"),
        ("xyzzy", "I cannot say: nothing was found"),
    ],
)
def test_questions_of_each_kind_are_answered(agui: Run, question: str, answer: str) -> None:
    ran = agui("demo", question)
    assert (ran.status, ran.out.splitlines()[-1]) == (0, answer)


def test_a_blank_question_is_wrong_use(agui: Run) -> None:
    ran = agui("demo", " ")
    assert (ran.status, ran.out) == (2, "")
    assert "the question is blank" in ran.err


def test_a_question_is_shown_inert(agui: Run) -> None:
    out = agui("demo", "\x1b[31mAG-UI\u202e \udcff").out
    assert "\x1b" not in out
    assert "\u202e" not in out


def test_every_event_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    class Output(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            written.append(bytes(data))
            return len(data)

    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(Output()), encoding="utf-8"))
    assert main(["demo", "--json"]) == 0
    assert [json.loads(piece)["type"] for piece in written][0::12] == ["RUN_STARTED", "RUN_FINISHED"]


def test_in_a_process_of_its_own(process: Callable[..., subprocess.Popen[bytes]]) -> None:
    demo = process("demo")
    out, errors = demo.communicate(timeout=PATIENCE)
    assert (demo.returncode, errors) == (0, b"")
    assert out.decode().splitlines()[-1] == ANSWER


def test_the_assistant_has_three_tools() -> None:
    names = ["search_information", "get_stock_price", "calculate_expression"]
    assert [tool.name for tool in demo_loop().toolset] == names
    assert all(tool.description and tool.approval == "never" for tool in toolset)


# --- calculating --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("(178.15 - 150) * 100", "2815.00"),
        ("0.1 + 0.2", "0.3"),
        ("1 + 2 * 3 - 4 / 2", "5"),
        ("8 / 4 / 2", "1"),
        ("1 - 2 - 3", "-4"),
        ("-(2 + 3) * -+-2", "-10"),
        (".5 + 1.", "1.5"),
        ("1 / 3", "0.3333333333333333333333333333"),
        ("1 / 3 * 3", "1"),
        ("9" * 100 + "*" + "9" * 99, str(int("9" * 100) * int("9" * 99))),
        ("(" * 99 + "1" + ")" * 99, "1"),
    ],
)
def test_calculating_is_exact(expression: str, value: str) -> None:
    assert calculate_expression(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "2 ** 3",
        "2 ^ 3",
        "1e9",
        "1 +",
        "(1",
        "1)",
        "1 2",
        "1,5",
        "x",
        "__import__('os')",
        "1 // 2",
        "5 % 2",
        "\u0661",
        ".",
        "1 / 0",
        "0 / 0",
    ],
)
def test_what_is_no_expression(expression: str) -> None:
    with pytest.raises(ToolError):
        calculate_expression(expression)


def test_an_expression_has_at_most_200_characters() -> None:
    tool = toolset["calculate_expression"]
    assert tool.convert(msgspec.json.encode({"expression": "1" * 200}).decode()) == {"expression": "1" * 200}
    with pytest.raises(InvalidArguments):
        tool.convert(msgspec.json.encode({"expression": "1" * 201}).decode())
