"""Warnings: what was stripped, dropped, skipped or repaired, and why. Bounded; repeats only count up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Protocol

import msgspec

from agui_core._text import event_place, one_line

__all__ = ["ProtocolWarning", "WarningLog"]

_LONGEST = 1_000
"""Characters of a message, a type or a path."""


class ProtocolWarning(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What was stripped, dropped, repaired or skipped. What differs only in `message` and `index` counts up, and these
    are those of the first.

    rule: id of the rule; `agui rules ID` tells it.
    message: what was done, and where.
    index: index of the first event concerned, from 0.
    type: the wire name of that event.
    path: JSON Pointer into the event, `""` for the whole of it.
    count: how often it occurred.
    refused: whether the strict policy refuses the stream for it, so that it was repaired or skipped under the
      lenient one.
    """

    rule: str
    message: str
    index: int | None = None
    type: str | None = None
    path: str = ""
    count: int = 1
    refused: bool = False

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{event_place(self.index, self.type)}{one_line(self.message)} [{self.rule}]{times}"


class _Entry(msgspec.Struct):
    count: int
    message: str
    index: int | None


class Repeated(Protocol):
    """The warnings about an event that has the same ones as others before."""

    kind: str
    warnings: list[tuple[str, str]]
    """Messages and paths."""


class WarningLog:
    """Gathers warnings. O(1) per warning.

    `limit`: distinct warnings that are kept; `dropped` counts the others.
    `listener`: called with each single occurrence, the repeated ones too.

    Both see the order of the events. A decoder is ahead of the reducer, so its warnings are deferred until the reducer
    reaches the event.
    """

    __slots__ = ("_deferred", "_entries", "_first", "_limit", "dropped", "listener")

    def __init__(self, limit: int = 1_000, listener: Callable[[ProtocolWarning], object] | None = None) -> None:
        self._limit = limit
        self.listener = listener
        self._entries: dict[tuple[str, str | None, str, bool], _Entry] = {}
        self.dropped = 0
        self._first = 0
        self._deferred: Sequence[Repeated] = ()

    def defer(self, first: int, repeated: Sequence[Repeated]) -> None:
        """Keep the warnings about events from index `first` on until these are reached (PROC-5)."""
        self._first, self._deferred = first, repeated

    def settle(self, index: int | None = None) -> None:
        """Note deferred warnings: all, or those up to the event at `index`."""
        first, repeated = self._first, self._deferred
        self._first, self._deferred = 0, ()
        if index is not None and index - first + 1 < len(repeated):
            count = max(index - first + 1, 0)
            repeated, rest = repeated[:count], repeated[count:]
            self._note_repeated(first, repeated)
            self._first, self._deferred = first + count, rest
        else:
            self._note_repeated(first, repeated)

    def _note_repeated(self, first: int, repeated: Sequence[Repeated]) -> None:
        places: dict[Repeated, list[int]] = {}
        for position, surplus in enumerate(repeated, first):
            if not surplus.warnings:
                continue
            places.setdefault(surplus, []).append(position)
            if self.listener is not None:
                for message, path in surplus.warnings:
                    self.add("PROC-5", message, index=position, type=surplus.kind, path=path)
        if self.listener is None:
            for surplus, positions in places.items():
                for message, path in surplus.warnings:
                    self.add_all("PROC-5", message, positions, type=surplus.kind, path=path)

    def forget(self) -> None:
        """Drop the deferred warnings: events after a refused one are not reached."""
        self._deferred = ()

    def add(
        self,
        rule: str,
        message: str,
        *,
        index: int | None = None,
        type: str | None = None,
        path: str = "",
        refused: bool = False,
    ) -> None:
        """Note one deviation."""
        self.add_all(rule, message, (index,), type=type, path=path, refused=refused)

    def add_all(
        self,
        rule: str,
        message: str,
        indexes: Sequence[int | None],
        *,
        type: str | None = None,
        path: str = "",
        refused: bool = False,
    ) -> None:
        """Note the same deviation of several events."""
        if self._deferred and indexes[0] is not None:
            self.settle(indexes[0])
        # A producer chooses names and types, so all that is kept is cut.
        message, path = message[:_LONGEST], path[:_LONGEST]
        type = None if type is None else type[:_LONGEST]
        if self.listener is not None:
            for index in indexes:
                self._tell(
                    ProtocolWarning(rule=rule, message=message, index=index, type=type, path=path, refused=refused)
                )
        key = (rule, type, path, refused)
        entry = self._entries.get(key)
        if entry is not None:
            entry.count += len(indexes)
        elif len(self._entries) < self._limit:
            self._entries[key] = _Entry(len(indexes), message, indexes[0])
        else:
            self.dropped += len(indexes)

    def _tell(self, warning: ProtocolWarning) -> None:
        """Call the listener. An error of its own becomes a warning and stops nothing."""
        assert self.listener is not None
        try:
            self.listener(warning)
        except Exception as error:
            listener, self.listener = self.listener, None
            try:
                self.add("OBSERVER", f"on_warning raised {error.__class__.__name__}: {error}", index=warning.index)
            finally:
                self.listener = listener

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ProtocolWarning]:
        for (rule, type, path, refused), entry in self._entries.items():
            yield ProtocolWarning(
                rule=rule,
                message=entry.message,
                index=entry.index,
                type=type,
                path=path,
                count=entry.count,
                refused=refused,
            )

    def resume(self, warnings: Iterable[ProtocolWarning], dropped: int) -> None:
        """Take over the warnings of another log, without calling the listener."""
        for warning in warnings:
            key = (warning.rule, warning.type, warning.path, warning.refused)
            self._entries[key] = _Entry(warning.count, warning.message, warning.index)
        self.dropped = dropped

    def copy(self, listener: Callable[[ProtocolWarning], object] | None = None) -> WarningLog:
        """An independent log with the same entries."""
        log = WarningLog(self._limit, listener)
        log._entries = {key: _Entry(entry.count, entry.message, entry.index) for key, entry in self._entries.items()}
        log.dropped = self.dropped
        return log
