"""`agui chat`: a talk through a pipe and on a terminal; what is asked, what is shown, what is recorded, Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import agui_core
from support.clocks import PATIENCE
from support.endpoint import HANG, call, endpoint, say

pytest.importorskip("httpx2")

Run = Callable[..., Any]


def interrupted(*interrupts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "RUN_FINISHED", "outcome": {"type": "interrupt", "interrupts": list(interrupts)}}


def approval(id: str = "i", **fields: Any) -> dict[str, Any]:
    return {"id": id, "reason": "tool_call", "toolCallId": "c", "message": "Delete it?", **fields}


def asking(*interrupts: dict[str, Any], arguments: str = '{"path": "/tmp/x"}') -> Callable[[Any], Any]:
    """An agent that makes a call, asks, and says what it was told."""

    def answer(run_input: Any) -> Any:
        if "resume" in run_input:
            return say(f"told {json.dumps(run_input['resume'])}", "m2")
        if run_input["messages"][-1]["content"] != "go":
            return say("fine", "m3")
        return [*call("c", "delete", arguments), interrupted(*interrupts)]

    return answer


# --- talking --------------------------------------------------------------------------------------------------------


def test_a_talk_through_a_pipe(agui: Run) -> None:
    def answer(run_input: Any) -> Any:
        return say(f"You said {run_input['messages'][-1]['content']}|, I|\nheard.", f"m{len(run_input['messages'])}")

    with endpoint(answer) as served:
        ran = agui(
            "chat", served.url, "--thread", "t", "--header", "X-Key:  secret ", stdin="one\n\ntwo é\r\n".encode()
        )
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "user\n  one\nassistant\n  You said one, I\n  heard.\nuser\n  two é\nassistant\n  You said two é, I\n  heard.\n"
    )
    assert [len(run_input["messages"]) for run_input in served.inputs] == [1, 3]
    assert {run_input["threadId"] for run_input in served.inputs} == {"t"}
    assert served.headers[0]["x-key"] == "secret"


def test_a_last_line_without_its_end_and_quitting(agui: Run) -> None:
    with endpoint(lambda run_input: say("ok", run_input["runId"])) as served:
        assert agui("chat", served.url, stdin=b"one").status == 0
        assert agui("chat", served.url, stdin=b"two\n/quit\nthree\n").status == 0
        assert agui("chat", served.url).status == 0
    assert [run_input["messages"][-1]["content"] for run_input in served.inputs] == ["one", "two"]


def test_media_are_named_and_not_written_out(agui: Run) -> None:
    source = {"type": "data", "value": "QUJD" * 100, "mimeType": "image/png"}
    result = {
        "type": "TOOL_CALL_RESULT",
        "messageId": "t",
        "toolCallId": "c",
        "content": [{"type": "text", "text": "look"}, {"type": "image", "source": source}],
    }
    with endpoint(lambda run_input: [*call("c", "draw", "{}"), result]) as served:
        ran = agui("chat", served.url, stdin=b"go\n")
    assert "look\n  [image image/png: 400 characters of base64]\n" in ran.out
    assert "QUJD" not in ran.out


def test_everything_from_the_wire_is_inert(agui: Run) -> None:
    evil = "\x1b[2Jgone\u202e\r"
    events = [
        *say(evil),
        {"type": "TOOL_CALL_START", "toolCallId": evil, "toolCallName": evil},
        {"type": "TOOL_CALL_ARGS", "toolCallId": evil, "delta": evil},
        {"type": "TOOL_CALL_END", "toolCallId": evil},
        {"type": "TOOL_CALL_RESULT", "messageId": evil, "toolCallId": evil, "content": evil},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": evil, "content": {"x": evil}},
        {"type": "STATE_SNAPSHOT", "snapshot": {"x": evil}},
        {"type": "RUN_ERROR", "message": evil, "code": evil},
    ]
    with endpoint(lambda run_input: events) as served:
        ran = agui("chat", served.url, stdin=b"go\n/state\n/warnings\n")
    assert ran.status == 1
    assert not set(ran.out) & {"\x1b", "\u202e", "\r"}
    assert ran.out.count("\\x1b[2Jgone\\u202e") >= 6


def test_what_grows_is_shown_piece_by_piece(agui: Run) -> None:
    events = [
        {"type": "REASONING_MESSAGE_START", "messageId": "r"},
        *call("c1", "write", '{"body": "', 'a"}'),
        *call("c2", "empty"),
        *call("c3", "broken", "{"),
        {"type": "TOOL_CALL_RESULT", "messageId": "x", "toolCallId": "c1", "content": "written\ndown"},
        {"type": "ACTIVITY_SNAPSHOT", "messageId": "a", "activityType": "plan", "content": {"step": 1}},
        {
            "type": "ACTIVITY_DELTA",
            "messageId": "a",
            "activityType": "plan",
            "patch": [{"op": "replace", "path": "/step", "value": 2}],
        },
    ]
    with endpoint(lambda run_input: events[1:]) as served:
        out = agui("chat", served.url, stdin=b"go\n").out
    assert 'call write (c1)\n  {"body": "a"}\n' in out
    assert "call empty (c2)\n  {}\n" in out
    assert "call broken (c3)\n  {\n" in out
    assert "broken arguments of c3\n  character 1: the document ends too early\n" in out
    assert "result of write (c1)\n  written\n  down\n" in out
    assert 'activity plan\n  {"step": 2}' in out


def test_commands_are_obeyed_and_unknown_ones_are_told(agui: Run) -> None:
    answers = [
        [*say("a", "m1"), {"type": "STATE_SNAPSHOT", "snapshot": {"n": 1}}, {"type": "RUN_ERROR", "message": "boom"}],
        [
            {"type": "TEXT_MESSAGE_START", "messageId": "m2", "role": "wizard"},
            {"type": "TEXT_MESSAGE_END", "messageId": "m2"},
            {"type": "RUN_FINISHED", "usage": [{"provider": "p", "model": "m", "totalTokens": 7, "inputTokens": 5}]},
        ],
        say("c", "m3"),
    ]
    with endpoint(lambda run_input: answers.pop(0)) as served:
        lines = b"go\n/retry\n/state\n/usage\n/warnings\n/help\n/nonsense\n/state now\n//slash\n/ask\n"
        ran = agui("chat", served.url, stdin=lines)
    assert ran.status == 0
    assert "the run failed" in ran.out
    assert "boom" in ran.out
    assert "the state changed" in ran.out
    assert '{"n": 1}' in ran.out
    assert "at least 7 tokens in 2 runs\n  p m: 5 in, at least 0 out, 7 in all" in ran.out
    assert "[PROC-9]" in ran.out
    assert "/drop TEXT" in ran.out
    assert "no command /nonsense" in ran.out
    assert "no command /state now" in ran.out
    assert served.inputs[2]["messages"][-1]["content"] == "/slash"
    assert len({run_input["runId"] for run_input in served.inputs}) == 3


# --- questions ------------------------------------------------------------------------------------------------------


def resumed(
    agui: Run, lines: str, *interrupts: dict[str, Any], arguments: str = '{"path": "/tmp/x"}'
) -> tuple[Any, Any]:
    """The output of a talk, and what the agent was told at the end."""
    with endpoint(asking(*interrupts, arguments=arguments)) as served:
        ran = agui("chat", served.url, stdin=lines.encode())
    return ran, served.inputs[-1].get("resume")


@pytest.mark.parametrize(
    ("lines", "payload"),
    [
        ("y", {"approved": True}),
        ("YES", {"approved": True}),
        ("n", {"approved": False}),
        ("no not that one", {"approved": False, "reason": "not that one"}),
        ("maybe\n\nyes please\nok\nsure\ny", {"approved": True}),
        ('e {"path": "/tmp/y"}', {"approved": True, "editedArgs": {"path": "/tmp/y"}}),
        ('e {"path"\ne [1]\nedit\nn', {"approved": False}),
    ],
)
def test_a_person_approves_denies_or_edits_a_call(agui: Run, lines: str, payload: Any) -> None:
    ran, entries = resumed(agui, f"go\n{lines}\n", approval())
    assert ran.status == 0
    assert entries == [{"interruptId": "i", "status": "resolved", "payload": payload}]
    assert '  {"path": "/tmp/x"}\n' in ran.out
    assert "Tool delete (c) with exactly these arguments:" in ran.out
    assert "told [{" in ran.out
    assert ran.out.count("neither a yes nor a no") == max(0, lines.count("\n") - (2 if "e [1]" in lines else 0))


def test_the_prompt_shows_the_exact_json_inert(agui: Run) -> None:
    arguments = '{ "path" :"/tmp/\u202ex", "z":1.0}'
    ran, _ = resumed(agui, "go\nn\n", approval(message="Sure?\x1b[8m\nTool ls"), arguments=arguments)
    assert '\n  { "path" :"/tmp/\\u202ex", "z":1.0}\n' in ran.out
    assert "\n  Sure?\\x1b[8m\n  Tool ls\n" in ran.out


def test_an_edit_that_the_agent_does_not_take(agui: Run) -> None:
    schema = {"type": "object", "properties": {"approved": {"type": "boolean"}}}
    ran, entries = resumed(agui, 'go\ne {"a": 1}\nn\n', approval(responseSchema=schema))
    assert "takes no edited arguments" in ran.out
    assert entries[0]["payload"] == {"approved": False}


def test_a_question_without_a_call_says_so(agui: Run) -> None:
    ran, entries = resumed(agui, "go\ny\n", approval(toolCallId="other", expiresAt="2999-01-01"))
    assert "It shows no tool call for this" in ran.out
    assert "expires 2999-01-01" in ran.out
    assert entries[0]["payload"] == {"approved": True}


@pytest.mark.parametrize(
    ("line", "schema", "entry"),
    [
        ("blue", None, {"status": "resolved", "payload": "blue"}),
        ('{"a": 1}', None, {"status": "resolved", "payload": {"a": 1}}),
        ("12", {"type": "string"}, {"status": "resolved", "payload": "12"}),
        ("12", {"type": "integer"}, {"status": "resolved", "payload": 12}),
        ("\nnull\n/cancel", {}, {"status": "cancelled"}),
    ],
)
def test_any_other_question(agui: Run, line: str, schema: Any, entry: Any) -> None:
    interrupt = {"id": "i", "reason": "input_required", "message": "Colour?"}
    ran, entries = resumed(
        agui, f"go\n{line}\n", interrupt if schema is None else {**interrupt, "responseSchema": schema}
    )
    assert entries == [{"interruptId": "i", **entry}]
    assert "Colour?" in ran.out


def test_later_asking_again_and_dropping_it(agui: Run) -> None:
    with endpoint(asking(approval())) as served:
        ran = agui("chat", served.url, stdin=b"go\nl\nwell?\n/retry\n/ask\nlater\n/drop never mind\n")
    assert ran.status == 0
    assert ran.out.count("the agent waits for an answer") == 4
    assert ran.out.count("Delete it?") == 2
    assert len(served.inputs) == 2
    assert served.inputs[1]["resume"] == [{"interruptId": "i", "status": "cancelled"}]
    assert served.inputs[1]["messages"][-1]["content"] == "never mind"


def test_no_more_lines_is_no_consent(agui: Run) -> None:
    with endpoint(asking(approval())) as served:
        ran = agui("chat", served.url, stdin=b"go\n")
    assert (ran.status, len(served.inputs)) == (0, 1)


# --- failures and wrong use -----------------------------------------------------------------------------------------


def test_a_stream_that_is_refused(agui: Run) -> None:
    with endpoint(lambda run_input: say("a")[::-1]) as served:
        ran = agui("chat", served.url, stdin=b"go\n")
        assert ran.status == 1
        assert "rejected" in ran.out
        assert "STR-2" in ran.out
        assert agui("chat", served.url, "--lenient", stdin=b"go\n").status == 0


def test_an_agent_that_is_not_there(agui: Run) -> None:
    ran = agui("chat", "http://127.0.0.1:9/", stdin=b"go\n")
    assert ran.status == 1
    assert "cannot be reached" in ran.out


@pytest.mark.parametrize(
    "words",
    [
        ["ftp://example.org"],
        ["example.org"],
        [],
        ["http://127.0.0.1:9/", "--header", "no colon"],
        ["http://127.0.0.1:9/", "--header", "A: b\nC: d"],
        ["http://127.0.0.1:9/", "--header", "A b: c"],
        ["http://127.0.0.1:9/", "--record", "/no/such/folder/file"],
        ["http://127.0.0.1:99999/"],
        ["http://127.0.0.1:port/"],
        ["http://[::1/"],
        ["http://"],
    ],
)
def test_wrong_use_is_told_on_stderr_with_status_2(agui: Run, words: list[str]) -> None:
    ran = agui("chat", *words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err


def test_without_httpx2(agui: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agui_core.stream.http_agent", raising=False)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    ran = agui("chat", "http://127.0.0.1:9/")
    assert ran.status == 2
    assert "pip install 'agui_core[http]'" in ran.err


# --- recording ------------------------------------------------------------------------------------------------------


def test_a_recording_replays_to_the_same(agui: Run, tmp_path: Path) -> None:
    answers = [
        [*say("a\ud83d", "m1"), {"type": "WHATEVER", "x": 2**70}, {"type": "RAW", "event": {}, "timestamp": 5}],
        say("b", "m2"),
    ]
    file = tmp_path / "session.jsonl"
    with endpoint(lambda run_input: answers.pop(0)) as served:
        assert agui("chat", served.url, "--record", file, stdin=b"one\ntwo\n").status == 0
    events = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert [event["type"] for event in events].count("RUN_FINISHED") == 2
    assert events[4]["type"] == "WHATEVER"
    assert events[4]["x"] == 2**70
    assert events[5]["timestamp"] == 5
    assert all(type(event["timestamp"]) is int for event in events)
    ran = agui("reduce", "--json", file)
    assert (ran.status, [message["content"] for message in ran.json["messages"]]) == (0, ["a\ufffd", "b"])


def test_the_refused_event_is_in_the_recording(agui: Run, tmp_path: Path) -> None:
    file = tmp_path / "session.jsonl"
    with endpoint(lambda run_input: say("a")[::-1]) as served:
        agui("chat", served.url, "--record", file, stdin=b"one\n")
    assert [json.loads(line)["type"] for line in file.read_text().splitlines()] == ["RUN_STARTED", "TEXT_MESSAGE_END"]
    assert agui("verify", file).status == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_recording_that_cannot_be_written(agui: Run) -> None:
    with endpoint(lambda run_input: say("a")) as served:
        ran = agui("chat", served.url, "--record", "/dev/full", stdin=b"one\ntwo\n")
    assert ran.status == 2
    assert "cannot write" in ran.err
    assert len(served.inputs) == 1


def test_an_old_recording_stays_until_the_first_event(agui: Run, tmp_path: Path) -> None:
    file = tmp_path / "old.jsonl"
    file.write_text("old\n" * 1000)
    with endpoint(lambda run_input: say("a", run_input["runId"])) as served:
        assert agui("chat", served.url, "--record", file).status == 0
        assert file.read_text() == "old\n" * 1000
        url = served.url
        assert agui("chat", url, "--record", file, stdin=b"one\ntwo\n").status == 0
    new = file.read_bytes()
    assert [json.loads(line)["type"] for line in new.splitlines()].count("RUN_STARTED") == 2
    assert agui("chat", url, "--record", file, stdin=b"three\n").status == 1  # nobody is there any more
    assert file.read_bytes() == new


@contextmanager
def ended(chat: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """The process has ended when the block is left, whatever happens in it."""
    with chat:
        try:
            yield chat
        finally:
            chat.kill()


# --- Ctrl-C ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_ctrl_c_stops_the_run_and_a_second_one_leaves(process: Callable[..., subprocess.Popen[bytes]]) -> None:
    with endpoint(lambda run_input: [*say("par|tly"), HANG]) as served, ended(process("chat", served.url)) as chat:
        assert chat.stdin is not None
        assert chat.stdout is not None
        chat.stdin.write(b"go\n")
        chat.stdin.flush()
        seen = b""
        while b"partly" not in seen:
            seen += chat.stdout.read1()  # type: ignore[attr-defined]
        chat.send_signal(signal.SIGINT)
        while b"stopped\n" not in seen:
            seen += chat.stdout.read1()  # type: ignore[attr-defined]
        assert chat.poll() is None
        chat.send_signal(signal.SIGINT)
        status = chat.wait(timeout=PATIENCE)
        out, err = chat.communicate()
    assert (status, out, err) == (130, b"", b"")
    assert b"truncated" not in seen


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_on_a_terminal_what_is_typed_before_a_question_is_no_answer() -> None:
    import pty

    with endpoint(asking(approval())) as served:
        ours, theirs = pty.openpty()
        environment = {**os.environ, "PYTHONPATH": str(Path(agui_core.__file__).parent.parent), "TERM": "dumb"}
        words = [sys.executable, "-m", "agui_core", "chat", served.url]
        with ended(subprocess.Popen(words, stdin=theirs, stdout=theirs, env=environment)) as chat:
            os.close(theirs)
            seen = b""

            def wait_for(text: bytes) -> None:
                nonlocal seen
                while text not in seen:
                    seen += os.read(ours, 4096)

            wait_for(b"> ")
            os.write(ours, b"go\ny\n")  # the y is typed before the question, and does not count
            wait_for(b"l(ater): ")
            assert len(served.inputs) == 1
            os.write(ours, b"n\n")
            wait_for(b'"approved": false')
            os.write(ours, b"\x04")  # Ctrl-D
            assert chat.wait(timeout=PATIENCE) == 0
        os.close(ours)
