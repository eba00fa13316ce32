"""A source of events that says what became of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import anyio

__all__ = ["Watched"]


class Watched:
    """An async generator over `items`, and what became of it.

    After the items it stalls for ever if `stall`, raises `error` if there is one, and ends otherwise.
    """

    def __init__(self, items: Iterable[Any], *, stall: bool = False, error: BaseException | None = None) -> None:
        self.items = list(items)
        self.stall = stall
        self.error = error
        self.pulled = 0
        self.closed = False
        self.pulled_in: set[int] = set()
        self.closed_in: int | None = None

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for item in self.items:
                self.pulled += 1
                self.pulled_in.add(anyio.get_current_task().id)
                yield item
            self.pulled_in.add(anyio.get_current_task().id)
            if self.stall:
                await anyio.sleep_forever()
            if self.error is not None:
                raise self.error
        finally:
            await anyio.lowlevel.cancel_shielded_checkpoint()
            self.closed = True
            self.closed_in = anyio.get_current_task().id
