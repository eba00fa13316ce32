"""The samples that type checkers read behave as they look, and every tag is one literal."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import narrowing
import pytest

import agui_core as agui
from agui_core import protocol

E, M = agui.events, agui.messages
CALL = protocol.ToolCall(id="c", type="function", function=protocol.FunctionCall(name="look", arguments="{}"))
IMAGE = protocol.ImagePart(source=protocol.FileSource(value="f", provider="acme"))
PLACE = protocol.UrlSource(value="https://a.example")
ASK = protocol.Interrupt(id="i", reason="approval")


def test_events_narrow() -> None:
    assert narrowing.of_event(E.TextMessageContentEvent(message_id="m", delta="hi")) == "hi"
    assert narrowing.of_event(E.ToolCallStartEvent(tool_call_id="c", tool_call_name="look")) == "c"
    assert narrowing.of_event(E.RunErrorEvent(message="broken")) == "broken"
    assert narrowing.of_event(E.StateSnapshotEvent(snapshot=None)) == "STATE_SNAPSHOT"
    assert narrowing.of_event_by_match(E.StepFinishedEvent(step_name="plan")) == "plan, done"


def test_messages_narrow() -> None:
    messages = [
        M.AssistantMessage(id="a", tool_calls=(CALL,)),
        M.ToolMessage(id="t", tool_call_id="c", content="5"),
        M.UserMessage(id="u", content=(protocol.TextPart(text="see"), IMAGE, protocol.VideoPart(source=PLACE))),
        M.ReasoningMessage(id="r", content="hm"),
        M.SystemMessage(id="s", content="be brief"),
    ]
    assert narrowing.of_reducer(agui.Reducer(messages=messages)) == {
        "a": "look",
        "t": "c",
        "u": "see image acme video https://a.example",
        "r": "hm",
        "s": "be brief",
    }


def test_outcomes_narrow() -> None:
    assert narrowing.of_outcome(protocol.InterruptOutcome(interrupts=(ASK,))) == 1
    assert narrowing.of_outcome(protocol.SuccessOutcome(pending_tool_call_ids=("c", "d"))) == 2
    assert narrowing.of_outcome(protocol.CancelledOutcome()) == 0
    assert narrowing.of_subagent_outcome(protocol.SuspendedOutcome(interrupt_ids=("i",))) == 1


def tagged(union: Any) -> list[Any]:
    return list(get_args(union))


TAGGED = [
    *((kind, "type") for kind in tagged(agui.Event)),
    *((kind, "role") for kind in tagged(M.Message)),
    *((kind, "type") for kind in tagged(protocol.ContentPart)),
    *((kind, "type") for kind in tagged(protocol.Source)),
    *((kind, "type") for kind in tagged(protocol.RunFinishedOutcome)),
    *((kind, "type") for kind in tagged(protocol.SubagentFinishedOutcome)),
]


@pytest.mark.parametrize(("kind", "field"), TAGGED, ids=lambda it: getattr(it, "__name__", it))
def test_the_literal_of_a_class_is_its_tag_on_the_wire(kind: Any, field: str) -> None:
    config = kind.__struct_config__
    [literal] = get_args(get_args(get_type_hints(kind)[field])[0])
    assert config.tag_field == field
    assert config.tag == getattr(kind, field) == literal
    assert field not in kind.__struct_fields__


def test_bases_have_no_tag_of_their_own() -> None:
    for base in (protocol.TypedStruct, M.UserMessage.__base__, E.RawEvent.__base__):
        assert not hasattr(base, "type")
        assert not hasattr(base, "role")
