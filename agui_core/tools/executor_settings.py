"""Settings that `Calls` and `ToolLoop` share, and a tool's coroutine under control."""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Generator
from types import coroutine
from typing import Any, NamedTuple

from agui_core._options import COUNT, COUNT_OR_NONE, SECONDS, SWITCH, check_options
from agui_core.protocol.base import UnsetType
from agui_core.tools.tool import Tool

__all__ = ["ExecutorSettings", "awaited", "contained"]

_OPTIONS = {
    "limit": COUNT,
    "threads": COUNT_OR_NONE,
    "timeout": SECONDS,
    "expose_errors": SWITCH,
    "result_bytes": COUNT_OR_NONE,
}
_THREADS_PER_CALL = 4


class ExecutorSettings(NamedTuple):
    """How calls are run. See `Calls`."""

    limit: int
    threads: int | None
    timeout: float | None
    expose_errors: bool
    result_bytes: int | None

    def checked(self) -> ExecutorSettings:
        """The same settings. Raises: `TypeError` or `ValueError` for one that does not fit."""
        check_options(_OPTIONS, **self._asdict())
        return self

    @property
    def max_threads(self) -> int:
        """Abandoned threads of the process from which on no further one is started."""
        return _THREADS_PER_CALL * self.limit if self.threads is None else self.threads

    def result_bytes_of(self, tool: Tool | None) -> int | None:
        """The bound on the results of a tool: its own, or the one here."""
        if tool is None or isinstance(tool.result_bytes, UnsetType):
            return self.result_bytes
        return tool.result_bytes


async def awaited(awaitable: Awaitable[Any]) -> Any:
    """Any awaitable as a coroutine."""
    return await awaitable


@coroutine
def contained(tool: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Await a tool's coroutine. A `GeneratorExit` of the tool's own is an error like any other; only one from outside,
    when this task is closed, stays a `GeneratorExit`.
    """
    sent: Any = None
    thrown: BaseException | None = None
    while True:
        try:
            yielded = tool.send(sent) if thrown is None else tool.throw(thrown)
        except StopIteration as stop:
            return stop.value
        except GeneratorExit as error:
            raise RuntimeError("the function raised GeneratorExit") from error
        sent = thrown = None
        try:
            sent = yield yielded
        except GeneratorExit:
            tool.close()
            raise
        except BaseException as error:
            thrown = error
