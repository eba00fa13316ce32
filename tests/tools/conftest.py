"""What needs recordings or ag-ui-langgraph is not collected without them."""

from __future__ import annotations

from importlib.util import find_spec

from support.corpora import shared_root

collect_ignore = [
    *([] if shared_root() else ["test_calls_recordings.py"]),
    *([] if find_spec("ag_ui_langgraph") else ["test_loop_langgraph.py"]),
]
