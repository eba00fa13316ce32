"""Attacks by ids, names and paths in every place of every event and input: what is said of them is one short line."""

from __future__ import annotations

import copy
import json
import logging
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.warnings import WarningLog
from agui_core.wire.old_peers import Peer
from agui_core.wire.outgoing import address_input, enforce_input
from support.asgi import ask
from support.full_documents import EVENTS, INPUT, OPENED, places, with_odd

HOSTILE = [
    "a\nb\r\nc",
    "\x1b[2J\x9b1m\x00",
    "\u202egpj.exe\u2066",
    "a\u200b\u2060\ufeffb",
    "a\u2028b\u2029c\x85",
    "\U000e0041\ufe0f\u3164\u2800\u034f",
    "x" * 10_000,
    "\n" * 10_000,
]
_RAW = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u034f\u115f\u1160\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff"
    r"\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
LONGEST = 2_200


def problems(text: str) -> list[str]:
    """What is wrong with a text for people."""
    found = [f"raw U+{ord(match[0]):04X}" for match in [_RAW.search(text)] if match]
    if re.search(r"x{102}|(\\n){52}", text):
        found.append("not cut at 100 characters")
    if len(text) > LONGEST:
        found.append(f"{len(text)} characters")
    return found


def check(text: str) -> None:
    assert problems(text) == [], text[:300]


def renamed(value: Any, name: str) -> Any:
    """A document all of whose ids and names are `name`."""
    if isinstance(value, dict):
        kept = ("type", "role", "subtype", "op", "status")
        return {key: item if key in kept else renamed(item, name) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, name) for item in value]
    return name if isinstance(value, str) and 0 < len(value) < 5 and value[0] not in "{/" else value


def extended(document: Any, name: str) -> Iterator[Any]:
    """A document with one more property, in each place that takes one."""
    for place in [(), *places(document)]:
        changed = copy.deepcopy(document)
        holder = changed
        for step in place:
            holder = holder[step]
        if isinstance(holder, dict):
            holder[name] = 1
            yield changed


def variants(document: Any, name: str) -> Iterator[Any]:
    """A document, attacked in each place."""
    for place in places(document):
        if place[-1] != "type" or len(place) > 1:
            yield with_odd(document, place, name)
    yield from extended(document, name)


@pytest.mark.parametrize("number", range(len(EVENTS)), ids=lambda number: f"{number}-{EVENTS[number]['type']}")
def test_errors_and_warnings_of_events_are_one_short_line(number: int) -> None:
    event = EVENTS[number]
    for name in HOSTILE:
        streams = [[*OPENED, changed] for changed in variants(event, name)]
        streams += [[changed] for changed in variants(event, name)]
        streams += [
            [*renamed(OPENED, name), renamed(event, name)],
            [*OPENED, renamed(event, name), renamed(event, name)],
            [*renamed(OPENED, name), event],
        ]
        for events in streams:
            for policy in ("strict", "lenient"):
                reducer = agui.Reducer(policy=policy, on_warning=lambda warning: check(str(warning)))  # type: ignore[arg-type]
                try:
                    for wire in events:
                        reducer.apply(wire)
                    reducer.end()
                except agui.AGUIError as error:
                    check(str(error))
                for warning in reducer.warnings:
                    check(str(warning))


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_limits_patches_and_bytes(name: str) -> None:
    def errors() -> Iterator[BaseException]:
        for limit in (agui.Limits(characters=60), agui.Limits(item_characters=5), agui.Limits(open_items=1)):
            for policy in ("strict", "lenient"):
                try:
                    agui.reduce([*renamed(OPENED, name), *renamed(OPENED, name + "2")], policy=policy, limits=limit)  # type: ignore[call-arg]
                except agui.AGUIError as error:
                    yield error
        for operation in (
            {"op": "remove", "path": f"/{name}"},
            {"op": name, "path": ""},
            {"op": "test", "path": "/a", "value": name},
            {"op": "replace", "path": f"/a/{name}/b", "value": 1},
            {"op": "move", "from": "/a", "path": f"/a/{name}"},
            {"op": "add", "path": name, "value": 1},
            {"op": "add", "path": f"/l/{name}", "value": 1},
        ):
            try:
                agui.apply_patch({"a": {"k": 1}, "l": []}, [operation])
            except agui.AGUIError as error:
                yield error
        encoded = json.dumps(name, ensure_ascii=False).encode()
        for line in (name.encode(), b'{"type":' + encoded + b"}", b'{"type":"RUN_STARTED",' + encoded + b":", encoded):
            for read in (lambda reducer, text: reducer.apply_sse(b"data: " + text + b"\n\n"), agui.Reducer.apply_lines):
                reducer = agui.Reducer()
                try:
                    read(reducer, line)
                    reducer.end()
                except agui.AGUIError as error:
                    yield error
                for warning in reducer.warnings:
                    check(str(warning))

    found = list(errors())
    assert len(found) > 8
    for error in found:
        check(str(error))


