"""Ratios, not seconds: functions are measured in turns, so that all meet the same quiet moments; the minima count."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import process_time
from typing import Any, NamedTuple

__all__ = ["Prepared", "Target", "minima"]

Target = Callable[..., None]
"""The fixture of that name in `conftest.py`: `target(ratio, at_most=...)` or `at_least`."""


class Prepared(NamedTuple):
    """A function of something that is made anew for each round, outside of what is measured."""

    prepare: Callable[[], Any]
    run: Callable[[Any], object]


def minima(*functions: Callable[[], object] | Prepared, rounds: int = 25) -> list[float]:
    """The least processor time, in seconds, of each function over interleaved rounds, without the cyclic collector."""
    best = [float("inf")] * len(functions)
    for _ in range(rounds):
        for place, function in enumerate(functions):
            best[place] = min(best[place], _seconds(function))
    return best


def _seconds(function: Callable[[], object] | Prepared) -> float:
    prepared = (function.prepare(),) if isinstance(function, Prepared) else ()
    run = function.run if isinstance(function, Prepared) else function
    gc.collect()
    gc.disable()
    try:
        start = process_time()
        run(*prepared)
        return process_time() - start
    finally:
        gc.enable()
