"""Whole conversations between an agent and an application, also with the process killed on the way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from agui_core.errors import AGUIError, DecodeError
from agui_core.protocol.messages import ToolMessage, UserMessage
from agui_core.protocol.run import ResumeEntry, RunAgentInput
from agui_core.reducer import Reducer
from agui_core.tools import ApprovalRequest, Calls, Toolset, Verdict, decisions, interrupt_for
from agui_core.wire import decode, encode, encode_sse, to_wire
from support.call_streams import answers, call, feed, finished, interrupted, kinds, result, run, started, thread

pytestmark = pytest.mark.anyio


class World:
    """What the application's tools do. It outlives the process."""

    def __init__(self) -> None:
        self.confirmed: list[tuple[str, str]] = []
        self.stuck = False

    def tools(self) -> Toolset:
        """The tools, declared anew by each process."""
        toolset = Toolset()

        @toolset.tool(name="confirmAction", effects=True)
        async def confirm_action(action: str, importance: str = "low") -> str:
            """Do something that a person has to agree to."""
            self.confirmed.append((action, importance))
            if self.stuck:
                await anyio.sleep_forever()
            return f"{action} is done"

        @toolset.tool
        async def look_up(word: str) -> str:
            """Look a word up."""
            return f"meaning of {word}"

        return toolset


def agent(sent: RunAgentInput) -> Iterator[dict[str, Any]]:
    """Asks for confirmation of what the user wants, and reports what came of it."""
    yield started(sent.run_id)
    reported = [m.content for m in sent.messages if isinstance(m, ToolMessage)]
    if reported:
        yield from say(f"{sent.run_id}-text", f"Reported: {reported}")
    else:
        yield from call("c1", "confirmAction", '{"action": "wipe disk a"}', parent="m1")
        yield from call("c2", "look_up", '{"word": "disk"}', parent="m1")
    yield finished(sent.run_id)


def say(id: str, text: str) -> list[dict[str, Any]]:
    return [
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text},
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    ]


def post(calls: Calls, sent: RunAgentInput) -> None:
    """Over the wire and back."""
    received = Reducer.from_input(encode(sent))
    assert received.messages == sent.messages
    for event in agent(sent):
        decoded = decode(json.dumps(event))
        assert decoded is not None
        calls.reducer.apply_sse(encode_sse(decoded))


def reborn(calls: Calls, world: World) -> Calls:
    """The process was killed, and another one goes on from the checkpoint."""
    again = Calls.restore(calls.checkpoint(), world.tools())
    assert again.reducer.version == calls.reducer.version
    assert again.waiting() == calls.waiting()
    assert {id: again.state(id) for id in again.reducer.tool_calls} == {
        id: calls.state(id) for id in calls.reducer.tool_calls
    }
    return again


def keep_on(calls: Calls, world: World) -> Calls:
    return calls


# --- confirmAction ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_input", [reborn, keep_on])
@pytest.mark.parametrize("after_run", [reborn, keep_on])
@pytest.mark.parametrize("after_approval", [reborn, keep_on])
@pytest.mark.parametrize("after_answer", [reborn, keep_on])
async def test_confirm_action_from_asking_to_reporting(
    after_input: Any, after_run: Any, after_approval: Any, after_answer: Any
) -> None:
    world = World()
    calls = Calls(Reducer(), world.tools())
    calls.reducer.add(UserMessage(id="u1", content="Wipe disk a."))
    sent = calls.next_input(thread_id="t", run_id="r1")
    calls = after_input(calls, world)
    post(calls, sent)
    calls = after_run(calls, world)
    version = calls.reducer.version
    assert await calls.answer() == ("c2",)
    calls.approve("c1", {"action": "wipe disk b", "importance": "high"}, reason="a is in use")
    calls = after_approval(calls, world)
    assert calls.state("c1") == "approval-responded"
    assert await calls.answer() == ("c1",)
    calls = after_answer(calls, world)
    assert world.confirmed == [("wipe disk b", "high")]
    assert calls.ready(since=version)
    sent = calls.next_input(run_id="r2")
    assert [to_wire(message) for message in sent.messages][2:] == [
        {
            "id": "r1:c2:answer",
            "role": "tool",
            "toolCallId": "c2",
            "content": "meaning of disk",
            "metadata": {"agui_core.answer": "ok"},
        },
        {
            "id": "r1:c1:answer",
            "role": "tool",
            "toolCallId": "c1",
            "content": "A person changed the arguments; it ran with"
            ' {"action":"wipe disk b","importance":"high"}\n\nwipe disk b is done',
            "metadata": {
                "agui_core.answer": "ok",
                "agui_core.approval": {"by": "person", "edited": True, "reason": "a is in use"},
            },
        },
    ]
    post(calls, sent)
    assert calls.reducer.status == "finished"
    assert calls.waiting().who == "nobody"
    assert "wipe disk b is done" in str(calls.reducer.messages[-1].content)
    assert calls.reducer.tool_calls["c1"].arguments == '{"action": "wipe disk a"}'


