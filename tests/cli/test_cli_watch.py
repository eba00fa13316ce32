"""`agui watch`: the picture, the pace, and what it needs."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import agui_core
from agui_core.cli.input import RecordedInput
from agui_core.cli.pacing import Pacing, read_head
from agui_core.cli.screen import Screen
from support.events import FINISHED, STARTED

Run = Callable[..., Any]
Write = Callable[[Iterable[Any]], Path]
SAMPLE = Path(agui_core.__file__).parent / "cli" / "samples" / "weather.sse"

CALL = {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "write"}


def args(delta: str) -> dict[str, Any]:
    return {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": delta}


def picture(reducer: agui_core.Reducer, width: int = 100, height: int = 24) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, height=height, color_system=None, force_terminal=True, legacy_windows=False
    )
    with RecordedInput(str(SAMPLE)) as source:
        console.print(Screen(reducer, source, console).picture())
    return out.getvalue()


# --- the picture ----------------------------------------------------------------------------------------------------


def test_arguments_grow(sse: Write) -> None:
    reducer = agui_core.Reducer()
    for event in (STARTED, CALL, args('{"path": "todo.txt", "body": "buy oat mi')):
        reducer.apply(event)
    assert '{"path": "todo.txt", "body": "buy oat mi"}' in picture(reducer)
    reducer.apply(args("lk"))
    assert '"buy oat milk"}' in picture(reducer)
    reducer.apply(args("\x01"))
    assert "incomplete" in picture(reducer)


def test_the_end_of_the_conversation_and_the_state_are_shown() -> None:
    reducer = agui_core.reduce(
        [STARTED, *_texts(200), {"type": "STATE_SNAPSHOT", "snapshot": {"n": [*range(90)]}}, FINISHED]
    )
    shown = picture(reducer)
    assert len(shown.splitlines()) == 24
    assert "the run finished" in shown
    assert "message 199" in shown
    assert "message 9 " not in shown
    assert '"n": [' in shown
    assert "more lines" in shown
    assert '"n": [' not in picture(reducer, width=60)


def _texts(count: int) -> Iterable[dict[str, Any]]:
    for number in range(count):
        yield {"type": "TEXT_MESSAGE_START", "messageId": f"m{number}"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": f"m{number}", "delta": f"message {number} " + "word " * 40}
        yield {"type": "TEXT_MESSAGE_END", "messageId": f"m{number}"}


def test_of_a_long_text_the_end_is_shown() -> None:
    text = "first " + "x " * 100_000 + "last"
    reducer = agui_core.Reducer(messages=[{"id": "m", "role": "user", "content": text}])
    shown = picture(reducer)
    assert "last" in shown
    assert "first" not in shown


def test_what_the_wire_says_is_neither_markup_nor_escape_sequence() -> None:
    evil = "[bold]\x1b[2J :smile: \u202e[/bold]"
    state = {evil: evil}
    messages = [{"id": evil, "role": "user", "content": evil}]
    shown = picture(agui_core.Reducer(messages=messages, state=state))
    assert "[bold]\\x1b[2J :smile: \\u202e[/bold]" in shown
    assert "\u202e" not in shown
    assert "\x1b[2J" not in shown


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (5, 3), (80, 1), (400, 200)])
def test_any_size_of_terminal(size: tuple[int, int]) -> None:
    reducer = agui_core.Reducer(state={"a": 1}, messages=[{"id": "m", "role": "user", "content": "hello " * 10}])
    assert len(picture(reducer, *size).splitlines()) <= max(size[1], 1)


# --- the pace -------------------------------------------------------------------------------------------------------


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A terminal, and a clock that only sleeping moves; what was slept is noted."""
    sleeps: list[float] = []
    monkeypatch.setattr("agui_core.cli.watch.is_terminal", lambda stream: True)
    monkeypatch.setattr("time.monotonic", lambda: sum(sleeps))
    monkeypatch.setattr("time.sleep", sleeps.append)
    return sleeps


def stamped(*stamps: Any) -> list[Any]:
    patch = {"type": "STATE_DELTA", "delta": []}
    events = [STARTED, *[dict(patch) for _ in stamps[2:]], FINISHED]
    return [
        event if stamp is None else event | {"timestamp": stamp} for event, stamp in zip(events, stamps, strict=True)
    ]


