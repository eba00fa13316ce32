"""`Notifier`: wakes whoever waits for something new of a conversation."""

from __future__ import annotations

from anyio import Event

__all__ = ["Notifier"]


class Notifier:
    """Wakes the readers of a conversation."""

    __slots__ = ("_event", "closed", "serial")

    def __init__(self) -> None:
        self.serial = 0
        """Grows whenever there is something new to look at."""
        self.closed = False
        """Nothing more will come."""
        self._event: Event | None = None

    def tell(self) -> None:
        """There is something new."""
        self.serial += 1
        self.wake()

    def wake(self) -> None:
        """Have the readers look again."""
        if self._event is not None:
            self._event.set()
            self._event = None

    def close(self) -> None:
        """This was the last."""
        self.closed = True
        self.wake()

    async def wait(self) -> None:
        """Wait for something new."""
        if self._event is None:
            self._event = Event()
        await self._event.wait()
