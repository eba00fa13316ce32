"""Random conversations: whatever agent and user do, each input that goes out is one that may be sent."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

import anyio
import pytest

import agui_core as agui
from agui_core.tools import Verdict
from support.chats import ask, call, interrupted, say, tools

pytestmark = pytest.mark.anyio

SEEDS = range(12)
STEPS = 60


class Moody:
    """An agent that does anything; checks what it is sent."""

    def __init__(self, random: random.Random) -> None:
        self.random = random
        self.count = 0
        self.active = 0
        self.run_ids: set[str] = set()
        self.open: tuple[str, ...] = ()
        """Interrupts of the last run that ended with some, until a run took up the answers."""

    async def run(self, run_input: agui.RunAgentInput) -> AsyncIterator[Any]:
        assert self.active == 0, "one run at a time"
        self._check(run_input)
        if self.random.random() < 0.1:
            raise agui.TransportError("unreachable")
        return self._events(run_input)

    def _check(self, run_input: agui.RunAgentInput) -> None:
        assert run_input.run_id not in self.run_ids, "IN-8"
        self.run_ids.add(run_input.run_id)
        resumed = [entry.interrupt_id for entry in run_input.resume or ()]
        assert sorted(resumed) == sorted(self.open), "INT-6"
        messages = run_input.messages
        answered = [message.tool_call_id for message in messages if message.role == "tool"]
        assert len(answered) == len(set(answered)), "one answer for each call"
        made = [call.id for message in messages if message.role == "assistant" for call in message.tool_calls or ()]
        named = {id.removeprefix("about-") for id in resumed}
        # A call that an interrupt names is the agent's to answer, and this one never does.
        unanswered = {id for id in made if id not in answered and not id.startswith("wipe")}
        assert unanswered <= named, "FT-5, OPEN-17"

    async def _events(self, run_input: agui.RunAgentInput) -> AsyncIterator[Any]:
        self.active += 1
        try:
            ids = {"threadId": run_input.thread_id, "runId": run_input.run_id}
            if self.random.random() < 0.1:
                yield {"type": "RUN_ERROR", "message": "busy"}
                return
            self.open = ()
            yield {"type": "RUN_STARTED", **ids}
            for step in self._steps():
                await anyio.lowlevel.checkpoint()
                yield step
            ending = self.random.choice(["plain", "plain", "plain", "ask", "error", "refused", "broken", "hang"])
            if ending == "plain":
                yield {"type": "RUN_FINISHED", **ids}
            elif ending == "ask":
                calls, questions = self._ask()
                for event in calls:
                    yield event
                self.open = tuple(question["id"] for question in questions)
                yield {**interrupted(*questions), **ids}
            elif ending == "error":
                yield {"type": "RUN_ERROR", "message": "boom"}
            elif ending == "refused":
                yield {"type": "TEXT_MESSAGE_END", "messageId": "nothing"}
            elif ending == "broken":
                raise agui.TransportError("broken")
            else:
                await anyio.sleep_forever()
        finally:
            self.active -= 1

    def _steps(self) -> list[Any]:
        steps: list[Any] = []
        for _ in range(self.random.randrange(3)):
            self.count += 1
            kind = self.random.choice(["say", "look_up", "delete", "show"])
            if kind == "say":
                steps += say("text", f"m{self.count}")
            else:
                steps += call(f"c{self.count}", kind)[: self.random.choice([3, 3, 3, 2])]
                steps += [{"type": "TOOL_CALL_END", "toolCallId": f"c{self.count}"}] * (
                    steps[-1]["type"] != "TOOL_CALL_END"
                )
        return steps

    def _ask(self) -> tuple[list[Any], list[Any]]:
        self.count += 1
        wipe = f"wipe{self.count}"
        questions = [ask(f"i{self.count}"), {"id": f"about-{wipe}", "reason": "tool_call", "toolCallId": wipe}]
        return call(wipe, "wipe"), self.random.sample(questions, self.random.choice([1, 2]))


class User:
    """A user who does anything that the conversation lets them do."""

    def __init__(self, random: random.Random, chat: agui.Conversation) -> None:
        self.random = random
        self.chat = chat

    def act(self) -> None:
        chat, waits = self.chat, self.chat.waiting()
        actions: list[Any] = [
            lambda: chat.send("hi"),
            lambda: chat.send("anyway", abandon=True),
            chat.retry,
            chat.proceed,
            chat.stop,
            lambda: chat.resume(dict.fromkeys(waits.interrupts, self.random.choice([True, False, None]))),
        ]
        actions += [partial(chat.approve, id) for id in waits.approver]
        actions += [partial(chat.deny, id) for id in waits.approver]
        actions += [partial(chat.set_output, id, "shown") for id in waits.application]
        actions += [partial(chat.set_output, id, "late") for id in chat.run.calls_without_result]
        try:
            self.random.choice(actions)()
        except (agui.StillWaiting, agui.ApprovalError, agui.ResumeError):
            return


async def confirm(request: Any) -> Verdict | None:
    return None if request.arguments == "{}" and request.interrupt is None else Verdict(approved=True)


async def decline(interrupt: agui.Interrupt) -> Any:
    return None


@pytest.mark.parametrize("seed", SEEDS)
async def test_every_input_may_be_sent(seed: int) -> None:
    dice = random.Random(seed)
    agent = Moody(dice)
    options = {"interval": 0, "max_rounds": 4, **dice.choice([{}, {"confirm": confirm}, {"on_interrupt": decline}])}
    chat = agui.Conversation(agent, tools, thread_id="t", **options)
    steps = STEPS
    while steps > 0:
        async with chat:
            user = User(dice, chat)
            while steps > 0 and (steps % 20 or chat.turn is None or dice.random() < 0.5):
                steps -= 1
                user.act()
                for _ in range(dice.choice([0, 1, 5, 50])):
                    await anyio.lowlevel.checkpoint()
                assert not isinstance(chat.error, AssertionError), chat.error
                assert chat.error is None or isinstance(chat.error, agui.TransportError | agui.ProtocolError)
            data, held = chat.checkpoint(), agui.to_wire(chat.messages)
        assert agent.active == 0
        chat = agui.Conversation.restore(data, agent, tools, **options)
        assert agui.to_wire(chat.messages) == held
        steps -= 1
