"""Whatever agents, people and restarts do in whatever order: an effect happens once for a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
from hypothesis import example, given
from hypothesis import strategies as st

from agui_core.errors import AGUIError, ApprovalError, ResumeError
from agui_core.protocol.messages import ToolMessage
from agui_core.reducer import Reducer
from agui_core.tools import Calls, InvalidArguments, ToolContext, Toolset
from agui_core.wire import to_wire
from support.call_streams import call, feed, finished, started
from support.events import snapshot
from support.properties import examples

Step: TypeAlias = tuple[Any, ...]
Key: TypeAlias = tuple[str, str, float]

IDS = st.sampled_from(["a", "b"])
NAMES = st.sampled_from(["pay", "pay", "refund", "refund", "read"])
AMOUNTS = st.sampled_from(["1", "1.0", "2"])

CALLED = st.tuples(st.just("call"), IDS, NAMES, AMOUNTS)
RESTATED = st.tuples(
    st.just("restate"), st.sampled_from([0, 0, 5, 15, 15]), st.booleans(), st.none() | AMOUNTS, st.none() | NAMES
)
"""Bits of the messages that stay, whether metadata does, and what the calls in them are made."""
ENDINGS = st.sampled_from([*["finished"] * 6, "cancelled", "error", "cut"])
RUN = st.tuples(st.just("run"), st.lists(CALLED | RESTATED, max_size=3), ENDINGS, st.sampled_from([0, 0, 0, 1]))
ANSWER = st.tuples(st.just("answer"), st.sampled_from([0, 0, 0, 0, 1, 2]))
APPROVE = st.tuples(st.just("approve"), IDS, st.none() | AMOUNTS)
OTHER = st.one_of(
    st.tuples(st.just("deny"), IDS),
    st.tuples(st.just("hand"), IDS),
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.just("crash")),
)
ROUND = st.tuples(RUN, APPROVE | OTHER, APPROVE | ANSWER, ANSWER)
"""Decisions that the thread does not allow are refused, and the history goes on."""


class World:
    """A thread, and what happened in it."""

    def __init__(self) -> None:
        self.done: set[Key] = set()
        self.faults: list[str] = []
        self.offered = self.offered_then = frozenset({"pay", "refund", "read"})
        self.runs = 0
        self.stop: Callable[[], object] | None = None
        self.tools = Toolset()
        self.tools.tool(name="pay", effects=True)(self.pay)
        self.tools.tool(name="refund", effects=True, approval="never")(self.refund)
        self.tools.tool(name="read")(self.read)
        self.calls = Calls(Reducer(), self.tools)
        self.whole = self.kept = self.calls.checkpoint()
        self.parts: list[bytes] = []
        self.at = self.calls.reducer.version

    async def pay(self, amount: float, context: ToolContext) -> str:
        return await self.effect("pay", amount, context)

    async def refund(self, amount: float, context: ToolContext) -> str:
        return await self.effect("refund", amount, context)

    async def read(self, context: ToolContext, amount: float = 0) -> str:
        self.check_offered("read")
        return "read"

    def check_offered(self, name: str) -> None:
        if name not in self.offered:
            self.faults.append(f"{name} ran, and the last input offered {sorted(self.offered)}")

    async def effect(self, name: str, amount: float, context: ToolContext) -> str:
        self.check_offered(name)
        view = self.calls.reducer.tool_calls[context.call_id]
        keys: set[Key] = {(view.id, name, amount), (view.id, name, float(view.args["amount"]))}
        if keys & self.done:
            self.faults.append(f"{sorted(keys & self.done)} ran twice")
        self.done |= keys
        if self.stop is not None:
            self.stop()
        await anyio.lowlevel.checkpoint()
        return name

    # What may happen.

    def run(self, events: list[Step], ending: str, fewer: int) -> None:
        tools = self.tools.filter(["read", "refund"]) if fewer else self.tools
        sent = self.calls.next_input(thread_id="t", run_id=f"r{self.runs}", tools=tools)
        self.runs += 1
        self.offered = frozenset(tool.name for tool in tools)
        reducer = self.calls.reducer
        feed(reducer, started(sent.run_id))
        for kind, *rest in events:
            getattr(self, kind)(*rest)
        if ending == "cut":
            reducer.end()
        elif ending == "error":
            feed(reducer, {"type": "RUN_ERROR", "message": "gone"})
        else:
            feed(reducer, finished(sent.run_id, None if ending == "finished" else {"type": ending}))

    def call(self, id: str, name: str, amount: str) -> None:
        feed(self.calls.reducer, call(id, name, f'{{"amount": {amount}}}', parent=f"m-{id}"))

    def restate(self, bits: int, whole: bool, amount: str | None, name: str | None) -> None:
        kept = [m for index, m in enumerate(to_wire(self.calls.reducer.messages)) if bits >> index % 4 & 1]
        for message in kept:
            if not whole:
                message.pop("metadata", None)
            for each in message.get("toolCalls", ()):
                if amount is not None:
                    each["function"]["arguments"] = f'{{"amount": {amount}}}'
                each["function"]["name"] = name or each["function"]["name"]
        feed(self.calls.reducer, snapshot(*kept))

    async def answer(self, cancelled: int) -> None:
        """`cancelled`: 1 at once, 2 in the middle of an effect."""

        async def keep() -> None:
            self.kept, self.offered_then = self.calls.checkpoint(), self.offered

        with anyio.CancelScope() as scope:
            self.stop = scope.cancel if cancelled == 2 else None
            if cancelled == 1:
                scope.cancel()
            await self.calls.answer(before_effect=keep)
        self.stop = None
        self.save()

    def approve(self, id: str, amount: str | None) -> None:
        waiting = self.calls.waiting().approver
        id = id if id in waiting or not waiting else waiting[0]
        self.calls.approve(id, None if amount is None else {"amount": float(amount)})

    def deny(self, id: str) -> None:
        self.calls.deny(id)

    def hand(self, id: str) -> None:
        self.calls.set_output(id, "by hand")

    def give_up(self) -> None:
        """Nobody decides: what waits for a person is refused, so that the thread goes on."""
        for id in self.calls.waiting().approver:
            self.calls.deny(id)

    def save(self) -> None:
        self.kept, self.offered_then = self.calls.checkpoint(), self.offered
        self.parts.append(self.calls.checkpoint(self.at))
        self.at = self.calls.reducer.version

    def restart(self, whole: bool) -> None:
        self.save()
        if whole:
            self.whole, self.parts = self.kept, []
        self.calls = Calls.restore(self.whole, self.tools, *self.parts)
        self.anew()

    def crash(self) -> None:
        """All that came after the last thing written down is lost; an effect is written down before it begins."""
        self.calls, self.offered = Calls.restore(self.kept, self.tools), self.offered_then
        self.anew()

    def anew(self) -> None:
        self.calls.reducer.end()
        self.whole, self.parts, self.at = self.calls.checkpoint(), [], self.calls.reducer.version

    def check(self) -> None:
        assert not self.faults, self.faults
        ours = [
            message.tool_call_id
            for message in self.calls.reducer.messages
            if isinstance(message, ToolMessage) and message.id.endswith(":answer")
        ]
        assert len(ours) == len(set(ours)), f"two answers of ours: {ours}"
        assert all(
            self.calls.reducer.tool_calls[id].result is not None for id in ours if id in self.calls.reducer.tool_calls
        )


async def _play(rounds: list[tuple[Step, ...]]) -> None:
    world = World()
    for kind, *rest in (step for steps in rounds for step in steps):
        try:
            done: Awaitable[None] | None = getattr(world, kind)(*rest)
            if done is not None:
                await done
        except ResumeError:
            world.give_up()
        except (ApprovalError, InvalidArguments):
            pass
        except AGUIError:
            world.calls.reducer.end()
            if world.calls.reducer.status in ("rejected", "failed"):
                world.calls.renew()
                world.anew()
        world.check()


def _again(*restated: Any) -> list[tuple[Step, ...]]:
    """A call runs, the agent restates it, the process starts anew, the call disappears and comes again."""
    called, answer = ("call", "a", "refund", "1"), ("answer", 0)
    gone = ("restate", 0, True, None, None)
    return [
        (("run", [called], "finished", 0), answer),
        (("run", [("restate", 15, *restated)], "finished", 0), ("restart", True)),
        (("run", [gone, called], "finished", 0), answer),
    ]


@example(_again(False, None, None))
@example(_again(True, "2", None))
@example(_again(True, None, "read"))
@examples(500, derandomize=True)
@given(st.lists(ROUND, min_size=3, max_size=6))
def test_an_effect_happens_once_for_a_call(rounds: list[tuple[Step, ...]]) -> None:
    anyio.run(_play, rounds)
