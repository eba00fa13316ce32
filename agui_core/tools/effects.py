"""Effects happen once: the calls that may have taken effect though no answer in the conversation says so.

A call whose tool has effects is known by its key: its id, its tool's name, the value of its arguments (and of those
that a person put in their place). The key is *marked* from the moment the tool may run until the answer is in the
messages. It is marked again when that answer disappears: by a snapshot, by a removal, or because the process died
before it was added. A call with a marked key is not run. The same id with another name or arguments is another call.

Costs one hash per call of a tool with effects; a removal costs a step per answered call. `Limits.tool_calls` bounds the
marks: at the bound no further effect starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from agui_core.protocol.messages import Message, ToolMessage
from agui_core.reducer.views import Changes, ToolCalls, ToolCallView
from agui_core.tools.approval import prefixed
from agui_core.tools.errors import InvalidArguments
from agui_core.tools.json_arguments import canonical, read_arguments
from agui_core.tools.outcomes import kind_of
from agui_core.tools.toolset import Toolset

__all__ = ["Effects", "key_of", "says_run"]

_NOT_RUN = frozenset({"denied", "invalid"})
"""Answers that say that the tool did not run."""


def key_of(id: str, name: str, arguments: str | Mapping[str, Any]) -> str:
    """The key of a call. Arguments that are not a JSON object count by their text."""
    try:
        value = canonical(read_arguments(arguments)).decode()
    except InvalidArguments:
        value = f"text {arguments}"
    return sha256(prefixed(id, name, value)).hexdigest()


def says_run(answer: ToolMessage) -> bool:
    """Whether an answer is ours, and its call may have taken effect."""
    kind = kind_of(answer)
    return kind is not None and kind not in _NOT_RUN


class _Answered(NamedTuple):
    name: str
    arguments: str


class Effects:
    """The marks of one thread."""

    def __init__(
        self, toolset: Toolset, limit: int, marks: Iterable[str] = (), ran: Mapping[str, tuple[str, ...]] = {}
    ) -> None:
        self._toolset = toolset
        self.marks: dict[str, None] = dict.fromkeys(marks)
        self.ran: dict[str, tuple[str, ...]] = dict(ran)
        """The keys that answered calls ran with, by call id, where the messages do not tell: a person had changed the
        arguments, or the agent has restated the call or its answer since.
        """
        self._limit = limit
        self._started: dict[str, tuple[str, ...]] = {}
        """Keys of the calls that this process has started and not answered."""
        self._answered: dict[str, _Answered] = {}
        self._at: dict[str, set[str]] = {}
        """The answered calls that a message makes or answers, by its id."""

    @property
    def full(self) -> bool:
        """Whether no further mark can be kept."""
        return len(self.marks) >= self._limit

    def may_have_run(self, call: ToolCallView, edited: Mapping[str, Any] | None) -> bool:
        """Whether a call, or the same with these arguments, is marked."""
        return bool(self.marks) and any(key in self.marks for key in _keys(call, edited))

    def start(self, call: ToolCallView, edited: Mapping[str, Any] | None) -> None:
        """The tool may run from now on."""
        keys = self._started[call.id] = _keys(call, edited)
        self.marks.update(dict.fromkeys(keys))

    def undo(self, id: str) -> None:
        """A tool that was about to run did not."""
        for key in self._started.pop(id, ()):
            self.marks.pop(key, None)

    def settle(self, call: ToolCallView, answer: ToolMessage) -> None:
        """The answer is in the messages, and replaces the mark. An answer that says that nothing ran leaves the mark of
        an earlier call.
        """
        started, tells = self._started.pop(call.id, ()), says_run(answer)
        if self.marks:
            for key in (*(_keys(call, None) if tells else ()), *started):
                self.marks.pop(key, None)
        if len(started) > 1:
            self.ran[call.id] = started[1:]
        if tells:
            self._remember(call, answer)

    def read(self, messages: Iterable[Message], calls: ToolCalls) -> None:
        """Learn from a conversation which calls are answered, for when an answer disappears."""
        for message in messages:
            if isinstance(message, ToolMessage):
                call = calls.get(message.tool_call_id)
                if call is not None and (says_run(message) or call.id in self.ran):
                    self._remember(call, message)
        for id in self.ran.keys() - self._answered.keys():
            self._mark(self.ran.pop(id))

    def sync(self, changes: Changes, calls: ToolCalls) -> None:
        """Mark the calls whose answers disappeared, and note the keys that the messages no longer tell."""
        if changes.removed or changes.reset:
            affected = list(self._answered)
            self._at.clear()
        else:
            places = (self._at.get(id, ()) for id in (*changes.added, *changes.changed))
            affected = [id for id in {*changes.calls}.union(*places) if id in self._answered]
        for id in affected:
            call, known = calls.get(id), self._answered[id]
            if call is None or call.result is None:
                del self._answered[id]
                self._mark((*self._own(id, known), *self.ran.pop(id, ())))
                continue
            self._place(call, call.result)
            own = () if known == (call.name, call.arguments) and says_run(call.result) else self._own(id, known)
            if own:
                self.ran[id] = tuple(dict.fromkeys((*self.ran.get(id, ()), *own)))

    def _own(self, id: str, known: _Answered) -> tuple[str, ...]:
        """The key of an answered call, if its tool has effects."""
        tool = self._toolset.get(known.name)
        return () if tool is not None and not tool.effects else (key_of(id, *known),)

    def _mark(self, keys: Iterable[str]) -> None:
        self.marks.update(dict.fromkeys(keys))
        while len(self.marks) > self._limit:
            del self.marks[next(iter(self.marks))]

    def _remember(self, call: ToolCallView, answer: ToolMessage) -> None:
        tool = self._toolset.get(call.name)
        if tool is None or tool.effects or call.id in self.ran:
            self._answered[call.id] = _Answered(call.name, call.arguments)
            self._place(call, answer)

    def _place(self, call: ToolCallView, answer: ToolMessage) -> None:
        for id in (call.message_id, answer.id):
            self._at.setdefault(id, set()).add(call.id)


def _keys(call: ToolCallView, edited: Mapping[str, Any] | None) -> tuple[str, ...]:
    own = key_of(call.id, call.name, call.arguments)
    return (own,) if edited is None else (own, key_of(call.id, call.name, edited))
