"""The README tells the truth: its Python runs, in order, and its table of limits is that of the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import agui_core as agui

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


def test_the_examples_run() -> None:
    assert len(BLOCKS) >= 8
    namespace: dict[str, Any] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md, example {number}", "exec"), namespace)


def test_the_table_names_every_limit() -> None:
    table = README[README.index("## Limits") : README.index("## Errors")]
    assert set(agui.Limits.__struct_fields__) <= set(re.findall(r"`([a-z_]+)`", table))
