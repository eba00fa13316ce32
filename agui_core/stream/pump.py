"""`Pump`: one source, one reducer, and the task that reads ahead of the readers.

One task pulls: the reader's own (`EveryEvent`), or the pump (for `Paced` readers). The pump rests when the oldest news
that no reader has taken is an interval old, so it is at most one interval ahead of the quickest reader. A task may be
cancelled at each wait, and at each wait everything that was pulled has been applied.

Costs per item: one pull, one look at the clock, and one wake-up of the waiting readers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from anyio import CancelScope, Event, current_time, get_cancelled_exc_class
from anyio.lowlevel import checkpoint

from agui_core.reducer import Reducer
from agui_core.stream.applier import WIRE, Applier
from agui_core.stream.notifier import Notifier
from agui_core.stream.source import WireSource, is_foreign_cancellation

__all__ = ["Pump"]

_TURN = 64
"""Single events between two checkpoints. A piece of the wire holds many, and has a checkpoint of its own."""

_NO_STEPS: Iterator[None] = iter(())


class Pump:
    """Shared by the readers of one run. Made inside the event loop."""

    def __init__(self, source: WireSource, reducer: Reducer) -> None:
        self.source = source
        self.reducer = reducer
        self.applier = Applier(reducer)
        self.notifier = Notifier()
        """Wakes the readers."""
        self.over = Event()
        """Set when nothing more will come."""
        self.close_error: Exception | None = None
        self.steps: Iterator[None] = _NO_STEPS
        """What was pulled and is applied one event at a time."""
        self.intervals: list[float] = []
        """Those of the paced readers."""
        self._wanted = Event()
        self._taken = Event()
        self._untaken_since = math.inf
        self._scope = CancelScope()
        self._stopped = Event()

    # --- the pump -------------------------------------------------------------------------------------------------

    async def pump(self) -> None:
        """Read, apply and tell the readers, from a reader's first wait until the end or `stop`."""
        try:
            with self._scope:
                await self._wanted.wait()
                await self._read_on()
        finally:
            if self._wanted.is_set():
                await self.close()
            self._stopped.set()

    async def stop(self) -> None:
        """End the pump, and wait until it has closed the source."""
        self._scope.cancel()
        await self._stopped.wait()

    async def wait(self, seen: int) -> None:
        """Wait for news after the serial `seen`, or for the end. Starts the pump."""
        self._wanted.set()
        while self.notifier.serial == seen and not self.over.is_set():
            await self.notifier.wait()

    def take(self) -> None:
        """A reader takes the news, so the pump may go on."""
        self._untaken_since = math.inf
        self._taken.set()

    async def _read_on(self) -> None:
        turn = 0
        while True:
            if turn <= 0:
                turn = _TURN
                await checkpoint()
            while current_time() - self._untaken_since >= max(self.intervals, default=0):
                self._taken = Event()
                await self._taken.wait()
            item = await self.pull()
            if self.over.is_set():
                return
            try:
                self.applier.apply(item)
            except Exception as error:
                self.conclude(error)
                return
            turn -= _TURN if isinstance(item, WIRE) else 1
            if self._untaken_since == math.inf:
                self._untaken_since = current_time()
            self.notifier.tell()

    # --- for the task that pulls ------------------------------------------------------------------------------------

    async def pull(self) -> object:
        """The next item. At the end of the source, and when it fails, `over` is set and the result means nothing."""
        try:
            return await self.source.pull()
        except StopAsyncIteration:
            self.conclude(None)
        except get_cancelled_exc_class() as error:
            if not is_foreign_cancellation():
                raise
            self.conclude(error)
        except Exception as error:
            self.conclude(error)
        return None

    def conclude(self, failure: BaseException | None) -> None:
        """Nothing more will come. After a failure there is one more update to look at."""
        if not self.over.is_set():
            self._end(news=self.applier.conclude(failure))

    def leave(self) -> None:
        """Nobody reads on: what was pulled and is not applied is dropped, what is still open truncated (RUN-16)."""
        self.steps = _NO_STEPS
        if not self.over.is_set():
            self.applier.leave()
            self._end(news=True)

    async def close(self) -> None:
        """Close the source. An exception is kept for the end of the block."""
        try:
            await self.source.close()
        except Exception as error:
            self.close_error = error

    def _end(self, *, news: bool) -> None:
        self.over.set()
        if news:
            self.notifier.tell()
        else:
            self.notifier.wake()