async def test_a_process_killed_in_the_middle_of_an_execution_does_not_execute_again() -> None:
    world = World()
    calls = Calls(Reducer(), world.tools())
    post(calls, calls.next_input(thread_id="t", run_id="r1"))
    calls.approve("c1")
    world.stuck = True
    kept: list[bytes] = []

    async def keep() -> None:
        kept.append(calls.checkpoint())
        assert world.confirmed == [], "the mark comes before the tool"

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: calls.answer(before_effect=keep))
        await anyio.wait_all_tasks_blocked()
        later = calls.checkpoint()
        tasks.cancel_scope.cancel()
    assert world.confirmed == [("wipe disk a", "low")]

    world.stuck = False
    for data in (*kept, later):
        again = Calls.restore(data, world.tools())
        assert await again.answer() == ("c1", "c2")
        answer = answers(again)["c1"]
        assert answer.content == "The application was restarted while this call ran: it may or may not have run."
        assert answer.error == "may or may not have run"
        assert kinds(again) == {"c1": "cancelled", "c2": "ok"}
        post(again, again.next_input(run_id="r2"))
        assert "may or may not have run" in str(again.reducer.messages[-1].content)
    assert world.confirmed == [("wipe disk a", "low")], "it was run again"


async def test_what_was_finished_and_waited_for_its_turn_survives_a_restart() -> None:
    world = World()
    calls = Calls(Reducer(), world.tools())
    post(calls, calls.next_input(thread_id="t", run_id="r1"))
    calls.approve("c1")
    world.stuck = True
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await anyio.wait_all_tasks_blocked()
        data = calls.checkpoint()
        tasks.cancel_scope.cancel()
    again = Calls.restore(data, world.tools())
    assert again.state("c2") == "output-available"
    assert answers(again) == {}
    assert await again.answer() == ("c1", "c2")
    assert kinds(again) == {"c1": "cancelled", "c2": "ok"}


async def test_a_tool_without_effects_is_simply_run_again_after_a_restart() -> None:
    tools = Toolset()
    entered = []

    @tools.tool
    async def read() -> str:
        entered.append(True)
        if len(entered) == 1:
            await anyio.sleep_forever()
        return "read"

    calls = thread(tools, run("r", call("a", "read")))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(calls.answer)
        await anyio.wait_all_tasks_blocked()
        data = calls.checkpoint()
        tasks.cancel_scope.cancel()
    again = Calls.restore(data, tools)
    await again.answer()
    assert kinds(again) == {"a": "ok"}


async def test_a_toolset_that_shrank_over_a_restart_still_answers() -> None:
    world = World()
    calls = Calls(Reducer(), world.tools())
    post(calls, calls.next_input(thread_id="t", run_id="r1"))
    calls.approve("c1")
    again = Calls.restore(calls.checkpoint(), world.tools().filter(["look_up"]))
    assert await again.answer() == ("c1", "c2")
    assert kinds(again) == {"c1": "invalid", "c2": "ok"}
    again.next_input()


async def test_edited_arguments_survive_whatever_they_hold() -> None:
    tools = Toolset()
    got = []
    tools.add({"name": "any", "description": ""}, got.append)
    calls = thread(tools, run("r", call("a", "any")))
    deep: Any = 1
    for number in range(150):
        deep = {"x": deep} if number % 2 else [deep]
    edited = {"big": 10**50, "float": 1.0, "null": None, "text": "\N{PILE OF POO}\u2028", "deep": deep}
    calls.approve("a", edited, reason="half \ud83d")
    again = Calls.restore(calls.checkpoint(), tools)
    await again.answer()
    assert got == [edited]


# --- interrupts ---------------------------------------------------------------------------------------------------


