"""The bounded tool loop: what it runs and what it never runs, how it ends, and how it goes on after a person agreed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.protocol import messages as m
from agui_core.protocol.content import DataSource, ImagePart
from agui_core.protocol.run import ResumeEntry, Tool
from agui_core.stream import serve
from agui_core.tools import Calls, ToolContext, ToolError, Toolset
from agui_core.tools.loop import LoopResult, ToolLoop

pytestmark = pytest.mark.anyio
SECRET = "/srv/app/keys.pem"


def given(*messages: Any, run_id: str = "r", question: str = "go", **fields: Any) -> agui.RunAgentInput:
    asked = m.UserMessage(id="u", content=question)
    return agui.RunAgentInput(thread_id="t", run_id=run_id, messages=(asked, *messages), **fields)


def scripted(*decisions: Any) -> Callable[..., Any]:
    """Decides one after the other; one that is a function is called with the messages. The last one is repeated."""
    left = list(decisions)

    async def decide(messages: Any, tools: Any) -> Any:
        decision = left.pop(0) if len(left) > 1 else left[0]
        return decision(messages) if callable(decision) else decision

    return decide


def call(name: str = "add", id: str | None = None, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, **({} if id is None else {"id": id})}


def adding(**options: Any) -> tuple[Toolset, list[Any]]:
    """A toolset with one tool, and the sums that it was asked for."""
    tools, sums = Toolset(), []

    @tools.tool(name="add", **options)
    async def add(a: int, b: int = 0) -> int:
        sums.append((a, b))
        return a + b

    return tools, sums


class Went:
    """What a run gave, folded by a strict reducer."""

    def __init__(self, run_input: agui.RunAgentInput) -> None:
        self.reducer = agui.Reducer.from_input(run_input)
        self.events: list[Any] = []
        self.result: LoopResult

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]

    @property
    def statuses(self) -> list[str]:
        return [observation.status for observation in self.result.tool_results]

    @property
    def contents(self) -> list[Any]:
        return [message.content for message in self.reducer.messages if isinstance(message, m.ToolMessage)]


async def go(loop: ToolLoop, run_input: agui.RunAgentInput | None = None) -> Went:
    run_input = run_input or given()
    went = Went(run_input)
    async with loop.run(run_input) as run:
        async for event in run:
            went.reducer.apply(event)
            went.events.append(event)
            assert (run.result is not None) == (event.type in ("RUN_FINISHED", "RUN_ERROR")) or run.result
    assert run.result is not None
    went.result = run.result
    assert went.reducer.warnings == ()
    return went


# --- deciding -----------------------------------------------------------------------------------------------------


async def test_a_final_answer() -> None:
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


@pytest.mark.parametrize(
    ("decision", "about"),
    [
        (None, "null"),
        (7, "7"),
        ([], "a list"),
        (b"add", "a bytes"),
        ({}, "neither content nor calls"),
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

    def decide(messages: tuple[Any, ...], tools: tuple[Tool, ...]) -> Any:
        seen.append((messages, [tool.name for tool in tools], threading.get_ident()))
        return call(a=1) if len(seen) == 1 else "done"

    tools, _ = adding()
    system = m.SystemMessage(id="s", content="Be brief.")
    went = await go(ToolLoop(decide, tools), given(system, tools=(Tool(name="navigate", description="Go."),)))
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
    with anyio.fail_after(5):
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


# --- people -------------------------------------------------------------------------------------------------------


async def asked(decisions: Iterable[Any] = (), **options: Any) -> tuple[ToolLoop, list[Any], Went]:
    """A loop whose tool needs approval, after the run that asks for it."""
    tools, sums = adding(effects=True, **options)
    loop = ToolLoop(scripted(*decisions or [call(id="c", a=1)], "done"), tools)
    return loop, sums, await go(loop)


def again(went: Went, *entries: ResumeEntry, run_id: str = "r2") -> agui.RunAgentInput:
    messages = tuple(message for message in went.reducer.messages if message.id != "u")
    return given(*messages, run_id=run_id, **({"resume": entries} if entries else {}))


def entry(payload: Any = None, id: str = "c:approval", status: Any = "resolved") -> ResumeEntry:
    return ResumeEntry(interrupt_id=id, status=status, payload=agui.UNSET if payload is None else payload)


async def test_a_call_that_needs_approval_interrupts() -> None:
    _, sums, went = await asked()
    assert sums == []
    assert went.result.status == "needs_confirmation"
    assert went.result.final_output is None
    assert went.statuses == ["pending"]
    assert went.reducer.status == "interrupted"
    (interrupt,) = went.reducer.run.interrupts
    assert (interrupt.id, interrupt.reason, interrupt.tool_call_id) == ("c:approval", "tool_call", "c")
    assert went.reducer.run.result["status"] == "needs_confirmation"


@pytest.mark.parametrize(
    ("answer", "ran", "status", "content"),
    [
        (entry({"approved": True}), [(1, 0)], "ok", "1"),
        (
            entry({"approved": True, "editedArgs": {"a": 5, "b": 6}}),
            [(5, 6)],
            "ok",
            'A person changed the arguments; it ran with {"a":5,"b":6}\n\n11',
        ),
        (entry({"approved": True, "editedArgs": {"a": "x"}}), [], "invalid", None),
        (entry({"approved": True, "editedArgs": [1]}), [], "denied", None),
        (
            entry({"approved": False, "reason": "no"}),
            [],
            "denied",
            "Denied: a person did not allow this call; it was not run. Reason: no",
        ),
        (entry(True), [], "denied", None),
        (entry("yes"), [], "denied", None),
        (entry({"approved": "true"}), [], "denied", None),
        (entry({"approved": 1}), [], "denied", None),
        (entry(), [], "denied", None),
        (entry(status="cancelled"), [], "denied", None),
        (entry({"approved": True}, status="cancelled"), [], "denied", None),
    ],
)
async def test_the_next_input_goes_on_as_the_person_said(
    answer: ResumeEntry, ran: list[Any], status: str, content: str | None
) -> None:
    loop, sums, before = await asked()
    went = await go(loop, again(before, answer))
    assert sums == ran
    assert went.types[:2] == ["RUN_STARTED", "TOOL_CALL_RESULT"]
    assert went.statuses == [status]
    assert content is None or went.contents == [content]
    assert (went.result.status, went.result.final_output) == ("ok", "done")
    assert went.result.tool_call_count == 1
    assert bool(went.result.tool_errors) == (status == "invalid")
    assert [message.role for message in went.reducer.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    "entries",
    [
        (entry({"approved": True}, id="other"),),
        (entry({"approved": True}), entry({"approved": True})),
        (entry({"approved": True}), entry({"approved": True}, id="d:approval")),
    ],
)
async def test_a_resume_that_does_not_answer_the_question_is_refused_before_the_run_starts(
    entries: tuple[ResumeEntry, ...],
) -> None:
    loop, sums, before = await asked()
    went = await go(loop, again(before, *entries))
    assert went.types == ["RUN_ERROR"], "so its interrupts stay open (OPEN-16)"
    assert went.events[0].code == "resume"
    assert sums == []


async def test_resuming_what_was_never_asked_is_refused() -> None:
    tools, sums = adding()
    went = await go(ToolLoop(scripted("done"), tools), given(resume=(entry({"approved": True}),)))
    assert went.types == ["RUN_ERROR"]
    assert sums == []


async def test_without_an_answer_the_question_is_asked_again() -> None:
    loop, sums, before = await asked()
    went = await go(loop, again(before))
    assert went.types == ["RUN_STARTED", "RUN_FINISHED"]
    assert went.events[-1].outcome == before.events[-1].outcome
    assert sums == []


async def test_several_questions_at_once_and_a_call_that_needs_none() -> None:
    tools, sums = adding(approval=lambda arguments: arguments["a"] > 1)
    script = [call(id="x", a=1), call(id="y", a=2), call(id="z", a=3)]
    loop = ToolLoop(scripted(script, "done"), tools)
    before = await go(loop)
    assert sums == [(1, 0)]
    assert before.statuses == ["ok", "pending", "pending"]
    assert [interrupt.tool_call_id for interrupt in before.reducer.run.interrupts] == ["y", "z"]
    refused = await go(loop, again(before, entry({"approved": True}, id="y:approval")))
    assert refused.types == ["RUN_ERROR"]
    answers = entry({"approved": False}, id="y:approval"), entry({"approved": True}, id="z:approval")
    went = await go(loop, again(before, *answers))
    assert sums == [(1, 0), (3, 0)]
    assert went.statuses == ["ok", "denied", "ok"]
    assert went.result.tool_call_count == 3


async def test_a_policy_that_denies_wins_over_an_approval() -> None:
    def policy(arguments: dict[str, Any]) -> Any:
        return "deny" if arguments["a"] > 100 else "ask"

    loop, sums, before = await asked(approval=policy)
    went = await go(loop, again(before, entry({"approved": True, "editedArgs": {"a": 101}})))
    assert sums == []
    assert went.statuses == ["denied"]


async def test_an_interrupt_gives_no_fresh_allowance() -> None:
    tools, sums = adding(approval=lambda arguments: arguments["a"] == 2)
    loop = ToolLoop(scripted(call(a=0), call(a=1), call(id="c", a=2), call(a=3), "done"), tools, max_tool_calls=3)
    before = await go(loop)
    went = await go(loop, again(before, entry({"approved": True})))
    assert sums == [(0, 0), (1, 0), (2, 0)]
    assert went.result.status == "needs_review"
    assert went.result.tool_call_count == 3
    assert went.statuses == ["ok", "ok", "ok", "cancelled"]


async def test_repetition_is_counted_over_an_interrupt() -> None:
    same = [call(a=1), call(a=1)]
    loop, sums, before = await asked([same, call(a=1)])
    ids = [interrupt.id for interrupt in before.reducer.run.interrupts]
    went = await go(loop, again(before, *(entry({"approved": True}, id=id) for id in ids)))
    assert sums == [(1, 0), (1, 0)]
    assert went.result.metadata["reason"] == "repeated"


async def test_a_call_in_the_history_that_nobody_was_asked_about_is_not_run() -> None:
    tools, sums = adding()
    left = m.AssistantMessage(
        id="m",
        tool_calls=(STRUCT, m.ToolCall(id="d", type="function", function=m.FunctionCall(name="nope", arguments="{}"))),
    )
    went = await go(ToolLoop(scripted("done"), tools), given(left))
    assert sums == []
    assert went.statuses == ["cancelled", "cancelled"]
    assert went.contents == ["Not run: the run that asked for it ended without an answer."] * 2
    assert went.result.final_output == "done"


# --- tools of the client ------------------------------------------------------------------------------------------


NAVIGATE = Tool(name="navigate", description="Show a page.", parameters={"type": "object"})


async def test_a_clients_tool_is_left_to_the_client() -> None:
    tools, sums = adding()
    script = [call(id="c1", a=1), call("navigate", id="c2", page="/")]
    loop = ToolLoop(scripted(script, lambda messages: f"You see {messages[-1].content}."), tools)
    before = await go(loop, given(tools=(NAVIGATE,)))
    assert sums == [(1, 0)]
    assert before.statuses == ["ok", "pending"]
    assert (before.result.status, before.result.final_output) == ("ok", None)
    assert before.events[-1].outcome.pending_tool_call_ids == ("c2",)
    assert before.reducer.run.pending_tool_calls == ("c2",)
    before.reducer.add(m.ToolMessage(id="a", tool_call_id="c2", content="the page"))
    went = await go(loop, agui_input(before, tools=(NAVIGATE,)))
    assert went.result.final_output == "You see the page."
    assert went.statuses == ["ok", "ok"]


def agui_input(went: Went, **fields: Any) -> agui.RunAgentInput:
    return agui.RunAgentInput(thread_id="t", run_id="r2", messages=went.reducer.messages, **fields)


async def test_a_client_cannot_stand_in_for_a_tool_of_the_agent() -> None:
    tools, sums = adding()
    shadow = Tool(name="add", description="Mine.")
    went = await go(ToolLoop(scripted(call(a=1), "done"), tools), given(tools=(shadow,)))
    assert sums == [(1, 0)]
    assert went.result.status == "ok"


async def test_a_clients_tool_over_the_cap_is_not_asked_for() -> None:
    loop = ToolLoop(scripted([call("navigate", page=n) for n in range(3)]), Toolset(), max_tool_calls=2)
    went = await go(loop, given(tools=(NAVIGATE,)))
    assert went.types.count("TOOL_CALL_START") == 2
    assert "TOOL_CALL_RESULT" not in went.types, "only the client answers it (FT-1)"
    assert went.result.status == "needs_review"
    assert len(went.events[-1].outcome.pending_tool_call_ids) == 2


async def test_a_clients_call_that_was_left_unanswered_is_answered_to_the_model_only() -> None:
    left = m.AssistantMessage(
        id="m",
        tool_calls=(m.ToolCall(id="d", type="function", function=m.FunctionCall(name="navigate", arguments="")),),
    )
    loop = ToolLoop(scripted(lambda messages: str(messages[-1].content)), Toolset())
    went = await go(loop, given(left, tools=(NAVIGATE,)))
    assert "TOOL_CALL_RESULT" not in went.types
    assert went.result.final_output is not None
    assert went.result.final_output.startswith("Not run")


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


# --- an iterator that is a class ----------------------------------------------------------------------------------


async def test_leaving_early_stops_it() -> None:
    tools, sums = adding()
    async with ToolLoop(scripted(call(a=1), "done"), tools).run(given()) as run:
        async for event in run:
            if event.type == "TOOL_CALL_END":
                break
    assert sums == [], "nothing runs ahead of the reader"
    assert run.result is None
    assert [event async for event in run] == []


async def test_cancelled_in_a_tool_it_ends() -> None:
    tools = Toolset()
    ended: list[str] = []

    @tools.tool
    async def wait() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("wait")

    async with ToolLoop(scripted(call("wait"), "done"), tools).run(given()) as run:
        with anyio.move_on_after(0.05) as scope:
            async for _ in run:
                pass
        assert scope.cancelled_caught
        assert ended == ["wait"]
        assert [event async for event in run] == []
    assert run.result is None


async def test_an_exception_of_the_block_leaves_it_as_itself() -> None:
    async def fail() -> None:
        async with ToolLoop(scripted("done"), Toolset()).run(given()) as run:
            async for _ in run:
                raise KeyError

    with pytest.raises(KeyError):
        await fail()


async def test_two_tasks_in_one_iterator_are_an_error() -> None:
    tools = Toolset()

    @tools.tool
    async def wait() -> None:
        await anyio.sleep_forever()

    async def drain(run: Any) -> None:
        async for _ in run:
            pass

    async with ToolLoop(scripted(call("wait")), tools).run(given()) as run, anyio.create_task_group() as tasks:
        tasks.start_soon(drain, run)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(anyio.BusyResourceError):
            await anext(run)
        tasks.cancel_scope.cancel()


async def test_one_loop_serves_many_runs_at_a_time() -> None:
    tools, _ = adding()

    def decide(messages: Any, tools: Any) -> Any:
        question, last = int(messages[0].content), messages[-1]
        return call(a=question) if last.role == "user" else f"{question}: {last.content}"

    loop = ToolLoop(decide, tools)
    answers: dict[int, Any] = {}

    async def one(number: int) -> None:
        went = await go(loop, given(question=str(number), run_id=f"r{number}"))
        answers[number] = went.result.final_output

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(one, number)
    assert answers == {number: f"{number}: {number}" for number in range(50)}


async def test_an_endpoint_serves_it() -> None:
    tools, _ = adding()
    app = serve(ToolLoop(scripted(call(a=1), "done"), tools).run)
    body = json.dumps({"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "go"}]})
    requests = [{"type": "http.request", "body": body.encode(), "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        if requests:
            return requests.pop()
        return await anyio.sleep_forever()

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    with anyio.fail_after(5):
        await app({"type": "http", "method": "POST", "path": "/", "headers": headers}, receive, send)
    reducer = agui.Reducer()
    reducer.apply_sse(b"".join(message.get("body", b"") for message in sent))
    assert reducer.status == "finished"
    assert reducer.messages[-1].content == "done"


# --- wrong use ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"max_tool_calls": 0}, {"limit": 0}, {"timeout": 0}, {"timeout": float("nan")}])
async def test_options_that_make_no_sense(options: Any) -> None:
    with pytest.raises(ValueError):
        ToolLoop(scripted("x"), Toolset(), **options)


async def test_what_is_no_decide_and_no_input() -> None:
    with pytest.raises(TypeError):
        ToolLoop("decide", Toolset())  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        ToolLoop(scripted("x"), Toolset()).run({"threadId": "t"})  # type: ignore[arg-type]
