"""Answering: every call gets one answer, in order, whatever its tool does, on asyncio and on trio."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from datetime import date
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from call_streams import answers, call, feed, finished, kinds, run, started, thread

from agui_core.errors import AGUIError, ApprovalError
from agui_core.protocol.content import ImagePart, TextPart, UrlSource
from agui_core.protocol.messages import ToolMessage
from agui_core.tools import Calls, ToolContext, ToolError, Toolset

pytestmark = pytest.mark.anyio
SECRET = "/srv/app/keys.pem"


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Holds threads until it is set, which it is at the end at the latest."""
    event = threading.Event()
    yield event
    event.set()


def one(function: Any, *, arguments: str = "{}", name: str = "tool", limit: int = 32, **options: Any) -> Calls:
    """A finished run that calls one tool."""
    tools = Toolset()
    tools.tool(name=name, **options)(function)
    return thread(tools, run("r", call("a", name, arguments)), limit=limit)


async def answer_of(calls: Calls) -> ToolMessage:
    assert await calls.answer() == ("a",)
    answer = answers(calls)["a"]
    assert answer.content, "content is never empty"
    return answer


# --- what an answer holds -----------------------------------------------------------------------------------------


async def test_an_answer_is_a_tool_message_behind_its_call_with_a_fresh_id() -> None:
    calls = one(lambda: "done")
    answer = await answer_of(calls)
    assert answer == ToolMessage(id="r:a:answer", tool_call_id="a", content="done", metadata={"agui_core.answer": "ok"})
    assert [message.role for message in calls.reducer.messages] == ["assistant", "tool"]
    assert calls.state("a") == "output-available"
    assert calls.reducer.run.pending_tool_calls == ()
    assert await calls.answer() == ()


class Point(msgspec.Struct):
    x: int
    when: date


PICTURE = ImagePart(source=UrlSource(value="https://example.org/cat.png"))
WIRE_PICTURE = {"type": "image", "source": {"type": "url", "value": "https://example.org/cat.png"}}


@pytest.mark.parametrize(
    ("result", "content"),
    [
        ("text", "text"),
        ("", "(no output)"),
        (" ", " "),
        ("\ud83d\ude00 and \ud83d", "\U0001f600 and \N{REPLACEMENT CHARACTER}"),
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        ({"half": "\ud83d"}, '{"half":"\N{REPLACEMENT CHARACTER}"}'),
        ([], "[]"),
        ([{"type": "hologram"}], '[{"type":"hologram"}]'),
        ([{"type": "text"}], '[{"type":"text"}]'),
        (Point(x=1, when=date(2024, 5, 6)), '{"x":1,"when":"2024-05-06"}'),
        (10**40, str(10**40)),
        (PICTURE, (PICTURE,)),
        (TextPart(text="\ud83d"), (TextPart(text="\N{REPLACEMENT CHARACTER}"),)),
        ([TextPart(text="Look:"), PICTURE], (TextPart(text="Look:"), PICTURE)),
        ([{"type": "text", "text": "Look:"}, WIRE_PICTURE], (TextPart(text="Look:"), PICTURE)),
    ],
)
async def test_text_and_content_parts_pass_through_and_the_rest_is_written_as_json(result: Any, content: Any) -> None:
    answer = await answer_of(one(lambda: result))
    assert answer.content == content
    assert answer.error is msgspec.UNSET
    assert answer.metadata == {"agui_core.answer": "ok"}


def _cycle() -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return loop


@pytest.mark.parametrize("result", [object(), {object(): 1}, _cycle(), {(1, 2): 3}, 1j])
async def test_a_result_that_is_no_json_is_a_failure(result: Any) -> None:
    answer = await answer_of(one(lambda: result))
    assert answer.content == "The tool tool failed: its result cannot be written as JSON"
    assert answer.error == "tool failed"


def _raise(error: BaseException) -> Any:
    raise error


async def _raise_soon(error: BaseException) -> Any:
    await anyio.lowlevel.checkpoint()
    raise error


