"""Attacks with histories: what goes out can be read, what is said arrives, what says nothing is no answer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agui_core as agui
from agui_core.protocol.content import DataSource, ImagePart
from agui_core.warnings import WarningLog
from agui_core.wire.outgoing import address_input, enforce_input
from support.call_streams import answer_of, call, one, result, run, thread
from support.chats import chatting

BROKEN = ['{"path": "a', '{"a":1}{"b":2}', "nothing", "{'a': 1}", "[1,]", '{"a": NaN}', "{}x"]


def asking(*texts: str) -> dict[str, Any]:
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": text}, "encryptedValue": "E"}
        for n, text in enumerate(texts)
    ]
    return {"id": "m", "role": "assistant", "content": "x", "toolCalls": calls}


def told(call_id: str, content: str, id: str) -> dict[str, Any]:
    return {"id": id, "role": "tool", "toolCallId": call_id, "content": content}


# --- what goes out can be read ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", BROKEN)
def test_arguments_that_are_no_document_leave_as_an_empty_object(text: str) -> None:
    reducer = agui.Reducer(messages=[asking(text, '{"a": 1}')])
    calls = agui.Calls(reducer, agui.Toolset())
    message = agui.to_wire(calls.next_input(thread_id="t").messages[0])
    assert [each["function"]["arguments"] for each in message["toolCalls"]] == ["{}", '{"a": 1}']
    assert all(each["encryptedValue"] == "E" for each in message["toolCalls"])
    assert reducer.tool_calls["c0"].arguments == text, "what is held stays"
    assert [warning.rule for warning in calls.warnings] == ["TOOL-5"]
    assert "'c0'" in str(calls.warnings[0])


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_empty_arguments_leave_as_an_empty_object_without_a_word(text: str) -> None:
    calls = agui.Calls(agui.Reducer(messages=[asking(text)]), agui.Toolset())
    assert agui.to_wire(calls.next_input(thread_id="t"))["messages"][0]["toolCalls"][0]["function"]["arguments"] == "{}"
    assert calls.warnings == ()


def test_of_several_results_the_first_is_sent() -> None:
    messages = [asking("{}", "{}"), told("c0", "one", "t0"), told("c0", "two", "t1"), told("c1", "three", "t1")]
    calls = agui.Calls(agui.Reducer(messages=messages), agui.Toolset())
    sent = calls.next_input(thread_id="t").messages
    assert [message.content for message in sent[1:]] == ["one", "three"]
    assert len(calls.reducer.messages) == 4
    assert [warning.rule for warning in calls.warnings] == ["OPEN-12"]


def test_the_same_holds_for_what_an_agent_over_http_is_sent() -> None:
    log = WarningLog()
    run_input = enforce_input({"threadId": "t", "runId": "r", "messages": [asking("{")]}, log)
    assert run_input.messages[0].tool_calls[0].function.arguments == "{", "the reducer starts from what is held"
    assert address_input(run_input, log).messages[0].tool_calls[0].function.arguments == "{}"


TEXTS = st.one_of(
    st.text(max_size=8),
    st.sampled_from(BROKEN),
    st.builds(json.dumps, st.dictionaries(st.text(max_size=2), st.integers())),
)


@given(st.lists(st.tuples(st.lists(TEXTS, max_size=3), st.lists(st.integers(0, 3), max_size=3)), max_size=4))
def test_whatever_is_held_an_input_can_be_read(plot: list[tuple[list[str], list[int]]]) -> None:
    messages: list[dict[str, Any]] = []
    for number, (texts, answered) in enumerate(plot):
        messages.append({**asking(*texts), "id": f"m{number}"})
        messages += [told(f"c{each}", "done", f"t{number}-{place}") for place, each in enumerate(answered)]
    calls = agui.Calls(agui.Reducer(messages=messages), agui.Toolset())
    seen: set[str] = set()
    for message in calls.next_input(thread_id="t").messages:
        for each in getattr(message, "tool_calls", None) or ():
            json.loads(each.function.arguments)
        if message.role == "tool":
            assert message.tool_call_id not in seen
            seen.add(message.tool_call_id)
    assert [agui.to_wire(message) for message in calls.reducer.messages] == [
        agui.to_wire(message) for message in agui.Reducer(messages=messages).messages
    ]


# --- what is said arrives, or is refused ------------------------------------------------------------------------------

BINARY = {"type": "binary", "mimeType": "image/png", "data": "QUJD", "filename": "a.png"}
IMAGE = ImagePart(source=DataSource(value="QUJD", mime_type="image/png"), metadata={"filename": "a.png"})
STRANGE = {"type": "hologram", "value": 1}


@pytest.mark.anyio
async def test_retired_parts_are_translated_whichever_way_they_come_in() -> None:
    async with chatting([]) as (chat, agent):
        await chat.send([BINARY]).wait()
        assert agent.inputs[0].messages[0].content == (IMAGE,)
    reducer = agui.Reducer(messages=[{"id": "u", "role": "user", "content": [BINARY]}])
    reducer.add({"id": "v", "role": "user", "content": [BINARY]})
    assert [message.content for message in reducer.messages] == [(IMAGE,), (IMAGE,)]
    assert (await answer_of(one(lambda: [BINARY]))).content == (IMAGE,)
    calls = thread(agui.Toolset(), run("r", call("a", "theirs")))
    calls.set_output("a", [{"type": "text", "text": "here"}, BINARY])
    assert calls.reducer.messages[-1].content[1] == IMAGE


@pytest.mark.anyio
@pytest.mark.parametrize(
    "content", [[STRANGE], [{"type": "text", "text": "a"}, STRANGE], [{"type": "binary", "mimeType": "a/b", "id": "x"}]]
)
async def test_a_part_of_no_known_kind_is_refused_where_it_is_said(content: Any) -> None:
    async with chatting([]) as (chat, _):
        with pytest.raises(agui.ProtocolError, match=r"would be lost.*\[PROC-9\]"):
            chat.send(content)
        with pytest.raises(agui.ProtocolError, match="would be lost"):
            chat.send({"id": "u", "role": "user", "content": content})
        assert chat.messages == ()
    reducer = agui.Reducer()
    with pytest.raises(agui.ProtocolError, match="would be lost"):
        reducer.add({"id": "u", "role": "user", "content": content})
    with pytest.raises(agui.ProtocolError):
        reducer.add({"id": "u", "role": "critic", "content": "x"})
    assert reducer.messages == ()
    assert reducer.status == "idle"
    read = agui.Reducer(messages=[{"id": "u", "role": "user", "content": content}])
    assert read.warnings, "elsewhere it is stripped with a warning (PROC-16)"


@pytest.mark.anyio
async def test_a_result_with_a_part_of_no_known_kind_is_an_error() -> None:
    mixed = [{"type": "text", "text": "a"}, STRANGE]
    answer = await answer_of(one(lambda: mixed))
    assert answer.metadata == {"agui_core.answer": "error"}
    assert "no known kind, 'hologram'" in str(answer.content)
    calls = thread(agui.Toolset(), run("r", call("a", "theirs")))
    with pytest.raises(agui.ProtocolError, match="no known kind"):
        calls.set_output("a", mixed)
    assert json.loads(str((await answer_of(one(lambda: [STRANGE]))).content)) == [STRANGE], "a list of data is data"


# --- what says nothing is no answer -----------------------------------------------------------------------------------


@pytest.mark.anyio
@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"id": "u", "role": "user", "content": " \n"}],
        [{"id": "u", "role": "user", "content": []}],
        [{"id": "a", "role": "assistant", "content": "Hello, how can I help?"}],
        [{"id": "a", "role": "reasoning", "content": "Hm."}, {"id": "s", "role": "system", "content": ""}],
        [{"id": "x", "role": "activity", "activityType": "a", "content": {"a": 1}}],
    ],
)
async def test_an_input_that_says_nothing_fails_the_run(messages: list[Any]) -> None:
    asked: list[Any] = []
    loop = agui.ToolLoop(lambda messages, tools: asked.append(1) or "hello", agui.Toolset())
    reducer = agui.Reducer()
    run_input = agui.Reducer.from_input({"threadId": "t", "runId": "r", "messages": messages}).messages
    async with loop.run(agui.RunAgentInput(thread_id="t", run_id="r", messages=run_input)) as live:
        async for event in live:
            reducer.apply(event)
    assert reducer.status == "failed"
    assert "no message that says anything" in reducer.run.error.message  # type: ignore[union-attr]
    assert asked == []


@pytest.mark.anyio
@pytest.mark.parametrize("role", ["user", "system", "developer", "tool"])
async def test_whoever_says_something_is_answered(role: str) -> None:
    loop = agui.ToolLoop(lambda messages, tools: "hello", agui.Toolset())
    message = {"id": "m", "role": role, "content": "hi", **({"toolCallId": "c"} if role == "tool" else {})}
    run_input = agui.RunAgentInput(thread_id="t", run_id="r", messages=agui.Reducer(messages=[message]).messages)
    async with loop.run(run_input) as live:
        async for _ in live:
            pass
    assert live.result is not None
    assert live.result.status == "ok"


def test_open_12_all_results_are_held_and_one_is_sent() -> None:
    calls = thread(agui.Toolset(), run("r", call("a"), result("a", "one"), result("a", "two", "again")))
    assert [message.content for message in calls.reducer.messages[1:]] == ["one", "two"]
    assert [message.content for message in calls.next_input().messages[1:]] == ["one"]
