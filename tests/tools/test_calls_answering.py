"""Answering: every call gets one answer, in order, whatever its tool does, on asyncio and on trio."""

from __future__ import annotations

import threading
from datetime import date
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import pytest

from agui_core.errors import AGUIError, ApprovalError
from agui_core.protocol.content import ImagePart, TextPart, UrlSource
from agui_core.protocol.messages import ToolMessage
from agui_core.tools import Calls, ToolContext, ToolError, Toolset
from support.call_streams import answer_of, answers, call, feed, finished, kinds, one, run, started, thread
from support.clocks import PATIENCE

pytestmark = pytest.mark.anyio
SECRET = "/srv/app/keys.pem"


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
        tools.tool(name="tool", timeout=PATIENCE)(lambda: _raise(error))
    else:

        @tools.tool(name="tool", timeout=PATIENCE)
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


# --- what tools are given, and what they may be -------------------------------------------------------------------


async def test_a_sync_function_that_gives_an_awaitable_is_awaited() -> None:
    async def inner() -> str:
        await anyio.lowlevel.checkpoint()
        return "awaited"

    assert (await answer_of(one(lambda: inner(), timeout=PATIENCE))).content == "awaited"


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


# --- what tools and applications get wrong -------------------------------------------------------------------------


async def test_an_exception_passed_on_as_a_tool_error_gives_its_text_and_harms_no_sibling() -> None:
    tools = Toolset()

    @tools.tool
    async def look() -> str:
        """Look."""
        raise ToolError(ValueError("no such order"), 5)  # type: ignore[arg-type]

    @tools.tool
    async def other() -> str:
        """Something else."""
        await anyio.lowlevel.checkpoint()
        return "done"

    calls = thread(tools, run("r", call("a", "look"), call("b", "other")))
    await calls.answer()
    first, second = answers(calls).values()
    assert (first.content, first.error, second.content) == ("no such order", "5", "done")


async def test_a_function_that_raises_generator_exit_in_its_thread_has_failed() -> None:
    def leave() -> str:
        raise GeneratorExit("secret")

    answer = await answer_of(one(leave))
    assert answer.error is not msgspec.UNSET
    assert "secret" not in str(answer.content)


async def test_an_output_that_is_no_json_answers_nothing() -> None:
    tools = Toolset()
    tools.add({"name": "show", "description": "Show.", "parameters": {"type": "object"}}, effects=False)
    calls = thread(tools, run("r", call("a", "show")))
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        calls.set_output("a", object())
    with pytest.raises(TypeError, match="short text or None"):
        calls.set_output("a", "shown", error=5)  # type: ignore[arg-type]
    calls.set_output("a", "shown")
    assert answers(calls)["a"].content == "shown"
