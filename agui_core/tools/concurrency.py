"""Worker threads of sync tools, and abandoned ones.

Python cannot stop a thread. When its call is given up, the thread is abandoned: it runs on and holds up nobody.
Abandoned threads are counted for the whole process; at a bound no further thread is started. Thread-safe; needs no
event loop.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

__all__ = ["ThreadedCall", "abandoned_threads"]

_lock = Lock()
_abandoned = 0


def abandoned_threads() -> int:
    """Threads of this process that still run, with nobody waiting for them."""
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
        """In the thread: the function's value, or its error. The error is not raised, as some (`StopIteration`,
        `SystemExit`) do not come through a thread as they are.
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
        """In the event loop: nobody waits any more. A running call is abandoned, a call in the queue never starts."""
        global _abandoned
        with _lock:
            self._given_up = True
            if self.started and not self.ended:
                self.abandoned = True
                _abandoned += 1
