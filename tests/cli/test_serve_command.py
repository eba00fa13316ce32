"""`agui serve`: what is played to whom and when, what requests are refused, and how it begins and ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

import agui_core
from agui_core.cli.input import RecordedInput
from agui_core.cli.replay import Recording, ReplayEndpoint
from support.clocks import PATIENCE

httpx2 = pytest.importorskip("httpx2")
pytest.importorskip("uvicorn")
trio_testing = pytest.importorskip("trio.testing")

Run = Callable[..., Any]
Write = Callable[[Iterable[Any]], Path]
Process = Callable[..., subprocess.Popen[bytes]]
Wire = dict[str, Any]
SAMPLE = Path(agui_core.__file__).parent / "cli" / "samples" / "weather.sse"
JSON = {"content-type": "application/json"}


def one_run(number: int, **fields: Any) -> list[Wire]:
    boundary = {"threadId": "recorded", "runId": f"recorded-{number}"}
    return [
        {"type": "RUN_STARTED", **boundary, **fields},
        {"type": "TEXT_MESSAGE_START", "messageId": f"m{number}"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": f"m{number}", "delta": "line\u2028one\ntwo"},
        {"type": "TEXT_MESSAGE_END", "messageId": f"m{number}"},
        {"type": "RUN_FINISHED", **boundary},
    ]


def asking(thread: str = "t", run: str = "r") -> Wire:
    return {"threadId": thread, "runId": run, "messages": []}


class Answer:
    """What the endpoint answered to one request, and when each event of it was sent, in seconds."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.times: list[float] = []
        self.pings: list[float] = []

    @property
    def events(self) -> list[Any]:
        return [json.loads(payload) for payload in agui_core.SSEDecoder().feed(self.body)]


class Client:
    """Calls an endpoint without a server, on a clock that only waiting moves."""

    def __init__(self, path: Path, *, speed: float = 1, rate: float | None = None, **options: Any) -> None:
        self.said: list[str] = []
        origins = options.pop("origins", ())
        with RecordedInput(str(path)) as source:
            recording = Recording(source, speed=speed, rate=rate, turns=options.pop("turns", False))
        self.endpoint = ReplayEndpoint(recording, origins, self.said.append)

    def post(self, body: Any, method: str = "POST", **headers: str) -> Answer:
        fields = JSON | {"host": "127.0.0.1:8000"} | {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        clock = trio_testing.MockClock(autojump_threshold=0)
        return anyio.run(self._call, method, fields, content, backend="trio", backend_options={"clock": clock})

    async def _call(self, method: str, headers: dict[str, str], body: bytes) -> Answer:
        answer = Answer()
        began = anyio.current_time()
        pieces = [
            {"type": "http.request", "body": body[:5], "more_body": True},
            {"type": "http.request", "body": body[5:]},
        ]

        async def receive() -> Any:
            return pieces.pop(0) if pieces else await anyio.sleep_forever()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            elif message["body"]:
                answer.body += message["body"]
                times = answer.pings if message["body"].startswith(b":") else answer.times
                times.append(round(anyio.current_time() - began, 6))

        fields = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.endpoint({"type": "http", "method": method, "headers": fields}, receive, send)
        return answer


# --- what is played -------------------------------------------------------------------------------------------------


def test_the_ids_become_those_of_the_request(sse: Write) -> None:
    """RUN-10: all runs carry the thread's id, the last one the run's; the rest is as it was recorded."""
    recorded = [*one_run(1), *one_run(2, extra={"n": 1.5})]
    events = Client(sse(recorded)).post(asking()).events
    assert [event.get("runId") for event in events if "runId" in event] == ["recorded-1"] * 2 + ["r"] * 2
    assert {event["threadId"] for event in events if "threadId" in event} == {"t"}
    kept = [{key: value for key, value in event.items() if key not in ("threadId", "runId")} for event in events]
    assert kept == [{key: v for key, v in event.items() if key not in ("threadId", "runId")} for event in recorded]


def test_json_lines_are_played_as_well(tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in one_run(1)), encoding="utf-8")
    assert Client(path).post(asking()).events[1:-1] == one_run(1)[1:-1]


