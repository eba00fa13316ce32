"""The next input: what it holds, and what stops it. Rules IN-1..13, FT-5, FT-11, OPEN-17."""

from __future__ import annotations

from typing import Any

import pytest

from agui_core.errors import AGUIError, ProtocolError, ResumeError
from agui_core.protocol.messages import AssistantMessage, FunctionCall, ToolCall, UserMessage
from agui_core.protocol.run import Context, RunAgentInput
from agui_core.reducer import Reducer
from agui_core.tools import Calls, Toolset
from agui_core.wire import to_wire
from support.call_streams import (
    answers,
    call,
    feed,
    finished,
    interrupt,
    interrupted,
    kinds,
    result,
    run,
    started,
    thread,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
def tools() -> Toolset:
    toolset = Toolset()

    @toolset.tool
    def look_up(word: str = "") -> str:
        """Look a word up."""
        return f"meaning of {word}"

    @toolset.tool(effects=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    return toolset


# --- what it holds ------------------------------------------------------------------------------------------------


def test_the_first_input_holds_all_that_was_given(tools: Toolset) -> None:
    calls = Calls(Reducer(messages=[{"id": "u", "role": "user", "content": "Hi"}], state={"n": 1}), tools)
    sent = calls.next_input(
        thread_id="t",
        run_id="r",
        parent_run_id="p",
        context=[Context(description="time", value="noon"), {"description": "place", "value": "here"}],
        forwarded_props={"model": None},
    )
    assert isinstance(sent, RunAgentInput)
    assert to_wire(sent) == {
        "threadId": "t",
        "runId": "r",
        "parentRunId": "p",
        "protocolVersion": "1.0",
        "messages": [{"id": "u", "role": "user", "content": "Hi"}],
        "state": {"n": 1},
        "tools": [to_wire(tool) for tool in tools.as_tools()],
        "context": [{"description": "time", "value": "noon"}, {"description": "place", "value": "here"}],
        "forwardedProps": {"model": None},
    }


def test_act_10_in_4_the_whole_history_without_activities_and_with_every_encrypted_value(tools: Toolset) -> None:
    history: list[dict[str, Any]] = [
        {"id": "s", "role": "system", "content": "Be kind.", "encryptedValue": "AA=="},
        {"id": "u", "role": "user", "content": [{"type": "text", "text": "Hi"}]},
        {"id": "t", "role": "reasoning", "content": "Hm.", "encryptedValue": "not base64 \u2028"},
        {"id": "x", "role": "activity", "activityType": "plan", "content": {"steps": []}},
        {
            "id": "m",
            "role": "assistant",
            "toolCalls": [
                {
                    "id": "a",
                    "type": "function",
                    "function": {"name": "look_up", "arguments": "{broken"},
                    "encryptedValue": "CC",
                    "metadata": {"k": None},
                }
            ],
            "subagentRunId": "sub",
        },
        {"id": "ta", "role": "tool", "toolCallId": "a", "content": "", "error": "no", "encryptedValue": ""},
    ]
    calls = Calls(Reducer(messages=history), tools)
    sent = to_wire(calls.next_input(thread_id="t"))["messages"]
    assert sent[3]["toolCalls"][0]["function"].pop("arguments") == "{}", "broken ones cannot be read (TOOL-5)"
    assert history[4]["toolCalls"][0]["function"].pop("arguments") == "{broken"
    assert sent == [m for m in history if m["id"] != "x"]


def test_in_6_state_6_a_state_of_null_is_left_out_with_a_warning(tools: Toolset) -> None:
    calls = thread(tools, run("r", {"type": "STATE_SNAPSHOT", "snapshot": None}))
    assert "state" not in to_wire(calls.next_input())
    assert [warning.rule for warning in calls.warnings] == ["STATE-6"]
    feed(calls.reducer, run("r2", {"type": "STATE_SNAPSHOT", "snapshot": False}))
    assert calls.next_input().state is False


def test_in_8_every_try_has_a_run_id_of_its_own(tools: Toolset) -> None:
    calls = thread(tools, run("r"))
    ids = {calls.next_input().run_id for _ in range(5)}
    assert len(ids) == 5
    for used in ("r", *ids):
        with pytest.raises(ValueError, match="IN-8"):
            calls.next_input(run_id=used)
    assert calls.next_input(run_id="fresh").run_id == "fresh"


def test_in_13_the_thread_id_comes_from_the_application_once(tools: Toolset) -> None:
    calls = Calls(Reducer(), tools)
    with pytest.raises(ValueError, match="IN-13"):
        calls.next_input()
    calls.next_input(thread_id="t")
    assert calls.next_input().thread_id == "t"
    feed(calls.reducer, run("r"))
    assert calls.next_input(thread_id="t").thread_id == "t"
    with pytest.raises(ValueError, match="'t', not 'other'"):
        calls.next_input(thread_id="other")


def test_a_part_of_the_toolset_may_be_offered(tools: Toolset) -> None:
    calls = Calls(Reducer(), tools)
    sent = calls.next_input(thread_id="t", tools=tools.filter(["look_up"]))
    assert [tool.name for tool in sent.tools or ()] == ["look_up"]
    strangers = Toolset()
    strangers.tool(name="elsewhere")(lambda: None)
    with pytest.raises(ValueError, match="elsewhere are not in the toolset"):
        calls.next_input(tools=strangers)


async def test_tools_may_come_later_and_are_offered_from_then_on(tools: Toolset) -> None:
    calls = thread(tools, run("r", call("a", "late")))
    assert await calls.answer() == ()
    tools.tool(name="late")(lambda: "ran")
    assert await calls.answer() == ("a",)
    assert kinds(calls) == {"a": "invalid"}, "it was not advertised for that run (TOOL-13)"
    calls.next_input(run_id="r2")
    feed(calls.reducer, run("r2", call("b", "late")))
    await calls.answer()
    assert kinds(calls)["b"] == "ok"


@pytest.mark.parametrize("echoed", [True, False])
async def test_the_last_input_decides_what_runs_whatever_run_id_comes_back(tools: Toolset, echoed: bool) -> None:
    calls = Calls(Reducer(), tools)
    calls.next_input(thread_id="t", run_id="r", tools=tools.filter(["look_up"]))
    feed(calls.reducer, run("r" if echoed else "another id", call("a"), call("b", "pay")))
    await calls.answer()
    assert calls.state("b") == "output-error"
    assert answers(calls)["b"].content == "Not run: there is no tool named pay here."


async def test_a_run_that_no_input_of_ours_started_has_the_whole_toolset(tools: Toolset) -> None:
    calls = Calls(Reducer(), tools)
    feed(calls.reducer, run("r", call("a")))
    assert await calls.answer() == ("a",)
    assert kinds(calls) == {"a": "ok"}


def test_the_offers_of_inputs_that_were_never_sent_do_not_pile_up(tools: Toolset) -> None:
    calls = thread(tools, run("r"))
    for _ in range(200):
        calls.next_input()
    size = len(calls.checkpoint())
    for _ in range(200):
        calls.next_input()
    assert len(calls.checkpoint()) < size * 1.1


# --- enforcement --------------------------------------------------------------------------------------------------


def test_in_3_unknown_material_is_stripped_with_a_warning(tools: Toolset) -> None:
    calls = Calls(Reducer(), tools)
    sent = calls.next_input(thread_id="t", context=[{"description": "d", "value": "v", "extra": 1}])
    assert sent.context == (Context(description="d", value="v"),)
    assert [(warning.rule, warning.path) for warning in calls.warnings] == [("PROC-5", "/context/0/extra")]


@pytest.mark.parametrize(
    "options",
    [
        {"context": [{"description": "d"}]},
        {"context": [{"description": "d", "value": 5}]},
        {"forwarded_props": None},
        {"forwarded_props": object()},
        {"run_id": 5},
        {"parent_run_id": None},
    ],
)
def test_in_3_malformed_fields_stop_it_before_anything_leaves(tools: Toolset, options: Any) -> None:
    calls = Calls(Reducer(), tools)
    with pytest.raises(ProtocolError):
        calls.next_input(thread_id="t", **options)


def test_messages_built_by_hand_are_enforced_too(tools: Toolset) -> None:
    reducer = Reducer(messages=[UserMessage(id="u", content=5)])  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="/messages/0/content"):
        Calls(reducer, tools).next_input(thread_id="t")


def test_what_the_reducer_admits_at_its_limit_can_be_sent_back(tools: Toolset) -> None:
    deep: Any = 1
    for _ in range(199):
        deep = [deep]
    call_metadata = {"deep": deep}
    made = ToolCall(id="a", type="function", function=FunctionCall(name="x", arguments="1"), metadata=call_metadata)
    calls = Calls(Reducer(messages=[AssistantMessage(id="m", tool_calls=(made,))], state=deep), tools)
    sent = calls.next_input(thread_id="t")
    assert sent.state == deep
    assert sent.messages == calls.reducer.messages


# --- what stops it ------------------------------------------------------------------------------------------------


async def test_ft_5_a_thread_goes_on_only_when_our_calls_are_answered(tools: Toolset) -> None:
    calls = thread(tools, run("r", call("a"), call("b", "pay"), call("c", "agents_own"), call("d", "look_up", "{")))
    for open_ones in ("'a', 'b', 'd'", "'b'"):
        with pytest.raises(ResumeError, match=rf"tool calls {open_ones} have no answer.*\[FT-5\]"):
            calls.next_input()
        await calls.answer()
    calls.deny("b")
    with pytest.raises(ResumeError, match="FT-5"):
        calls.next_input()
    await calls.answer()
    sent = calls.next_input()
    assert [message.role for message in sent.messages] == ["assistant", "tool", "tool", "tool"]
    assert "c" not in answers(calls)


def test_ft_5_the_calls_that_an_earlier_run_left_are_answered_unexecuted(tools: Toolset) -> None:
    calls = thread(tools, run("r1", call("a"), call("c", "agents_own")), run("r2"))
    assert calls.waiting().who != "application"
    sent = calls.next_input()
    assert [message.role for message in sent.messages] == ["assistant", "tool"]
    assert answers(calls)["a"].content == "Not run: the conversation went on before this call was answered."
    assert "c" not in answers(calls)


async def test_ft_9_a_tool_that_was_not_advertised_stops_nothing(tools: Toolset) -> None:
    calls = Calls(Reducer(), tools)
    calls.next_input(thread_id="t", run_id="r", tools=tools.filter(["look_up"]))
    feed(calls.reducer, run("r", call("a", "pay"), call("b", "agents_own")))
    assert calls.next_input().messages == calls.reducer.messages


async def test_ft_11_a_call_that_an_interrupt_names_is_answered_through_it(tools: Toolset) -> None:
    calls = thread(tools, started("r"), call("a"), call("b"), interrupted("r", interrupt("i", "a")))
    with pytest.raises(ResumeError, match=r"'b' have no answer"):
        calls.next_input()
    assert await calls.answer() == ("b",)
    with pytest.raises(ResumeError, match="INT-6"):
        calls.next_input()
    calls.approve("a")
    sent = calls.next_input()
    assert [entry.interrupt_id for entry in sent.resume or ()] == ["i"]
    assert list(answers(calls)) == ["b"]


def test_run_2_a_run_that_goes_on_stops_it(tools: Toolset) -> None:
    calls = thread(tools, started("r"))
    with pytest.raises(ResumeError, match="a run is going on"):
        calls.next_input()


# --- OPEN-17 ------------------------------------------------------------------------------------------------------

ENDINGS: dict[str, tuple[Any, str]] = {
    "failed": ({"type": "RUN_ERROR", "message": "upstream"}, "failed"),
    "cancelled": (finished("r", {"type": "cancelled"}), "was cancelled"),
    "truncated": (None, "was cut off"),
    "rejected": (started("again"), "was refused"),
}


@pytest.mark.parametrize("status", ENDINGS)
def test_open_17_the_calls_of_a_run_that_ended_badly_are_answered_unexecuted(tools: Toolset, status: str) -> None:
    ending, words = ENDINGS[status]
    calls = thread(tools, started("r"), call("a"), call("own", "agents_own"), call("done"), result("done"))
    if ending is None:
        calls.reducer.end()
    elif status == "rejected":
        with pytest.raises(AGUIError):
            feed(calls.reducer, ending)
    else:
        feed(calls.reducer, ending)
    assert calls.reducer.status == status
    assert calls.waiting().who == "nobody"
    sent = calls.next_input(run_id="r2")
    made = answers(calls)
    for id in ("a", "own"):
        assert made[id].content == f"Not run: the run {words} before this call was answered."
        assert made[id].error == "not run"
        assert made[id].metadata == {"agui_core.answer": "cancelled"}
        assert calls.state(id) == "output-error"
    assert made["done"].content == "done"
    assert sent.messages == calls.reducer.messages
    assert calls.next_input(run_id="r3").messages == sent.messages


def test_open_17_a_call_cut_off_in_its_arguments_is_answered_too(tools: Toolset) -> None:
    calls = thread(tools, started("r"), call("a", "look_up", '{"wo')[:2])
    calls.reducer.end()
    calls.next_input()
    assert kinds(calls) == {"a": "cancelled"}
    assert calls.state("a") == "output-error"


def test_the_thread_goes_on_after_a_refusal(tools: Toolset) -> None:
    calls = thread(tools, started("r"), call("a"))
    with pytest.raises(AGUIError):
        feed(calls.reducer, started("again"))
    version = calls.reducer.version
    calls.renew()
    assert kinds(calls) == {"a": "cancelled"}
    assert calls.reducer.version > version
    sent = calls.next_input(run_id="r2")
    assert sent.thread_id == "t"
    feed(calls.reducer, run("r2", call("b")))
    assert calls.waiting().application == ("b",)
