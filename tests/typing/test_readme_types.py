"""The README's Python passes strict type checkers, whichever of them are installed; `.ci/run` demands both."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DEMANDED = os.environ.get("AGUI_REQUIRE_CHECKERS", "").split()


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    """A file of all samples, in order, as they build on each other."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    file = tmp_path / "readme_samples.py"
    file.write_text(
        "\n\n".join(re.findall(r"^```python\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)), encoding="utf-8"
    )
    return file


def check(checker: str, *arguments: str, cwd: Path) -> None:
    if find_spec(checker) is None or (checker == "pyright" and shutil.which("node") is None):
        assert checker not in DEMANDED, f"{checker} is not installed, or has no Node to run on"
        pytest.skip(f"needs {checker}")
    done = subprocess.run(
        [sys.executable, "-m", checker, *arguments],
        cwd=cwd,
        env={**os.environ, "MYPYPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_mypy_is_content_with_the_samples(samples: Path) -> None:
    check("mypy", "--strict", "--config-file=", str(samples), cwd=ROOT)


def test_pyright_is_content_with_the_samples(samples: Path) -> None:
    settings = {"include": [samples.name], "typeCheckingMode": "strict", "extraPaths": [str(ROOT)]}
    (samples.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    check("pyright", "--project", ".", "--pythonpath", sys.executable, cwd=samples.parent)
