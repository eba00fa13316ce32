"""Sources whose items are the JSON texts of whole events, and everything that must not be taken for one."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

import agui_core as agui
from agui_core.stream import Conversation, follow, follow_sync
from agui_core.stream.json_line_end import JsonLineEnd
from support.chats import read
from support.events import FINISHED, STARTED, lines, text_run
from support.folding import text_of
from support.watched import Watched

QUICK = 0.001
TRAPS = ["}{", '"}', '{"', '\\"}{', "\\", "}\n{", "\\\\", '"}{"type":"RUN_FINISHED"}', "\u2028é}"]


def texts(*deltas: str) -> list[str]:
    return [json.dumps(event) for event in text_run(*deltas)]


def followed(items: list[Any]) -> Any:
    with follow_sync(items) as run:
        statuses = [update.status for update in run.updates()]
    return run, statuses


@pytest.mark.anyio
@pytest.mark.parametrize("interval", [0, QUICK])
@pytest.mark.parametrize("shape", [str, str.encode, "\n{}".format, "  {} ".format, "{}\r\n".format])
async def test_items_that_are_whole_events(shape: Any, interval: float) -> None:
    items = [shape(text) for text in texts("a", *TRAPS)]
    async with follow(Watched(items)) as run:
        statuses = [update.status async for update in run.updates(interval)]
    assert statuses[-1] == run.status == "finished"
    assert len(statuses) == len(items) or interval
    assert text_of(run.reducer) == "a" + "".join(TRAPS)
    assert run.warnings == ()


@pytest.mark.parametrize("shape", [str, str.encode, "{}\n".format])
def test_an_update_shows_the_event_of_its_item(shape: Any) -> None:
    run, statuses = followed([shape(text) for text in texts("a")])
    assert statuses == ["running"] * 4 + ["finished"]
    assert run.warnings == ()


@pytest.mark.anyio
async def test_an_agent_whose_items_are_whole_events() -> None:
    class Agent:
        def run(self, run_input: Any) -> Any:
            return Watched(texts("a"))

    async with Conversation(Agent()) as chat:
        await read(chat.send("hi"))
        assert chat.status == "finished"
        assert text_of(chat.reducer) == "hia"


def test_whole_events_and_lines_may_be_mixed() -> None:
    first, second, *rest = texts("a")
    run, _ = followed([first, second + "\n" + rest[0], "\n", rest[1], json.loads(rest[2])])
    assert run.status == "finished"
    assert text_of(run.reducer) == "a"


@pytest.mark.parametrize("newline", ["", "\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_an_event_may_be_cut(size: int, newline: str) -> None:
    items = [
        text[at : at + size]
        for text in [text + newline for text in texts("a", *TRAPS)]
        for at in range(0, len(text), size)
    ]
    run, _ = followed(items)
    assert run.status == "finished"
    assert text_of(run.reducer) == "a" + "".join(TRAPS)
    assert run.warnings == ()


def test_every_cut_of_lines_with_braces_in_strings() -> None:
    data = lines([STARTED, {"type": "RAW", "event": {"a": '}{"\\', "b": [{}, {"c": "\\\\"}], "d": "{}"}}, FINISHED])
    ends = {place for place, byte in enumerate(data) if byte == ord("\n")}
    for first, second in itertools.combinations(range(1, len(data)), 2):
        line = JsonLineEnd()
        closed = {end for begin, end in [(0, first), (first, second)] if line.closes(data[begin:end])}
        assert closed == {first, second} & ends


def test_the_end_of_a_line_is_seen_wherever_it_was_cut() -> None:
    dice = random.Random(7)
    for _ in range(300):
        value = {"a": "".join(dice.choices('{}"\\ é\n', k=12)), "b": [{}, {"c": {"": "}"}}], "d": dice.choice(["{", 1])}
        text = json.dumps(value, ensure_ascii=dice.random() < 0.5).encode()
        cuts = sorted(dice.sample(range(1, len(text)), 4))
        line = JsonLineEnd()
        for _ in range(2):
            closed = [line.closes(text[a:b]) for a, b in itertools.pairwise([0, *cuts, len(text)])]
            assert closed == [False] * 4 + [True]


def test_two_events_on_one_line_are_refused() -> None:
    first, *rest = texts("a")
    with follow_sync([first, rest[0] + rest[1], rest[2], rest[3]]) as run, pytest.raises(agui.DecodeError):
        list(run.updates())
    assert run.status == "rejected"
