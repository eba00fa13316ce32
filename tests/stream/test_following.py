"""`follow`: updates at the reader's pace, and every way to leave early, on asyncio and on trio."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import agui_core as agui
from agui_core.stream import follow
from support.clocks import PATIENCE, virtual_time
from support.events import FINISHED, STARTED, lines, say, sse, text, text_end, text_run
from support.folding import text_of
from support.watched import Watched

pytestmark = pytest.mark.anyio

QUICK = 0.001
"""An interval that a test does not notice."""


Seen = list[tuple[str, str]]


async def collect(run: Any, interval: float, seen: Seen | None = None) -> Seen:
    """The text and the status that each update shows; in `seen` also when an exception ends it."""
    seen = [] if seen is None else seen
    async for update in run.updates(interval):
        seen.append((text_of_update(update), update.status))
    return seen


def text_of_update(update: Any) -> str:
    return "".join(str(getattr(message, "content", "")) for message in update.messages)


# --- sources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, QUICK])
@pytest.mark.parametrize("size", [1, 7, 10_000])
@pytest.mark.parametrize("encode", [sse, lines])
async def test_bytes_cut_anywhere(encode: Any, size: int, interval: float) -> None:
    data = encode(text_run("Hé", "llo"))
    async with follow(Watched(data[at : at + size] for at in range(0, len(data), size))) as run:
        seen = await collect(run, interval)
    assert run.status == "finished"
    assert seen[-1] == ("Héllo", "finished")


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_text_dicts_and_structs(interval: float) -> None:
    events = text_run("a", "b")
    for items in ([sse(events).decode()], events, [agui.decode(line) for line in lines(events).splitlines()]):
        async with follow(Watched(items)) as run:
            assert (await collect(run, interval))[-1] == ("ab", "finished")


@pytest.mark.parametrize("interval", [0, QUICK])
@pytest.mark.parametrize(
    "pieces",
    [
        [b"\xef", b"\xbb\xbf", b" \n", b"\r\n", lines(text_run("a"))],
        [b"\xef\xbb\xbf" + sse(text_run("a"))],
        ["\ufeff", "\n", lines(text_run("a")).decode()],
        [b"", b":ping\n\n", sse(text_run("a"))],
        [lines(text_run("a")).rstrip(b"\n")],
    ],
)
async def test_the_first_character_tells_the_format(pieces: list[Any], interval: float) -> None:
    async with follow(Watched(pieces)) as run:
        assert (await collect(run, interval))[-1] == ("a", "finished")


async def test_blank_streams_are_nothing() -> None:
    async with follow(Watched([b" ", b"\n", "\r\n"])) as run:
        assert await collect(run, 0) == []
    assert run.status == "idle"


async def test_a_source_is_async() -> None:
    with pytest.raises(TypeError, match="follow_sync"):
        follow([b""])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="int"):
        follow(3)  # type: ignore[arg-type]


async def test_options_make_a_reducer() -> None:
    def renamed(events: Any) -> Any:
        for event in events:
            yield {**event, "delta": "seen"} if event["type"] == "TEXT_MESSAGE_CONTENT" else event

    async with follow(Watched(text_run("a")), middleware=[renamed]) as run:
        assert (await collect(run, 0))[-1][0] == "seen"
    async with follow(Watched([say(delta="a")]), policy="lenient") as run:
        await collect(run, 0)
    assert run.warnings == run.reducer.warnings != ()
    async with follow(Watched([sse(text_run("x" * 500))]), limits=agui.Limits(event_bytes=300)) as run:
        with pytest.raises(agui.LimitExceeded):
            await collect(run, 0)
    assert run.status == "rejected"


async def test_goes_on_with_a_reducer() -> None:
    reducer = agui.reduce(text_run("a"))
    async with follow(
        Watched([{**STARTED, "runId": "r2"}, text("n"), say("n", "b"), text_end("n")]), reducer=reducer
    ) as run:
        assert run.reducer is reducer
        updates = run.updates(0)
        await anext(updates)
        update = await anext(updates)
        assert update.changes.added == ("n",)
        assert update.changes.changed == ()
    with pytest.raises(ValueError, match="brings its own"):
        follow(Watched([]), reducer=reducer, policy="strict")


# --- every event ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
async def test_interval_0_shows_every_event(whole: bool) -> None:
    events = text_run("a", "b", "c")
    async with follow(Watched([sse(events)] if whole else events)) as run:
        seen = await collect(run, 0)
    assert [text for text, _ in seen] == ["", "", "a", "ab", "abc", "abc", "abc"]
    assert [status for _, status in seen] == ["running"] * 6 + ["finished"]


async def test_interval_0_pulls_only_when_asked() -> None:
    source = Watched(sse([event]) for event in text_run("a"))
    async with follow(source) as run:
        await anyio.wait_all_tasks_blocked()
        assert source.pulled == 0
        updates = run.updates(0)
        for pulled in (1, 2, 3):
            await anext(updates)
            await anyio.wait_all_tasks_blocked()
            assert source.pulled == pulled
    assert source.pulled_in == {source.closed_in} == {anyio.get_current_task().id}


async def test_comments_are_no_events() -> None:
    async with follow(Watched([b":\n\n", sse(text_run()[:1]), b":\n\n:\n\n", sse([FINISHED])])) as run:
        assert len(await collect(run, 0)) == 2


# --- updates -------------------------------------------------------------------------------------------------------


async def test_an_update_is_frozen_at_its_first_read() -> None:
    async with follow(Watched(text_run("a", "b"))) as run:
        updates = run.updates(0)
        await anext(updates)
        await anext(updates)
        early = await anext(updates)
        late = await anext(updates)
        assert text_of_update(early) == "ab"  # as it is when it is read
        messages, changes = early.messages, early.changes
        assert changes.added == ("m",)
        await anext(updates)
        last = await anext(updates)
        assert last.status == "finished"
        assert early.messages is messages
        assert early.status == "running"
        assert early.changes is changes
        assert late.changes.changed == ()  # everything was in an update that was read before


async def test_changes_that_nobody_read_are_in_the_next_update() -> None:
    async with follow(Watched([STARTED, text("a"), text_end("a"), text("b"), text_end("b"), FINISHED])) as run:
        updates = run.updates(0)
        for _ in range(5):
            update = await anext(updates)
        assert update.changes.added == ("a", "b")


# --- paced readers -------------------------------------------------------------------------------------------------


@virtual_time
async def test_a_stalled_source_does_not_delay_what_came() -> None:
    source = Watched([*text_run("a", "b")[:4]], stall=True)
    with anyio.fail_after(5):
        async with follow(source) as run:
            updates = run.updates(0.01)
            text = ""
            while text != "ab":
                text = text_of_update(await anext(updates))
    assert run.status == "truncated"
    assert source.closed
    assert source.closed_in in source.pulled_in


@virtual_time
async def test_updates_are_an_interval_apart() -> None:
    async def slow() -> AsyncIterator[Any]:
        for event in text_run(*"abcdefgh"):
            yield event
            await anyio.sleep(0.005)

    async with follow(slow()) as run:
        times = [(anyio.current_time(), update.status) async for update in run.updates(0.02)]
    for (earlier, _), (later, status) in itertools.pairwise(times):
        assert later - earlier >= 0.019 or status == "finished"
    assert 2 <= len(times) <= 8
    assert times[-1][1] == "finished"


@virtual_time
async def test_reads_at_most_an_interval_ahead() -> None:
    async def endless() -> AsyncIterator[Any]:
        nonlocal pulled
        yield STARTED
        yield text()
        while True:
            pulled += 1
            yield say(delta="x")
            await anyio.sleep(0.001)

    pulled = 0
    async with follow(endless()) as run:
        updates = run.updates(0.02)
        await anext(updates)
        await anyio.sleep(0.2)
        ahead = pulled
        await anyio.sleep(0.05)
        assert pulled == ahead  # nobody reads, so nothing is pulled
        await anext(updates)
        with anyio.fail_after(5):
            while pulled == ahead:
                await anyio.sleep(0.001)


async def test_nothing_is_pulled_before_somebody_reads() -> None:
    source = Watched(text_run("a"))
    async with follow(source) as run:
        await anyio.wait_all_tasks_blocked()
        assert source.pulled == 0
    assert run.status == "idle"
    assert not source.pulled_in


@virtual_time
async def test_readers_have_their_own_pace() -> None:
    async def slow() -> AsyncIterator[Any]:
        for event in text_run(*"abcdefgh"):
            yield event
            await anyio.sleep(0.004)

    counts: dict[float, list[str]] = {}

    async def read(reader: Any, interval: float) -> None:
        counts[interval] = [text_of_update(update) async for update in reader]

    async with follow(slow()) as run, anyio.create_task_group() as tasks:
        for interval in (0.001, 0.015, 60):
            tasks.start_soon(read, run.reader(interval), interval)
    assert [texts[-1] for texts in counts.values()] == ["abcdefgh"] * 3
    assert len(counts[0.001]) >= len(counts[0.015]) >= len(counts[60]) >= 1


async def test_a_late_reader_starts_from_the_conversation_so_far() -> None:
    async with follow(Watched(text_run("a")[:3], stall=True)) as run:
        updates = run.updates(QUICK)
        update = await anext(updates)
        while text_of_update(update) != "a":
            update = await anext(updates)
        late = await anext(run.reader())
        assert late.changes.added == ("m",)
        assert text_of_update(late) == "a"
    assert [update.status async for update in run.reader()] == ["truncated"]


# --- how it ends ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_the_sources_own_exception(interval: float) -> None:
    error = OSError("cable cut")
    source = Watched(text_run("a")[:3], error=error)
    seen: Seen = []
    async with follow(source) as run:
        with pytest.raises(OSError, match="cable cut") as caught:
            await collect(run, interval, seen)
        assert caught.value is error
    assert seen[-1] == ("a", "truncated")
    assert run.status == "truncated"


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_an_exception_is_raised_once(interval: float) -> None:
    async with follow(Watched([], error=OSError())) as run:
        updates = run.updates(interval)
        assert (await anext(updates)).status == "idle"
        with pytest.raises(OSError):
            await anext(updates)
        with pytest.raises(StopAsyncIteration):
            await anext(updates)


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_an_exception_after_the_end_leaves_the_run_finished(interval: float) -> None:
    async with follow(Watched(text_run("a"), error=OSError())) as run:
        with pytest.raises(OSError):
            await collect(run, interval)
    assert run.status == "finished"


@pytest.mark.parametrize("interval", [0, QUICK])
@pytest.mark.parametrize("bad", [say("unknown", "x"), sse([say("unknown", "x"), FINISHED])])
async def test_a_refusal_is_raised_after_an_update_that_shows_it(bad: Any, interval: float) -> None:
    source = Watched([*text_run("a")[:3], bad], stall=True)
    seen: Seen = []
    with anyio.fail_after(PATIENCE):
        async with follow(source) as run:
            with pytest.raises(agui.ProtocolError) as caught:
                await collect(run, interval, seen)
            assert source.closed
    assert caught.value.rule == "STR-2"
    assert caught.value is run.reducer.error
    assert seen[-1] == ("a", "rejected")
    assert run.status == "rejected"


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_what_is_no_event_is_refused(interval: float) -> None:
    async with follow(Watched([STARTED, 3])) as run:
        with pytest.raises(agui.DecodeError):
            await collect(run, interval)
    assert run.status == "rejected"


@pytest.mark.parametrize("interval", [0, QUICK])
@pytest.mark.parametrize("encode", [sse, lines])
async def test_a_stream_that_is_cut_is_truncated(encode: Any, interval: float) -> None:
    async with follow(Watched([encode(text_run("a", "b")[:4])[:-5]])) as run:
        assert (await collect(run, interval))[-1] == ("a", "truncated")


# --- leaving early -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_leaving_the_loop_early_closes_the_source(interval: float) -> None:
    source = Watched(text_run("a", "b"), stall=True)
    async with follow(source) as run:
        async for update in run.updates(interval):
            if text_of_update(update):
                break
    assert source.closed
    assert source.closed_in in source.pulled_in
    assert run.status in ("truncated", "finished")


async def test_break_in_the_middle_of_a_read() -> None:
    async with follow(Watched([sse(text_run("a", "b"))])) as run:
        updates = run.updates(0)
        async for update in updates:
            if text_of_update(update):
                break
    assert run.status == "truncated"
    with pytest.raises(StopAsyncIteration):
        await anext(updates)
    assert text_of(run.reducer) == "a"


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_an_exception_of_the_block_leaves_it_as_itself(interval: float) -> None:
    source = Watched(text_run("a"), stall=True)
    error = KeyError("mine")

    async def block() -> None:
        async with follow(source) as run:
            async for _ in run.updates(interval):
                raise error

    with pytest.raises(KeyError) as caught:
        await block()
    assert caught.value is error
    assert source.closed
    assert source.closed_in in source.pulled_in


async def test_an_exception_before_anything_was_read() -> None:
    source = Watched(text_run("a"))
    with pytest.raises(KeyError):
        async with follow(source):
            raise KeyError
    assert source.pulled == 0


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_cancelling_the_block(interval: float) -> None:
    source = Watched(text_run("a")[:3], stall=True)
    with anyio.CancelScope() as scope:
        async with follow(source) as run:
            async for update in run.updates(interval):
                if text_of_update(update):
                    scope.cancel()
    assert scope.cancelled_caught
    assert run.status == "truncated"
    assert text_of(run.reducer) == "a"
    assert source.closed
    assert source.closed_in in source.pulled_in


async def test_an_exception_wins_over_a_cancellation_at_the_same_time() -> None:
    async def block(scope: anyio.CancelScope) -> None:
        async with follow(Watched(text_run("a"), stall=True)) as run:
            await anext(run.updates(QUICK))
            scope.cancel()
            raise KeyError

    with anyio.CancelScope() as scope, pytest.raises(KeyError):
        await block(scope)


@virtual_time
@pytest.mark.parametrize("interval", [0, QUICK])
async def test_a_reader_that_is_cancelled_loses_nothing(interval: float) -> None:
    send, receive = anyio.create_memory_object_stream[Any](10)
    async with follow(receive) as run:
        updates = run.updates(interval)
        for event in text_run("a", "b"):
            with anyio.move_on_after(0.005):
                await anext(updates)
                await anext(updates)
            await send.send(event)
        send.close()
        async for _ in updates:
            pass
    assert (text_of(run.reducer), run.status) == ("ab", "finished")


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_cancellation_finds_the_reducer_at_an_event_boundary(interval: float) -> None:
    """Whenever the block is cancelled, what was pulled has been applied."""
    events = text_run(*"abcdef")
    for rounds in range(1, 40):
        source = Watched(events, stall=True)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as tasks:

                async def cancel(rounds: int = rounds, scope: anyio.CancelScope = scope) -> None:
                    for _ in range(rounds):
                        await anyio.lowlevel.checkpoint()
                    scope.cancel()

                tasks.start_soon(cancel)
                async with follow(source) as run:
                    await collect(run, interval)
        assert source.closed or not source.pulled
        assert run.reducer.version >= source.pulled
        assert text_of(run.reducer) == "abcdef"[: max(0, source.pulled - 2)]


@pytest.mark.parametrize("interval", [0, QUICK])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_source_that_waits_for_a_cancelled_task_has_failed(interval: float) -> None:
    """The cancellation is the source's, not ours: it is raised like any failure and does not cancel the block."""

    async def broken() -> AsyncIterator[Any]:
        yield STARTED
        task = asyncio.ensure_future(asyncio.sleep(10))
        asyncio.get_running_loop().call_soon(task.cancel)
        await task

    async with follow(broken()) as run:
        with pytest.raises(asyncio.CancelledError):
            await collect(run, interval)
        await anyio.lowlevel.checkpoint()
    assert run.status == "truncated"


