"""Slots: how many calls may run at a time, counting threads that were left behind.

Python cannot stop a thread. One whose call is given up is abandoned: it runs on, and keeps its slot until it ends, so
that a tool that hangs cannot fill the machine with threads. Thread-safe; needs no event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition, Event
from typing import Any

__all__ = ["Slots", "ThreadedCall"]


class Slots:
    """`limit` slots, less those that abandoned threads keep."""

    __slots__ = ("_abandoned", "_changed", "_ended", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._changed = Condition()
        self._abandoned = 0
        self._ended = 0

    @property
    def free(self) -> int:
        """How many calls may run beside the abandoned threads."""
        return max(self.limit - self._abandoned, 0)

    @property
    def abandoned(self) -> int:
        """Threads that still run though nobody waits for them."""
        return self._abandoned

    @property
    def ended(self) -> int:
        """Abandoned threads that have ended, ever."""
        return self._ended

    def wait(self, ended: int, stopped: Event) -> None:
        """Block until more than `ended` abandoned threads have ended, none is left, or `stop` was called."""
        with self._changed:
            while self._ended <= ended and self._abandoned and not stopped.is_set():
                self._changed.wait()

    def stop(self, stopped: Event) -> None:
        """End the waiting that was given this event."""
        stopped.set()
        with self._changed:
            self._changed.notify_all()


class ThreadedCall:
    """One call of a function in a worker thread."""

    __slots__ = ("_given_up", "_slots", "abandoned", "ended", "started")

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self.abandoned = False
        self._given_up = False
        self.started = False
        self.ended = False

    def run(self, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """In the thread: the function's value, or what it raised. Nothing is raised through the thread's machinery,
        which
        does not get along with every exception (`StopIteration`, `SystemExit`).
        """
        slots = self._slots
        with slots._changed:
            if self._given_up:
                return None, None
            self.started = True
        result: tuple[Any, BaseException | None]
        try:
            result = function(), None
        except BaseException as error:
            result = None, error
        with slots._changed:
            self.ended = True
            if self.abandoned:
                slots._abandoned -= 1
                slots._ended += 1
                slots._changed.notify_all()
        return result

    def give_up(self) -> None:
        """In the event loop: nobody waits any more. What runs is abandoned, what has not begun never will."""
        slots = self._slots
        with slots._changed:
            self._given_up = True
            if self.started and not self.ended:
                self.abandoned = True
                slots._abandoned += 1
