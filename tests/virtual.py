"""Time that passes only when nothing else can happen, so that no test about time depends on the machine.

`virtual_time` marks a test that runs in it, on asyncio and on trio. Not for what waits for threads or processes: a wait
for them looks like nothing to do.
"""

from __future__ import annotations

import asyncio
import selectors
from typing import Any

import pytest
from trio.testing import MockClock

__all__ = ["virtual_time"]


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


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop of asyncio whose time is virtual."""

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)

    def time(self) -> float:
        return self._virtual.now


virtual_time = pytest.mark.parametrize(
    "anyio_backend",
    [
        pytest.param(("asyncio", {"loop_factory": VirtualLoop}), id="asyncio"),
        pytest.param(("trio", {"clock": MockClock(autojump_threshold=0)}), id="trio"),
    ],
)
