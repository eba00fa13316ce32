"""`ToolContext`: a running tool's knowledge of its call. Needs no event loop until the tool reports progress."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

__all__ = ["ToolContext"]


class ToolContext:
    """Given to the parameter of a tool that is annotated with this class; the model never sees that parameter.

    `state` is the thread's state when the call began: a plain JSON value, to be read and not changed.
    """

    __slots__ = ("_report", "call_id", "run_id", "state", "thread_id")

    def __init__(
        self,
        *,
        call_id: str,
        thread_id: str,
        run_id: str,
        state: Any = None,
        report: Callable[[str, Any], Awaitable[None]] | None = None,
    ) -> None:
        self.call_id = call_id
        self.thread_id = thread_id
        self.run_id = run_id
        self.state = state
        self._report = report

    async def progress(self, value: Any) -> None:
        """Report progress of the call; `value` is any JSON value. Without a listener it does nothing.

        A sync tool runs in a worker thread and says `anyio.from_thread.run(ctx.progress, value)`.
        """
        if self._report is not None:
            await self._report(self.call_id, value)
