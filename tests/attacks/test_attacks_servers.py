"""Attacks on what serves: hosts, bodies, line ends, silence."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.cli.input import RecordedInput
from agui_core.cli.replay import Recording, ReplayEndpoint
from support.asgi import ask
from support.events import FINISHED, STARTED

BODY = json.dumps({"threadId": "t", "runId": "r", "messages": []}).encode()


def replay(tmp_path: Any, *origins: str) -> ReplayEndpoint:
    file = tmp_path / "s.jsonl"
    file.write_text("\n".join(json.dumps(event) for event in (STARTED, FINISHED)) + "\n")
    with RecordedInput(str(file)) as source:
        recording = Recording(source, speed=0, rate=None, turns=False)
    return ReplayEndpoint(recording, origins, lambda text: None)


# --- agui serve -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200),
        ("127.8.9.1", 200),
        ("localhost:8000", 200),
        ("LOCALHOST", 200),
        ("app.localhost", 200),
        ("[::1]:8000", 200),
        ("app.example", 200),
        ("attacker.example", 403),
        ("127.0.0.1.attacker.example:8000", 403),
        ("localhost.attacker.example", 403),
        ("192.168.0.7", 403),
        ("user@attacker.example", 403),
        ("", 403),
        ("[", 403),
        ("[::1", 403),
        ("[localhost]", 403),
    ],
)
def test_only_hosts_of_this_machine_or_of_allowed_origins_are_served(tmp_path: Any, host: str, status: int) -> None:
    app = replay(tmp_path, "http://app.example:3000")
    assert ask(app, [BODY], host=host).status == status


def test_a_body_is_bounded_and_a_request_that_is_cut_short_is_not_served(tmp_path: Any) -> None:
    app = replay(tmp_path)
    assert ask(app, [b" " * 2**20] * 17).status == 413
    assert ask(app, [BODY], content_length="9" * 5_000).status == 413
    cut = ask(app, [BODY[:10], None])
    assert cut.sent == []


# --- serve ------------------------------------------------------------------------------------------------------------


async def short(run_input: Any) -> Any:
    yield STARTED
    yield FINISHED


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip"])
def test_an_encoded_body_is_refused(coding: str) -> None:
    answer = ask(agui.serve(short), [BODY], content_encoding=coding)
    assert (answer.status, "content-encoding" in answer.error) == (415, True)
    assert ask(agui.serve(short), [BODY], content_encoding="identity").status == 200


def test_the_line_is_kept_alive_before_the_first_event_and_between_events() -> None:
    async def slow(run_input: Any) -> Any:
        await anyio.sleep(35)
        yield STARTED
        await anyio.sleep(25)
        yield FINISHED

    answer = ask(agui.serve(slow, ping=10), [BODY])
    assert answer.status == 200
    assert answer.body.startswith(b": ping\n\n" * 3 + b"data: ")
    assert answer.body.count(b": ping") == 5
    assert [round(b - a) for a, b in pairwise(answer.times)] == [10, 10, 5, 10, 10, 5]
    reducer = agui.Reducer()
    reducer.apply_sse(answer.body)
    assert reducer.status == "finished"
    assert reducer.warnings == ()


@pytest.mark.parametrize(("wait", "status"), [(5, 500), (15, 200)])
def test_a_failure_is_http_500_until_something_was_sent(wait: float, status: int) -> None:
    async def fail(run_input: Any) -> Any:
        await anyio.sleep(wait)
        raise OSError("secret")
        yield  # a generator

    answer = ask(agui.serve(fail, ping=10), [BODY])
    assert answer.status == status
    assert b"secret" not in answer.body
    if status == 200:
        reducer = agui.Reducer()
        reducer.apply_sse(answer.body)
        assert reducer.status == "failed"


# --- line ends --------------------------------------------------------------------------------------------------------

ODD = "a\u2028b\u2029c\u0085d\r\n\ndata: {}\n\n"


def test_nothing_in_an_event_ends_a_line() -> None:
    event = agui.events.TextMessageContentEvent(message_id="m", delta=ODD)
    block = agui.encode_sse(event)
    assert len(block.decode().splitlines()) == 2
    assert agui.decode(agui.SSEDecoder().feed(block)[0]) == event
    assert "\u2028" in agui.encode(event).decode(), "other forms stay as they are"


@pytest.mark.parametrize("policy", ["strict", None])
def test_a_raw_json_text_is_one_event(policy: Any) -> None:
    async def events() -> Any:
        yield json.dumps(STARTED, indent=2).replace("\n", "\r\n")
        yield json.dumps({"type": "CUSTOM", "name": ODD, "value": 1}, ensure_ascii=False)
        if policy is None:
            yield b'{"type":"CUSTOM"}\n\ndata: {"type":"RUN_ERROR","message":"forged"}\r\rdata: {"type":"RAW"}'
        yield FINISHED

    answer = ask(agui.EventStream(events(), policy=policy), [b""])
    payloads = agui.SSEDecoder().feed(answer.body)
    assert len(payloads) == (3 if policy else 4)
    assert json.loads(payloads[0]) == STARTED
    assert json.loads(payloads[1])["name"] == ODD
    assert len(answer.body.decode().splitlines()) == 2 * len(payloads)
