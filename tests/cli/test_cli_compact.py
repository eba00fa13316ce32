"""`agui compact`: fewer events, the same conversation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import agui_core
from support.events import FINISHED, STARTED

Run = Callable[..., Any]
Write = Callable[[Iterable[Any]], Path]
PROJECT = Path(agui_core.__file__).resolve().parent.parent
SAMPLE = Path(agui_core.__file__).parent / "cli" / "samples" / "weather.sse"


@pytest.mark.parametrize(("to", "first"), [([], b"data: {"), (["--to", "sse"], b"data: {"), (["--to", "jsonl"], b'{"')])
def test_the_result_replays_to_the_same(agui: Run, tmp_path: Path, to: list[str], first: bytes) -> None:
    path = tmp_path / "small"
    ran = agui("compact", SAMPLE, "-o", path, *to)
    assert (ran.status, ran.out) == (0, "")
    assert ran.err.startswith(f"{SAMPLE}: 48 events became ")
    assert "% less" in ran.err
    assert path.read_bytes().startswith(first)
    assert path.stat().st_size < SAMPLE.stat().st_size
    assert agui("reduce", "--json", path).json == agui("reduce", "--json", SAMPLE).json
    assert agui("verify", path).status == 0


def test_the_format_stays_unless_told(agui: Run) -> None:
    lines = f"{json.dumps(STARTED)}\n{json.dumps(FINISHED)}".encode()
    ran = agui("compact", "-", stdin=lines)
    assert [json.loads(line) for line in ran.out.splitlines()] == [STARTED, FINISHED]
    assert agui("compact", "-", "--to", "sse", stdin=lines).out.startswith("data: {")


def test_a_file_may_become_its_own_result(agui: Run, tmp_path: Path) -> None:
    path = tmp_path / "own.sse"
    path.write_bytes(SAMPLE.read_bytes())
    before = agui("reduce", "--json", path).json
    assert agui("compact", path, "--output", path).status == 0
    assert path.stat().st_size < SAMPLE.stat().st_size
    assert agui("reduce", "--json", path).json == before


def test_a_refused_stream_leaves_the_output_alone(agui: Run, sse: Write, tmp_path: Path) -> None:
    path = sse([STARTED, {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}, FINISHED])
    out = tmp_path / "out.sse"
    out.write_text("mine")
    ran = agui("compact", path, "-o", out)
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith(f"agui: {path}: refused: event 1 (TEXT_MESSAGE_CONTENT): ")
    assert out.read_text() == "mine"
    assert "RUN_STARTED" in agui("compact", path).out
    assert agui("compact", "--lenient", path, "-o", out).status == 0
    assert agui("verify", out).status == 0


@pytest.mark.parametrize(
    "stream",
    [b"", b": nothing\n\n", b"some text\n", b"data: " + json.dumps(STARTED).encode() + b"\n"],
    ids=["empty", "comment", "text", "unfinished block"],
)
def test_without_an_event_the_output_is_left_alone(agui: Run, tmp_path: Path, stream: bytes) -> None:
    own, out = tmp_path / "own.sse", tmp_path / "out.sse"
    own.write_bytes(stream)
    out.write_text("mine")
    for target in (own, out):
        ran = agui("compact", own, "-o", target)
        assert (ran.status, ran.out) == (1, "")
        assert ran.err.endswith(f"agui: {own} holds no event; it was read as server-sent events\n")
        assert ("no blank line" in ran.err) == stream.startswith(b"data")
    assert (own.read_bytes(), out.read_text()) == (stream, "mine")
    assert sorted(tmp_path.iterdir()) == [out, own]
    assert agui("compact", own, "-o", tmp_path / "new.sse").status == 1
    assert not (tmp_path / "new.sse").exists()


def test_where_nothing_is_left_to_write_the_output_is_left_alone(agui: Run, sse: Write) -> None:
    path = sse([{"type": "NEWS"}])
    before = path.read_bytes()
    assert agui("compact", "--lenient", path, "-o", path).status == 1
    assert path.read_bytes() == before


@pytest.mark.skipif(os.name == "nt", reason="needs file size limits")
def test_a_write_that_fails_loses_nothing(tmp_path: Path) -> None:
    own = tmp_path / "own.sse"
    own.write_bytes(SAMPLE.read_bytes())
    limited = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000));"
        "from agui_core.cli.main import main; sys.exit(main())"
    )
    words = [sys.executable, "-c", limited, "compact", str(own), "-o", str(own)]
    ran = subprocess.run(words, capture_output=True, env={**os.environ, "PYTHONPATH": str(PROJECT)}, check=False)
    assert ran.returncode == 2
    assert ran.stderr.decode().startswith(f"agui: cannot write {own}: ")
    assert own.read_bytes() == SAMPLE.read_bytes()
    assert list(tmp_path.iterdir()) == [own]


@pytest.mark.skipif(os.name == "nt", reason="needs modes and symbolic links")
def test_mode_and_link_stay(agui: Run, tmp_path: Path) -> None:
    own, link = tmp_path / "own.sse", tmp_path / "link.sse"
    own.write_bytes(SAMPLE.read_bytes())
    own.chmod(0o640)
    link.symlink_to(own.name)
    assert agui("compact", link, "-o", link).status == 0
    assert link.is_symlink()
    assert own.stat().st_mode & 0o777 == 0o640
    assert own.stat().st_size < SAMPLE.stat().st_size


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/stdout and /dev/full")
def test_a_device_or_a_pipe_is_written_in_place(agui: Run, process: Callable[..., subprocess.Popen[bytes]]) -> None:
    out, _ = process("compact", SAMPLE, "-o", "/dev/stdout", "--to", "jsonl").communicate()
    assert out.decode() == agui("compact", SAMPLE, "--to", "jsonl").out
    ran = agui("compact", SAMPLE, "-o", "/dev/full")
    assert (ran.status, ran.err) == (2, "agui: cannot write /dev/full: No space left on device\n")


def test_what_changes_nothing_may_be_dropped(agui: Run, sse: Write) -> None:
    raw = {"type": "RAW", "event": 1}
    custom = {"type": "CUSTOM", "name": "n", "value": 1}
    path = sse([STARTED, raw, custom, FINISHED])

    def types(*options: str) -> list[str]:
        ran = agui("compact", path, "--to", "jsonl", *options)
        return [json.loads(line)["type"] for line in ran.out.splitlines()]

    assert types() == ["RUN_STARTED", "RAW", "CUSTOM", "RUN_FINISHED"]
    assert types("--drop-raw") == ["RUN_STARTED", "CUSTOM", "RUN_FINISHED"]
    assert types("--drop-raw", "--drop-custom") == ["RUN_STARTED", "RUN_FINISHED"]


def test_a_run_input_gives_the_state_to_start_from(agui: Run, sse: Write, tmp_path: Path) -> None:
    run_input = tmp_path / "input.json"
    run_input.write_text(json.dumps({"threadId": "t", "runId": "r", "messages": [], "state": {"n": 0}}))
    patches = [{"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/n", "value": n}]} for n in range(9)]
    path = sse([STARTED, *patches, FINISHED])
    ran = agui("compact", "--input", run_input, path, "--to", "jsonl")
    assert len(ran.out.splitlines()) == 3
    assert agui("reduce", "--json", "--input", run_input, "-", stdin=ran.out.encode()).json["state"] == {"n": 8}


def test_what_cannot_be_written_or_read_is_told(agui: Run, sse: Write, tmp_path: Path) -> None:
    path = sse([STARTED, FINISHED])
    ran = agui("compact", path, "-o", tmp_path / "no" / "where.sse")
    assert ran.status == 2
    assert ran.err.startswith("agui: cannot write ")
    assert agui("compact", path, "--to", "xml").status == 2
    assert agui("compact", "-").status == 1
