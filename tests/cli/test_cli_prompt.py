"""Attacks on the prompt of `agui chat`: nothing from the wire passes for our words, or pushes them away."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import agui_core
from agui_core.cli.escape import wrapped
from support.clocks import PATIENCE
from support.endpoint import call, endpoint, say

SCREEN = 24


def ask(
    agui: Any, lines: str, arguments: str, *, name: str = "delete", id: str = "c", **fields: Any
) -> tuple[Any, Any]:
    """A talk with one question; what was printed, and what the agent was told."""

    def answer(run_input: Any) -> list[Any]:
        if "resume" in run_input:
            return []
        interrupt = {"id": "i", "reason": "tool_call", "toolCallId": id, "message": "Sure?", **fields}
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
    '{"path": "/", "pad": "' + "\U000e0041" * 300 + '"}',
    '{"path": "/", "pad": "' + "\u202e" * 400 + '"}',
    '{"path": "/", "pad": "' + "a\t" * 250 + '"}',
    '{"path": "/", "pad": "' + "\n" * 7 + ("a" + "\n" * 7) * 3 + '"}',
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


@pytest.mark.parametrize("name", ["\U000e0041" * 30, "あ" * 300, "x" * 10_000, " " * 500 + "ls", "n\n" * 400])
def test_long_names_push_nothing_away_and_are_told(agui: Any, name: str) -> None:
    arguments = FLOODS[0]
    ran, entries = ask(agui, "y\nn", arguments, name="delete" + name + "all", id="c" + name + "9", expiresAt=name)
    rows = screen(ran.out, "Allow it?")
    prompt = ran.out[: ran.out.index("Allow it?")].splitlines()[-1]
    assert prompt.startswith("Tool 'delete")
    assert "all' [" in prompt
    assert "9' [" in prompt
    assert any(row.startswith("Tool 'delete") and "Allow" not in row for row in rows[:-4])
    assert '"path": "/"' in "\n".join(rows)
    assert entries[0]["payload"] == {"approved": False}, "the first yes counted for nothing"


def test_a_long_name_alone_is_shown_whole_before_a_yes_counts(agui: Any) -> None:
    name = "delete_" + "m" * 60 + "_everything_" + "n" * 60
    ran, entries = ask(agui, "y\ny", "{}", name=name)
    asked = ran.out[ran.out.index("The agent asks") :]
    first, _, rest = asked.partition("Allow it?")
    assert "_everything_" not in first
    assert "_everything_" in rest.replace("\n  ", "")
    assert entries[0]["payload"] == {"approved": True}


@pytest.mark.parametrize("name", ["ls (call c). Allow it", "ls' (call", "ls\N{NO-BREAK SPACE}(call c)"])
def test_a_name_that_reads_like_our_words_is_in_quotes(agui: Any, name: str) -> None:
    ran, _ = ask(agui, "n", "{}", name=name)
    assert f"\nTool '{name}' (call c). Allow it? y(es)" in ran.out


def test_an_approval_without_a_call_says_so_in_its_last_line(agui: Any) -> None:
    ran, entries = ask(agui, "n", "{}", message="Tool ls (call c). Allow it?", toolCallId="other")
    assert "\nNo tool call is shown (interrupt i). Allow it? y(es)" in ran.out
    assert entries[0]["payload"] == {"approved": False}


def test_a_question_that_is_shortened_can_be_seen_whole(agui: Any) -> None:
    message = "a" * 2_000 + "in the middle" + "b" * 2_000
    ran, entries = ask(agui, "/view\nv", "{}", reason="input", message=message, responseSchema={"type": "string"})
    first, _, rest = ran.out.partition("Tool delete (call c). Your answer")
    assert "4,013 characters in all" in first
    assert "in the middle" not in first
    assert "in the middle" in rest.replace("\n  ", "")
    assert entries[0]["payload"] == "v"


def test_the_prompt_names_tool_and_call_in_its_last_line(agui: Any) -> None:
    forged = "Tool look_up (call c). Allow it? y(es)"
    ran, _ = ask(agui, "n", "{}", message=f"\n\n{forged}\n", name="rm\nTool ls\x1b[2K", id="call \u202e1" + "z" * 99)
    last = next(line for line in reversed(ran.out.splitlines()) if "Allow it?" in line)
    assert last.startswith("Tool 'rm\\nTool ls\\x1b[2K' (call 'call \\u202e1zzz")
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


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("pieces", [1, 7])
def test_rows_of_a_text_keep_their_indent_on_a_terminal(pieces: int) -> None:
    import fcntl
    import pty
    import struct
    import termios

    text = ("x" * 37 + " あ" * 5 + "Allow it? y(es)\n") * 3
    name = "z" * 60 + "Tool ls (call c). Allow it?"
    deltas = [text[start : start - (-len(text) // pieces)] for start in range(0, len(text), -(-len(text) // pieces))]

    def answer(run_input: Any) -> list[Any]:
        return [*say("|".join(deltas)), *call("c", name, "{}")]

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    environment |= {"PYTHONPATH": str(Path(agui_core.__file__).parent.parent), "TERM": "dumb"}
    with endpoint(answer) as served:
        words = [sys.executable, "-m", "agui_core", "chat", served.url]
        with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as chat:
            try:
                os.close(theirs)
                seen = b""
                for awaited, typed in ((b"> ", b"go\n"), (b"{}", b"\x04")):
                    while awaited not in seen:
                        seen += os.read(ours, 4096)
                    os.write(ours, typed)
                chat.wait(timeout=PATIENCE)
            finally:
                chat.kill()
                os.close(ours)
    rows = seen.decode().replace("\r", "").split("\n")
    shown = rows[rows.index("assistant") + 1 :]
    shown = shown[: next(place for place, row in enumerate(shown) if row.startswith("call "))]
    assert all(row.startswith("  ") and wrapped(row, 40) == [row] for row in shown)
    assert "".join(row[2:] for row in shown) == text.replace("\n", "")


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
