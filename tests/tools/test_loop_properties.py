"""The tool loop under any decisions and answers of people: valid streams, within bounds, each call answered once."""

from __future__ import annotations

from typing import Any

import anyio
from hypothesis import given as drawn
from hypothesis import strategies as st

import agui_core as agui
from agui_core.protocol import messages as m
from agui_core.protocol.run import ToolDeclaration
from agui_core.tools import Toolset
from agui_core.tools.loop import ToolLoop
from support.loop_runs import Went, again, entry, given, go
from support.properties import examples

NAMES = ["add", "pay", "fail", "nope", "navigate"]
ARGUMENTS = ["", "{}", '{"a":1}', '{"a":2}', '{"a":"x"}', "{", "[]", {"a": 1}, {"a": 3}]
CALLS = st.fixed_dictionaries(
    {"name": st.sampled_from(NAMES), "arguments": st.sampled_from(ARGUMENTS)},
    optional={"id": st.sampled_from(["x", "y", ""])},
)
DECISIONS = st.one_of(
    st.lists(CALLS, min_size=1, max_size=4),
    CALLS,
    st.fixed_dictionaries(
        {"content": st.sampled_from(["", "so"]), "toolCalls": st.lists(CALLS, min_size=1, max_size=3)}
    ),
    st.just("done"),
    st.none(),
)
PAYLOADS = st.sampled_from(
    [{"approved": True}, {"approved": False}, {"approved": True, "editedArgs": {"a": 9}}, True, None]
)


class Thread:
    """One conversation with a loop that decides by a script."""

    def __init__(self, script: list[Any], cap: int) -> None:
        self.script, self.ran = script, []
        tools = Toolset()

        @tools.tool
        async def add(a: int) -> int:
            self.ran.append("add")
            return a

        @tools.tool(effects=True)
        def pay(a: int) -> str:
            self.ran.append("pay")
            return "paid"

        @tools.tool
        async def fail(a: int = 0) -> str:
            self.ran.append("fail")
            raise ValueError(a)

        self.loop = ToolLoop(self.decide, tools, max_tool_calls=cap)

    async def decide(self, messages: Any, tools: Any) -> Any:
        return self.script.pop(0) if self.script else "done"

    async def hold(self, payloads: list[Any]) -> list[Went]:
        navigate = ToolDeclaration(name="navigate", description="")
        runs = [await go(self.loop, given(tools=(navigate,)))]
        while runs[-1].reducer.status != "failed" and (runs[-1].reducer.run.interrupts or self.pending(runs[-1])):
            last, entries = runs[-1], []
            for interrupt in last.reducer.run.interrupts:
                payload = payloads.pop(0) if payloads else {"approved": True}
                entries.append(entry(payload, interrupt.id))
            for id in self.pending(last):
                last.reducer.add(m.ToolMessage(id=f"{id}-answer", tool_call_id=id, content="seen"))
            run_input = again(last, *entries, run_id=f"r{len(runs) + 1}", tools=(navigate,))
            runs.append(await go(self.loop, run_input))
        return runs

    @staticmethod
    def pending(went: Went) -> list[str]:
        named = {interrupt.tool_call_id for interrupt in went.reducer.run.interrupts}
        return [id for id in went.reducer.run.pending_tool_calls if id not in named]


@examples(150)
@drawn(st.lists(DECISIONS, max_size=8), st.integers(1, 9), st.lists(PAYLOADS, max_size=6))
def test_whatever_is_decided_the_loop_keeps_its_promises(script: list[Any], cap: int, payloads: list[Any]) -> None:
    thread = Thread(script, cap)
    runs = anyio.run(thread.hold, payloads)
    last = runs[-1]
    reducer = agui.Reducer(messages=last.reducer.messages)
    assert len(thread.ran) <= last.result.tool_call_count <= cap
    assert all(run.result.tool_call_count <= cap for run in runs)
    for run in runs:
        succeeded = [each for each in run.result.tool_results if each.result is not None]
        assert all(each.status == "ok" for each in succeeded), "no result where a tool failed"
        assert len(run.result.tool_errors) == sum(
            each.status in ("error", "timeout", "invalid", "cancelled") for each in run.result.tool_results
        )
        assert (run.result.final_output is not None) <= (run.result.status == "ok")
    answers = [message.tool_call_id for message in last.reducer.messages if isinstance(message, m.ToolMessage)]
    assert len(answers) == len(set(answers)), "one answer for each call"
    if last.result.status != "failed":
        assert set(answers) == set(reducer.tool_calls)
        assert list(dict.fromkeys(each.id for each in last.result.tool_results)) == list(reducer.tool_calls)
    assert sum(run.types.count("TOOL_CALL_START") for run in runs) == len(reducer.tool_calls)
