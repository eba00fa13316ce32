"""What our client has to do with every agent, whatever it is built with: each file has a class of these tests."""

from __future__ import annotations

import pytest
from talking import CALLS, SAID, Talk

from agui_core.tools import Verdict

__all__ = ["AgentTests"]


class AgentTests:
    """Tests of a fixture `talk`: a conversation with an agent as `talking` describes it."""

    pytestmark = pytest.mark.anyio

    rules: tuple[str, ...] = ()
    """What may be warned of in this agent's streams."""
    at_once = 1
    """How many calls of the model are open at the same time."""
    denied = "no"
    """What a denied call comes to."""

    async def test_text(self, talk: Talk) -> None:
        assert await talk.say("hello") == "done"
        assert await talk.say("again") == "done"
        assert talk.said == "you said again"
        assert talk.roles == ["user", "assistant"] * 2
        self.look_back(talk)

    async def test_parallel_tools_of_the_agent(self, talk: Talk) -> None:
        assert await talk.say("weather") == "done"
        assert talk.said == SAID["weather"] == "; ".join(talk.answers("weather"))
        assert talk.statuses == ["finished"]
        assert talk.open_at_once == self.at_once
        self.look_back(talk)

    async def test_parallel_tools_of_the_application(self, talk: Talk) -> None:
        assert await talk.say("time") == "done"
        assert talk.said == SAID["time"] == "; ".join(talk.answers("time"))
        assert talk.statuses == ["finished", "finished"]
        self.look_back(talk)

    async def test_approving_resumes(self, talk: Talk) -> None:
        assert await talk.say("delete") == "done"
        assert talk.asked == CALLS["delete"]
        assert talk.said == SAID["delete"] == "; ".join(talk.answers("delete"))
        assert talk.statuses == ["interrupted", "finished"]
        self.look_back(talk)

    async def test_denying_resumes(self, talk: Talk) -> None:
        assert await talk.say("delete", False) == "done"
        assert talk.said == f"{self.denied}; {self.denied}"
        assert talk.statuses == ["interrupted", "finished"]
        self.look_back(talk)

    async def test_approving_with_other_arguments(self, talk: Talk) -> None:
        assert await talk.say("delete", Verdict(approved=True, edited_args={"path": "notes/c.txt"})) == "done"
        assert talk.said == "deleted notes/c.txt; deleted notes/c.txt"
        self.look_back(talk)

    async def test_all_of_it_in_one_thread(self, talk: Talk) -> None:
        words = ("hello", "weather", "delete", "time", "weather")
        for word in words:
            assert await talk.say(word) == "done"
            assert talk.said == SAID.get(word, f"you said {word}")
        assert talk.roles.count("user") == len(words)
        assert talk.roles.count("tool") == 8
        self.look_back(talk)

    def look_back(self, talk: Talk) -> None:
        assert {warning.rule for warning in talk.reducer.warnings} <= set(self.rules)
        assert not talk.calls.warnings
