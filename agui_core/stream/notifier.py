"""`Notifier`: wakes the tasks that wait for news of a run or of a conversation."""

from __future__ import annotations

from anyio import Event

__all__ = ["Notifier"]


class Notifier:
    """Wakes the readers. Made anywhere, waited for inside the event loop."""

    __slots__ = ("_event", "closed", "serial")

    def __init__(self) -> None:
        self.serial = 0
        """Grows with all news; a reader compares it with the serial that it saw last."""
        self.closed = False
        """No more news will come."""
        self._event: Event | None = None

    def tell(self) -> None:
        """There is news."""
        self.serial += 1
        self.wake()

    def wake(self) -> None:
        """Have the readers look again."""
        if self._event is not None:
            self._event.set()
            self._event = None

    def close(self) -> None:
        """There will be no more news."""
        self.closed = True
        self.wake()

    async def wait(self) -> None:
        """Wait until the readers are woken."""
        if self._event is None:
            self._event = Event()
        await self._event.wait()
