"""Ratios, not seconds: functions are timed in turns, so that all meet the same quiet moments; the minima count."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter

__all__ = ["minima"]


def minima(*functions: Callable[[], object], rounds: int = 25) -> list[float]:
    """The least seconds that each function took over interleaved rounds, without the cyclic collector."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for place, function in enumerate(functions):
            gc.collect()
            gc.disable()
            try:
                start = perf_counter()
                function()
                best[place] = min(best[place], perf_counter() - start)
            finally:
                gc.enable()
    return best
