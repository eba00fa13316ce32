"""What the interop tests share: a server in a thread, what the agents on it do, and a conversation with one of them.

All agents behave alike, whatever they are built with. Asked for the "weather" they call two tools of theirs at a time,
for the "time" two tools of ours, to "delete" they call one of theirs that needs approval, twice; then they say what the
calls came to.
"""

from __future__ import annotations

import socket
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import uvicorn

import agui_core as agui
from support.clocks import PATIENCE

__all__ = ["CALLS", "SAID", "Asked", "Talk", "asked", "delete_note", "hosted", "pieces", "weather"]

CALLS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "weather": [("weather", {"city": "Oslo"}), ("weather", {"city": "Rome, “città eterna”"})],
    "time": [("local_time", {"zone": "UTC"}), ("local_time", {"zone": "CET"})],
    "delete": [("delete_note", {"path": "notes/ü.txt"}), ("delete_note", {"path": "notes/b.txt"})],
}
"""What is called for each thing that may be asked."""

SAID = {
    "weather": "Oslo: snow; Rome, “città eterna”: snow",
    "time": "noon in UTC; noon in CET",
    "delete": "deleted notes/ü.txt; deleted notes/b.txt",
}
"""What is said when all calls were run."""


def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}: snow"


def delete_note(path: str) -> str:
    """Delete a note."""
    return f"deleted {path}"


class Asked(NamedTuple):
    """What a model has to do next: make these calls, or, when there are none, say this."""

    calls: list[tuple[str, str, dict[str, Any]]]
    """Ids, names, arguments."""
    text: str


def asked(word: str, turn: int, results: Sequence[str]) -> Asked:
    """What follows when a user has said a word, in this turn of theirs, and the calls came to these results so far."""
    if results or word not in CALLS:
        return Asked([], "; ".join(results) or f"you said {word}")
    calls = [(f"{word}-{turn}-{index}", name, args) for index, (name, args) in enumerate(CALLS[word])]
    return Asked(calls, "")


def pieces(text: str, length: int = 5) -> list[str]:
    """A text cut into deltas."""
    return [text[start : start + length] for start in range(0, len(text), length)]


@contextmanager
def hosted(app: Any) -> Iterator[str]:
    """The address of an ASGI application, which uvicorn serves in a thread for the time of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="error", ws="none", lifespan="off", timeout_keep_alive=60)
        )
        thread = threading.Thread(target=_quietly, args=(server, listener))
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/agent"
        finally:
            server.should_exit = True
            thread.join(timeout=PATIENCE)
            assert not thread.is_alive()


def _quietly(server: uvicorn.Server, listener: socket.socket) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the packages of others warn of is not ours to mend
        server.run([listener])


class Talk:
    """A conversation with an agent, with one tool of ours, `local_time`."""

    def __init__(self, url: str, **options: Any) -> None:
        toolset = agui.Toolset()

        @toolset.tool
        async def local_time(zone: str) -> str:
            """The time in a zone."""
            return f"noon in {zone}"

        self.calls = agui.Calls(agui.Reducer(**options), toolset)
        self.agent = agui.HttpAgent(url)
        self.statuses: list[str] = []
        self.asked: list[tuple[str, Any]] = []
        self.open_at_once = 0
        """How many calls of one run were growing at the same time, at most."""

    @property
    def reducer(self) -> agui.Reducer:
        return self.calls.reducer

    @property
    def said(self) -> str:
        """The last text of the agent. What a snapshot adds may stand behind it (MSGS-3)."""
        return str([message.content for message in self.reducer.messages if message.role == "assistant"][-1])

    @property
    def roles(self) -> list[str]:
        return [message.role for message in self.reducer.messages]

    async def say(self, word: str, answer: Any = True) -> str:
        """Say a word, answer everything until nobody waits; approvals get this answer."""

        async def confirm(request: Any) -> Any:
            self.asked.append((request.tool_name, request.args))
            return answer

        self.reducer.add({"id": f"user-{len(self.statuses)}", "role": "user", "content": word})
        await self.send(self.calls.next_input(thread_id="thread"))
        return await self.calls.continue_with(self.send, confirm)

    async def send(self, run_input: agui.RunAgentInput) -> None:
        """One run, update by update."""
        async with self.agent.run(run_input, reducer=self.reducer) as run:
            async for _ in run.updates(0):
                growing = [call for call in self.reducer.tool_calls.values() if not call.complete]
                self.open_at_once = max(self.open_at_once, len(growing))
        assert run.status == self.reducer.status
        self.statuses.append(run.status)
        assert (run.reducer.run.thread_id, run.reducer.run.run_id) == (run_input.thread_id, run_input.run_id)

    def answers(self, word: str) -> list[str]:
        """The results of the calls that a word led to, in call order."""
        calls = [call for call in self.reducer.tool_calls.values() if call.id.startswith(word)]
        assert [(call.name, call.args) for call in calls[:2]] == CALLS[word]
        return [str(call.result.content) for call in calls if call.result]
