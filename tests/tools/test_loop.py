"""The bounded tool loop: what it reads as a decision, what it runs and never runs, and what goes out."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.protocol import messages as m
from agui_core.protocol.content import DataSource, ImagePart
from agui_core.protocol.run import ToolDeclaration
from agui_core.tools import Calls, ToolContext, ToolError, Toolset
from agui_core.tools.decision import normalise
from agui_core.tools.loop import ToolLoop
from support.clocks import PATIENCE
from support.loop_runs import adding, call, given, go, scripted

pytestmark = pytest.mark.anyio
SECRET = "/srv/app/keys.pem"

# --- deciding -----------------------------------------------------------------------------------------------------


async def test_a_final_answer_is_a_run_with_one_message() -> None:
    went = await go(ToolLoop(scripted("Hello."), Toolset()))
    assert went.types == [
        "RUN_STARTED",
        "TEXT_MESSAGE_START",
        "TEXT_MESSAGE_CONTENT",
        "TEXT_MESSAGE_END",
        "RUN_FINISHED",
    ]
    assert went.result.status == "ok"
    assert went.result.final_output == "Hello."
    assert (went.result.tool_results, went.result.tool_errors, went.result.tool_call_count) == ((), (), 0)
    assert went.result.metadata == {"thread_id": "t", "run_id": "r", "decisions": 1}
    assert went.reducer.status == "finished"
    assert went.reducer.run.result["status"] == "ok"


async def test_a_call_and_then_an_answer() -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted(call(a=1, b=2), lambda messages: f"It is {messages[-1].content}."), tools))
    assert went.types[1:5] == ["TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "TOOL_CALL_RESULT"]
    assert sums == [(1, 2)]
    assert went.result.final_output == "It is 3."
    (observation,) = went.result.tool_results
    assert (observation.name, observation.arguments, observation.result, observation.status) == (
        "add",
        {"a": 1, "b": 2},
        "3",
        "ok",
    )
    assert went.reducer.run.result["tool_results"][0]["result"] == "3"
    assert [message.role for message in went.reducer.messages] == ["user", "assistant", "tool", "assistant"]


FUNCTION = {"name": "add", "arguments": '{"a":1}'}
WIRE_CALL = {"id": "c", "type": "function", "function": FUNCTION}
STRUCT = m.ToolCall(id="c", type="function", function=m.FunctionCall(**FUNCTION))


@pytest.mark.parametrize(
    "decision",
    [
        {"name": "add", "arguments": {"a": 1}, "id": "c"},
        {"name": "add", "arguments": '{"a":1}', "id": "c"},
        {"name": "add", "args": {"a": 1}, "id": "c"},
        WIRE_CALL,
        STRUCT,
        [WIRE_CALL],
        (STRUCT,),
        {"toolCalls": [WIRE_CALL]},
        {"content": None, "tool_calls": [WIRE_CALL]},
        m.AssistantMessage(id="m", tool_calls=(STRUCT,)),
    ],
)
@pytest.mark.parametrize("style", ["async", "sync"])
async def test_forms_of_a_call(decision: Any, style: str) -> None:
    tools, sums = adding()
    decide = scripted(decision, "done")
    loop = ToolLoop(decide if style == "async" else lambda *given: decide(*given), tools)
    went = await go(loop)
    assert sums == [(1, 0)]
    assert went.reducer.tool_calls["c"].arguments == '{"a":1}'
    assert went.result.final_output == "done"


@pytest.mark.parametrize(
    "decision", [{"content": "done"}, m.AssistantMessage(id="m", content="done"), {"content": "done", "toolCalls": []}]
)
async def test_forms_of_an_answer(decision: Any) -> None:
    went = await go(ToolLoop(scripted(decision), Toolset()))
    assert (went.result.status, went.result.final_output) == ("ok", "done")


async def test_text_beside_calls_is_one_message_with_them() -> None:
    tools, _ = adding()
    went = await go(ToolLoop(scripted({"content": "Adding.", "toolCalls": [call(a=1)]}, "done"), tools))
    message = went.reducer.messages[1]
    assert isinstance(message, m.AssistantMessage)
    assert message.content == "Adding."
    assert [each.function.name for each in message.tool_calls or ()] == ["add"]


@pytest.mark.parametrize("calls", [[], [WIRE_CALL]])
def test_a_message_of_somebody_with_a_name_is_no_call(calls: list[Any]) -> None:
    said = normalise({"id": "m", "role": "assistant", "name": "bob", "content": "hello", "toolCalls": calls})
    assert said.text == "hello"
    assert [each.name for each in said.calls] == ["add"] * len(calls)


@pytest.mark.parametrize(
    ("decision", "about"),
    [
        (None, "null"),
        (7, "7"),
        ([], "a list"),
        (b"add", "a bytes"),
        ({}, "neither a text nor calls"),
        ("", "the decision is empty"),
        (" \n", "the decision is empty"),
        ({"content": ""}, "the decision is empty"),
        ({"content": " ", "toolCalls": []}, "the decision is empty"),
        ({"content": ["x"]}, "a list"),
        ({"toolCalls": "add"}, "add"),
        ({"toolCalls": [WIRE_CALL, 5]}, "5"),
        ({"name": ""}, "the name"),
        ({"name": None}, "the name null"),
        ({"function": "add"}, "an object with name and arguments"),
        ({"name": "add", "arguments": 5}, "the arguments"),
        ({"name": "add", "arguments": {"a": float("nan")}}, "JSON"),
        ({"name": "add", "arguments": {"a": {1, 2}}}, "JSON"),
        ([call(a=1), object()], "a object"),
    ],
)
async def test_what_is_no_decision_fails_the_run_and_runs_nothing(decision: Any, about: str) -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted(decision), tools))
    assert went.types == ["RUN_STARTED", "RUN_ERROR"]
    assert went.result.status == "failed"
    assert went.events[-1].code == went.result.metadata["reason"] == "decision"
    assert about in went.events[-1].message
    assert sums == []


async def test_decide_sees_the_conversation_and_the_tools() -> None:
    seen: list[Any] = []

    def decide(messages: tuple[Any, ...], tools: tuple[ToolDeclaration, ...]) -> Any:
        seen.append((messages, [tool.name for tool in tools], threading.get_ident()))
        return call(a=1) if len(seen) == 1 else "done"

    tools, _ = adding()
    system = m.SystemMessage(id="s", content="Be brief.")
    went = await go(
        ToolLoop(decide, tools), given(system, tools=(ToolDeclaration(name="navigate", description="Go."),))
    )
    assert [message.role for message in seen[0][0]] == ["user", "system"]
    assert seen[0][1] == ["add", "navigate"]
    assert seen[1][0] == went.reducer.messages[:-1]
    assert threading.get_ident() not in [thread for _, _, thread in seen], "a sync decide may block"


@pytest.mark.parametrize("style", ["async", "sync"])
@pytest.mark.parametrize("error", [ValueError(SECRET), StopIteration(SECRET), agui.ResumeError(SECRET)])
async def test_decide_that_raises_fails_the_run_without_its_text(error: Exception, style: str) -> None:
    def decide(messages: Any, tools: Any) -> Any:
        raise error

    async def decide_later(messages: Any, tools: Any) -> Any:
        raise error

    went = await go(ToolLoop(decide if style == "sync" else decide_later, Toolset()))
    assert went.types == ["RUN_STARTED", "RUN_ERROR"]
    assert SECRET not in agui.encode(went.events[-1]).decode()
    assert went.result.status == "failed"


# --- what never runs ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nope", "Add", "add ", "\u0430dd", "add\u200b", "__class__", "add\x00", "a" * 500])
async def test_a_name_that_is_not_registered_never_runs(name: str) -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted(call(name, a=1), "sorry"), tools))
    assert sums == []
    assert went.statuses == ["invalid"]
    assert went.contents[0].startswith("Not run: there is no tool named ")
    assert went.result.tool_results[0].result is None
    assert went.result.tool_errors[0].error == went.contents[0]
    assert went.result.final_output == "sorry"


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        '{"a":"1"}',
        '{"a":1.5}',
        '{"a":true}',
        '{"a":null}',
        '{"a":1,"c":2}',
        '{"a":1,"a":2}',
        '{"a":1,"__class__":"x"}',
        '{"A":1}',
        '{"a":1}{"a":1}',
        '{"a":1e999}',
        '{"a":NaN}',
        '{"a":"\\ud800"}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
)
async def test_arguments_that_do_not_fit_never_run(arguments: str) -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted({"name": "add", "arguments": arguments}, "sorry"), tools))
    assert sums == []
    assert went.statuses == ["invalid"]
    assert went.result.tool_results[0].result is None
    assert went.result.tool_call_count == 1
    assert len(went.contents[0]) < 500


async def test_observations_are_in_the_order_of_the_calls() -> None:
    tools = Toolset()
    arrived = {"a": anyio.Event(), "b": anyio.Event()}

    @tools.tool
    async def meet(me: str, other: str) -> str:
        arrived[me].set()
        await arrived[other].wait()  # only calls that run at the same time get past this
        return me

    script = [call("meet", me="b", other="a"), call("nope"), call("meet", me="a", other="b")]
    with anyio.fail_after(PATIENCE):
        went = await go(ToolLoop(scripted(script, "met"), tools))
    assert went.contents[0] == "b"
    assert went.contents[2] == "a"
    assert [observation.result for observation in went.result.tool_results] == ["b", None, "a"]
    answered = [event.tool_call_id for event in went.events if event.type == "TOOL_CALL_RESULT"]
    assert answered == list(went.reducer.tool_calls)


async def test_the_third_of_the_same_calls_is_not_run_and_ends_the_loop() -> None:
    tools, sums = adding()
    same = ['{"a": 1, "b": 2}', '{"b":2,"a":1}', ' {"a":1,"b":2}']
    script = [[{"name": "add", "arguments": text}] for text in same]
    went = await go(ToolLoop(scripted(*script, "unreachable"), tools))
    assert sums == [(1, 2), (1, 2)]
    assert went.statuses == ["ok", "ok", "cancelled"]
    assert went.result.status == "needs_review"
    assert went.result.final_output is None
    assert went.result.metadata["reason"] == "repeated"
    assert went.result.tool_call_count == 3
    assert went.reducer.status == "finished"
    assert went.reducer.run.result["status"] == "needs_review"
    assert went.reducer.run.pending_tool_calls == ()


async def test_repeated_calls_of_one_decision_count_too() -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted([call(a=1), call(a=2), call(a=1), call(a=1), call(a=3)]), tools))
    assert sums == [(1, 0), (2, 0), (1, 0), (3, 0)]
    assert went.statuses == ["ok", "ok", "ok", "cancelled", "ok"]
    assert went.result.status == "needs_review"


async def test_at_the_cap_the_model_may_still_answer() -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted(*(call(a=n) for n in range(8)), "done"), tools))
    assert len(sums) == 8
    assert (went.result.status, went.result.final_output, went.result.tool_call_count) == ("ok", "done", 8)


async def test_attempts_count_whatever_came_of_them() -> None:
    tools, sums = adding()
    attempts = [call("nope"), call(a="x"), *(call(a=n) for n in range(7)), "unreachable"]
    went = await go(ToolLoop(scripted(*attempts), tools))
    assert len(sums) == 6
    assert went.statuses == ["invalid", "invalid", *["ok"] * 6, "cancelled"]
    assert went.contents[-1] == "Not run: no more than 8 tool calls may be made."
    assert went.result.status == "needs_review"
    assert went.result.metadata["reason"] == "max_tool_calls"
    assert went.result.tool_call_count == 8
    assert went.result.final_output is None


async def test_a_decision_that_goes_over_the_cap_runs_up_to_it() -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted([call(a=n) for n in range(100)]), tools, max_tool_calls=3))
    assert sums == [(0, 0), (1, 0), (2, 0)]
    assert went.result.tool_call_count == 3
    assert went.statuses == ["ok"] * 3 + ["cancelled"] * 97
    assert went.result.status == "needs_review"


async def test_unknown_names_over_the_cap_are_answered_once() -> None:
    went = await go(ToolLoop(scripted([call(f"nope{n}") for n in range(4)]), Toolset(), max_tool_calls=2))
    assert went.statuses == ["invalid", "invalid", "cancelled", "cancelled"]
    assert len(went.contents) == 4
    assert went.types.count("TOOL_CALL_RESULT") == 4


# --- failures -----------------------------------------------------------------------------------------------------


async def test_a_tool_that_fails_gives_no_result_and_shows_nothing_internal() -> None:
    tools = Toolset()

    @tools.tool
    async def read() -> str:
        raise OSError(f"no such file: {SECRET}")

    @tools.tool
    def find() -> str:
        raise ToolError("nothing found; try other words", "nothing found")

    @tools.tool(timeout=0.01)
    async def wait() -> str:
        await anyio.sleep_forever()
        raise AssertionError

    went = await go(ToolLoop(scripted([call("read"), call("find"), call("wait")], "It did not work."), tools))
    assert went.statuses == ["error", "error", "timeout"]
    assert [observation.result for observation in went.result.tool_results] == [None] * 3
    assert [failure.error for failure in went.result.tool_errors] == [
        "The tool read failed and gave no result.",
        "nothing found; try other words",
        "The tool wait took longer than 0.01 s: it was stopped.",
    ]
    assert SECRET not in "".join(agui.encode(event).decode() for event in went.events)
    assert (went.result.status, went.result.final_output) == ("ok", "It did not work.")


async def test_expose_errors_shows_what_a_tool_raised() -> None:
    tools = Toolset()

    @tools.tool
    async def read() -> str:
        raise OSError(SECRET)

    went = await go(ToolLoop(scripted(call("read"), "done"), tools, expose_errors=True))
    assert SECRET in went.result.tool_errors[0].error


async def test_an_input_over_the_limits_is_refused_before_the_run_starts() -> None:
    state: list[Any] = []
    for _ in range(300):
        state = [state]
    run_input = given(state=state)
    async with ToolLoop(scripted("Hello."), Toolset()).run(run_input) as run:
        (event,) = [event async for event in run]
    assert (event.type, event.code) == ("RUN_ERROR", "refused")
    assert run.result is not None
    assert run.result.status == "failed"


# --- what goes out ------------------------------------------------------------------------------------------------


async def test_the_ids_of_the_model_are_kept_unless_they_are_taken() -> None:
    tools, _ = adding()
    went = await go(ToolLoop(scripted([call(id="c", a=1), call(id="c", a=2)], call(id="c", a=3), "done"), tools))
    assert list(went.reducer.tool_calls) == ["c", "r:call:2", "r:call:3"]
    assert went.contents == ["1", "2", "3"]


async def test_messages_of_the_history_are_never_added_to() -> None:
    said = m.AssistantMessage(id="r:message:1", content="before")
    tools, _ = adding()
    went = await go(ToolLoop(scripted(call(a=1), "after"), tools), given(said))
    assert [message.id for message in went.reducer.messages if message.role == "assistant"] == [
        "r:message:1",
        "r:message:2",
        "r:message:3",
    ]
    assert went.reducer.messages[1] == said


async def test_a_large_result_is_sent_once() -> None:
    tools = Toolset()

    @tools.tool
    async def draw() -> ImagePart:
        return ImagePart(source=DataSource(value="A" * 50_000, mime_type="image/png"))

    @tools.tool
    async def nest(deep: list[Any]) -> str:
        return "short"

    deep: list[Any] = []
    for _ in range(150):
        deep = [deep]
    went = await go(ToolLoop(scripted([call("draw"), call("nest", deep=deep)], "done"), tools))
    assert went.statuses == ["ok", "ok"]
    assert went.result.tool_results[0].result == went.contents[0]
    assert went.result.tool_results[1].arguments == {"deep": deep}
    drawn, nested = went.reducer.run.result["tool_results"]
    assert "result" not in drawn
    assert "arguments" not in nested
    assert nested["result"] == "short"


async def test_tools_see_the_thread() -> None:
    tools = Toolset()

    @tools.tool
    def look(ctx: ToolContext) -> list[Any]:
        return [ctx.thread_id, ctx.run_id, ctx.call_id, ctx.state]

    went = await go(ToolLoop(scripted(call("look", id="c"), "done"), tools), given(state={"page": 1}))
    assert json.loads(went.contents[0]) == ["t", "r", "c", {"page": 1}]


async def test_our_client_and_our_loop_hold_a_conversation() -> None:
    own, sums = adding(effects=True)
    pages = Toolset()

    @pages.tool
    async def navigate(page: str) -> str:
        return f"at {page}"

    script = [call(id="c1", a=1), call("navigate", id="c2", page="/")], lambda messages: str(len(messages))
    loop = ToolLoop(scripted(*script), own)
    reducer = agui.Reducer(messages=[{"role": "user", "id": "u", "content": "go"}])
    calls = Calls(reducer, pages)

    async def send(run_input: agui.RunAgentInput) -> None:
        async with loop.run(run_input) as run:
            async for event in run:
                reducer.apply(agui.encode(event))

    async def confirm(request: Any) -> bool:
        assert (request.tool_name, request.arguments) == ("add", '{"a":1}')
        return True

    await send(calls.next_input(thread_id="t"))
    assert await calls.continue_with(send, confirm) == "done"
    assert sums == [(1, 0)]
    assert [message.role for message in reducer.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert reducer.messages[-1].content == "4"
    assert reducer.status == "finished"
