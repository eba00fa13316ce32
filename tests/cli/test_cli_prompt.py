"""Attacks on the prompt of `agui chat`: nothing from the wire passes for our words, or pushes them away."""

from __future__ import annotations

import json
from typing import Any

import pytest
from endpoint import call, endpoint

import agui_core
from agui_core.cli.safe import wrapped

SCREEN = 24


def ask(
    agui: Any, lines: str, arguments: str, *, name: str = "delete", id: str = "c", **fields: Any
) -> tuple[Any, Any]:
    """A talk with one question; what was printed, and what the agent was told."""

    def answer(run_input: Any) -> list[Any]:
        if "resume" in run_input:
            return []
        interrupt = {"id": "i", "reason": "tool_call", "toolCallId": id, **fields}
        outcome = {"type": "interrupt", "interrupts": [interrupt]}
        return [*call(id, name, arguments), {"type": "RUN_FINISHED", "outcome": outcome}]

    with endpoint(answer) as served:
        ran = agui("chat", served.url, stdin=f"go\n{lines}\n".encode())
    return ran, served.inputs[-1].get("resume")


def screen(out: str, ending: str) -> list[str]:
    """The last lines before a prompt, as a terminal of 80 cells wraps them."""
    head = out[: out.index(ending) + len(ending)]
    return [row for line in head.split("\n") for row in wrapped(line, 80)][-SCREEN:]


FLOODS = [
    '{"path": "/", "pad": "' + "x" * 20_000 + '"}',
    '{"pad": "' + " " * 20_000 + '", "path": "/"}',
    '{"path": "/"' + "\n" * 500 + ', "pad": 1}',
    '{"path": "/", "pad": "' + "\\n" * 5_000 + '"}',
    '{"path": "/", "pad": "' + "あ" * 5_000 + '"}',
    '{"path": "/"' + " " * 9 + ', "a": 1' + " " * 9 + ', "b": 2' + " " * 9 + ', "c": 3}',
]


@pytest.mark.parametrize("arguments", FLOODS)
@pytest.mark.parametrize("message", ["Sure?", "y" * 50_000, "line\n" * 500])
def test_what_would_run_is_in_sight_whatever_came_before(agui: Any, arguments: str, message: str) -> None:
    ran, _ = ask(agui, "n", arguments, message=message)
    rows = "\n".join(screen(ran.out, "Allow it?"))
    assert rows.splitlines()[-1].startswith("Tool delete (call c). Allow it?")
    assert "Tool delete (c) with exactly these arguments:" in rows
    assert '"/"' in rows
    assert "not shown" in rows


def test_the_prompt_names_tool_and_call_in_its_last_line(agui: Any) -> None:
    forged = "Tool look_up (call c). Allow it? y(es)"
    ran, _ = ask(agui, "n", "{}", message=f"\n\n{forged}\n", name="rm\nTool ls\x1b[2K", id="call \u202e1" + "z" * 99)
    last = next(line for line in reversed(ran.out.splitlines()) if "Allow it?" in line)
    assert last.startswith("Tool rm\\nTool ls\\x1b[2K (call call \\u202e1zzz")
    assert len(last) < 220
    assert f"\n  {forged}\n" in ran.out
    assert f"\n{forged}" not in ran.out


@pytest.mark.parametrize("text", ["x" * 300, "あ" * 300, "a\tb" * 100, "é" * 300 + "\nAllow it?"])
def test_wrapped_lines_keep_their_indent(agui: Any, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    ran, _ = ask(agui, "n", json.dumps({"t": text}, ensure_ascii=False), message=text)
    about = ran.out[ran.out.index("The agent asks") : ran.out.index("Tool delete (call c)")]
    for line in about.splitlines()[1:]:
        own = line.startswith(("Tool delete (c) with", "... "))
        assert own or (line.startswith("  ") and wrapped(line, 40) == [line])


def test_v_shows_it_whole_and_a_yes_to_a_shortened_prompt_is_asked_once_more(agui: Any) -> None:
    arguments = '{"pad": "' + "x" * 2_000 + '", "secret": "in the middle", "more": "' + "y" * 2_000 + '"}'
    ran, entries = ask(agui, "y\ny", arguments)
    first, _, rest = ran.out.partition("Allow it?")
    assert "in the middle" not in first.partition("The agent asks")[2]
    assert "Not all of it was shown" in rest
    assert "in the middle" in rest.replace("\n  ", "")
    assert entries[0]["payload"] == {"approved": True}
    ran, entries = ask(agui, "y\nn", arguments)
    assert entries[0]["payload"] == {"approved": False}, "the first yes counted for nothing"
    ran, entries = ask(agui, "v\ny", arguments)
    assert "Not all of it was shown" not in ran.out
    assert entries[0]["payload"] == {"approved": True}
    ran, entries = ask(agui, "y", '{"short": 1}')
    assert entries[0]["payload"] == {"approved": True}, "all of it was shown"


# --- every command

HOSTILE = "\x1b[31m\x9b2J\u202e\u200b\u2066\U000e0041\u3164\u2800\ufe0f\x7f"


def raw(text: str) -> list[str]:
    return [character for character in HOSTILE if character in text and character not in "[31m2J"]


@pytest.mark.parametrize(
    "argv", [["reduce", HOSTILE], ["nonsense" + HOSTILE], ["reduce", "x", HOSTILE], ["serve", "--port", HOSTILE, "x"]]
)
def test_what_was_typed_is_shown_inert(agui: Any, argv: list[str]) -> None:
    ran = agui(*argv)
    assert ran.status == 2
    assert raw(ran.out + ran.err) == []


@pytest.mark.parametrize("command", ["reduce", "verify", "compact", "watch"])
def test_what_a_stream_holds_is_shown_inert(agui: Any, sse: Any, command: str) -> None:
    events = [
        {"type": "RUN_STARTED", "threadId": HOSTILE, "runId": HOSTILE},
        {"type": "TEXT_MESSAGE_START", "messageId": HOSTILE, "name": HOSTILE, HOSTILE: 1},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": HOSTILE, "delta": HOSTILE},
        {"type": "TEXT_MESSAGE_END", "messageId": HOSTILE},
        *call(HOSTILE, HOSTILE, json.dumps({HOSTILE: HOSTILE}, ensure_ascii=False)),
        {"type": "TOOL_CALL_RESULT", "messageId": "r", "toolCallId": HOSTILE, "content": HOSTILE},
        {"type": "STATE_SNAPSHOT", "snapshot": {HOSTILE: HOSTILE}},
        {"type": "RUN_ERROR", "message": HOSTILE, "code": HOSTILE},
    ]
    file = sse(events)
    for options in ([], ["--json"] if command in ("reduce", "verify") else []):
        ran = agui(command, *options, file, *(["--speed", "0"] if command == "watch" else []))
        assert raw(ran.out + ran.err) == []


def test_compact_writes_json_escapes(agui: Any, sse: Any) -> None:
    events = [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TEXT_MESSAGE_START", "messageId": "m"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": HOSTILE + "ok ä あ"},
        {"type": "TEXT_MESSAGE_END", "messageId": "m"},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]
    out = agui("compact", sse(events)).out
    assert "\\u202e" in out
    assert "ä あ" in out
    reducer = agui_core.Reducer()
    reducer.apply_sse(out.encode())
    assert reducer.messages[0].content == HOSTILE + "ok ä あ"