class DeletingAgent:
    """Runs its own tool when a person approved it. Knows nothing but what it is sent."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def run(self, sent: RunAgentInput) -> Iterator[Any]:
        yield started(sent.run_id)
        reducer = Reducer.from_input(sent)
        if "d1" not in reducer.tool_calls:
            yield from call("d1", "delete_file", '{"path": "notes.txt"}', parent="m1")
            asking = Reducer()
            feed(asking, run("x", call("d1", "delete_file")))
            outcome = interrupt_for(asking.tool_calls["d1"])
            yield finished(sent.run_id, to_wire(outcome))
            return
        outcome = interrupt_for(reducer.tool_calls["d1"])
        verdict = decisions(sent.resume, outcome)["d1:approval"]
        if verdict.approved:
            path = (verdict.edited_args or reducer.tool_calls["d1"].args)["path"]
            self.deleted.append(path)
            yield result("d1", f"deleted {path}")
        else:
            yield result("d1", "given up" if verdict.cancelled else f"denied: {verdict.reason}")
        yield from say(f"{sent.run_id}-text", "All done.")
        yield finished(sent.run_id)


@pytest.mark.parametrize("after_run", [reborn, keep_on])
@pytest.mark.parametrize("after_approval", [reborn, keep_on])
@pytest.mark.parametrize("after_input", [reborn, keep_on])
@pytest.mark.parametrize("midway", [reborn, keep_on])
@pytest.mark.parametrize(
    ("verdict", "content"),
    [
        (Verdict(approved=True), "deleted notes.txt"),
        (Verdict(approved=True, edited_args={"path": "other.txt"}), "deleted other.txt"),
        (Verdict(approved=False, reason="keep it"), "denied: keep it"),
        (None, "given up"),
    ],
)
def test_an_interrupt_from_asking_to_reporting(
    verdict: Verdict | None, content: str, after_run: Any, after_approval: Any, after_input: Any, midway: Any
) -> None:
    world, deleting = World(), DeletingAgent()
    calls = Calls(Reducer(), world.tools())
    feed(calls.reducer, *deleting.run(calls.next_input(thread_id="t", run_id="r1")))
    calls = after_run(calls, world)
    assert calls.reducer.status == "interrupted"
    assert calls.state("d1") == "approval-requested"
    assert calls.waiting().interrupts == ("d1:approval",)
    if verdict is None:
        calls.resume({"d1:approval": None})
    elif verdict.approved:
        calls.approve("d1", verdict.edited_args)
    else:
        calls.deny("d1", verdict.reason)
    calls = after_approval(calls, world)
    assert calls.state("d1") == "approval-responded"
    assert calls.ready()
    sent = calls.next_input(run_id="r2")
    calls = after_input(calls, world)
    for number, event in enumerate(deleting.run(sent)):
        feed(calls.reducer, event)
        if number == 0:
            calls = midway(calls, world)
            assert calls.interrupts == ()
    assert calls.state("d1") == "output-available"
    assert answers(calls)["d1"].content == content
    assert deleting.deleted == ([content.removeprefix("deleted ")] if content.startswith("deleted") else [])
    assert calls.waiting().who == "nobody"
    assert not calls.next_input(run_id="r3").resume


# --- checkpoints --------------------------------------------------------------------------------------------------


def test_increments_of_a_checkpoint() -> None:
    world = World()
    calls = Calls(Reducer(), world.tools())
    sent = calls.next_input(thread_id="t", run_id="r1")
    whole, version = calls.checkpoint(), calls.reducer.version
    post(calls, sent)
    calls.approve("c1")
    again = Calls.restore(whole, world.tools(), calls.checkpoint(since=version))
    assert again.state("c1") == "approval-responded"
    assert again.reducer.messages == calls.reducer.messages


def test_a_checkpoint_of_a_reducer_alone_starts_without_memory() -> None:
    world = World()
    calls = Calls(Reducer(), world.tools())
    post(calls, calls.next_input(thread_id="t", run_id="r1"))
    again = Calls.restore(calls.reducer.checkpoint(), world.tools())
    assert again.waiting() == calls.waiting()


@pytest.mark.parametrize("extra", [b"{", b"[]", b"\xff", b'{"format": 99}', b'{"records": {"a": 5}}', b"null"])
def test_a_checkpoint_with_an_extra_of_somebody_else_is_refused(extra: bytes) -> None:
    with pytest.raises(DecodeError, match="CHECKPOINT"):
        Calls.restore(Reducer().checkpoint(extra), Toolset())


def test_bytes_that_are_no_checkpoint_are_refused() -> None:
    with pytest.raises(AGUIError):
        Calls.restore(b"what?", Toolset())


# --- automatic continuation ---------------------------------------------------------------------------------------


class Script:
    """An agent that says what is written down, run by run."""

    def __init__(self, *runs: list[Any]) -> None:
        self.runs = list(runs)
        self.sent: list[RunAgentInput] = []
        self.calls: Calls | None = None

    async def send(self, sent: RunAgentInput) -> None:
        assert self.calls is not None
        self.sent.append(sent)
        await anyio.lowlevel.checkpoint()
        events = self.runs.pop(0)
        if not events or events[0]["type"] != "RUN_STARTED":
            events = [started(sent.run_id), *events, finished(sent.run_id)]
        feed(self.calls.reducer, events)


def scripted(*runs: list[Any], first: list[Any]) -> tuple[Calls, Script]:
    world, script = World(), Script(*runs)
    script.calls = thread(world.tools(), first)
    return script.calls, script


def asking(id: str, word: str = "x") -> list[Any]:
    return call(id, "look_up", f'{{"word": "{word}"}}')


async def test_it_goes_on_until_the_agent_is_done() -> None:
    calls, script = scripted(asking("b", "y"), say("end", "Done."), first=run("r", asking("a")))
    assert await calls.continue_with(script.send, context=[{"description": "d", "value": "v"}]) == "done"
    assert [len(sent.messages) for sent in script.sent] == [2, 3]
    assert all(sent.context for sent in script.sent)
    assert kinds(calls) == {"a": "ok", "b": "ok"}


async def test_it_does_nothing_when_there_is_nothing_to_go_on_with() -> None:
    calls, script = scripted(first=run("r", say("x", "Hello.")))
    assert await calls.continue_with(script.send) == "done"
    calls, script = scripted(first=run("r", call("a", "agents_own")))
    assert await calls.continue_with(script.send) == "waiting", "somebody may answer it"


async def test_it_has_a_cap_on_rounds() -> None:
    calls, script = scripted(*(asking(f"c{n}", f"w{n}") for n in range(9)), first=run("r", asking("a")))
    assert await calls.continue_with(script.send, max_rounds=3) == "rounds"
    assert len(script.sent) == 3


async def test_it_stops_when_a_round_brings_nothing_new() -> None:
    calls, script = scripted(asking("b"), asking("c"), first=run("r", asking("a")))
    assert await calls.continue_with(script.send) == "repeated"
    assert len(script.sent) == 1, "the same question got the same answer"
    assert kinds(calls) == {"a": "ok", "b": "ok"}


async def test_it_waits_for_a_person_and_goes_on_later() -> None:
    pay = call("b", "confirmAction", '{"action": "pay"}')
    calls, script = scripted(say("end", "Done."), first=run("r", asking("a"), pay))
    assert await calls.continue_with(script.send) == "waiting"
    assert script.sent == []
    calls.approve("b")
    assert await calls.continue_with(script.send) == "done"
    assert len(script.sent) == 1


async def test_it_asks_on_the_way_also_about_interrupts() -> None:
    stop = [
        started("r2"),
        *call("d", "delete"),
        interrupted("r2", {"id": "i", "reason": "tool_call", "toolCallId": "d"}),
    ]
    pay = call("b", "confirmAction", '{"action": "pay"}')
    calls, script = scripted(stop, [result("d", "deleted")], first=run("r", pay))
    asked = []

    async def confirm(request: ApprovalRequest) -> bool:
        asked.append(request.call_id)
        return True

    assert await calls.continue_with(script.send, confirm) == "done"
    assert asked == ["b", "d"]
    assert script.sent[1].resume == (ResumeEntry(interrupt_id="i", status="resolved", payload={"approved": True}),)


async def test_an_interrupt_that_keeps_coming_back_ends_it() -> None:
    def stop(run_id: str) -> list[Any]:
        return [started(run_id), interrupted(run_id, {"id": "i", "reason": "tool_call", "message": "Sure?"})]

    calls, script = scripted(stop("r2"), stop("r3"), first=stop("r"))

    async def confirm(request: ApprovalRequest) -> bool:
        return True

    assert await calls.continue_with(script.send, confirm) == "repeated"
    assert len(script.sent) == 1


async def test_a_run_that_breaks_ends_it() -> None:
    broken = [started("r2"), *asking("b"), {"type": "RUN_ERROR", "message": "upstream"}]
    calls, script = scripted(broken, first=run("r", asking("a")))
    assert await calls.continue_with(script.send) == "broken"
    assert calls.reducer.status == "failed"
    assert kinds(calls) == {"a": "ok"}