def test_it_plays_and_then_prints_the_transcript(agui: Run, slept: list[float]) -> None:
    ran = agui("watch", SAMPLE)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.endswith(agui("reduce", SAMPLE).out)
    stamps = [json.loads(line[6:])["timestamp"] for line in SAMPLE.read_text("utf-8").splitlines() if "data: " in line]
    assert sum(slept) == pytest.approx((stamps[-1] - stamps[0]) / 1000)


@pytest.mark.parametrize(
    ("stamps", "options", "seconds"),
    [
        ((1000, 1500, 1600), [], 0.6),
        ((1000, 1500, 1600), ["--speed", "2"], 0.3),
        ((1000, 1500, 1600), ["--speed", "0"], 0.0),
        ((1000, 900_000, 900_100), [], 2.1),
        ((1000, 500, 600), [], 0.1),
        ((None, None, None), [], 0.06),
        ((None, 1000, "x"), [], 0.04),
    ],
)
def test_the_pace_is_the_recorded_one(
    agui: Run, sse: Write, slept: list[float], stamps: tuple[Any, ...], options: list[str], seconds: float
) -> None:
    """EVT-3: a timestamp never sorts; one that runs backwards is due at once."""
    agui("watch", "--lenient", sse(stamped(*stamps)), *options)
    assert sum(slept) == pytest.approx(seconds)


def test_standard_input_is_not_held_up(agui: Run, slept: list[float]) -> None:
    stream = "".join(f"{json.dumps(event)}\n" for event in stamped(1000, 2000, 3000)).encode()
    ran = agui("watch", "-", stdin=stream)
    assert (ran.status, slept) == (0, [])
    assert "the run finished" in ran.out


def test_a_refused_stream_is_shown_up_to_there(agui: Run, sse: Write, slept: list[float]) -> None:
    ran = agui("watch", sse([STARTED, FINISHED, FINISHED]))
    assert ran.status == 1
    assert "rejected" in ran.out
    assert "[RUN-2]" in ran.out


# --- what it needs --------------------------------------------------------------------------------------------------


def test_without_a_terminal_it_is_refused(agui: Run) -> None:
    ran = agui("watch", SAMPLE)
    assert (ran.status, ran.out) == (2, "")
    assert "needs a terminal" in ran.err


def test_without_rich(agui: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agui_core.cli.screen")
    for name in [name for name in sys.modules if name.split(".")[0] == "rich"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "rich", None)
    ran = agui("watch", SAMPLE)
    assert (ran.status, ran.out) == (2, "")
    assert "pip install 'agui_core[cli]'" in ran.err


@pytest.mark.parametrize("factor", ["-1", "fast", "inf", "nan"])
def test_a_speed_is_a_number(agui: Run, factor: str) -> None:
    assert agui("watch", SAMPLE, f"--speed={factor}").status == 2


# --- the pace -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"speed": 1.0}, [0.0, 1.5, 0.0, 0.02, 3.0, 0.5]),
        ({"speed": 2.0}, [0.0, 0.75, 0.0, 0.01, 3.0, 0.25]),
        ({"speed": 0.001}, [0.0, 3.0, 0.0, 3.0, 3.0, 3.0]),
        ({"speed": 0.0}, [0.0] * 6),
        ({"speed": 1.0, "rate": 4.0}, [0.25] * 6),
    ],
)
def test_pauses_are_those_of_the_timestamps_within_bounds(options: dict[str, float], expected: list[float]) -> None:
    pacing = Pacing(longest=3.0, **options)
    stamps = [1_000, 2_500, 2_000, None, 10**400, 10**400 + 500]
    heads = [read_head(json.dumps({"type": "RAW", "timestamp": stamp}).encode()) for stamp in stamps]
    assert [pacing.pause(head) for head in heads] == pytest.approx(expected)


def test_a_payload_that_is_no_event_has_an_empty_head() -> None:
    assert [read_head(payload).timestamp for payload in (b"", b"[1]", b"\xff", b'{"type": "RAW"}')] == [None] * 4
