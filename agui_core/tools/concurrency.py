"""Worker threads of sync tools, and those that were left behind.

Python cannot stop a thread. One whose call is given up is abandoned: it runs on, and holds up nobody. Abandoned threads
are counted for the whole process; where there are too many, no further thread is begun. Thread-safe; needs no event
loop.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

__all__ = ["ThreadedCall", "abandoned_threads"]

_lock = Lock()
_abandoned = 0


def abandoned_threads() -> int:
    """How many threads of this process still run though nobody waits for them."""
    return _abandoned


class ThreadedCall:
    """One call of a function in a worker thread."""

    __slots__ = ("_given_up", "abandoned", "ended", "started")

    def __init__(self) -> None:
        self.abandoned = False
        self._given_up = False
        self.started = False
        self.ended = False

    def run(self, function: Callable[[], Any]) -> tuple[Any, BaseException | None]:
        """In the thread: the function's value, or what it raised. Nothing is raised through the thread's machinery,
        which does not get along with every exception (`StopIteration`, `SystemExit`).
        """
        global _abandoned
        with _lock:
            if self._given_up:
                return None, None
            self.started = True
        result: tuple[Any, BaseException | None]
        try:
            result = function(), None
        except BaseException as error:
            result = None, error
        with _lock:
            self.ended = True
            if self.abandoned:
                _abandoned -= 1
        return result

    def give_up(self) -> None:
        """In the event loop: nobody waits any more. What runs is abandoned, what has not begun never will."""
        global _abandoned
        with _lock:
            self._given_up = True
            if self.started and not self.ended:
                self.abandoned = True
                _abandoned += 1
