"""Our client and our server: what both have to do with others, they do with each other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agent_tests import AgentTests
from own_agent import agent
from talking import Talk, hosted

import agui_core as agui


class TestOwn(AgentTests):
    at_once = 2

    @pytest.fixture
    def talk(self) -> Iterator[Talk]:
        with hosted(agui.serve(agent)) as url:
            yield Talk(url)
