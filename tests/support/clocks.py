"""Time of a test's own, so that no test about time depends on the machine. On asyncio and on trio.

`virtual_time` marks a test whose time passes only when nothing else can happen. Not for what waits for threads,
processes or sockets: a wait for them looks like nothing to do. For HTTP there is `loopback.beside`.

`still_time` marks a test whose time stands still, except in `let_pass`. It is for timeouts of threads: none fires
before the test has seen that the threads have begun.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

import pytest
import trio
from trio.testing import MockClock

__all__ = ["PATIENCE", "VirtualLoop", "let_pass", "still_time", "virtual_time"]

PATIENCE = 60.0
"""Seconds after which what a test waits for will never come. Only a failure takes as long, on the busiest machine."""

_TICK = 1e-6
"""Seconds that a wait takes longer than asked for, so that rounding never leaves it short of its end."""


class _Selector(selectors.DefaultSelector):
    """Waits for nothing: what would be waited is added to `now`."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0 if timeout is not None else None)
        if not ready and timeout:
            self.now += timeout + _TICK
        return ready


class _StillSelector(selectors.DefaultSelector):
    """Waits for what really happens, however early a timer is due."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        return super().select(timeout if timeout == 0 else None)


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio whose time is virtual."""

    _kind: type[_Selector | _StillSelector] = _Selector

    def __init__(self) -> None:
        self.virtual = self._kind()
        super().__init__(self.virtual)

    def time(self) -> float:
        return self.virtual.now


class StillLoop(VirtualLoop):
    """An event loop of asyncio whose time stands still."""

    _kind = _StillSelector


def let_pass(seconds: float) -> None:
    """In a test of `still_time`, in its event loop: now it is later."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        clock = trio.lowlevel.current_clock()
        assert isinstance(clock, MockClock)
        clock.jump(seconds)
    else:
        assert isinstance(loop, StillLoop)
        loop.virtual.now += seconds


virtual_time = pytest.mark.parametrize(
    "anyio_backend",
    [
        pytest.param(("asyncio", {"loop_factory": VirtualLoop}), id="asyncio"),
        pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio"),
    ],
)

still_time = pytest.mark.parametrize(
    "anyio_backend",
    [
        pytest.param(("asyncio", {"loop_factory": StillLoop}), id="asyncio"),
        pytest.param(("trio", {"clock": MockClock()}), id="trio"),
    ],
)