@pytest.mark.parametrize(
    "recorded",
    [
        [{"type": "TEXT_MESSAGE_END", "messageId": "never opened"}, *one_run(1)],
        one_run(1)[:3],
        [*one_run(1), {"type": "RUN_FINISHED", "threadId": 1, "runId": None}, {"type": 5}, [], {}, "x"],
    ],
    ids=["broken", "cut off", "malformed"],
)
def test_what_breaks_the_protocol_is_played_as_it_is(sse: Write, recorded: list[Any]) -> None:
    events = Client(sse(recorded)).post(asking()).events
    assert len(events) == len(recorded)
    assert events[1] == recorded[1] or events[1]["threadId"] == "t"
    assert events[-1] == recorded[-1] or events[-1]["threadId"] == "t"


def test_what_is_no_json_is_played_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "stream.sse"
    deep = b'{"type":"RUN_STARTED","x":' + b"[" * 5000 + b"]" * 5000 + b"}"
    path.write_bytes(b"data: {broken\ndata: json\n\ndata: \xff\n\ndata: " + deep + b"\n\n: comment\n\n")
    answer = Client(path).post(asking())
    assert agui_core.SSEDecoder().feed(answer.body)[0] == b"{broken json"
    assert len(answer.times) == 3


def test_with_turns_a_thread_gets_the_runs_one_by_one(sse: Write) -> None:
    """A thread gets the runs one by one, another one from the beginning; after the last it begins again."""
    client = Client(sse([*one_run(1), *one_run(2)]), turns=True)
    played = [client.post(asking(thread)).events for thread in ("a", "a", "b", "a")]
    assert [events[1]["messageId"] for events in played] == ["m1", "m2", "m1", "m1"]
    assert [len(events) for events in played] == [5] * 4
    assert {events[0]["runId"] for events in played} == {"r"}
    assert "run 2 of 2" in client.said[1]


def holding(*messages: Wire) -> Wire:
    return {**asking(), "messages": [{"role": "assistant", **message} for message in messages]}


def texts(answer: Answer) -> list[str]:
    return [event["messageId"] for event in answer.events if event["type"] == "TEXT_MESSAGE_START"]


@pytest.mark.parametrize("turns", [False, True])
def test_runs_that_the_request_holds_are_left_out(sse: Write, turns: bool) -> None:
    client = Client(sse([*one_run(1), *one_run(2), *one_run(3)]), turns=turns, speed=0)
    answer = client.post(holding({"id": "m1"}, {"id": "other"}))
    assert texts(answer) == (["m2"] if turns else ["m2", "m3"])
    assert answer.events[-1]["runId"] == "r"
    assert texts(client.post(holding({"id": "m1"}, {"id": "m2"}))) == ["m3"]
    over = client.post(holding({"id": "m1"}, {"id": "m2"}, {"id": "m3"}))
    assert [event["type"] for event in over.events] == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert "The recording ends here" in over.events[2]["delta"]
    assert "nothing is left" in client.said[-1]
    reducer = agui_core.Reducer()
    reducer.apply_sse(over.body)
    assert (reducer.status, reducer.run.thread_id, reducer.run.run_id) == ("finished", "t", "r")


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "n"}, {"id": "x", "toolCalls": ["c"]}),
        ({"type": "TOOL_CALL_CHUNK", "toolCallId": "c", "toolCallName": "n"}, {"id": "x", "toolCalls": ["c"]}),
        ({"type": "TOOL_CALL_RESULT", "messageId": "y", "toolCallId": "c", "content": ""}, {"id": "y"}),
        ({"type": "TEXT_MESSAGE_CHUNK", "messageId": "y", "delta": "x"}, {"id": "y"}),
        ({"type": "REASONING_MESSAGE_START", "messageId": "y"}, {"id": "y", "role": "reasoning", "content": ""}),
    ],
)
def test_what_shows_that_a_run_was_played(sse: Write, event: Wire, message: Wire) -> None:
    calls = [
        {"id": id, "type": "function", "function": {"name": "n", "arguments": ""}}
        for id in message.get("toolCalls", ())
    ]
    message = {**message, "toolCalls": calls} if calls else message
    client = Client(sse([one_run(1)[0], event, one_run(1)[-1]]), speed=0)
    assert client.post(asking()).events[1] == event
    assert client.post(holding({"id": "other"})).events[1] == event
    assert client.post(holding(message)).events[1]["type"] == "TEXT_MESSAGE_START"