# --- closing -------------------------------------------------------------------------------------------------------


class Closing:
    """A source whose `aclose` does what it is told."""

    def __init__(self, items: list[Any], close: Any) -> None:
        self.items = iter(items)
        self.close = close

    def __aiter__(self) -> Closing:
        return self

    async def __anext__(self) -> Any:
        for item in self.items:
            return item
        return await anyio.sleep_forever()

    async def aclose(self) -> None:
        await self.close()


@virtual_time
@pytest.mark.parametrize("interval", [0, QUICK])
async def test_closing_is_shielded_but_not_for_ever(interval: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agui_core.stream.source.CLOSING", 0.02)
    done = []

    async def slowly() -> None:
        await anyio.sleep(0.001)
        done.append("slowly")

    async def never() -> None:
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        for close in (slowly, never):
            with anyio.move_on_after(0.01) as scope:
                async with follow(Closing([STARTED], close)) as run:
                    await collect(run, interval)
            assert scope.cancelled_caught
    assert done == ["slowly"]


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_what_closing_raises_does_not_hide_the_blocks_exception(interval: float) -> None:
    async def fail() -> None:
        raise OSError("closing")

    async def block(error: Exception | None) -> None:
        async with follow(Closing([STARTED], fail)) as run:
            await anext(run.updates(interval))
            if error is not None:
                raise error

    with pytest.raises(OSError, match="closing"):
        await block(None)
    with pytest.raises(KeyError):
        await block(KeyError())


async def test_aclose_closes_in_the_readers_task() -> None:
    source = Watched(text_run("a"), stall=True)

    async def read(updates: Any) -> None:
        await anext(updates)
        await updates.aclose()
        assert source.closed_in == anyio.get_current_task().id

    async with follow(source) as run, anyio.create_task_group() as tasks:
        tasks.start_soon(read, run.updates(0))
    assert source.pulled_in == {source.closed_in}
    assert run.status == "truncated"


async def test_a_reader_that_gave_up_holds_nobody_up() -> None:
    async with follow(Watched(text_run("a"))) as run:
        given_up = run.reader(60)
        await anext(given_up)
        await given_up.aclose()
        assert [text_of_update(update) async for update in run.reader(QUICK)][-1] == "a"


# --- wrong use -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [0, QUICK])
async def test_two_tasks_in_one_iterator(interval: float) -> None:
    async with follow(Watched([], stall=True)) as run, anyio.create_task_group() as tasks:
        updates = run.updates(interval)

        async def wait() -> None:
            await anext(updates)

        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.BusyResourceError):
            await anext(updates)
        tasks.cancel_scope.cancel()


async def test_misuse_is_told_at_once() -> None:
    run = follow(Watched([]))
    with pytest.raises(RuntimeError, match="inside its block"):
        run.updates()
    async with run:
        run.updates(0)
        with pytest.raises(RuntimeError, match="once per run"):
            run.updates(0)
        with pytest.raises(RuntimeError, match="updates\\(interval=0\\)"):
            run.reader()
        with pytest.raises(ValueError, match="above 0"):
            run.reader(0)
        for interval in (-1, float("nan")):
            with pytest.raises(ValueError, match="number of seconds"):
                run.reader(interval)
    with pytest.raises(RuntimeError, match="entered once"):
        async with run:
            pass
    async with follow(Watched([])) as run:
        run.reader()
        with pytest.raises(RuntimeError, match="cannot share"):
            run.updates(0)
