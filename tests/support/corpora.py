"""Where the project, the public corpora and the reference client lie."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

__all__ = ["PROJECT", "reference_root", "shared_root"]

PROJECT = Path(__file__).resolve().parents[2]


def shared_root() -> Path | None:
    """The folder with the public corpora: `AGUI_SHARED`, or `shared` beside the project; None when there is none."""
    named = os.environ.get("AGUI_SHARED")
    root = Path(named) if named else PROJECT.parent / "shared"
    return root if (root / "conformance").is_dir() else None


def reference_root() -> Path | None:
    """The folder where the reference client is installed: `AGUI_REFERENCE`, or `.reference` in the project; or None."""
    root = Path(os.environ.get("AGUI_REFERENCE", PROJECT / ".reference"))
    installed = (root / "node_modules" / "@ag-ui" / "client").is_dir()
    return root if installed and shutil.which("node") else None