async def _raise_at_once(error: BaseException) -> Any:
    raise error


FAILURES: list[BaseException] = [
    ValueError(SECRET),
    FileNotFoundError(2, "No such file", SECRET),
    TimeoutError(SECRET),
    StopIteration(SECRET),
    SystemExit(SECRET),
    ExceptionGroup(SECRET, [ValueError(SECRET)]),
    BaseExceptionGroup(SECRET, [SystemExit(SECRET)]),
]


@pytest.mark.parametrize("raising", [_raise, _raise_soon, _raise_at_once])
@pytest.mark.parametrize("error", FAILURES, ids=lambda error: type(error).__name__)
async def test_a_failure_is_an_answer_and_keeps_its_details_to_itself(raising: Any, error: BaseException) -> None:
    tools = Toolset()
    if raising is _raise:
        tools.tool(name="tool", timeout=5)(lambda: _raise(error))
    else:

        @tools.tool(name="tool", timeout=5)
        async def tool() -> Any:
            await raising(error)

    calls = thread(tools, run("r", call("a", "tool")))
    answer = await answer_of(calls)
    assert answer.content == "The tool tool failed and gave no result."
    assert answer.error == "tool failed"
    assert answer.metadata == {"agui_core.answer": "error"}
    assert SECRET not in repr(calls.reducer.messages)
    assert calls.state("a") == "output-error"


