"""Whatever agents, people and restarts do in whatever order: an effect happens once for a call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio
import anyio.lowlevel
from call_streams import call, feed, finished, snapshot, started
from hypothesis import given, settings
from hypothesis import strategies as st

from agui_core.errors import AGUIError
from agui_core.protocol.messages import ToolMessage
from agui_core.reducer import Reducer
from agui_core.tools import Calls, ToolContext, Toolset
from agui_core.wire import to_wire

Step: TypeAlias = tuple[Any, ...]
Key: TypeAlias = tuple[str, str, float]

IDS = st.sampled_from(["a", "b"])
NAMES = st.sampled_from(["pay", "pay", "refund", "refund", "read"])
AMOUNTS = st.sampled_from(["1", "1.0", "2"])

CALLED = st.tuples(st.just("call"), IDS, NAMES, AMOUNTS)
RESTATED = st.tuples(st.just("restate"), st.integers(0, 15), st.booleans(), st.none() | AMOUNTS, st.none() | NAMES)
"""Bits of the messages that stay, whether metadata does, and what the calls in them are made."""
EVENTS = st.lists(CALLED | CALLED | RESTATED, max_size=3)
RUN = st.tuples(
    st.just("run"),
    EVENTS,
    st.sampled_from(["finished"] * 4 + ["cancelled", "error", "cut"]),
    st.sampled_from([0, 0, 1]),
)
STEPS = st.one_of(
    RUN,
    RUN,
    st.tuples(st.just("answer"), st.sampled_from([0, 0, 0, 1, 2])),
    st.tuples(st.just("answer"), st.sampled_from([0, 0, 0, 1, 2])),
    st.tuples(st.just("approve"), IDS, st.none() | AMOUNTS),
    st.tuples(st.just("deny"), IDS),
    st.tuples(st.just("hand"), IDS),
    st.tuples(st.just("restart"), st.booleans()),
    st.tuples(st.just("crash")),
)


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
            await self.calls.answer(keep=keep)
        self.stop = None
        self.save()

    def approve(self, id: str, amount: str | None) -> None:
        self.calls.approve(id, None if amount is None else {"amount": float(amount)})

    def deny(self, id: str) -> None:
        self.calls.deny(id)

    def hand(self, id: str) -> None:
        self.calls.set_output(id, "by hand")

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


async def _play(steps: list[Step]) -> None:
    world = World()
    for kind, *rest in steps:
        try:
            done: Awaitable[None] | None = getattr(world, kind)(*rest)
            if done is not None:
                await done
        except AGUIError:
            world.calls.reducer.end()
            if world.calls.reducer.status in ("rejected", "failed"):
                world.calls.renew()
                world.whole, world.parts = world.calls.checkpoint(), []
                world.at = world.calls.reducer.version
        world.check()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(STEPS, min_size=2, max_size=14))
def test_an_effect_happens_once_for_a_call(steps: list[Step]) -> None:
    anyio.run(_play, steps)
