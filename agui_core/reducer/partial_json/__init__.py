"""A JSON value whose text still arrives.

Start with `parser`: `PartialJson` and its loop. `grammar` has a pattern for each state, `steps` what each match does at
the `cursor`, `number` reads numbers character by character, `fault` says what is wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agui_core._lazy import later

if TYPE_CHECKING:
    from agui_core.reducer.partial_json.fault import JsonFault
    from agui_core.reducer.partial_json.parser import PartialJson

__all__ = ["JsonFault", "PartialJson"]

if not TYPE_CHECKING:  # so that type checkers know that there are no other names
    __getattr__ = later(__name__, {"JsonFault": "fault", "PartialJson": "parser"})