def test_a_warning_keeps_its_path_exact() -> None:
    reducer = agui.Reducer()
    reducer.apply({**OPENED[0], "a\u202e/b\n": 1})
    (warning,) = reducer.warnings
    assert warning.path == "/a\u202e~1b\n"
    check(str(warning))
    with pytest.raises(agui.ProtocolError) as raised:
        reducer.apply({"type": "TEXT_MESSAGE_END", "messageId": "a\u202e\n"})
    assert raised.value.ids == ("a\u202e\n",)
    check(str(raised.value))


# --- inputs and answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_answers_and_logs_of_a_server(name: str, caplog: pytest.LogCaptureFixture) -> None:
    async def handler(run_input: agui.RunAgentInput) -> Any:
        yield {"type": "TEXT_MESSAGE_END", "messageId": name}

    app = agui.serve(handler)
    caplog.set_level(logging.DEBUG, "agui_core")
    documents = list(variants(INPUT, name))
    for number, document in enumerate(documents):
        with suppress(agui.AGUIError):
            address_input(enforce_input(document, WarningLog()), WarningLog(), Peer.pinned("0.0.39"))
        if number % 7 == 0 or number > len(documents) - 8:
            answer = ask(app, [json.dumps(document).encode()])
            if answer.status != 200:
                for text in json.loads(answer.body).values():
                    check(str(text))
    for raw in (name.encode(), b'{"threadId":' + name.encode(), json.dumps([name]).encode()):
        answer = ask(app, [raw])
        assert answer.status == 422
        check(answer.error)
    for answer in (ask(app, [b"{}"], method=name), ask(app, [b"{}"], content_type="text/" + "x" * 10_000)):
        check(answer.error)
    assert caplog.records
    for record in caplog.records:
        check(record.getMessage())


# --- tools ------------------------------------------------------------------------------------------------------------


def called(id: str, name: str, arguments: str) -> list[dict[str, Any]]:
    return [
        {"type": "RUN_STARTED", "threadId": "t", "runId": "r"},
        {"type": "TOOL_CALL_START", "toolCallId": id, "toolCallName": name},
        {"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": arguments},
        {"type": "TOOL_CALL_END", "toolCallId": id},
        {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"},
    ]


def toolset(function: Any) -> agui.Toolset:
    tools = agui.Toolset()
    tools.tool(function)
    return tools


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_refusals_of_tools(name: str) -> None:
    def count(n: int) -> int:
        return n

    def errors(calls: agui.Calls) -> Iterator[BaseException]:
        for act in (
            lambda: calls.approve(name),
            lambda: calls.deny(name + "2"),
            lambda: calls.request(name),
            lambda: calls.set_output(name, 1),
            lambda: calls.set_output(name + "2", 1),
            lambda: calls.set_output(name, 1),
            lambda: calls.next_input(thread_id=name, run_id="r"),
            lambda: calls.next_input(run_id="r"),
            lambda: calls.next_input(run_id="r2", resume=[{"interruptId": name, "status": "resolved"}]),
        ):
            try:
                act()
            except (agui.AGUIError, TypeError, ValueError, KeyError) as error:
                yield error

    found = 0
    for tool in ("count", name):
        for arguments in ("{}", json.dumps({"n": name}), json.dumps({name: 1, "n": 1}), '{"n": "' + name):
            reducer = agui.Reducer()
            for event in called(name, tool, arguments):
                reducer.apply(event)
            calls = agui.Calls(reducer, toolset(count))
            for error in errors(calls):
                found += 1
                check(str(error))
            anyio.run(calls.answer)
            for warning in calls.warnings:
                check(str(warning))
            for message in reducer.messages:
                if message.role == "tool" and isinstance(message.error, str):
                    check(message.error)
            check(repr(reducer.tool_calls[name]))
    assert found > 10


def test_tracebacks_of_tools_are_for_debugging_only(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("secret\nforged line")

    def run() -> list[logging.LogRecord]:
        caplog.clear()
        reducer = agui.Reducer()
        for event in called("c", "fail", "{}"):
            reducer.apply(event)
        anyio.run(agui.Calls(reducer, toolset(fail)).answer)
        return caplog.records

    caplog.set_level(logging.INFO, "agui_core")
    (record,) = run()
    assert record.exc_info is None
    assert record.getMessage() == "tool fail failed: RuntimeError"
    caplog.set_level(logging.DEBUG, "agui_core")
    assert [record.levelname for record in run() if record.exc_info] == ["DEBUG"]