def test_an_id_that_an_earlier_run_began_shows_nothing(sse: Write) -> None:
    """A recording may use an id twice; its second run is played all the same."""
    client = Client(sse([*one_run(1), *one_run(1)]), turns=True, speed=0)
    assert texts(client.post(asking())) == ["m1"]
    assert texts(client.post(holding({"id": "m1"}))) == ["m1"]


def test_of_many_threads_the_oldest_are_forgotten(sse: Write) -> None:
    client = Client(sse([*one_run(1), *one_run(2)]), turns=True, speed=0)
    for number in range(1001):
        client.endpoint._recording.part_for(str(number))
    assert client.post(asking("1000")).events[1]["messageId"] == "m2"
    assert client.post(asking("0")).events[1]["messageId"] == "m1"


# --- when -----------------------------------------------------------------------------------------------------------


def stamped(*stamps: Any) -> list[Any]:
    events = [one_run(1)[0], *[{"type": "STATE_DELTA", "delta": []}] * (len(stamps) - 2), one_run(1)[-1]]
    return [event | {"timestamp": stamp} for event, stamp in zip(events, stamps, strict=True)]


@pytest.mark.parametrize(
    ("stamps", "options", "times"),
    [
        ((1000, 1500, 1600), {}, [0, 0.5, 0.6]),
        ((1000, 1500, 1600), {"speed": 2}, [0, 0.25, 0.3]),
        ((1000, 1500, 1600), {"speed": 0}, [0, 0, 0]),
        ((1000, 1500, 1600), {"rate": 10}, [0.1, 0.2, 0.3]),
        ((1000, 500, 600), {}, [0, 0, 0.1]),
        ((1000, 10**12, 10**12 + 100), {}, [0, 30, 30.1]),
        ((1000, 10**400, -(10**400)), {"speed": 1e-300}, [0, 30, 30]),
        ((None, None, None), {}, [0.02, 0.04, 0.06]),
        ((None, 1000, "x", True, 1100), {"speed": 0.5}, [0.04, 0.04, 0.08, 0.12, 0.32]),
    ],
)
def test_events_keep_their_pace(sse: Write, stamps: tuple[Any, ...], options: Wire, times: list[float]) -> None:
    """EVT-3: a timestamp that runs backwards is due at once."""
    assert Client(sse(stamped(*stamps)), **options).post(asking()).times == pytest.approx(times)


def test_between_two_runs_there_is_no_pause(sse: Write) -> None:
    path = sse([*stamped(1000, 1100), *stamped(20_000, 20_300)])
    assert Client(path).post(asking()).times == pytest.approx([0, 0.1, 0.1, 0.4])
    client = Client(path, turns=True)
    assert [client.post(asking()).times for _ in range(2)] == [[0, 0.1], [0, 0.3]]


def test_comments_are_sent_while_nothing_happens(sse: Write) -> None:
    answer = Client(sse(stamped(0, 29_000))).post(asking())
    assert (answer.times, answer.pings) == ([0, 29], [15])


# --- what is asked --------------------------------------------------------------------------------------------------


def test_requests_that_are_none(sse: Write) -> None:
    client = Client(sse(one_run(1)))
    get = client.post(b"", method="GET")
    assert (get.status, get.headers["allow"]) == (405, "POST")
    assert client.post(asking(), content_type="text/plain").status == 415
    assert client.post(asking(), content_type="application/json; charset=utf-8").status == 200
    for body in (b"", b"{", b"[]", {}, {"threadId": 1, "runId": "r", "messages": []}):
        refused = client.post(body)
        assert refused.status == 422
        assert json.loads(refused.body)["error"]
    assert "/threadId" in client.said[-1]
    client.post({**asking("t\x1b[2J"), "more": 1})
    assert "/more" in client.said[-1]


