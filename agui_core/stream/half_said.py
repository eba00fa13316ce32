"""The messages of a broken run, which the run that is tried again replaces (RUN-22)."""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import AssistantMessage, Message, ReasoningMessage, ToolMessage, UserMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.reducer import Reducer
from agui_core.tools.outcomes import ANSWER

__all__ = ["HalfSaid", "half_said"]


class HalfSaid(NamedTuple):
    """Ids of messages after the last word of the user or of a tool."""

    gone: frozenset[str]
    """The broken run made them."""
    textless: frozenset[str]
    """It made these too, and they hold calls. The calls stay, with answers that say that they were not run."""
    grown: tuple[str, ...]
    """They were there before the run, and changed in it."""

    def without(self, run_input: RunAgentInput) -> RunAgentInput:
        """The input of the run that is tried again."""
        kept = (self._kept(message) for message in run_input.messages)
        return replace(run_input, messages=tuple(message for message in kept if message is not None))

    def _kept(self, message: Message) -> Message | None:
        if isinstance(message, AssistantMessage) and message.id in self.textless:
            return replace(message, content=UNSET)
        return None if message.id in self.gone and not isinstance(message, ToolMessage) else message


def half_said(reducer: Reducer, since: int) -> HalfSaid:
    """The messages of the run that began after version `since`. Costs a step for each change and each message."""
    changes = reducer.changes(since)
    added = frozenset(changes.added)
    changed = frozenset(changes.changed) - added
    gone: list[str] = []
    textless: list[str] = []
    grown = [
        message.id
        for message in reducer.messages
        if isinstance(message, AssistantMessage | ReasoningMessage) and message.id in changed
    ]
    for message in reversed(reducer.messages):
        if isinstance(message, ToolMessage) and message.id in added and _is_not_run(message):
            continue  # an earlier try that brought nothing has answered the calls of the broken run
        if isinstance(message, UserMessage | ToolMessage):
            break
        if not isinstance(message, AssistantMessage | ReasoningMessage):
            continue
        if message.id in added:
            holds_calls = isinstance(message, AssistantMessage) and message.tool_calls
            (textless if holds_calls else gone).append(message.id)
    return HalfSaid(frozenset(gone), frozenset(textless), tuple(grown))


def _is_not_run(answer: ToolMessage) -> bool:
    return answer.metadata is not UNSET and answer.metadata.get(ANSWER) == "cancelled"
