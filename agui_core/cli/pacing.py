"""When the events of a recording are due: at the pace of their timestamps, or at a rate."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["EventHead", "Pacing", "read_head"]

_STEP = 0.02
"""Seconds between two events without timestamps."""
_AGES = 10**15
"""Milliseconds that count as no end at all; a timestamp may be an integer of any size."""


class EventHead(msgspec.Struct, rename="camel"):
    """Fields of an event that say when it comes and what it begins. They may hold anything."""

    type: Any = None
    timestamp: Any = None
    message_id: Any = None
    tool_call_id: Any = None


_decode = msgspec.json.Decoder(EventHead).decode


def read_head(payload: bytes) -> EventHead:
    """The head of an event; empty if that is not a JSON object."""
    try:
        return _decode(payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return EventHead()


class Pacing:
    """The pauses between the events of one recording, asked for in their order.

    `speed`: 2 is twice as fast as recorded, 0 does not wait. `longest`: seconds that a pause lasts, at most. `rate`:
    events a second, in place of the timestamps.
    """

    def __init__(self, speed: float, longest: float, rate: float | None = None) -> None:
        self._speed = speed
        self._longest = longest
        self._rate = rate
        self._last: int | None = None

    def pause(self, head: EventHead, *, at_once: bool = False) -> float:
        """Seconds between the event before and this one; with `at_once` its timestamp only counts for the next."""
        before, stamp = self._last, head.timestamp
        timed = type(stamp) is int
        if timed:
            self._last = stamp
        if self._rate is not None:
            return 1 / self._rate
        if self._speed == 0:
            return 0.0
        seconds = _STEP
        if timed:
            # EVT-3: a timestamp earlier than the one before is due at once.
            seconds = 0.0 if before is None or at_once else min(max(0, stamp - before), _AGES) / 1000
        return min(seconds / self._speed, self._longest)
