"""Effects happen once: which calls may have taken effect though no answer in the conversation says so.

A call whose tool has effects is known by its id, its tool's name and the value of its arguments (of those a person put
in their place too). These three are *marked* from the moment the tool may run until the answer is in the messages, and
again when that answer disappears: by a snapshot, by a removal, or because the process died before it was added. A call
that comes with marked three is not run. The same id with another name or other arguments is another call.

Costs one hash per call of a tool with effects; a removal costs a step per answered call. Marks are bounded by
`Limits.tool_calls`: at the bound no further effect is begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import Message, ToolMessage
from agui_core.reducer.views import Changes, ToolCalls, ToolCallView
from agui_core.tools.answers import ANSWER
from agui_core.tools.approval import prefixed
from agui_core.tools.arguments import canonical, read_arguments
from agui_core.tools.errors import InvalidArguments
from agui_core.tools.toolset import Toolset

__all__ = ["Effects", "key_of"]

_NOT_RUN = frozenset({"denied", "invalid"})
"""Answers that say that the tool did not run."""


def key_of(id: str, name: str, arguments: str | Mapping[str, Any]) -> str:
    """What a call is known by. Arguments that are no JSON object are known by their text."""
    try:
        value = canonical(read_arguments(arguments)).decode()
    except InvalidArguments:
        value = f"text {arguments}"
    return sha256(prefixed(id, name, value)).hexdigest()


class _Answered(NamedTuple):
    name: str
    arguments: str
    answer_id: str


class Effects:
    """The marks of one thread."""

    def __init__(self, toolset: Toolset, limit: int, marks: Iterable[str] = (), edited: Mapping[str, str] = {}) -> None:
        self._toolset = toolset
        self.marks: dict[str, None] = dict.fromkeys(marks)
        self.edited: dict[str, str] = dict(edited)
        """The keys of what answered calls ran with, where a person had changed the arguments; by call id."""
        self._limit = limit
        self._begun: dict[str, tuple[str, ...]] = {}
        """Keys of the calls that this process has begun and not answered."""
        self._answered: dict[str, _Answered] = {}
        self._by_answer: dict[str, str] = {}

    @property
    def full(self) -> bool:
        """Whether no further mark can be kept."""
        return len(self.marks) >= self._limit

    def may_have_run(self, call: ToolCallView, edited: Mapping[str, Any] | None) -> bool:
        """Whether a call, or the same with these arguments, is marked."""
        return bool(self.marks) and any(key in self.marks for key in _keys(call, edited))

    def begin(self, call: ToolCallView, edited: Mapping[str, Any] | None) -> None:
        """The tool may run from now on."""
        keys = self._begun[call.id] = _keys(call, edited)
        self.marks.update(dict.fromkeys(keys))

    def undo(self, id: str) -> None:
        """A tool that was about to run did not."""
        for key in self._begun.pop(id, ()):
            self.marks.pop(key, None)

    def settle(self, call: ToolCallView, answer: ToolMessage) -> None:
        """The answer is in the messages: it is what tells from now on."""
        begun = self._begun.pop(call.id, ())
        if self.marks:
            for key in (key_of(call.id, call.name, call.arguments), *begun):
                self.marks.pop(key, None)
        if len(begun) > 1:
            self.edited[call.id] = begun[1]
        self._remember(call, answer)

    def read(self, messages: Iterable[Message], calls: ToolCalls) -> None:
        """Learn from a conversation which calls are answered, for when an answer disappears."""
        for message in messages:
            if isinstance(message, ToolMessage):
                call = calls.get(message.tool_call_id)
                if call is not None:
                    self._remember(call, message)

    def sync(self, changes: Changes, calls: ToolCalls) -> None:
        """Mark the calls whose answers disappeared."""
        if changes.removed or changes.reset:
            affected: Iterable[str] = list(self._answered)
        else:
            affected = [self._by_answer[id] for id in changes.changed if id in self._by_answer]
        for id in affected:
            call = calls.get(id)
            if call is None or call.result is None:
                known = self._answered.pop(id)
                self._by_answer.pop(known.answer_id, None)
                self._mark_again(id, known)

    def _mark_again(self, id: str, known: _Answered) -> None:
        edited = self.edited.pop(id, None)
        tool = self._toolset.get(known.name)
        if tool is not None and not tool.effects:
            return
        for key in (key_of(id, known.name, known.arguments), edited):
            if key is not None:
                self.marks[key] = None
        while len(self.marks) > self._limit:
            del self.marks[next(iter(self.marks))]

    def _remember(self, call: ToolCallView, answer: ToolMessage) -> None:
        kind = None if answer.metadata is UNSET else answer.metadata.get(ANSWER)
        if isinstance(kind, str) and kind not in _NOT_RUN:
            self._answered[call.id] = _Answered(call.name, call.arguments, answer.id)
            self._by_answer[answer.id] = call.id


def _keys(call: ToolCallView, edited: Mapping[str, Any] | None) -> tuple[str, ...]:
    own = key_of(call.id, call.name, call.arguments)
    return (own,) if edited is None else (own, key_of(call.id, call.name, edited))
