"""Attacks by texts that people read: whatever an id, a name or a value holds, a message is one short, visible line."""

from __future__ import annotations

import logging
import traceback
from typing import Any

import httpx2
import pytest

import agui_core as agui
from support.call_streams import answers, call, run, thread
from support.chats import Script
from support.events import STARTED

HOSTILE = "a\nERROR all is well\r\x1b[2J\x9b\u202e\u200b\u2066\U000e0041\u2028\u3164\u2800\ufe0f\x7f\x00"
SEEN = set("\n\r\x1b\x9b\u202e\u200b\u2066\U000e0041\u2028\u3164\u2800\ufe0f\x7f\x00")
TEXTS = [HOSTILE, HOSTILE * 600, "x" * 10_000]
LONGEST = 2_500


def inert(text: str) -> bool:
    return not SEEN & set(text) and len(text) <= LONGEST


def broken(bad: str) -> list[list[Any]]:
    """Streams that are refused, with `bad` wherever there is a text."""
    open_call = {"type": "TOOL_CALL_START", "toolCallId": bad, "toolCallName": bad}
    return [
        [{"type": bad}],
        [{"type": "RUN_STARTED", "threadId": bad, "runId": bad}] * 2,
        [STARTED, {"type": "TEXT_MESSAGE_CONTENT", "messageId": bad, "delta": bad}],
        [STARTED, {"type": "TEXT_MESSAGE_START", "messageId": "m", "role": bad}],
        [STARTED, {"type": "TEXT_MESSAGE_START", "messageId": bad}, {"type": "TEXT_MESSAGE_START", "messageId": bad}],
        [STARTED, open_call, {"type": "TOOL_CALL_END", "toolCallId": bad + "2"}],
        [STARTED, open_call, {"type": "RUN_FINISHED", "threadId": bad, "runId": bad}],
        [STARTED, {"type": "STEP_FINISHED", "stepName": bad}],
        [STARTED, chunk(bad), chunk(f"other {bad}")],
        [STARTED, {"type": "STATE_SNAPSHOT", "snapshot": {bad: {}}}, delta(bad, "remove", f"/{bad}/{bad}")],
        [STARTED, delta(bad, bad, bad)],
        [STARTED, {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": bad, "role": bad, "content": bad}]}],
        [STARTED, {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": bad, "role": "user", "content": [{"type": bad}]}]}],
        [STARTED, {"type": "ACTIVITY_SNAPSHOT", "messageId": bad, "activityType": bad, "content": bad}],
        [STARTED, {"type": "TOOL_CALL_RESULT", "messageId": bad, "toolCallId": bad, "content": {bad: bad}}],
        [STARTED, {"type": "CUSTOM", "name": bad, bad: bad}],
        [{**STARTED, bad: bad, "parentRunId": [bad]}],
        [f'{{"type": "{bad}'],
    ]


def chunk(name: str) -> dict[str, Any]:
    return {"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": name, "delta": ""}


def delta(bad: str, op: str, path: str) -> dict[str, Any]:
    return {"type": "STATE_DELTA", "delta": [{"op": op, "path": path, "value": bad}]}


@pytest.mark.parametrize("policy", ["strict", "lenient"])
@pytest.mark.parametrize("bad", TEXTS)
def test_errors_and_warnings_of_any_stream_are_one_visible_line(bad: str, policy: Any) -> None:
    told: list[Any] = []
    for stream in broken(bad):
        reducer = agui.Reducer(policy=policy, on_warning=told.append)
        try:
            for event in stream:
                reducer.apply(event)
            reducer.end()
        except agui.AGUIError as error:
            told += [error, "".join(traceback.format_exception_only(error)).strip()]
    assert len(told) > 10
    assert [str(each) for each in told if not inert(str(each))] == []


@pytest.mark.parametrize("bad", TEXTS)
def test_errors_about_inputs_and_wrong_use_are_one_visible_line(bad: str) -> None:
    uses: list[Any] = [
        lambda: agui.Reducer(messages=[{"id": bad, "role": bad}]),
        lambda: agui.Reducer(messages=[{"id": bad, "role": "user", "content": {bad: bad}}]),
        lambda: agui.Calls(agui.Reducer(), agui.Toolset()).approve(bad),
        lambda: agui.Calls(agui.Reducer(), agui.Toolset()).set_output(bad, bad),
        lambda: agui.Calls(agui.Reducer(), agui.Toolset()).resume({bad: True}),
        lambda: agui.Toolset().add({"name": bad, "description": bad, "parameters": {"type": bad}}, handler=dict),
        lambda: agui.apply_patch({}, [{"op": bad, "path": bad}]),
    ]
    for use in uses:
        with pytest.raises((agui.AGUIError, KeyError, ValueError)) as raised:
            use()
        assert inert(str(raised.value)), str(raised.value)[:300]


@pytest.mark.anyio
@pytest.mark.parametrize("bad", TEXTS)
async def test_answers_that_we_word_are_one_visible_line(bad: str, caplog: pytest.LogCaptureFixture) -> None:
    tools = agui.Toolset()

    @tools.tool
    def fail(n: int = 0) -> str:
        """Fail."""
        raise ValueError(bad)

    caplog.set_level(logging.INFO)
    names = agui.encode({bad: bad}).decode()
    calls = thread(tools, run("r", call("a", "fail"), call("b", bad), call("c", "fail", names), call(bad, "fail", "[")))
    await calls.answer()
    assert [answer.content for answer in answers(calls).values() if not inert(str(answer.content))] == []
    assert [record.getMessage() for record in caplog.records if not inert(record.getMessage())] == []


@pytest.mark.anyio
@pytest.mark.parametrize("bad", TEXTS)
async def test_who_has_to_act_is_one_visible_line(bad: str) -> None:
    tools = agui.Toolset()
    tools.tool(name="pay", effects=True)(lambda: None)
    calls = thread(tools, run("r", *[call(f"{bad}{n}", "pay") for n in range(300)]))
    async with agui.Conversation(Script(), calls=calls) as chat:
        with pytest.raises(agui.StillWaiting) as raised:
            chat.send("Hello?")
    assert inert(str(raised.value))
    assert len(raised.value.calls) == 300


@pytest.mark.anyio
@pytest.mark.parametrize("bad", TEXTS)
async def test_what_a_server_and_its_client_say_is_one_visible_line(bad: str) -> None:
    async def handler(run_input: Any) -> Any:
        yield STARTED

    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(agui.serve(handler))) as client:
        agent = {"threadId": "t", "runId": "r", "messages": [{"id": bad, "role": "user", "content": {bad: 1}}]}
        answer = await client.post("http://localhost/", json=agent)
        assert answer.status_code == 422
        assert inert(answer.json()["error"])

    head = {"content-type": "text/plain", "x-note": "a"}
    reply = httpx2.MockTransport(lambda request: httpx2.Response(500, text=bad, headers=head))
    async with httpx2.AsyncClient(transport=reply) as client:
        with pytest.raises(agui.TransportError) as raised:
            async with agui.HttpAgent("http://localhost/", client=client).run({**agent, "messages": []}):
                pass
    assert inert(str(raised.value))