def test_pages_of_other_origins_need_leave(sse: Write) -> None:
    origin = "http://localhost:3000"
    closed, named, anyone = (Client(sse(one_run(1)), origins=names) for names in ((), (origin,), ("*",)))
    assert "access-control-allow-origin" not in closed.post(asking(), origin=origin).headers
    assert closed.post(b"", method="OPTIONS", origin=origin).status == 405
    assert named.post(asking(), origin=origin).headers["access-control-allow-origin"] == origin
    assert "access-control-allow-origin" not in named.post(asking(), origin="http://other").headers
    preflight = {"access_control_request_method": "POST", "access_control_request_headers": "x-mine"}
    asked = named.post(b"", method="OPTIONS", origin=origin, **preflight)
    assert (asked.status, asked.headers["access-control-allow-headers"]) == (204, "x-mine")
    assert anyone.post(asking(), origin="http://other").headers["access-control-allow-origin"] == "*"


# --- the command ----------------------------------------------------------------------------------------------------


@contextmanager
def served(process: Process, *argv: str | Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """The command in a process of its own, on a free port, and its address."""
    running = process("serve", "--port", "0", *argv)
    try:
        assert running.stdout is not None
        line = running.stdout.readline().decode().strip()
        assert " at http://127.0.0.1:" in line, line
        yield line.split()[-1], running
    finally:
        running.kill()
        running.communicate()


async def follow(url: str) -> agui_core.Reducer:
    async with agui_core.HttpAgent(url).run(asking()) as run:
        async for _ in run.updates(0.001):
            pass
    return run.reducer


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_it_is_an_endpoint_until_ctrl_c(process: Process) -> None:
    recorded = agui_core.Reducer()
    recorded.apply_sse(SAMPLE.read_bytes())
    with served(process, SAMPLE, "--speed", "0") as (url, running):
        reducer = anyio.run(follow, url + "any/path")
        assert reducer.status == recorded.status == "interrupted"
        assert (reducer.messages, reducer.state) == (recorded.messages, recorded.state)
        assert (reducer.run.thread_id, reducer.run.run_id) == ("t", "r")
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=PATIENCE)
    assert (running.returncode, err) == (0, b"")
    assert b"thread t, run r: all, 48 events" in out


def test_the_sample_ends_well_in_a_chat(process: Process, agui: Run) -> None:
    with served(process, SAMPLE, "--speed", "0") as (url, _):
        ran = agui("chat", url, stdin=b"hello\nyes\nmore\n")
    assert ran.status == 0
    assert ran.out.count("Allow it?") == 1
    assert ran.out.count("The recording ends here") == 2
    assert "broken" not in ran.out


@pytest.mark.skipif(os.name == "nt", reason="needs signals")
def test_ctrl_c_ends_it_in_the_middle_of_a_run(process: Process, sse: Write) -> None:
    with (
        served(process, sse(stamped(0, 30_000))) as (url, running),
        httpx2.stream("POST", url, json=asking(), timeout=PATIENCE) as response,
    ):
        assert next(response.iter_bytes())
        running.send_signal(signal.SIGINT)
        assert (running.wait(timeout=PATIENCE), running.communicate()[1]) == (0, b"")


def test_what_cannot_be_served(agui: Run, sse: Write, tmp_path: Path) -> None:
    ran = agui("serve", tmp_path / "none.sse")
    assert (ran.status, ran.out) == (2, "")
    assert "cannot read" in ran.err
    assert "holds no event" in agui("serve", "-", stdin=b": nothing\n\n").err
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = agui("serve", sse(one_run(1)), "--port", str(taken.getsockname()[1]))
    assert ran.status == 2
    assert "--port names another" in ran.err


def test_without_uvicorn(agui: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    ran = agui("serve", SAMPLE)
    assert ran.status == 2
    assert "pip install 'agui_core[cli]'" in ran.err


@pytest.mark.parametrize(
    "option",
    ["--port=-1", "--port=65536", "--port=x", "--port=1_0", "--rate=0", "--rate=inf", "--rate=x", "--speed=nan"],
)
def test_numbers_are_numbers(agui: Run, option: str) -> None:
    assert agui("serve", SAMPLE, option).status == 2


def test_speed_and_rate_exclude_each_other(agui: Run) -> None:
    assert agui("serve", SAMPLE, "--speed=1", "--rate=1").status == 2
