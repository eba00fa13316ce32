"""`follow_sync`: an update after every item, without an event loop."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import pytest

import agui_core as agui
from agui_core.stream import follow_sync
from support.events import FINISHED, STARTED, lines, say, sse, text, text_run
from support.folding import text_of


def show(run: Any, seen: list[Any] | None = None) -> list[Any]:
    seen = [] if seen is None else seen
    for update in run.updates():
        seen.append(("".join(str(message.content) for message in update.messages), update.status))
    return seen


class Source:
    """A generator over items that then raises, and what became of it."""

    def __init__(self, items: Iterable[Any], error: Exception | None = None) -> None:
        self.items = items
        self.error = error
        self.closed = False

    def __iter__(self) -> Iterator[Any]:
        try:
            yield from self.items
            if self.error is not None:
                raise self.error
        finally:
            self.closed = True


def test_an_update_after_every_read() -> None:
    data = sse(text_run("a", "b"))
    with follow_sync([data[:150], data[150:]]) as run:
        assert show(run) == [("", "running"), ("ab", "finished")]
    with follow_sync([lines(text_run("a"))[:-1]]) as run:
        assert show(run) == [("a", "finished")]
    with follow_sync(text_run("a")) as run:
        assert show(run) == [("", "running"), ("", "running"), ("a", "running"), ("a", "running"), ("a", "finished")]
    assert run.status == "finished"
    assert run.warnings == ()


def test_an_update_is_frozen_at_its_first_read() -> None:
    with follow_sync([STARTED, text(), say(delta="a"), say(delta="b")]) as run:
        updates = run.updates()
        first = next(updates)
        next(updates)
        next(updates)
        assert first.changes.added == ("m",)
        next(updates)
        assert [message.content for message in first.messages] == ["a"]
        assert first.run.run_id == "r"
        assert first.state == {}


def test_the_sources_own_exception() -> None:
    error = OSError("cut")
    source = Source(text_run("a")[:3], error)
    seen: list[Any] = []
    with follow_sync(source) as run, pytest.raises(OSError, match="cut") as caught:
        show(run, seen)
    assert caught.value is error
    assert seen[-1] == ("a", "truncated")


def test_a_refusal_is_raised_after_an_update_that_shows_it() -> None:
    source = Source([sse([STARTED, say(delta="a")]), sse([FINISHED])])
    seen: list[Any] = []
    with follow_sync(source) as run:
        updates = run.updates()
        assert next(updates).status == "rejected"
        with pytest.raises(agui.ProtocolError) as caught:
            next(updates)
        with pytest.raises(StopIteration):
            next(updates)
    assert caught.value is run.reducer.error
    assert source.closed
    assert seen == []


def test_leaving_the_loop_early_closes_the_source() -> None:
    source = Source(text_run("a", "b"))
    with follow_sync(source) as run:
        updates = run.updates()
        for update in updates:
            if update.messages and update.messages[0].content:
                break
    assert source.closed
    assert run.status == "truncated"
    assert text_of(run.reducer) == "a"
    assert list(updates) == []


def test_the_blocks_exception_leaves_it_as_itself() -> None:
    class Closing(Source):
        def __iter__(self) -> Any:
            return self

        def __next__(self) -> Any:
            return STARTED

        def close(self) -> None:
            raise OSError("closing")

    with pytest.raises(KeyError), follow_sync(Closing([])):
        raise KeyError
    with pytest.raises(OSError, match="closing"), follow_sync(Closing([])):
        pass


def test_misuse_is_told_at_once() -> None:
    async def source() -> AsyncIterator[Any]:
        yield STARTED

    for wrong, hint in ((source(), "follow takes"), (b"data: {}", "bytes"), ("{}", "str"), (3, "int")):
        with pytest.raises(TypeError, match=hint):
            follow_sync(wrong)  # type: ignore[arg-type]
    with follow_sync([]) as run:
        run.updates()
        with pytest.raises(RuntimeError, match="once per run"):
            run.updates()
    reducer = agui.reduce(text_run("a"))
    with follow_sync([{**STARTED, "runId": "r2"}], reducer=reducer) as run:
        assert show(run) == [("a", "running"), ("a", "truncated")]
    with pytest.raises(ValueError, match="brings its own"):
        follow_sync([], reducer=reducer, limits=agui.Limits())
