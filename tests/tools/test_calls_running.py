"""Running: how many calls run at a time, in which order they are answered, timeouts, cancelling, abandoned threads."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agui_core.errors import AGUIError
from agui_core.reducer import Reducer
from agui_core.tools import Calls, Toolset
from support.call_streams import answer_of, answers, call, feed, kinds, one, run, thread
from support.clocks import PATIENCE, VirtualLoop, let_pass, still_time, virtual_time

pytestmark = pytest.mark.anyio
SECRET = "/srv/app/keys.pem"


def _raise(error: BaseException) -> Any:
    raise error


# --- order and concurrency ----------------------------------------------------------------------------------------


async def test_answers_come_in_call_order_as_soon_as_all_before_them_are_there() -> None:
    tools = Toolset()
    release = [anyio.Event() for _ in range(3)]
    done = [anyio.Event() for _ in range(3)]

    @tools.tool
    async def step(number: int) -> str:
        await release[number].wait()
        done[number].set()
        return str(number)

    calls = thread(tools, run("r", *(call(f"c{n}", "step", f'{{"number": {n}}}') for n in range(3))))
    seen = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        for number in (1, 0, 2):
            release[number].set()
            await done[number].wait()
            await anyio.wait_all_tasks_blocked()
            seen.append((list(answers(calls)), calls.state("c1")))
    assert seen == [
        ([], "output-available"),
        (["c0", "c1"], "output-available"),
        (["c0", "c1", "c2"], "output-available"),
    ]


@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.parametrize("threaded", [True, False])
async def test_no_more_calls_run_at_a_time_than_the_limit(limit: int, threaded: bool) -> None:
    tools = Toolset()
    lock, running, peak = threading.Lock(), [0], [0]

    def enter() -> None:
        with lock:
            running[0] += 1
            peak[0] = max(peak[0], running[0])

    def leave() -> None:
        with lock:
            running[0] -= 1

    if threaded:
        meeting = threading.Barrier(limit, timeout=PATIENCE)

        @tools.tool(name="tool")
        def tool() -> None:
            enter()
            meeting.wait()
            leave()
    else:

        @tools.tool(name="tool")
        async def async_tool() -> None:
            enter()
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            leave()

    calls = thread(tools, run("r", *(call(f"c{n}", "tool") for n in range(4 * limit))), limit=limit)
    assert len(await calls.answer()) == 4 * limit
    assert peak[0] == limit
    assert set(kinds(calls).values()) == {"ok"}


def test_limits_that_make_no_sense_are_refused() -> None:
    for options in ({"limit": 0}, {"timeout": 0}, {"timeout": float("nan")}, {"timeout": float("inf")}):
        with pytest.raises(ValueError, match=next(iter(options))):
            thread(Toolset(), **options)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"reducer": Reducer}, "reducer is <class .*, but takes a Reducer"),
        ({"toolset": None}, "toolset is None, but takes a Toolset"),
        ({"limit": "32"}, "limit is '32', but takes a whole number, 1 at least"),
        ({"timeout": True}, "timeout is True, but takes seconds above 0, or None"),
        ({"expose_errors": "false"}, "expose_errors is 'false', but takes True or False"),
    ],
)
def test_options_of_a_wrong_type_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError, match=text):
        Calls(**{"reducer": Reducer(), "toolset": Toolset(), **options})


# --- timeouts -----------------------------------------------------------------------------------------------------


@virtual_time
async def test_an_async_tool_is_stopped_at_its_timeout() -> None:
    stopped = []

    async def tool() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)

    answer = await answer_of(one(tool, timeout=0.01))
    assert answer.content == "The tool tool took longer than 0.01 s: it was stopped."
    assert answer.error == "tool took longer than 0.01 s"
    assert answer.metadata == {"agui_core.answer": "timeout"}
    assert stopped == [True]


@virtual_time
async def test_a_tools_own_timeout_error_is_told_apart_from_our_timeout() -> None:
    async def own() -> None:
        with anyio.fail_after(0):
            await anyio.sleep_forever()

    async def in_answer_to_ours() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            raise TimeoutError("mine")

    async def in_time_after_all() -> str:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(0.03)
            return "made it"

    assert (await answer_of(one(own, timeout=30))).metadata == {"agui_core.answer": "error"}
    assert (await answer_of(one(in_answer_to_ours, timeout=0.01))).metadata == {"agui_core.answer": "timeout"}
    assert (await answer_of(one(in_time_after_all, timeout=0.01))).content == "made it"


@virtual_time
async def test_a_timeout_for_tools_without_one_of_their_own() -> None:
    tools = Toolset()
    tools.tool(name="patient", timeout=30)(anyio.lowlevel.checkpoint)
    tools.tool(name="hanging")(anyio.sleep_forever)
    calls = thread(tools, run("r", call("a", "patient"), call("b", "hanging")), timeout=0.02)
    await calls.answer()
    assert kinds(calls) == {"a": "ok", "b": "timeout"}


@still_time
async def test_a_thread_is_abandoned_at_the_timeout_and_holds_up_nobody(gate: threading.Event) -> None:
    tools = Toolset()

    @tools.tool(timeout=0.02)
    def hang() -> str:
        anyio.from_thread.run_sync(let_pass, 0.02)
        gate.wait(PATIENCE)
        return "too late"

    tools.tool(name="quick")(lambda: "quick")
    calls = thread(tools, run("r", call("a", "hang"), call("b", "quick")), limit=1)
    assert await calls.answer() == ("a", "b")
    assert answers(calls)["a"].content == (
        "The tool hang took longer than 0.02 s: it goes on in the background and may still take effect."
    )
    assert kinds(calls) == {"a": "timeout", "b": "ok"}
    assert not gate.is_set()


# --- cancelling ---------------------------------------------------------------------------------------------------


async def test_cancelling_answers_what_began_and_leaves_the_rest_pending() -> None:
    tools = Toolset()

    @tools.tool
    async def step(n: int) -> str:
        if n == 1:
            return "done"
        await anyio.sleep_forever()
        raise AssertionError

    calls = thread(tools, run("r", *(call(f"c{n}", "step", f'{{"n": {n}}}') for n in range(5))), limit=3)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await anyio.wait_all_tasks_blocked()
        assert answers(calls) == {}
        tasks.cancel_scope.cancel()
    # c1 was finished; c0, c2 and c3 (which got c1's slot) had begun.
    assert kinds(calls) == {"c0": "cancelled", "c1": "ok", "c2": "cancelled", "c3": "cancelled"}
    assert answers(calls)["c0"].content == "cancelled: it may have taken effect"
    assert answers(calls)["c0"].error == "cancelled while it ran"
    assert calls.reducer.run.pending_tool_calls == ("c4",)
    assert calls.state("c4") == "input-available"


async def test_cancelling_abandons_threads_and_says_so(gate: threading.Event) -> None:
    began = threading.Event()

    def tool() -> None:
        began.set()
        gate.wait(PATIENCE)

    calls = one(tool, name="tool")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        assert await anyio.to_thread.run_sync(began.wait, PATIENCE)
        tasks.cancel_scope.cancel()
    assert kinds(calls) == {"a": "cancelled"}
    assert not gate.is_set()


async def test_a_tool_that_finishes_in_spite_of_the_cancelling_has_finished() -> None:
    async def tool() -> str:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            return "saved"
        return "never"

    calls = one(tool)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert answers(calls)["a"].content == "saved"


async def test_a_tool_that_fails_while_it_is_cancelled_is_cancelled() -> None:
    async def tool() -> None:
        async with anyio.create_task_group() as inner:
            inner.start_soon(anyio.sleep_forever)
            try:
                await anyio.sleep_forever()
            finally:
                raise ValueError(SECRET)

    calls = one(tool)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert kinds(calls) == {"a": "cancelled"}


async def test_cancelled_before_it_began_nothing_happens() -> None:
    ran = []
    calls = one(lambda: ran.append(1))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await calls.answer()
    assert scope.cancelled_caught
    assert ran == []
    assert answers(calls) == {}
    assert await calls.answer() == ("a",)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancellation_that_a_tool_raises_itself_is_its_failure() -> None:
    import asyncio

    async def tool() -> None:
        task = asyncio.ensure_future(asyncio.sleep(10))
        task.cancel()
        await task

    tools = Toolset()
    tools.tool(name="tool", timeout=PATIENCE)(tool)
    tools.tool(name="untimed")(tool)
    tools.tool(name="threaded")(lambda: _raise(asyncio.CancelledError(SECRET)))
    calls = thread(tools, run("r", call("a", "tool"), call("b", "untimed"), call("c", "threaded")), limit=1)
    assert await calls.answer() == ("a", "b", "c")
    assert set(kinds(calls).values()) == {"error"}


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"loop_factory": VirtualLoop})])
async def test_asyncios_own_way_to_cancel_does_the_same() -> None:
    import asyncio

    calls = one(anyio.sleep_forever)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(calls.answer(), 0.02)
    assert kinds(calls) == {"a": "cancelled"}


async def test_cancelled_before_its_thread_began_a_call_stays_pending() -> None:
    ran = []
    calls = one(lambda: ran.append(1), effects=True)
    calls.approve("a")
    with anyio.CancelScope() as scope:

        async def keep() -> None:
            scope.cancel()

        await calls.answer(before_effect=keep)
    assert scope.cancelled_caught
    assert ran == []
    assert answers(calls) == {}
    assert await calls.answer() == ("a",)
    assert kinds(calls) == {"a": "ok"}
    assert ran == [1]


@pytest.mark.parametrize("effects", [True, False])
async def test_a_call_that_changes_in_the_queue_is_not_run(effects: bool) -> None:
    tools = Toolset()
    ran = []
    calls: Calls

    @tools.tool(effects=effects, approval="never")
    async def step(n: int) -> None:
        ran.append(n)
        if n == 1 and len(ran) == 1:
            again = [*call("b", "step", ""), {"type": "RUN_FINISHED", "threadId": "t", "runId": "r2"}]
            feed(calls.reducer, {"type": "RUN_STARTED", "threadId": "t", "runId": "r2"}, again if effects else [])

    calls = thread(tools, run("r", call("a", "step", '{"n": 1}'), call("b", "step", '{"n": 2}')), limit=1)
    if effects:
        await calls.answer()
    else:
        with pytest.raises(AGUIError, match="a run began"):
            await calls.answer()
    assert ran == [1]
    assert calls.state("b") == "input-available"
