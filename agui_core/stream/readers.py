"""The two iterators over a run: one that shows every event, and one that shows what there is at its own pace.

They are classes, not generators: breaking out of a loop leaves nothing behind, and leaving the block closes things.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from anyio import ResourceGuard, current_time, move_on_after
from anyio.lowlevel import checkpoint

from agui_core._options import Option, check_options
from agui_core.stream.pump import Pump
from agui_core.stream.update import ReadMark, Update

_OPTIONS = {"interval": Option("a number of seconds, 0 or more", (int, float), lambda seconds: seconds >= 0)}
_NO_STEPS: Iterator[None] = iter(())

__all__ = ["EveryEvent", "Paced", "check_interval"]


def check_interval(interval: float) -> None:
    """Refuse what is no number of seconds."""
    check_options(_OPTIONS, interval=interval)


class EveryEvent:
    """An update after every event; pulls the source only when it is asked for more, in the task that asks."""

    __slots__ = ("_feed", "_guard", "_mark", "_raised", "_steps")

    def __init__(self, feed: Pump, since: int) -> None:
        self._feed = feed
        self._mark = ReadMark(feed.reducer, since)
        self._guard = ResourceGuard("iterating over")
        self._raised = False
        self._steps: Iterator[None] = _NO_STEPS

    def __aiter__(self) -> EveryEvent:
        return self

    async def __anext__(self) -> Update:
        # What was pulled and is not yet applied is applied without a wait, unless it was left behind.
        try:
            for _ in self._steps:
                return Update(self._mark)
        except Exception as error:
            return await self._refused(error)
        with self._guard:
            return await self._pull()

    def drop(self) -> None:
        """Apply nothing more of what was pulled."""
        self._steps = _NO_STEPS

    async def aclose(self) -> None:
        """Read no more, and close the source, in this task."""
        with self._guard:
            self.drop()
            self._feed.leave()
            await self._feed.close()

    async def _pull(self) -> Update:
        feed = self._feed
        while not feed.over.is_set():
            await checkpoint()
            seen = feed.serial
            item = await feed.pull()
            if feed.over.is_set():
                await feed.close()
                if feed.serial != seen:
                    return Update(self._mark)
                break
            self._steps = steps = feed.intake.steps(item)
            try:
                for _ in steps:
                    return Update(self._mark)
            except Exception as error:
                return await self._refused(error)
        raise self._end()

    async def _refused(self, error: Exception) -> Update:
        self._feed.conclude(error)
        await self._feed.close()
        return Update(self._mark)

    def _end(self) -> BaseException:
        failure = None if self._raised else self._feed.failure
        self._raised = True
        return failure or StopAsyncIteration()


class Paced:
    """An update whenever there is something new, at most one per interval; what came in between is in the same
    update.
    """

    __slots__ = ("_feed", "_guard", "_interval", "_mark", "_next", "_raised", "_seen")

    def __init__(self, feed: Pump, interval: float, since: int) -> None:
        self._feed = feed
        self._mark = ReadMark(feed.reducer, since)
        self._guard = ResourceGuard("iterating over")
        self._raised = False
        self._interval = interval
        self._seen = 0
        self._next = -math.inf
        feed.intervals.append(interval)

    def __aiter__(self) -> Paced:
        return self

    async def __anext__(self) -> Update:
        with self._guard:
            return await self._wait()

    async def aclose(self) -> None:
        """Read no more. The others go on, and are not held up by this one's interval."""
        with self._guard:
            if self._interval in self._feed.intervals:
                self._feed.intervals.remove(self._interval)

    async def _wait(self) -> Update:
        feed = self._feed
        await checkpoint()
        await feed.wait(self._seen)
        rest = self._next - current_time()
        if rest > 0:
            with move_on_after(rest):
                await feed.over.wait()
        if feed.serial == self._seen:
            failure = None if self._raised else feed.failure
            self._raised = True
            raise failure or StopAsyncIteration
        self._seen = feed.serial
        self._next = current_time() + self._interval
        feed.take()
        return Update(self._mark)
