"""What real frameworks put on the wire: whatever the run was, its calls are answered and the thread goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from agui_core.errors import ProtocolError, ResumeError
from agui_core.protocol.messages import ActivityMessage, ToolMessage
from agui_core.reducer import Reducer
from agui_core.tools import Calls, Toolset, Verdict, langgraph_interrupts
from agui_core.warnings import WarningLog
from agui_core.wire import decode, encode, to_wire
from agui_core.wire.outgoing import readable
from support.call_streams import feed


def play(folder: Path, name: str) -> tuple[Calls, list[str]]:
    """The calls after a recorded run, and the names of the tools that were advertised for it."""
    sent = json.loads((folder / f"{name}.input.json").read_text())
    toolset = Toolset()
    for tool in sent.get("tools") or ():
        toolset.add(tool, lambda args: args, effects=False)
    reducer = Reducer.from_input(sent, policy="lenient", middleware=[langgraph_interrupts()])
    reducer.apply_sse((folder / f"{name}.sse").read_bytes())
    reducer.end()
    return Calls(reducer, toolset), [tool.name for tool in toolset]


def recordings(folder: Path, part: str = "") -> list[str]:
    return sorted(path.stem for path in folder.glob("*.sse") if part in path.stem)


def test_frontend_calls_left_pending_are_answered(shared: Path) -> None:
    folder = shared / "recordings"
    names = [*recordings(folder, "frontend_pending"), *recordings(folder, "external_tool_pending")]
    played = [(name, *play(folder, name)) for name in names]
    played = [(name, calls, advertised) for name, calls, advertised in played if advertised]
    assert len(played) >= 7
    for name, calls, advertised in played:
        pending = calls.reducer.run.pending_tool_calls
        ours = tuple(id for id in pending if calls.reducer.tool_calls[id].name in advertised)
        assert ours, name
        assert calls.waiting().application == ours, name
        assert anyio.run(calls.answer) == ours, name
        assert calls.ready(), name
        added = [m for m in calls.next_input().messages if isinstance(m, ToolMessage) and m.tool_call_id in ours]
        assert [json.loads(str(message.content)) for message in added] == [
            calls.reducer.tool_calls[id].args for id in ours
        ], name


def test_every_recorded_thread_goes_on(shared: Path) -> None:
    folder = shared / "recordings"
    names = recordings(folder)
    assert len(names) > 60
    for name in names:
        calls, _ = play(folder, name)
        anyio.run(calls.answer)
        calls.resume({interrupt.id: None for interrupt in calls.interrupts})
        sent = calls.next_input()
        held = [message for message in calls.reducer.messages if not isinstance(message, ActivityMessage)]
        assert list(sent.messages) == list(readable(held, WarningLog())), name
        assert [message.id for message in sent.messages] == [message.id for message in held], name
        again = Calls.restore(calls.checkpoint(), calls.toolset, middleware=[langgraph_interrupts()])
        assert again.waiting() == calls.waiting(), name
        with pytest.raises(ProtocolError):
            decode(encode(sent))  # an input is no event
        assert Reducer.from_input(to_wire(sent)).messages == sent.messages, name


def test_the_case_of_interrupt_coverage(shared: Path) -> None:
    case = json.loads((shared / "cases" / "interrupt-coverage.json").read_text())
    for attempt in case["expect"]["nextRuns"]:
        calls = Calls(Reducer(messages=case["input"]["messages"], state=case["input"]["state"]), Toolset())
        feed(calls.reducer, case["events"])
        entries = attempt["resume"]
        if attempt["accepted"]:
            calls.resume(entries)
            sent = calls.next_input()
            assert to_wire(sent)["resume"] == entries
            assert sent.thread_id == "t-hitl"
            assert sent.state == {"mode": "ask"}
        else:
            with pytest.raises(ResumeError):
                calls.resume(entries or [])
            with pytest.raises(ResumeError, match="INT-6"):
                calls.next_input()


@pytest.mark.parametrize(
    ("name", "decide"),
    [
        ("agent_framework__approval_pending", {"path": "notes/other.txt"}),
        ("langgraph__interrupt_outcome", None),
        ("strands__interrupt_on_call", None),
    ],
)
def test_recordings_of_interrupted_runs(shared: Path, name: str, decide: Any) -> None:
    sent = json.loads((shared / "recordings" / f"{name}.input.json").read_text())
    calls = Calls(Reducer.from_input(sent), Toolset())
    calls.reducer.apply_sse((shared / "recordings" / f"{name}.sse").read_bytes())
    calls.reducer.end()
    assert calls.reducer.status == "interrupted"
    (open_one,) = calls.interrupts
    assert calls.waiting().who == "approver"
    assert not calls.ready()
    with pytest.raises(ResumeError, match="INT-6"):
        calls.next_input()
    verdict = Verdict(approved=True, edited_args=decide)
    if open_one.tool_call_id in calls.reducer.tool_calls:
        calls.approve(str(open_one.tool_call_id), decide)
    else:
        calls.resume({open_one.id: verdict})
    assert calls.waiting().who == "agent"
    assert calls.ready()
    following = to_wire(calls.next_input())
    payload = {"approved": True} if decide is None else {"approved": True, "editedArgs": decide}
    assert following["resume"] == [{"interruptId": open_one.id, "status": "resolved", "payload": payload}]
    assert following["threadId"] == sent["threadId"]
    assert following["messages"] == to_wire(calls.reducer.messages)


@pytest.mark.parametrize(
    "name",
    ["agent_framework__approval_resume", "pydantic_ai__approval_resume", "strands__interrupt_resume"],
)
def test_recordings_of_resumed_runs(shared: Path, name: str) -> None:
    sent = json.loads((shared / "recordings" / f"{name}.input.json").read_text())
    reducer = Reducer.from_input(sent)
    reducer.apply_sse((shared / "recordings" / f"{name}.sse").read_bytes())
    reducer.end()
    calls = Calls(reducer, Toolset())
    assert calls.interrupts == ()
    assert calls.waiting().who == "nobody"
    assert next(calls.state(id) for id in calls.reducer.tool_calls) == "output-available"


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("langgraph__interrupt_legacy", "run-lg-intr:interrupt:1"),
        ("langgraph_old__interrupt_legacy", "9e657497db089f833acc1a16a0b45889"),
    ],
)
def test_recordings_of_langgraphs_older_interrupts(shared: Path, name: str, id: str) -> None:
    sent = json.loads((shared / "recordings" / f"{name}.input.json").read_text())
    calls = Calls(Reducer.from_input(sent, middleware=[langgraph_interrupts()]), Toolset())
    calls.reducer.apply_sse((shared / "recordings" / f"{name}.sse").read_bytes())
    calls.reducer.end()
    assert calls.reducer.status == "interrupted"
    (open_one,) = calls.interrupts
    assert (open_one.id, open_one.reason) == (id, "langgraph:interrupt")
    assert open_one.message == "Approve sending to Ürsula?"
    assert open_one.tool_call_id == "call_x"
    assert open_one.response_schema == {"type": "object"}
    calls.resume({id: True})
    following = to_wire(calls.next_input(forwarded_props={"user": 1, "command": {"goto": "x"}}))
    assert "resume" not in following
    assert following["forwardedProps"] == {"user": 1, "command": {"goto": "x", "resume": {"approved": True}}}


def test_todays_outcome_is_left_as_it_is(shared: Path) -> None:
    data = (shared / "recordings" / "langgraph__interrupt_outcome.sse").read_bytes()
    plain, bridged = Reducer(), Reducer(middleware=[langgraph_interrupts()])
    plain.apply_sse(data)
    bridged.apply_sse(data)
    assert bridged.run == plain.run
    calls = Calls(bridged, Toolset())
    calls.resume({calls.interrupts[0].id: True})
    assert calls.next_input().resume