async def test_details_are_shown_where_the_application_asks_for_them() -> None:
    class Unreadable(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    tools = Toolset()
    tools.tool(name="long")(lambda: _raise(ValueError("x" * 10_000)))
    tools.tool(name="unreadable")(lambda: _raise(Unreadable()))
    calls = thread(tools, run("r", call("a", "long"), call("b", "unreadable")), expose_errors=True)
    await calls.answer()
    first, second = answers(calls).values()
    assert first.content.startswith("The tool long failed: ValueError: xxxx")
    assert len(first.content) < 2_100
    assert first.error == "long failed"
    assert second.content == "The tool unreadable failed: Unreadable"


async def test_a_tool_words_its_own_failure() -> None:
    answer = await answer_of(one(lambda: _raise(ToolError("no row 7 in table x", "That order is not known."))))
    assert answer.content == "no row 7 in table x"
    assert answer.error == "That order is not known."
    assert answer.metadata == {"agui_core.answer": "error"}
    silent = await answer_of(one(lambda: _raise(ToolError(""))))
    assert silent.content == "The tool tool failed."
    assert silent.error == "tool failed"


@pytest.mark.parametrize(
    ("name", "arguments", "content", "error"),
    [
        ("tool", "{", "Not run: the arguments are no JSON document: character 1: ", "broken arguments"),
        ("tool", "{}{}", "Not run: the arguments are no JSON document: character 2: ", "broken arguments"),
        ("tool", "[1]", "Not run: the arguments are no JSON object: [1]", "the arguments do not fit"),
        ("tool", '{"n": "x"}', 'Not run: argument n: expected int, got "x"', "the arguments do not fit"),
        ("tool", '{"m": 1}', "Not run: argument m is unknown", "the arguments do not fit"),
        ("tool", '{"n": 1, "n": 2}', 'Not run: the key "n" occurs twice', "the arguments do not fit"),
        ("withdrawn", "{}", "Not run: there is no tool named withdrawn here.", "unknown tool"),
    ],
)
async def test_what_cannot_run_is_answered_and_not_run(name: str, arguments: str, content: str, error: str) -> None:
    ran = []
    tools = Toolset()

    @tools.tool(name="tool")
    def tool(n: int = 0) -> None:
        ran.append(n)

    tools.tool(name="withdrawn")(lambda: ran.append(1))
    calls = thread(tools)
    calls.next_input(run_id="r2", tools=tools.filter(["tool"]))
    feed(calls.reducer, run("r2", call("a", name, arguments)))
    answer = await answer_of(calls)
    assert str(answer.content).startswith(content)
    assert answer.error == error
    assert answer.metadata == {"agui_core.answer": "invalid"}
    assert ran == []


async def test_arguments_cut_off_are_not_arguments() -> None:
    tools = Toolset()
    tools.tool(name="tool")(lambda: "ran")
    calls = thread(tools, [*run("r", call("a", "tool"))][:-1])
    feed(calls.reducer, {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
    feed(calls.reducer, started("r2"), call("a", "tool", '{"ci'), {"type": "RUN_ERROR", "message": "gone"})
    assert await calls.answer() == ()


async def test_a_call_outside_the_agents_own_list_is_answered_and_not_run() -> None:
    ran = []
    tools = Toolset()
    tools.tool(name="tool")(lambda: ran.append(1))
    outcome = {"type": "success", "pendingToolCallIds": ["b", "ghost"]}
    calls = thread(tools, run("r", call("a", "tool"), call("b", "tool"), outcome=outcome))
    assert await calls.answer() == ("a", "b")
    assert kinds(calls) == {"a": "invalid", "b": "ok"}
    assert len(ran) == 1


async def test_the_agents_own_calls_are_left_alone_ft_9() -> None:
    calls = one(lambda: "mine")
    feed(calls.reducer, run("r2", call("b", "agents_own"), call("c", "tool"), call("d", "")))
    assert await calls.answer() == ("c",)
    assert list(answers(calls)) == ["c"]


@pytest.mark.parametrize(
    "ending",
    [
        [{"type": "RUN_ERROR", "message": "gone"}],
        [{"type": "RUN_FINISHED", "threadId": "t", "runId": "r", "outcome": {"type": "cancelled"}}],
        None,
    ],
)
async def test_calls_of_a_run_that_ended_badly_are_not_run_ft_7(ending: list[Any] | None) -> None:
    tools = Toolset()
    ran = []
    tools.tool(name="tool")(lambda: ran.append(1))
    calls = thread(tools, started("r"), call("a", "tool"))
    calls.reducer.end() if ending is None else feed(calls.reducer, ending)
    assert await calls.answer() == ()
    assert ran == []
    assert answers(calls) == {}


async def test_nothing_is_answered_while_a_run_goes_on_or_twice_at_once() -> None:
    calls = one(lambda: "x")
    feed(calls.reducer, started("r2"))
    with pytest.raises(AGUIError, match=r"a run is going on.*\[FT-7\]"):
        await calls.answer()

    entered, leave = anyio.Event(), anyio.Event()

    async def tool() -> str:
        entered.set()
        await leave.wait()
        return "once"

    calls = one(tool)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await entered.wait()
        with pytest.raises(AGUIError, match="being answered already"):
            await calls.answer()
        leave.set()
    assert kinds(calls) == {"a": "ok"}


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
        meeting = threading.Barrier(limit, timeout=10)

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


# --- timeouts -----------------------------------------------------------------------------------------------------


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


async def test_a_timeout_for_tools_without_one_of_their_own() -> None:
    tools = Toolset()
    tools.tool(name="patient", timeout=30)(anyio.lowlevel.checkpoint)
    tools.tool(name="hanging")(anyio.sleep_forever)
    calls = thread(tools, run("r", call("a", "patient"), call("b", "hanging")), timeout=0.02)
    await calls.answer()
    assert kinds(calls) == {"a": "ok", "b": "timeout"}


async def test_a_thread_is_abandoned_at_the_timeout_and_keeps_its_slot_until_it_ends(gate: threading.Event) -> None:
    tools = Toolset()
    second_ran = threading.Event()

    @tools.tool(timeout=0.02)
    def hang() -> str:
        gate.wait(10)
        return "too late"

    @tools.tool
    def quick() -> str:
        second_ran.set()
        return "quick"

    calls = thread(tools, run("r", call("a", "hang"), call("b", "quick")), limit=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        while not answers(calls):
            await anyio.sleep(0.005)
        answer = answers(calls)["a"]
        assert answer.content == (
            "The tool hang took longer than 0.02 s: it goes on in the background and may still take effect."
        )
        await anyio.sleep(0.03)
        assert not second_ran.is_set(), "the abandoned thread gave up its slot"
        gate.set()
    assert kinds(calls) == {"a": "timeout", "b": "ok"}


async def test_the_slots_of_abandoned_threads_count_in_the_next_pass_too(gate: threading.Event) -> None:
    tools = Toolset()
    tools.tool(name="hang", timeout=0.02)(lambda: gate.wait(10))
    tools.tool(name="quick")(lambda: "quick")
    calls = thread(tools, run("r", call("a", "hang")), limit=1)
    await calls.answer()
    calls.next_input(run_id="r2")
    feed(calls.reducer, run("r2", call("b", "quick")))
    with anyio.move_on_after(0.03) as scope:
        await calls.answer()
    assert scope.cancelled_caught
    assert kinds(calls) == {"a": "timeout"}
    gate.set()
    assert await calls.answer() == ("b",)
    assert kinds(calls) == {"a": "timeout", "b": "ok"}


async def test_other_slots_serve_while_a_thread_is_abandoned(gate: threading.Event) -> None:
    tools = Toolset()
    tools.tool(name="hang", timeout=0.02)(lambda: gate.wait(10))
    tools.tool(name="quick")(anyio.lowlevel.checkpoint)
    calls = thread(tools, run("r", call("a", "hang"), *(call(f"c{n}", "quick") for n in range(20))), limit=2)
    assert len(await calls.answer()) == 21
    assert not gate.is_set()


async def test_nothing_waits_for_threads_that_have_ended(gate: threading.Event) -> None:
    tools = Toolset()
    tools.tool(name="hang", timeout=0.02)(lambda: gate.wait(10))
    tools.tool(name="quick")(anyio.lowlevel.checkpoint)
    calls = thread(tools, run("r", call("a", "hang"), *(call(f"c{n}", "quick") for n in range(9))), limit=1)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        while not answers(calls):
            await anyio.sleep(0.005)
        gate.set()
    assert len(answers(calls)) == 10
    while calls._slots.abandoned:
        await anyio.sleep(0.001)
    waiting = [thread for thread in threading.enumerate() if _is_in(thread, "wait", "slots.py")]
    assert waiting == []


def _is_in(thread: threading.Thread, function: str, file: str) -> bool:
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code.co_name == function and frame.f_code.co_filename.endswith(file):
            return True
        frame = frame.f_back
    return False


# --- what tools are given, and what they may be -------------------------------------------------------------------


async def test_a_sync_function_that_gives_an_awaitable_is_awaited() -> None:
    async def inner() -> str:
        await anyio.lowlevel.checkpoint()
        return "awaited"

    assert (await answer_of(one(lambda: inner(), timeout=5))).content == "awaited"


async def test_sync_tools_run_in_threads_of_their_own() -> None:
    assert (await answer_of(one(lambda: threading.get_ident()))).content != str(threading.get_ident())


async def test_a_tool_may_know_its_call_and_report_how_far_it_is() -> None:
    tools = Toolset()

    @tools.tool
    async def walk(steps: int, context: ToolContext) -> list[Any]:
        for step in range(steps):
            await context.progress(step)
        return [context.call_id, context.thread_id, context.run_id, context.state]

    @tools.tool
    def walk_in_thread(context: ToolContext) -> str:
        anyio.from_thread.run(context.progress, "half")
        return context.call_id

    state = {"type": "STATE_SNAPSHOT", "snapshot": {"mood": "good"}}
    calls = thread(tools, run("r", state, call("a", "walk", '{"steps": 2}'), call("b", "walk_in_thread")))
    reports = []

    async def progress(id: str, value: Any) -> None:
        reports.append((id, value))
        raise RuntimeError("a watcher that fails stops nothing")

    assert await calls.answer(progress=progress) == ("a", "b")
    assert sorted(reports, key=str) == [("a", 0), ("a", 1), ("b", "half")]
    assert answers(calls)["a"].content == '["a","t","r",{"mood":"good"}]'


async def test_schema_only_tools_take_any_handler() -> None:
    tools = Toolset()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools.add({"name": "dynamic", "description": "", "parameters": schema}, lambda args: args["n"] + 1, effects=False)
    calls = thread(tools, run("r", call("a", "dynamic", '{"n": 41}'), call("b", "dynamic", '{"n": "41"}')))
    await calls.answer()
    assert kinds(calls) == {"a": "ok", "b": "invalid"}
    assert answers(calls)["a"].content == "42"


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
        gate.wait(10)

    calls = one(tool, name="tool")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        while not began.is_set():
            await anyio.sleep(0.005)
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
    tools.tool(name="tool", timeout=5)(tool)
    tools.tool(name="untimed")(tool)
    tools.tool(name="threaded")(lambda: _raise(asyncio.CancelledError(SECRET)))
    calls = thread(tools, run("r", call("a", "tool"), call("b", "untimed"), call("c", "threaded")), limit=1)
    assert await calls.answer() == ("a", "b", "c")
    assert set(kinds(calls).values()) == {"error"}


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncios_own_way_to_cancel_does_the_same() -> None:
    import asyncio

    calls = one(anyio.sleep_forever)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(calls.answer(), 0.02)
    assert kinds(calls) == {"a": "cancelled"}


# --- others who answer --------------------------------------------------------------------------------------------


async def test_an_answer_that_came_meanwhile_stands_and_ours_is_reported() -> None:
    calls: Calls

    async def tool() -> str:
        calls.reducer.add({"id": "x", "role": "tool", "toolCallId": "a", "content": "first"})
        return "second"

    calls = one(tool)
    assert await calls.answer() == ()
    assert answers(calls)["a"].content == "first"
    assert [str(warning) for warning in calls.warnings] == [
        "tool call 'a' has an answer already; the second one was dropped [FT-5]"
    ]


async def test_answers_are_held_while_a_run_goes_on_that_should_not_have_begun() -> None:
    calls: Calls

    runs = iter(["r2"])

    async def tool() -> str:
        for run_id in runs:
            feed(calls.reducer, started(run_id))
        return "late"

    calls = one(tool)
    with pytest.raises(AGUIError, match="a run began while its calls were being answered"):
        await calls.answer()
    assert calls.state("a") == "output-available"
    assert answers(calls) == {}
    feed(calls.reducer, call("b", "tool"), finished("r2"))
    assert await calls.answer() == ("a", "b")
    assert answers(calls)["a"].content == "late"


async def test_the_application_answers_by_hand_once() -> None:
    tools = Toolset()
    tools.add({"name": "navigate", "description": ""}, effects=False)
    tools.add({"name": "pay", "description": ""})
    tools.tool(name="tool")(lambda: "x")
    groups = [call("a", "navigate"), call("b", "navigate"), call("c", "pay"), call("d", "tool"), call("e", "agents")]
    calls = thread(tools, run("r", *groups))
    assert await calls.answer() == ("d",)
    calls.set_output("a", {"page": "/cart"})
    calls.set_output("b", "nowhere to go", error="No such page")
    assert calls.state("a") == "output-available"
    assert calls.state("b") == "output-error"
    for id, problem in (("a", "answered already"), ("d", "answered already"), ("c", "takes no answer by hand")):
        with pytest.raises(ApprovalError, match=problem):
            calls.set_output(id, "again")
    with pytest.raises(ApprovalError, match="left no tool call 'ghost'"):
        calls.set_output("ghost", "x")
    calls.approve("c", {"amount": 7})
    assert await calls.answer() == ()
    calls.set_output("c", "paid")
    assert answers(calls)["c"].content == 'A person changed the arguments; it ran with {"amount":7}\n\npaid'
    calls.set_output("e", "the agent's own, by choice (FT-9)")
    assert kinds(calls) == {"d": "ok", "a": "ok", "b": "error", "c": "ok", "e": "ok"}
