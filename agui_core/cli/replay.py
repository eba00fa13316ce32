"""A recording in memory, and the ASGI application of `agui serve` that plays it.

Events are sent as recorded, right or wrong. Only the thread and run ids become those of the request (RUN-10).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Iterator, Set
from ipaddress import ip_address
from itertools import chain, pairwise
from typing import NamedTuple
from urllib.parse import urlsplit

import anyio
import msgspec

from agui_core._text import quoted
from agui_core.cli.input import RecordedInput, WrongUse
from agui_core.cli.pacing import Pacing, read_head
from agui_core.cli.terminal import plural
from agui_core.errors import AGUIError
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import AssistantMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.stream.asgi import PostEndpoint, Receive, Refused, RequestFields, Scope, Send
from agui_core.stream.event_stream import EventStream
from agui_core.stream.headers import Fields
from agui_core.warnings import WarningLog
from agui_core.wire.outgoing import enforce_input

__all__ = ["ReplayEndpoint", "Recording"]

_LONGEST = 30.0
"""Seconds that a pause lasts, at most: clocks that jump would hold everything up."""
_OVER = "The recording ends here: this thread has all of it. A new thread begins it once more."
_THREADS = 1000
"""Of how many threads it is known which run comes next."""


class _TimedEvent(NamedTuple):
    payload: bytes
    pause: float
    """Seconds that it comes after the one before."""
    type: str
    starts: str | None
    """The id of the message or the call that it begins."""


_STARTS = {
    "TEXT_MESSAGE_START": "message_id",
    "TEXT_MESSAGE_CHUNK": "message_id",
    "REASONING_MESSAGE_START": "message_id",
    "REASONING_MESSAGE_CHUNK": "message_id",
    "TOOL_CALL_START": "tool_call_id",
    "TOOL_CALL_CHUNK": "tool_call_id",
    "TOOL_CALL_RESULT": "message_id",
}
"""What may begin a message or a call, and where its id is."""


def _events(source: RecordedInput, pacing: Pacing) -> Iterator[_TimedEvent]:
    """The events of a source and their pauses. A payload that is not an event keeps its place among them."""
    try:
        for payload in chain.from_iterable(source.payloads()):
            head = read_head(payload)
            kind = head.type if isinstance(head.type, str) else ""
            # Between two runs people were thinking.
            pause = pacing.pause(head, at_once=kind == "RUN_STARTED")
            id = getattr(head, _STARTS[kind]) if kind in _STARTS else None
            yield _TimedEvent(payload, pause, kind, id if isinstance(id, str) else None)
    except AGUIError as error:
        raise WrongUse(f"{source.name} cannot be served: {error}") from None


class Recording:
    """The runs of a recording, and the choice of runs for a request.

    A request gets all runs, with `turns` the next run of its thread. Runs of which it holds a message or a call are
    left out. `speed` and `rate` are those of `Pacing`.

    Raises: `WrongUse` for a recording without an event, or with an event that is too long.
    """

    def __init__(self, source: RecordedInput, *, speed: float, rate: float | None, turns: bool) -> None:
        events = list(_events(source, Pacing(speed, _LONGEST, rate)))
        if not events:
            raise WrongUse(f"{source.name} holds no event: there is nothing to serve")
        self.events = len(events)
        starts = [index for index, event in enumerate(events) if event.type == "RUN_STARTED"][1:]
        self._runs = [events[a:b] for a, b in pairwise([0, *starts, len(events)])]
        self.runs = len(self._runs)
        self._ids = _first_started(self._runs)
        self._turns = turns
        self._next: dict[str, int] = {}

    def part_for(self, thread_id: str, held: Set[str] = frozenset()) -> tuple[str, list[_TimedEvent]]:
        """The events for a request of this thread that holds these messages and calls, after a name for them."""
        first = self._next.pop(thread_id, 0)
        order = (*range(first, self.runs), *range(first))
        left = [number for number in order if self._ids[number].isdisjoint(held)][: 1 if self._turns else None]
        if self._turns:
            self._next[thread_id] = (left[0] + 1) % self.runs if left else first
            if len(self._next) > _THREADS:
                del self._next[next(iter(self._next))]
        if not left:
            return "nothing is left", []
        if self.runs == 1 or len(left) == self.runs:
            which = "all"
        else:
            which = f"run {', '.join(str(number + 1) for number in left)} of {self.runs}"
        return which, [event for number in left for event in self._runs[number]]


def _first_started(runs: list[list[_TimedEvent]]) -> list[set[str]]:
    """For each run the ids that it is the first to start: those show that it was played."""
    seen: set[str] = set()
    first = []
    for run in runs:
        first.append({event.starts for event in run if event.starts is not None} - seen)
        seen |= first[-1]
    return first


def _held_by(run_input: RunAgentInput) -> set[str]:
    """The ids of the messages and the calls that a request sends along."""
    held = {message.id for message in run_input.messages}
    for message in run_input.messages:
        if isinstance(message, AssistantMessage) and message.tool_calls is not UNSET:
            held.update(call.id for call in message.tool_calls)
    return held


def _end_of_recording(run_id: str) -> list[_TimedEvent]:
    """A run that says that the recording ends, for a request that holds all of it."""
    id = f"{run_id}-end-of-recording"
    wires: list[dict[str, str]] = [
        {"type": "RUN_STARTED"},
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": _OVER},
        {"type": "TEXT_MESSAGE_END", "messageId": id},
        {"type": "RUN_FINISHED"},
    ]
    return [_TimedEvent(msgspec.json.encode(wire), 0.0, wire["type"], None) for wire in wires]


async def _play(events: list[_TimedEvent], run_input: RunAgentInput) -> AsyncIterator[bytes]:
    """The events as JSON, each when it is due. A client that is slow gets what it missed at once."""
    requested = max((index for index, event in enumerate(events) if event.type == "RUN_STARTED"), default=0)
    due = anyio.current_time()
    for index, event in enumerate(events):
        due += event.pause
        await anyio.sleep_until(due)
        yield _addressed(event, run_input, index >= requested)


def _addressed(event: _TimedEvent, run_input: RunAgentInput, requested: bool) -> bytes:
    """RUN-10: all runs carry the thread's id, and the last one, which was asked for, the run's."""
    if event.type not in ("RUN_STARTED", "RUN_FINISHED"):
        return event.payload
    try:
        wire = msgspec.json.decode(event.payload)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return event.payload
    wire["threadId"] = run_input.thread_id
    if requested:
        wire["runId"] = run_input.run_id
    return msgspec.json.encode(wire)


# --- the endpoint ---------------------------------------------------------------------------------------------------


class ReplayEndpoint(PostEndpoint):
    """The ASGI application. It sends what was recorded, which `agui_core.serve` would hold to the protocol."""

    def __init__(self, recording: Recording, origins: Collection[str], say: Callable[[str], None]) -> None:
        super().__init__(origins)
        self._recording = recording
        self._hosts = {_host_of(origin) for origin in self._origins} - {""}
        self._say = say

    def _check(self, fields: RequestFields) -> None:
        """A page of another site that has its name resolve to this machine is not served (DNS rebinding)."""
        name = _host_of(f"//{fields.get(b'host', b'').decode('latin-1')}")
        if not (_is_loopback(name) or "*" in self._origins or name in self._hosts):
            raise Refused(403, f"the host {quoted(name)} is no loopback name of this machine, nor an allowed origin's")

    def _note_refusal(self, refused: Refused) -> None:
        self._say(f"{refused.status}: {refused}")

    async def _answer(self, body: bytes, cors: Fields, scope: Scope, receive: Receive, send: Send) -> None:
        log = WarningLog()
        try:
            run_input = enforce_input(body, log)
        except AGUIError as error:
            raise Refused(422, str(error)) from None
        which, events = self._recording.part_for(run_input.thread_id, _held_by(run_input))
        events = events or _end_of_recording(run_input.run_id)
        about = f"thread {run_input.thread_id}, run {run_input.run_id}"
        self._say(f"{about}: {which}, {plural(len(events), 'event')}")
        for warning in log:
            self._say(f"{about}: {warning}")
        await EventStream(_play(events, run_input), policy=None, headers=cors)(scope, receive, send)


def _host_of(address: str) -> str:
    """The host that an address names; empty where it names none."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # a bracket without its other half, say
        return ""


def _is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False
