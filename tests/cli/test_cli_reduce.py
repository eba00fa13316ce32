"""`agui reduce`: transcript, JSON, formats, exit status."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import agui_core
from agui_core.cli.input import RecordedInput
from support.clocks import PATIENCE
from support.events import FINISHED, STARTED, called, result, spoken

Run = Callable[..., Any]
Write = Callable[[Iterable[Any]], Path]
SAMPLE = Path(agui_core.__file__).parent / "cli" / "samples" / "weather.sse"

KEYS = [
    "status",
    "error",
    "runError",
    "messages",
    "state",
    "interrupts",
    "pendingToolCallIds",
    "toolArgs",
    "warnings",
]


def call(id: str, name: str, arguments: str, *, end: bool = True) -> list[dict[str, Any]]:
    return called(id, arguments, name=name, end=end, parentMessageId="a")


# --- the transcript -----------------------------------------------------------------------------------------------


def test_the_sample_reads_as_a_conversation(agui: Run) -> None:
    ran = agui("reduce", SAMPLE)
    assert (ran.status, ran.err) == (0, "")
    places = [
        ran.out.index(piece)
        for piece in (
            "user (u1)\n  Which of Oslo and Rome",
            "reasoning (r1)\n  Two places, one question: look both up",
            "assistant (a1)\n  Let me look at both places.\n  call get_weather (call-oslo)\n",
            '{"city": "Oslo", "units": "celsius"}\n    result: 4 degrees',
            '{"city": "Rome", "units": "celsius"}\n    result: 18 degrees',
            "assistant guide of subagent guide-1 (g1)",
            "call book_table (call-table)",
            "state\n",
            '"best": "Rome"',
            "interrupted",
            "interrupt ask-1: tool_call, about call call-table\n  Book a table",
            "1 tool call without a result:\n  book_table (call-table)",
        )
    ]
    assert places == sorted(places)
    assert "\x1b" not in ran.out


def test_what_is_wrong_with_a_call_is_marked(agui: Run, sse: Write) -> None:
    run_input = {
        "messages": [
            {"id": "x", "role": "assistant", "toolCalls": [_held("late"), _held("odd")]},
            {"id": "y", "role": "tool", "toolCallId": "late", "content": "nothing", "error": "too\nlate"},
            {"id": "z", "role": "tool", "toolCallId": "nobody", "content": "lost"},
        ]
    }
    events = [STARTED | {"input": {"threadId": "t", "runId": "r", **run_input}}]
    events += [*call("cut", "write", '{"a": "b'), *call("open", "read", '{"a', end=False)]
    ran = agui("reduce", sse(events))
    assert ran.status == 1
    assert "call held (late)\n      {}\n    failed:\n      too\n      late\n      nothing\n" in ran.out
    assert "tool result for nobody, a call that is not here (z)\n  result: lost" in ran.out
    assert 'call write (cut) broken arguments: character 8: the document ends too early\n      {"a": "b\n' in ran.out
    assert 'call read (open) incomplete: the call has not ended\n      {"a\n' in ran.out
    assert "truncated" in ran.out


def _held(id: str) -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": "held", "arguments": "{}"}}


def test_parts_activities_results_and_usage_are_shown(agui: Run, sse: Write) -> None:
    parts = [
        {"type": "text", "text": "look:"},
        {"type": "image", "source": {"type": "url", "value": "https://x.example/a.png", "mimeType": "image/png"}},
        {"type": "document", "source": {"type": "data", "value": "QUJD", "mimeType": "text/plain"}},
        {"type": "audio", "source": {"type": "file", "value": "f-1"}},
    ]
    events = [
        STARTED,
        *call("c", "paint", ""),
        result("c", parts, "result-c"),
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "PLAN", "content": {"steps": 2}},
        {**FINISHED, "result": {"ok": True}, "usage": [{"model": "m", "totalTokens": 1200}]},
    ]
    ran = agui("reduce", sse(events))
    assert ran.status == 0
    assert (
        "    result:\n      look:\n      [image image/png: https://x.example/a.png]\n"
        "      [document text/plain: 4 characters of base64]\n      [audio: file f-1]\n"
    ) in ran.out
    assert 'activity PLAN (p)\n  {"steps": 2}\n' in ran.out
    assert 'result: {"ok": true}\n  m: 1,200 total\n' in ran.out


def test_what_the_wire_says_cannot_act_on_the_terminal(agui: Run, sse: Write) -> None:
    evil = "\x1b]0;owned\x07 a\u202eb\u200bc\r\x9b2J\nuser (fake)\n\ttab"
    events = [STARTED, *spoken("m\x1b\nassistant (y)", evil), *call("c\u202e", "n\x1bame", '{"a": "\\u001b\u202e"}')]
    events += [{"type": "STATE_SNAPSHOT", "snapshot": {evil: evil}}, {"type": "RUN_ERROR", "message": evil}]
    ran = agui("reduce", sse(events))
    for shown in (ran.out, ran.err):
        assert not set(shown) & set("\x1b\x07\u202e\u200b\r\x9b")
    assert "\nuser (fake)" not in ran.out
    assert "\nassistant (y)" not in ran.out
    assert "\\x1b]0;owned\\x07 a\\u202eb\\u200bc\\r\\x9b2J\n  user (fake)\n  \ttab" in ran.out
    again = agui("reduce", "--json", sse(events))
    assert not set(again.out) & set("\x1b\x07\u202e\u200b\r\x9b")
    assert again.json["state"] == {evil: evil}
    assert again.json["runError"] == {"type": "RUN_ERROR", "message": evil}


# --- JSON ---------------------------------------------------------------------------------------------------------


def test_json_has_the_promised_keys(agui: Run) -> None:
    ran = agui("reduce", "--json", SAMPLE)
    assert (ran.status, ran.err) == (0, "")
    shown = ran.json
    assert list(shown) == KEYS
    assert shown["status"] == "interrupted"
    assert shown["error"] is shown["runError"] is None
    assert [message["id"] for message in shown["messages"]] == ["u1", "r1", "a1", "t-rome", "t-oslo", "g1", "a2"]
    assert shown["state"]["best"] == "Rome"
    assert [interrupt["id"] for interrupt in shown["interrupts"]] == ["ask-1"]
    assert shown["pendingToolCallIds"] == ["call-table"]
    assert shown["toolArgs"]["call-table"] == {"city": "Rome", "people": 2, "at": "19:30"}
    assert shown["warnings"] == []


def test_json_tells_a_refusal_from_a_run_error(agui: Run, sse: Write) -> None:
    refused = agui("reduce", "--json", sse([STARTED, *spoken("m", "kept"), *spoken("m")[-1:]]))
    assert refused.status == 1
    assert refused.json["status"] == "rejected"
    error = refused.json["error"]
    assert {**error, "message": "..."} == {"rule": "STR-2", "index": 4, "type": "TEXT_MESSAGE_END", "message": "..."}
    assert "'m' is not open" in error["message"]
    assert refused.json["runError"] is None
    assert refused.json["messages"] == [{"id": "m", "role": "assistant", "content": "kept"}]

    failed = agui("reduce", "--json", sse([STARTED, {"type": "RUN_ERROR", "message": "no luck", "code": "E1"}]))
    assert (failed.status, failed.json["status"], failed.json["error"]) == (1, "failed", None)
    assert failed.json["runError"] == {"type": "RUN_ERROR", "message": "no luck", "code": "E1"}


def test_json_arguments_of_every_kind_of_call(agui: Run, sse: Write) -> None:
    events = [STARTED, *call("none", "f", ""), *call("cut", "f", '{"a": 1, "b": "c'), *call("bad", "f", "?")]
    shown = agui("reduce", "--json", sse([*events, *call("open", "f", '{"a": [1, ', end=False)])).json
    assert shown["status"] == "truncated"
    assert shown["toolArgs"] == {"none": {}, "cut": {"a": 1, "b": "c"}, "bad": None, "open": {"a": [1]}}


def test_json_warnings_say_rule_place_and_number(agui: Run, sse: Write) -> None:
    events = [STARTED, *spoken("m", "a", "b"), FINISHED]
    events[2]["extra"] = events[3]["extra"] = 1
    shown = agui("reduce", "--json", sse(events)).json
    (warning,) = shown["warnings"]
    assert {key: warning[key] for key in ("rule", "index", "type", "path", "count", "refused")} == {
        "rule": "PROC-5",
        "index": 2,
        "type": "TEXT_MESSAGE_CONTENT",
        "path": "/extra",
        "count": 2,
        "refused": False,
    }


# --- policies, inputs, formats ------------------------------------------------------------------------------------


def test_lenient_goes_on(agui: Run, sse: Write) -> None:
    path = sse([*spoken("m", "hello"), FINISHED])
    assert agui("reduce", path).status == 1
    ran = agui("reduce", "--lenient", path)
    assert ran.status == 0
    assert "hello" in ran.out
    assert ran.err.startswith("warning: event 0 (TEXT_MESSAGE_START): a run is assumed")


def test_a_run_input_comes_first(agui: Run, sse: Write, tmp_path: Path) -> None:
    run_input = tmp_path / "input.json"
    held = {"id": "u", "role": "user", "content": "hello"}
    wire = {"threadId": "t", "runId": "r", "messages": [held], "state": {"n": 1}}
    run_input.write_text(json.dumps(wire), encoding="utf-8-sig")
    patch = {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": 2}]}
    shown = agui("reduce", "--json", "--input", run_input, sse([STARTED, patch, FINISHED])).json
    assert shown["messages"] == [held]
    assert shown["state"] == {"n": 2}


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"threadId": "t"}', b"\xff"])
def test_a_bad_run_input_is_wrong_use(agui: Run, sse: Write, tmp_path: Path, content: bytes) -> None:
    run_input = tmp_path / "input.json"
    run_input.write_bytes(content)
    ran = agui("reduce", "--input", run_input, sse([STARTED, FINISHED]))
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"agui: {run_input} is no run input: ")


@pytest.mark.parametrize("before", ["", "\ufeff", "\n \r\n\n", "\ufeff\n"])
def test_the_format_is_told_by_the_content(agui: Run, before: str) -> None:
    events = [STARTED, *spoken("m", "hi {"), FINISHED]
    lines = before + "".join(f"{json.dumps(event)}\n" for event in events)
    blocks = before + "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    shown = [agui("reduce", "--json", "-", stdin=stream.encode()).json for stream in (lines, blocks, lines.rstrip())]
    assert shown[0] == shown[1] == shown[2]
    assert shown[0]["status"] == "finished"


def test_other_containers_are_refused_with_the_way_out(agui: Run) -> None:
    array = agui("reduce", "-", stdin=b' [{"type": "RUN_STARTED"}]')
    assert array.status == 2
    assert "<stdin> is one JSON array" in array.err
    wide = agui("reduce", "-", stdin="data: {}".encode("utf-16"))
    assert wide.status == 2
    assert "save it as UTF-8" in wide.err


@pytest.mark.parametrize(
    "document",
    [
        json.dumps(STARTED, indent=2),
        json.dumps({"events": [STARTED, FINISHED]}, indent=2),
        '{"events": [\n' + json.dumps(STARTED) + ",\n" + json.dumps(FINISHED) + "]}",
        "\n".join(json.dumps(event, indent=1) for event in (STARTED, FINISHED)),
    ],
)
def test_a_document_over_several_lines_is_refused_with_the_way_out(agui: Run, document: str) -> None:
    for command in ("reduce", "verify", "compact"):
        ran = agui(command, "-", stdin=document.encode())
        assert (ran.status, ran.out) == (2, "")
        assert "<stdin> is one JSON document over several lines; JSON Lines has one event on each line" in ran.err


@pytest.mark.parametrize("first", ['{"type": "RUN_STA', '{"type": "RUN_STARTED",', "{broken", "{"])
def test_a_broken_first_line_is_no_such_document(agui: Run, first: str) -> None:
    ran = agui("verify", "-", stdin=f"{first}\n{json.dumps(STARTED)}\n{json.dumps(FINISHED)}\n".encode())
    assert (ran.status, ran.out.count(" error: ")) == (1, 1)
    assert ran.out.startswith("<stdin>:1: error: event 0: ")


@pytest.mark.parametrize(
    "stdin",
    [b"Dear reader,\nthe data: they are lost", b"import os\n\nprint(1)\n", bytes(range(256)), b""],
    ids=["text", "program", "binary", "empty"],
)
@pytest.mark.parametrize("command", [["reduce"], ["reduce", "--json"], ["compact"], ["verify"], ["verify", "--json"]])
def test_a_file_of_another_kind_is_told(agui: Run, command: list[str], stdin: bytes) -> None:
    ran = agui(*command, "-", stdin=stdin)
    assert ran.status == 1
    assert ran.err.splitlines()[-1] == "agui: <stdin> holds no event; it was read as server-sent events"
    assert "discarded" not in ran.err + ran.out


@pytest.mark.parametrize("stdin", [b"", b"\n\n", b": nothing\n\n", b"hello\n\n"])
def test_no_event_is_no_success(agui: Run, stdin: bytes) -> None:
    ran = agui("reduce", "-", stdin=stdin)
    assert ran.status == 1
    assert "holds no event" in ran.out
    assert agui("reduce", "--json", "-", stdin=stdin).json["status"] == "idle"


def test_missing_files_and_arguments_are_wrong_use(agui: Run, tmp_path: Path) -> None:
    ran = agui("reduce", tmp_path / "no\x1bsuch.sse")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("agui: cannot read ")
    assert "\x1b" not in ran.err
    assert agui("reduce", tmp_path).status == 2
    assert agui("reduce", SAMPLE, "--input", tmp_path / "none.json").status == 2
    for words in ([], ["reduce"], ["frobnicate"], ["reduce", SAMPLE, "--nonsense"]):
        assert agui(*words).status == 2


def test_the_last_event_of_cut_off_blocks_is_discarded(agui: Run) -> None:
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in (STARTED, FINISHED)).encode()
    assert agui("reduce", "--json", "-", stdin=stream).json["status"] == "finished"
    ran = agui("reduce", "-", stdin=stream[:-1])
    assert ran.status == 1
    assert "truncated" in ran.out
    assert "no blank line" in ran.err


def test_help_and_version(agui: Run) -> None:
    ran = agui("--version")
    assert (ran.status, ran.out.split()[0]) == (0, "agui")
    for words in (["--help"], ["reduce", "--help"], ["verify", "--help"]):
        ran = agui(*words)
        assert ran.status == 0
        assert "exit status" in ran.out.lower()


# --- as a process ---------------------------------------------------------------------------------------------------


def test_it_reads_a_pipe_and_writes_utf8(process: Run) -> None:
    events = [STARTED, *spoken("m", "Zürich \U0001f333 \u200d"), FINISHED]
    stream = "".join(f"{json.dumps(event, ensure_ascii=False)}\r\n" for event in events).encode()
    child = process("reduce", "--json", "-", PYTHONIOENCODING="utf-8")
    out, err = child.communicate(stream)
    assert (child.returncode, err) == (0, b"")
    assert "Zürich \U0001f333 \\u200d" in out.decode()
    child = process("reduce", "--json", "-", PYTHONIOENCODING="latin-1")
    out, _ = child.communicate(stream)
    assert json.loads(out.decode("ascii"))["messages"][0]["content"] == "Zürich \U0001f333 \u200d"
    child = process("reduce", "-", PYTHONIOENCODING="ascii")
    out, err = child.communicate(stream)
    assert (child.returncode, err) == (0, b"")
    assert rb"Z\xfcrich \U0001f333" in out


def test_a_broken_pipe_is_quiet(process: Run, sse: Write) -> None:
    path = sse([STARTED, *spoken("m", *["line\n" * 1000] * 100), FINISHED])
    child = process("reduce", path)
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait(PATIENCE) == 141
    child.stdin.close()
    child.stderr.close()


def test_progress_and_colour_are_for_terminals(monkeypatch: pytest.MonkeyPatch, agui: Run) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("agui_core.cli.terminal.is_terminal", lambda stream: True)
    monkeypatch.setattr("time.monotonic", iter(range(0, 10_000, 2)).__next__)
    ran = agui("reduce", SAMPLE)
    assert "MB" in ran.err
    assert "events" in ran.err
    assert ran.err.endswith("\r")
    monkeypatch.undo()


def test_interrupting_is_quiet(monkeypatch: pytest.MonkeyPatch, agui: Run) -> None:
    def interrupt(*args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(agui_core.Reducer, "apply_sse", interrupt)
    ran = agui("reduce", SAMPLE)
    assert (ran.status, ran.out, ran.err) == (130, "", "")


@pytest.mark.parametrize("blanks", [b"", b" \r\n"])
@pytest.mark.parametrize(("text", "json_lines"), [(b'{"type": "RAW"}\n', True), (b"data: {}\n\n", False)])
def test_the_format_is_told_however_the_input_is_cut(
    text: bytes, json_lines: bool, blanks: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agui_core.cli.input._PIECE", 1)
    path = tmp_path / "stream"
    path.write_bytes(b"\xef\xbb\xbf" + blanks + text)
    with RecordedInput(str(path)) as source:
        assert (source.json_lines, b"".join(source)) == (json_lines, blanks + text)
