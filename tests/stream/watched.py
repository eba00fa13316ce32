"""What the tests of `agui_core.stream` share: a run's events, their bytes, and a source that says what became of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from typing import Any

import anyio

import agui_core as agui

__all__ = ["FINISHED", "STARTED", "Watched", "content", "end", "lines", "sse", "start", "text_of", "text_run"]

Wire = dict[str, Any]

STARTED: Wire = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
FINISHED: Wire = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}


def start(id: str = "m") -> Wire:
    return {"type": "TEXT_MESSAGE_START", "messageId": id}


def content(delta: str, id: str = "m") -> Wire:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": delta}


def end(id: str = "m") -> Wire:
    return {"type": "TEXT_MESSAGE_END", "messageId": id}


def text_run(*deltas: str) -> list[Wire]:
    """A whole run with one message."""
    return [STARTED, start(), *map(content, deltas), end(), FINISHED]


def sse(events: Iterable[Wire]) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def lines(events: Iterable[Wire]) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


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


def text_of(reducer: agui.Reducer) -> str:
    return "".join(str(getattr(message, "content", "")) for message in reducer.messages)
