"""`follow`: one run from any source, as an async context manager that owns the task and the source.

    async with agui.follow(source) as run:
        async for update in run.updates(interval=1 / 30):
            render(update.messages, update.changes)
    run.status, run.reducer

Leaving the block ends the task, closes the source in the task that pulled it (within a second), and makes a run that is
still open `truncated`. An exception of the block leaves it as itself. The block may be left by an exception, by
cancellation or by `return`. Like every task group it must not stand around a `yield` of an async generator.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Iterable
from types import TracebackType

import anyio
from anyio.abc import TaskGroup

from agui_core.limits import Limits
from agui_core.reducer import Reducer
from agui_core.reducer.state import Middleware, Policy
from agui_core.status import Status
from agui_core.stream.applier import open_reducer
from agui_core.stream.pump import Pump
from agui_core.stream.readers import EveryEvent, Paced, check_interval
from agui_core.stream.source import WireSource
from agui_core.warnings import ProtocolWarning

__all__ = ["LiveRun", "follow"]

_INTERVAL = 1 / 30


def follow(
    source: AsyncIterable[object],
    *,
    middleware: Iterable[Middleware] = (),
    policy: Policy | None = None,
    limits: Limits | None = None,
    reducer: Reducer | None = None,
) -> LiveRun:
    """Follow a run of an async iterable: `async with follow(source) as run`.

    `source`: an async iterable. Items of bytes or str are the wire, cut anywhere: a first non-blank `{` means JSON
    Lines, everything else server-sent events. An object that ends with its item needs no line end, so an item may be
    the JSON text of one event. Items of other types are events, as `Reducer.apply` takes them.
    `middleware`, `policy` (strict if not said), `limits`: of the reducer.
    `reducer`: the reducer to go on with; it brings its own of these three.

    Raises: `TypeError` for a source that is not an async iterable, `ValueError` for a reducer and its options at once.
    """
    return LiveRun(WireSource(source), open_reducer(reducer, middleware, policy, limits))


class LiveRun:
    """A run while it arrives: an async context manager, to be entered once. After the block everything can still be
    read.
    """

    def __init__(
        self, source: WireSource, reducer: Reducer, notes: Callable[[], tuple[ProtocolWarning, ...]] = tuple
    ) -> None:
        self.reducer = reducer
        """The reducer that the source is applied to; between two waits of yours nothing in it changes."""
        self._source = source
        self._notes = notes
        self._pump: Pump | None = None
        self._tasks: TaskGroup | None = None
        self._since = 0
        self._updates: EveryEvent | Paced | None = None
        self._paced = False

    def __repr__(self) -> str:
        return f"<{type(self).__name__} into {self.reducer!r}>"

    @property
    def status(self) -> Status:
        """Where the run stands (`Reducer.status`)."""
        return self.reducer.status

    @property
    def warnings(self) -> tuple[ProtocolWarning, ...]:
        """Warnings about the input that was sent, then those of the reducer."""
        return (*self._notes(), *self.reducer.warnings)

    def updates(self, interval: float = _INTERVAL) -> EveryEvent | Paced:
        """The updates of this run, once.

        `interval`: seconds between two updates. With 0 every event gives one, and the source is pulled only when the
        loop asks, in the loop's task. Above 0 news gives an update, at most one per interval, and a task of the block
        reads at most one interval ahead. A source that stalls does not delay the news before.

        Raises: `RuntimeError` for a second call. In the loop: the source's own exception, unchanged, after one last
        update that shows the run `truncated`; `ProtocolError`, `DecodeError` or `LimitExceeded` after one that shows it
        `rejected`; `anyio.BusyResourceError` for two tasks in one iterator.
        """
        check_interval(interval)
        if self._updates is not None:
            raise RuntimeError("updates() can be called once per run; run.reader() gives further readers")
        if interval:
            self._updates = self._reader(interval, self._since)
        else:
            if self._paced:
                raise RuntimeError("updates(interval=0) pulls the source itself and cannot share it with run.reader()")
            self._updates = EveryEvent(self._entered(), self._since)
        return self._updates

    def reader(self, interval: float = _INTERVAL) -> Paced:
        """One more reader, at its own pace. Its first update shows the conversation so far.

        A slow reader does not hold the others up: the run is read ahead of the quickest.

        Raises: `ValueError` for an interval of 0, `RuntimeError` outside the block or beside `updates(interval=0)`.
        """
        check_interval(interval)
        if not interval:
            raise ValueError("a reader needs an interval above 0; only updates(interval=0) gives every event")
        return self._reader(interval, 0)

    async def __aenter__(self) -> LiveRun:
        if self._tasks is not None:
            raise RuntimeError("a run can be entered once; follow the source anew")
        self._since = self.reducer.version
        self._tasks = anyio.create_task_group()
        self._pump = Pump(self._source, self.reducer)
        await self._tasks.__aenter__()
        self._tasks.start_soon(self._pump.pump)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._tasks is not None
        pump = self._entered()
        try:
            with anyio.CancelScope(shield=True):
                await pump.stop()
                await pump.close()
        finally:
            pump.leave()
            # Told of no exception: it would wrap the block's own in a group.
            await self._tasks.__aexit__(None, None, None)
        if error is None and pump.close_error is not None:
            raise pump.close_error

    def _reader(self, interval: float, since: int) -> Paced:
        if isinstance(self._updates, EveryEvent):
            raise RuntimeError("updates(interval=0) pulls the source itself; further readers need updates(interval>0)")
        reader = Paced(self._entered(), interval, since)
        self._paced = True
        return reader

    def _entered(self) -> Pump:
        if self._pump is None:
            raise RuntimeError("the run is read inside its block: async with ... as run")
        return self._pump
