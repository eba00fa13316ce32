"""`Turn`: one turn of a conversation, from the user's message until the user has to act again, and its readers.

A turn runs in a task of its conversation's block, with or without readers. Readers get merged updates at their own
pace, and cost nothing between two reads.
"""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

from anyio import CancelScope, Event
from anyio.lowlevel import checkpoint

from agui_core.reducer import Reducer
from agui_core.stream.notifier import Notifier
from agui_core.stream.readers import Reader
from agui_core.stream.update import ReadMark, Update
from agui_core.tools.calls import Ending as CallsEnding

__all__ = ["ChatUpdate", "Ending", "Turn", "TurnTask", "Updates"]

Ending: TypeAlias = CallsEnding | Literal["stopped"]
"""Why a turn of a conversation ended. `done`: the user may go on; `waiting`: the application or a person has to act;
`broken`: the run failed, was cancelled, cut off or refused; `rounds`: the cap on runs; `repeated`: the agent asked the
same again and got the same answer; `stopped`: by `Conversation.stop` or by leaving the block.
"""


class Chat(Protocol):
    """The part of a conversation that a reader needs."""

    stopped: bool

    @property
    def reducer(self) -> Reducer: ...


class TurnTask:
    """A turn as its conversation has it: the scope that it runs in, and what came of it."""

    def __init__(self, since: int) -> None:
        self.since = since
        """The version of the reducer that its updates count from."""
        self.ending: Ending | None = None
        self.error: Exception | None = None
        self.scope = CancelScope()
        self.over = Event()
        self.last: int | None = None
        """The serial of its last news; None before its end."""

    def end(self, notifier: Notifier) -> None:
        """It is over."""
        self.last = notifier.serial
        notifier.wake()
        self.over.set()


class Turn:
    """One turn of a conversation. `async for update in turn` shows it from its beginning; `await turn.wait()` waits for
    its end.
    """

    def __init__(self, chat: Chat, notifier: Notifier, task: TurnTask) -> None:
        self._chat = chat
        self._notifier = notifier
        self._task = task

    def __repr__(self) -> str:
        if not self.over:
            return f"<{type(self).__name__}, going on>"
        ending = self.ending if self.error is None else f"raised {type(self.error).__name__}"
        return f"<{type(self).__name__} {ending}>"

    @property
    def ending(self) -> Ending | None:
        """Why it ended; None before that, and when it ended with an `error`."""
        return self._task.ending

    @property
    def error(self) -> Exception | None:
        """What the agent's connection, the refusal of its stream, or one of the application's functions raised."""
        return self._task.error

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._task.over.is_set()

    async def wait(self) -> Ending:
        """Wait for the end. Raises `error` when there is one."""
        await self._task.over.wait()
        if self.error is not None:
            raise self.error
        assert self.ending is not None
        return self.ending

    def __aiter__(self) -> Updates:
        """A new reader; there may be any number. After the last update it raises `error`, if there is one.

        Leaving the loop does not stop the turn.
        """
        return Updates(self._chat, self._notifier, self._task, self._task.since)


class ChatUpdate(Update):
    """An update of a conversation, and whether the run was stopped here."""

    __slots__ = ("stopped",)

    def __init__(self, read_mark: ReadMark, stopped: bool) -> None:
        super().__init__(read_mark)
        self.stopped = stopped
        """The user stopped it. A run that is `truncated` is then not the agent's fault."""


class Updates(Reader):
    """A reader of one turn, or of a whole conversation until its block is left."""

    __slots__ = ("_chat", "_notifier", "_seen", "_turn")

    def __init__(self, chat: Chat, notifier: Notifier, turn: TurnTask | None, since: int) -> None:
        super().__init__(chat.reducer, since)
        self._chat = chat
        self._notifier = notifier
        self._turn = turn
        self._seen = -1

    async def __anext__(self) -> ChatUpdate:
        with self._guard:
            await checkpoint()
            last = self._last()
            while last is None and self._seen == self._notifier.serial:
                await self._notifier.wait()
                last = self._last()
            if last is not None and self._seen >= last:
                raise self._end(None if self._turn is None else self._turn.error)
            self._seen = self._notifier.serial
            self._read_mark.reducer = self._chat.reducer
            return ChatUpdate(self._read_mark, self._chat.stopped)

    def _last(self) -> int | None:
        """The serial after which no news comes, None while it is not known."""
        if self._turn is not None:
            return self._turn.last
        return self._notifier.serial if self._notifier.closed else None
