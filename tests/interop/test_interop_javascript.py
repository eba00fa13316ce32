"""Our server and the official JavaScript client: `HttpAgent` of `@ag-ui/client`, in a Node process."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from own_agent import agent
from talking import CALLS, SAID, Talk, hosted

import agui_core as agui
from support.clocks import PATIENCE
from support.corpora import reference_root
from support.folding import canonical

TOOLS = [{"name": "local_time", "description": "The time in a zone.", "parameters": {"type": "object"}}]


class Node:
    """The client in its process. One line says what it has to do, one what came of it."""

    def __init__(self, root: Path) -> None:
        self._process = subprocess.Popen(
            ["node", str(Path(__file__).with_name("official_client.mjs"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "AGUI_REFERENCE": str(root)},
            text=True,
            encoding="utf-8",
        )

    def turn(self, what: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate(timeout=PATIENCE)


class Official:
    """One thread of the official client with an endpoint."""

    def __init__(self, node: Node, url: str) -> None:
        self._node = node
        self._url = url
        self._users = 0

    def turn(self, **what: Any) -> Any:
        """Add messages, run the agent, and tell what came of it."""
        return self._node.turn({"url": self._url, **what})

    def say(self, word: str, **run: Any) -> Any:
        self._users += 1
        return self.turn(add=[{"id": f"user-{self._users}", "role": "user", "content": word}], run=run)


Begin = Callable[..., AbstractContextManager[Official]]


@pytest.fixture(scope="module")
def node() -> Iterator[Node]:
    root = reference_root()
    assert root is not None
    node = Node(root)
    yield node
    node.close()


@pytest.fixture
def official(node: Node) -> Begin:
    """Serve a handler with us, and begin a thread with it over there."""

    @contextmanager
    def begin(handler: Any, **options: Any) -> Iterator[Official]:
        with hosted(agui.serve(handler, **options)) as url:
            yield Official(node, url)

    return begin


def said(turn: Any) -> str:
    return str(turn["messages"][-1]["content"])


def good(turn: Any) -> Any:
    assert (turn["error"], turn["warnings"]) == (None, [])
    return turn


def test_text_parallel_tools_and_state(official: Begin) -> None:
    with official(agent) as client:
        assert said(good(client.say("hello"))) == "you said hello"
        turn = good(client.say("weather"))
        assert said(turn) == SAID["weather"]
        assert turn["state"] == {"word": "weather", "ran": 2}
        calls = [call["function"] for message in turn["messages"] for call in message.get("toolCalls", [])]
        assert [(call["name"], json.loads(call["arguments"])) for call in calls] == CALLS["weather"]
        assert [m["role"] for m in turn["messages"]] == [*["user", "assistant"] * 2, "tool", "tool", "assistant"]


def test_parallel_tools_of_the_application(official: Begin) -> None:
    with official(agent) as client:
        turn = good(client.say("time", tools=TOOLS))
        calls = turn["messages"][-1]["toolCalls"]
        answers = [
            {
                "id": call["id"] + "-answer",
                "role": "tool",
                "toolCallId": call["id"],
                "content": f"noon in {json.loads(call['function']['arguments'])['zone']}",
            }
            for call in calls
        ]
        assert len(answers) == 2
        assert said(good(client.turn(add=answers, run={"tools": TOOLS}))) == SAID["time"]


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"approved": True}, SAID["delete"]),
        ({"approved": False}, "no; no"),
        ({"approved": True, "editedArgs": {"path": "c"}}, "deleted c; deleted c"),
        (None, "no; no"),
    ],
)
def test_approvals_resume(official: Begin, payload: Any, text: str) -> None:
    with official(agent) as client:
        asked = good(client.say("delete"))
        assert [interrupt["toolCallId"] for interrupt in asked["interrupts"]] == ["delete-1-0", "delete-1-1"]
        answer = {"status": "cancelled"} if payload is None else {"status": "resolved", "payload": payload}
        resume = [{"interruptId": interrupt["id"], **answer} for interrupt in asked["interrupts"]]
        turn = good(client.turn(run={"resume": resume}))
        assert said(turn) == text
        assert turn["interrupts"] == []


def test_both_clients_come_to_the_same(official: Begin) -> None:
    async def ours(url: str) -> agui.Reducer:
        talk = Talk(url)
        for word in ("hello", "weather", "again"):
            await talk.say(word)
        return talk.reducer

    with official(agent) as client, hosted(agui.serve(agent)) as url:
        turns = [good(client.say(word)) for word in ("hello", "weather", "again")]
        reducer = anyio.run(ours, url)
    messages = agui.to_wire(reducer.messages)
    for number, message in enumerate(message for message in messages if message["role"] == "user"):
        message["id"] = f"user-{number + 1}"
    assert canonical(turns[-1]["messages"]) == canonical(messages)
    assert canonical(turns[-1]["state"]) == canonical(reducer.state)


def test_a_failure_is_an_http_error_before_the_first_event_and_a_run_error_after(official: Begin) -> None:
    """What fails before the first event is an HTTP error, what fails later a RUN_ERROR; neither tells details."""

    async def failing(given: agui.RunAgentInput) -> AsyncIterator[Any]:
        if given.messages[-1].content == "later":
            yield {"type": "RUN_STARTED", "threadId": given.thread_id, "runId": given.run_id}
            yield {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "role": "assistant", "delta": "so far"}
        raise KeyError("secret")

    with official(failing) as client:
        at_once = client.say("now")
        assert "500" in at_once["error"]
        later = client.say("later")
        assert later["types"][-1] == "RUN_ERROR"
        assert said(later) == "so far"
        assert "secret" not in json.dumps([at_once, later])


def test_comments_are_passed_over(official: Begin) -> None:
    async def slow(given: agui.RunAgentInput) -> AsyncIterator[Any]:
        async for event in agent(given):
            await anyio.sleep(0.01)
            yield event

    with official(slow, ping=0.002) as client:
        assert said(good(client.say("weather"))) == SAID["weather"]


def test_aborting_cancels_the_handler(official: Begin) -> None:
    cancelled = threading.Event()

    async def stalling(given: agui.RunAgentInput) -> AsyncIterator[Any]:
        yield {"type": "RUN_STARTED", "threadId": given.thread_id, "runId": given.run_id}
        try:
            await anyio.sleep_forever()
        finally:
            cancelled.set()

    with official(stalling) as client:
        client.turn(abortAfter=1)
        assert cancelled.wait(PATIENCE)
