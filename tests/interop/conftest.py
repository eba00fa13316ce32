"""Each file here needs one package, or Node; what is not there is not collected.

`AGUI_REQUIRE_INTEROP` names what has to be there, separated by spaces: `node`, and packages as they are imported.
"""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from support.corpora import reference_root

pytest.register_assert_rewrite("agent_tests", "talking")

_NEEDS = {
    "test_interop_encoder.py": ["ag_ui"],
    "test_interop_pydantic_ai.py": ["pydantic_ai", "ag_ui", "starlette"],
    "test_interop_langgraph.py": ["ag_ui_langgraph", "fastapi"],
    "test_interop_agent_framework.py": ["agent_framework_ag_ui"],
    "test_interop_javascript.py": ["node"],
}


def _is_there(name: str) -> bool:
    return reference_root() is not None if name == "node" else find_spec(name) is not None


_required = os.environ.get("AGUI_REQUIRE_INTEROP", "").split()
_missing = [name for name in _required if not _is_there(name)]
if _missing:
    raise pytest.UsageError(f"AGUI_REQUIRE_INTEROP: not found: {', '.join(_missing)}")

collect_ignore = [file for file, names in _NEEDS.items() if not all(map(_is_there, [*names, "uvicorn", "httpx2"]))]
