"""What the command's tests share: running it in this process, and as one of its own."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import agui_core
from agui_core.cli.main import main

PROJECT = Path(agui_core.__file__).resolve().parent.parent


class Ran(NamedTuple):
    """What one call of the command left behind."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def agui(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run the command in this process; `stdin` is given as bytes."""

    def run(*argv: str | Path, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        try:
            status = main([str(word) for word in argv])
        except SystemExit as exit:
            status = int(exit.code or 0)
        out, err = capsys.readouterr()
        return Ran(status, out, err)

    return run


@pytest.fixture
def sse(tmp_path: Path) -> Callable[[Iterable[Any]], Path]:
    """A file of events as server-sent events; each stands on line 1, 3, 5 and so on."""

    def write(events: Iterable[Any]) -> Path:
        path = tmp_path / "stream.sse"
        path.write_text("".join(f"data: {json.dumps(event)}\n\n" for event in events), encoding="utf-8", newline="\n")
        return path

    return write


@pytest.fixture
def process() -> Callable[..., subprocess.Popen[bytes]]:
    """Start `python -m agui_core` with pipes."""

    def start(*argv: str | Path, **environment: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "agui_core", *map(str, argv)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
        )

    return start
