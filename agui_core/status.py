"""Where the latest run of a stream stands, and what that means for what follows."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = ["BROKEN", "OVER", "WHOLE", "Status"]

Status: TypeAlias = Literal[
    "idle", "running", "finished", "interrupted", "cancelled", "failed", "truncated", "rejected"
]
"""Where the latest run stands. `idle`: no run yet. `running`: a run goes on. `finished`: RUN_FINISHED. `interrupted`:
finished, and it waits for answers (INT-1). `cancelled`: finished, and its outcome says so. `failed`: RUN_ERROR.
`truncated`: the source ended inside the run (RUN-17). `rejected`: the stream broke the protocol or a limit, and nothing
more is applied."""

OVER: frozenset[Status] = frozenset({"finished", "interrupted"})
"""The run came to its end, and what it left is for others to answer."""
BROKEN: frozenset[Status] = frozenset({"cancelled", "failed", "truncated", "rejected"})
"""The run ended without getting there: its calls are not run (OPEN-17), and `retry` may send the same again."""
WHOLE: frozenset[Status] = OVER | {"cancelled"}
"""The producer ended the run by its own word."""
