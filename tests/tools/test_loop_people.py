"""The tool loop and who else acts: people who agree, and clients that run tools of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import agui_core as agui
from agui_core.protocol import messages as m
from agui_core.protocol.run import ResumeEntry, ToolDeclaration
from agui_core.tools import Toolset
from agui_core.tools.loop import ToolLoop
from support.loop_runs import Went, adding, again, call, entry, given, go, scripted

pytestmark = pytest.mark.anyio

# --- people -------------------------------------------------------------------------------------------------------


GIVEN_UP = "Denied: a person did not allow this call; it was not run. Reason: the question was given up"


async def asked(decisions: Iterable[Any] = (), **options: Any) -> tuple[ToolLoop, list[Any], Went]:
    """A loop whose tool needs approval, after the run that asks for it."""
    tools, sums = adding(effects=True, **options)
    loop = ToolLoop(scripted(*decisions or [call(id="c", a=1)], "done"), tools)
    return loop, sums, await go(loop)


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
        (entry(status="cancelled"), [], "denied", GIVEN_UP),
        (entry({"approved": True}, status="cancelled"), [], "denied", GIVEN_UP),
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
    functions = m.FunctionCall(name="add", arguments='{"a":1}'), m.FunctionCall(name="nope", arguments="{}")
    left = m.AssistantMessage(
        id="m",
        tool_calls=tuple(m.ToolCall(id=each.name, type="function", function=each) for each in functions),
    )
    went = await go(ToolLoop(scripted("done"), tools), given(left))
    assert sums == []
    assert went.statuses == ["cancelled", "cancelled"]
    assert went.contents == ["Not run: the run that asked for it ended without an answer."] * 2
    assert went.result.final_output == "done"


# --- tools of the client ------------------------------------------------------------------------------------------


NAVIGATE = ToolDeclaration(name="navigate", description="Show a page.", parameters={"type": "object"})


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
    shadow = ToolDeclaration(name="add", description="Mine.")
    offered: list[Any] = []

    async def decide(messages: Any, tools: Any) -> Any:
        offered.append([tool.description for tool in tools])
        return call(a=1) if len(offered) == 1 else "done"

    went = await go(ToolLoop(decide, tools), given(tools=(shadow,)))
    assert sums == [(1, 0)]
    assert went.result.status == "ok"
    assert offered == [[""], [""]]


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
