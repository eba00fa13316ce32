"""`Update`: the conversation at the reader's first look, frozen from then on."""

from __future__ import annotations

from typing import Any

import msgspec

from agui_core._text import plain
from agui_core.protocol.messages import Message
from agui_core.reducer import Changes, Reducer, Run
from agui_core.status import Status

__all__ = ["ReadMark", "Update"]


class ReadMark:
    """How far one reader has read. Changes count from its last read update, so none is missed."""

    __slots__ = ("reducer", "since")

    def __init__(self, reducer: Reducer, since: int) -> None:
        self.reducer = reducer
        self.since = since


class _Shown(msgspec.Struct, frozen=True):
    messages: tuple[Message, ...]
    state: Any
    status: Status
    run: Run
    changes: Changes


class Update:
    """What a reader of a run gets: messages, state and what changed. Frozen at the first read of anything in it, and
    one that is not read costs nothing.

    A read costs the changes since the reader's last read update, and one pointer per message.
    """

    __slots__ = ("_read_mark", "_shown")

    def __init__(self, read_mark: ReadMark) -> None:
        self._read_mark = read_mark
        self._shown: _Shown | None = None

    def __repr__(self) -> str:
        shown = self._shown
        if shown is None:  # looking here would freeze it
            return f"<{type(self).__name__}, not looked at yet>"
        run = "" if shown.run.run_id is None else f" run {plain(shown.run.run_id)}"
        changes = shown.changes
        news = f"{len(changes.added)} new, {len(changes.changed)} changed"
        return f"<{type(self).__name__}{run} {shown.status}: {len(shown.messages)} messages, {news}>"

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages. An unchanged message is the same object as in the update before."""
        return self._read().messages

    @property
    def state(self) -> Any:
        """The state, a plain JSON value. It is never changed in place; do not change it either."""
        return self._read().state

    @property
    def status(self) -> Status:
        """Where the run stands."""
        return self._read().status

    @property
    def run(self) -> Run:
        """The run itself: its ids, result, error, usage, interrupts and pending calls."""
        return self._read().run

    @property
    def changes(self) -> Changes:
        """The differences from the update that this reader read before."""
        return self._read().changes

    def _read(self) -> _Shown:
        shown = self._shown
        if shown is None:
            read_mark = self._read_mark
            reducer = read_mark.reducer
            changes = reducer.changes(read_mark.since)
            read_mark.since = changes.version
            shown = self._shown = _Shown(reducer.messages, reducer.state, reducer.status, reducer.run, changes)
        return shown
