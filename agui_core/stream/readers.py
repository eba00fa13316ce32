"""The async iterators over a run: `EveryEvent`, an update per event, and `Paced`, merged updates at a pace.

They are classes, not generators: a loop may be left anywhere, and leaving the block closes what they hold.
"""

from __future__ import annotations

import math
from typing import Self

from anyio import ResourceGuard, current_time, move_on_after
from anyio.lowlevel import checkpoint

from agui_core._options import Option, check_options
from agui_core.reducer import Reducer
from agui_core.stream.pump import Pump
from agui_core.stream.update import ReadMark, Update

_OPTIONS = {"interval": Option("a number of seconds, 0 or more", (int, float), lambda seconds: seconds >= 0)}

__all__ = ["EveryEvent", "Paced", "Reader", "check_interval"]


def check_interval(interval: float) -> None:
    """Raise `TypeError` or `ValueError` for anything but a number of seconds, 0 or more."""
    check_options(_OPTIONS, interval=interval)


class Reader:
    """What all async readers have: one task reads at a time, and a failure is raised once."""

    __slots__ = ("_guard", "_raised", "_read_mark")

    def __init__(self, reducer: Reducer, since: int) -> None:
        self._read_mark = ReadMark(reducer, since)
        self._guard = ResourceGuard("iterating over")
        self._raised = False

    def __aiter__(self) -> Self:
        return self

    def _end(self, failure: BaseException | None) -> BaseException:
        """What ends the loop: the failure, if there is one, and `StopAsyncIteration` ever after."""
        told, self._raised = self._raised, True
        return StopAsyncIteration() if told or failure is None else failure


class EveryEvent(Reader):
    """An update after every event. All work happens inside `__anext__`, in the caller's task."""

    __slots__ = ("_pump",)

    def __init__(self, pump: Pump, since: int) -> None:
        super().__init__(pump.reducer, since)
        self._pump = pump

    async def __anext__(self) -> Update:
        # The rest of the last item is applied without a wait, unless `drop` gave it up.
        try:
            for _ in self._pump.steps:
                return Update(self._read_mark)
        except Exception as error:
            return await self._refused(error)
        with self._guard:
            return await self._pull()

    async def aclose(self) -> None:
        """Read no more, and close the source, in this task."""
        with self._guard:
            self._pump.leave()
            await self._pump.close()

    async def _pull(self) -> Update:
        pump = self._pump
        while not pump.over.is_set():
            await checkpoint()
            seen = pump.notifier.serial
            item = await pump.pull()
            if pump.over.is_set():
                await pump.close()
                if pump.notifier.serial != seen:
                    return Update(self._read_mark)
                break
            pump.steps = pump.applier.steps(item)
            try:
                for _ in pump.steps:
                    return Update(self._read_mark)
            except Exception as error:
                return await self._refused(error)
        raise self._end(pump.applier.failure)

    async def _refused(self, error: Exception) -> Update:
        self._pump.conclude(error)
        await self._pump.close()
        return Update(self._read_mark)


class Paced(Reader):
    """An update whenever there is news, at most one per interval. News in between goes into the same update."""

    __slots__ = ("_interval", "_next", "_pump", "_seen")

    def __init__(self, pump: Pump, interval: float, since: int) -> None:
        super().__init__(pump.reducer, since)
        self._pump = pump
        self._interval = interval
        self._seen = 0
        self._next = -math.inf
        pump.intervals.append(interval)

    async def __anext__(self) -> Update:
        with self._guard:
            return await self._wait()

    async def aclose(self) -> None:
        """Read no more. The interval of this reader does not hold up the others any longer."""
        with self._guard:
            if self._interval in self._pump.intervals:
                self._pump.intervals.remove(self._interval)

    async def _wait(self) -> Update:
        pump = self._pump
        await checkpoint()
        await pump.wait(self._seen)
        rest = self._next - current_time()
        if rest > 0:
            with move_on_after(rest):
                await pump.over.wait()
        if pump.notifier.serial == self._seen:
            raise self._end(pump.applier.failure)
        self._seen = pump.notifier.serial
        self._next = current_time() + self._interval
        pump.take()
        return Update(self._read_mark)
