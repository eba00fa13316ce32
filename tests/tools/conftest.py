"""What needs ag-ui-langgraph is not collected without it."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("ag_ui_langgraph") else ["test_loop_langgraph.py"]
