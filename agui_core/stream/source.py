"""`WireSource`: an async iterable that one task at a time pulls, and the same task closes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterable, AsyncIterator, Iterable

from anyio import current_effective_deadline, move_on_after

__all__ = ["CLOSING", "WireSource", "is_foreign_cancellation"]

CLOSING = 1.0
"""Seconds that closing something may take, shielded from cancellation; after that it is abandoned."""


class WireSource:
    """The iterator of an async iterable, and its end. A pending `pull` is cancelled only with the task that waits."""

    __slots__ = ("_abandoned", "_busy", "_closed", "_iterator")

    def __init__(self, source: AsyncIterable[object]) -> None:
        if not hasattr(source, "__aiter__"):
            hint = "; follow_sync takes iterables that are not async" if isinstance(source, Iterable) else ""
            raise TypeError(f"a source is an async iterable, not a {type(source).__name__}{hint}")
        self._iterator: AsyncIterator[object] = source.__aiter__()
        self._busy = False
        self._abandoned = False
        self._closed = False

    async def pull(self) -> object:
        """The next item.

        Raises: what the iterator raises; `StopAsyncIteration` at its end.
        """
        self._busy = True
        try:
            return await self._iterator.__anext__()
        finally:
            self._busy = False
            if self._abandoned:
                await self.close()

    async def close(self) -> None:
        """Close the iterator, once. While another task waits in `pull`, that task closes it when it is back.

        Closing is abandoned after `CLOSING` seconds.

        Raises: what the iterator's `aclose` raises.
        """
        if self._busy:
            self._abandoned = True
        elif not self._closed:
            self._closed = True
            aclose = getattr(self._iterator, "aclose", None)
            if aclose is not None:
                with move_on_after(CLOSING, shield=True):
                    await aclose()


def is_foreign_cancellation() -> bool:
    """Whether a cancellation from `pull` is the source's own: it waited for a task that was cancelled."""
    return current_effective_deadline() != -math.inf
