"""What type checkers have to understand: `type` and `role` tell the members of a union apart.

Checked by mypy and pyright, both strict. `assert_type` and `assert_never` fail the check, not the program; that these
functions do what they look like is tested by `test_narrowing.py`.
"""

from __future__ import annotations

from typing import Any, assert_never, assert_type

import agui_core as agui
from agui_core import protocol

__all__ = [
    "of_content",
    "of_event",
    "of_event_by_match",
    "of_message",
    "of_outcome",
    "of_reducer",
    "of_source",
    "of_subagent_outcome",
]


def of_event(event: agui.Event) -> str:
    """Both in the branch and in what is left after it."""
    if event.type == "TEXT_MESSAGE_CONTENT":
        assert_type(event, agui.events.TextMessageContentEvent)
        return event.delta
    if event.type == "TOOL_CALL_START" or event.type == "TOOL_CALL_RESULT":
        assert_type(event, agui.events.ToolCallStartEvent | agui.events.ToolCallResultEvent)
        return event.tool_call_id
    if event.type != "RUN_ERROR":
        return event.type
    assert_type(event, agui.events.RunErrorEvent)
    assert_type(event.code, str | protocol.UnsetType)
    return event.message


def of_event_by_match(event: protocol.StepStartedEvent | protocol.StepFinishedEvent | protocol.CustomEvent) -> str:
    """A missing case would be an error at the end."""
    match event.type:
        case "STEP_STARTED":
            assert_type(event, protocol.StepStartedEvent)
            return event.step_name
        case "STEP_FINISHED":
            assert_type(event, protocol.StepFinishedEvent)
            return f"{event.step_name}, done"
        case "CUSTOM":
            assert_type(event, protocol.CustomEvent)
            return event.name
        case _:
            assert_never(event.type)


def of_message(message: agui.messages.Message) -> str:
    """Every role, with what only it has."""
    if message.role == "assistant":
        assert_type(message, agui.messages.AssistantMessage)
        return "" if message.tool_calls is agui.UNSET else message.tool_calls[0].function.name
    if message.role == "tool":
        assert_type(message, agui.messages.ToolMessage)
        return message.tool_call_id
    if message.role == "activity":
        assert_type(message, agui.messages.ActivityMessage)
        return message.activity_type
    if message.role == "user":
        assert_type(message, agui.messages.UserMessage)
        return message.content if isinstance(message.content, str) else of_content(message.content)
    if message.role == "reasoning":
        assert_type(message, agui.messages.ReasoningMessage)
        return message.content
    assert_type(message, agui.messages.DeveloperMessage | agui.messages.SystemMessage)
    return message.content


def of_content(parts: tuple[protocol.ContentPart, ...]) -> str:
    """Text, and for the rest where it is."""
    shown: list[str] = []
    for part in parts:
        if part.type == "text":
            assert_type(part, protocol.TextPart)
            shown.append(part.text)
        else:
            shown.append(f"{part.type} {of_source(part.source)}")
    return " ".join(shown)


def of_source(source: protocol.Source) -> str:
    """The three kinds of source."""
    if source.type == "file":
        assert_type(source, protocol.FileSource)
        return str(source.provider)
    if source.type == "data":
        assert_type(source, protocol.DataSource)
        return source.mime_type
    assert_type(source, protocol.UrlSource)
    return source.value


def of_outcome(outcome: protocol.RunFinishedOutcome) -> int:
    """How a run ended."""
    if outcome.type == "interrupt":
        assert_type(outcome, protocol.InterruptOutcome)
        return len(outcome.interrupts)
    if outcome.type == "success":
        assert_type(outcome, protocol.SuccessOutcome)
        return 0 if outcome.pending_tool_call_ids is agui.UNSET else len(outcome.pending_tool_call_ids)
    assert_type(outcome, protocol.CancelledOutcome)
    return 0


def of_subagent_outcome(outcome: protocol.SubagentFinishedOutcome) -> int:
    """How an invocation ended."""
    if outcome.type == "suspended":
        assert_type(outcome, protocol.SuspendedOutcome)
        return 0 if outcome.interrupt_ids is agui.UNSET else len(outcome.interrupt_ids)
    assert_type(outcome, protocol.SubagentSuccessOutcome)
    return 0


def of_reducer(reducer: agui.Reducer) -> dict[str, Any]:
    """From the outside: what a reader of messages writes."""
    return {message.id: of_message(message) for message in reducer.messages if message.role != "activity"}
