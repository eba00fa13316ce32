"""`follow_sync`: `follow` for programs without an event loop, with an update after every item of the source.

    with agui.follow_sync(source) as run:
        for update in run.updates():
            render(update.messages, update.changes)

The signature and the reading properties stand in `follow` as well: help and type checkers have to show them here too.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Iterator
from types import TracebackType

from agui_core.limits import Limits
from agui_core.reducer import Reducer
from agui_core.reducer.state import Middleware, Policy
from agui_core.status import Status
from agui_core.stream.applier import WIRE, Applier, open_reducer
from agui_core.stream.update import ReadMark, Update
from agui_core.warnings import ProtocolWarning

__all__ = ["SyncRun", "SyncUpdates", "follow_sync"]


def follow_sync(
    source: Iterable[object],
    *,
    middleware: Iterable[Middleware] = (),
    policy: Policy | None = None,
    limits: Limits | None = None,
    reducer: Reducer | None = None,
) -> SyncRun:
    """Follow a run: `with follow_sync(source) as run`.

    `source`: an iterable of the items that `follow` takes.
    `middleware`, `policy`, `limits`, `reducer`: as for `follow`.

    Raises: as `follow` does.
    """
    return SyncRun(source, open_reducer(reducer, middleware, policy, limits))


class SyncRun:
    """A run while it arrives, without an event loop: a context manager, to be entered once. Leaving it closes the
    source.
    """

    def __init__(self, source: Iterable[object], reducer: Reducer) -> None:
        if isinstance(source, (AsyncIterable, *WIRE)) or not isinstance(source, Iterable):
            hint = "; follow takes async iterables" if isinstance(source, AsyncIterable) else ""
            raise TypeError(f"a source is an iterable of reads or events, not a {type(source).__name__}{hint}")
        self.reducer = reducer
        """The reducer that the source is applied to."""
        self._source = iter(source)
        self._applier = Applier(reducer)
        self._updates: SyncUpdates | None = None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} into {self.reducer!r}>"

    @property
    def status(self) -> Status:
        """Where the run stands (`Reducer.status`)."""
        return self.reducer.status

    @property
    def warnings(self) -> tuple[ProtocolWarning, ...]:
        """The reducer's warnings."""
        return self.reducer.warnings

    def updates(self) -> SyncUpdates:
        """An update after every item of the source, once. Errors come as they do from `LiveRun.updates`."""
        if self._updates is not None:
            raise RuntimeError("updates() can be called once per run")
        self._updates = SyncUpdates(self._source, self._applier, self.reducer)
        return self._updates

    def __enter__(self) -> SyncRun:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._updates is not None:
            self._applier.leave()
        close = getattr(self._source, "close", None)
        if close is not None:
            try:
                close()
            except Exception:
                if error is None:
                    raise


class SyncUpdates:
    """The iterator over a `SyncRun`."""

    __slots__ = ("_applier", "_raised", "_read_mark", "_source")

    def __init__(self, source: Iterator[object], applier: Applier, reducer: Reducer) -> None:
        self._source = source
        self._applier = applier
        self._read_mark = ReadMark(reducer, reducer.version)
        self._raised = False

    def __iter__(self) -> SyncUpdates:
        return self

    def __next__(self) -> Update:
        applier = self._applier
        if applier.over:
            told, self._raised = self._raised, True
            raise StopIteration if told or applier.failure is None else applier.failure
        try:
            applier.apply(next(self._source))
        except StopIteration:
            if not applier.conclude(None):
                raise
        except Exception as error:
            applier.conclude(error)
        return Update(self._read_mark)
