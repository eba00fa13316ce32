"""Whatever happens in whatever order: one answer a call, nothing run twice, nothing run without what it needs."""

from __future__ import annotations

import random
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agui_core.errors import AGUIError, ApprovalError, ProtocolError, ResumeError
from agui_core.protocol.messages import ToolMessage
from agui_core.reducer import Reducer
from agui_core.tools import ApprovalRequest, Calls, InvalidArguments, Toolset, Verdict
from agui_core.tools.states import TRANSITIONS
from agui_core.wire import to_wire
from support.call_streams import call, feed, finished, interrupt, interrupted, result, started
from support.events import snapshot

pytestmark = pytest.mark.anyio

NAMES = ("read", "pay", "pay", "by_hand", "agents_own", "rule")


class Chaos:
    """An application and an agent that do anything at any time."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.ids = [f"c{number}" for number in range(6)]
        self.runs = 0
        self.approved: set[str] = set()
        self.paid: list[str] = []
        self.tools = Toolset()
        self.tools.tool(name="read")(self.read)
        self.tools.tool(name="pay", effects=True)(self.pay)
        self.tools.tool(name="rule", approval=lambda args: "deny")(self.read)
        self.tools.add({"name": "by_hand", "description": ""}, effects=False)
        self.calls = Calls(Reducer(), self.tools, limit=2)
        self.refused = 0

    async def read(self, n: int = 0) -> str:
        for _ in range(self.chance.randrange(3)):
            await anyio.lowlevel.checkpoint()
        return str(n)

    async def pay(self, order: str) -> str:
        assert order in self.approved, "it ran without an approval of these arguments"
        self.paid.append(order)
        await anyio.lowlevel.checkpoint()
        return "paid"

    # What may happen. Each may be refused by what the thread allows.

    def agent_runs(self) -> None:
        sent = self.calls.next_input(thread_id="t", run_id=f"r{self.runs}")
        self.runs += 1
        feed(self.calls.reducer, started(sent.run_id))

    def agent_calls(self) -> None:
        if self.chance.random() < 0.8:
            self.ids = [*self.ids[1:], f"c{self.chance.randrange(10**9)}"]
        id, name = self.chance.choice([*self.ids, self.ids[-1]]), self.chance.choice(NAMES)
        order = f"o{self.chance.randrange(10**9)}"
        arguments = (
            f'{{"order": "{order}"}}' if name == "pay" else self.chance.choice(["{}", "", '{"n": 3}', "{", "[]"])
        )
        feed(self.calls.reducer, call(id, name, arguments, parent=f"m{self.chance.randrange(3)}"))

    def agent_answers(self) -> None:
        feed(self.calls.reducer, result(self.chance.choice(self.ids)))

    def agent_restates(self) -> None:
        kept = [m for m in self.calls.reducer.messages if self.chance.random() < 0.7]
        feed(self.calls.reducer, snapshot(*map(to_wire, kept)))

    def agent_ends(self) -> None:
        run_id = self.calls.reducer.run.run_id or ""
        pending = list(self.calls.reducer.run.pending_tool_calls)
        about = [interrupt("i", self.chance.choice(pending or self.ids)), interrupt("j")]
        ending = self.chance.choice(
            [
                finished(run_id),
                finished(run_id),
                finished(run_id, {"type": "success", "pendingToolCallIds": pending[:1]}),
                finished(run_id, {"type": "cancelled"}),
                interrupted(run_id, *about),
                {"type": "RUN_ERROR", "message": "gone"},
            ]
        )
        feed(self.calls.reducer, ending)

    def agent_misbehaves(self) -> None:
        feed(self.calls.reducer, {"type": "TOOL_CALL_END", "toolCallId": "never opened"})

    def source_breaks(self) -> None:
        self.calls.reducer.end()

    def person_decides(self) -> None:
        id = self.chance.choice(self.ids)
        if self.chance.random() < 0.3:
            self.calls.deny(id, "no")
            return
        edited = {"order": "edited"} if self.chance.random() < 0.2 else None
        named = any(id == open_one.tool_call_id for open_one in self.calls.interrupts)
        self.calls.approve(id, edited)
        if not named:
            self.approved.add("edited" if edited else self.calls.reducer.tool_calls[id].args["order"])

    def person_resumes(self) -> None:
        choices: list[Any] = [True, False, None, Verdict(approved=True, edited_args={"x": 1})]
        self.calls.resume({open_one.id: self.chance.choice(choices) for open_one in self.calls.interrupts})

    def person_answers_by_hand(self) -> None:
        self.calls.set_output(self.chance.choice(self.ids), "by hand")

    def process_dies(self) -> None:
        self.calls = Calls.restore(self.calls.checkpoint(), self.tools, limit=2)

    def thread_is_renewed(self) -> None:
        if self.calls.reducer.status == "rejected":
            self.calls.renew()

    async def application_answers(self) -> None:
        with anyio.CancelScope() as scope:
            if self.chance.random() < 0.3:
                scope.cancel()
            await self.calls.answer(self.confirm if self.chance.random() < 0.5 else None)

    async def confirm(self, request: ApprovalRequest) -> bool | None:
        await anyio.lowlevel.checkpoint()
        verdict = self.chance.choice([True, False, None])
        if verdict and request.interrupt is None:
            self.approved.add(request.args["order"])
        return verdict

    async def happen(self) -> None:
        """One thing. What the thread does not allow now is refused with an error of the library, and with no other."""
        agent = [*[self.agent_calls] * 6, *[self.agent_ends] * 3, self.agent_answers, self.agent_restates]
        people = [*[self.person_decides] * 5, *[self.person_resumes] * 2, self.person_answers_by_hand]
        application = [
            *[self.application_answers] * 4,
            *[self.agent_runs] * 3,
            self.process_dies,
            self.thread_is_renewed,
        ]
        things: list[Any] = [*people, *application]
        if self.calls.reducer.status == "running":
            things += [*agent, *agent, self.source_breaks]
        if self.chance.random() < 0.005:
            things = [self.agent_misbehaves]
        thing = self.chance.choice(things)
        try:
            done = thing()
            if done is not None:
                await done
        except (ApprovalError, ResumeError, ProtocolError, InvalidArguments):
            self.refused += 1
        except AGUIError as error:
            if "a run is going on" not in str(error):
                raise

    def check(self) -> None:
        calls = self.calls
        ours = [
            message
            for message in calls.reducer.messages
            if isinstance(message, ToolMessage) and message.metadata and "agui_core.answer" in message.metadata
        ]
        assert len({(message.id, message.tool_call_id) for message in ours}) == len(ours)
        assert all(message.content for message in ours)
        assert len(set(self.paid) - {"edited"}) == len([order for order in self.paid if order != "edited"])
        waiting = calls.waiting()
        for id in calls.reducer.tool_calls:
            state = calls.state(id)
            assert state in TRANSITIONS
            if calls.reducer.tool_calls[id].result is not None:
                assert state.startswith("output")
        assert not (waiting.who == "nobody" and (waiting.application or waiting.approver))


@pytest.mark.parametrize("seed", range(15))
async def test_whatever_happens_to_calls_their_promises_hold(seed: int) -> None:
    chaos = Chaos(seed)
    for _ in range(400):
        await chaos.happen()
        chaos.check()
    assert chaos.runs
    assert 0 < chaos.refused < 350
