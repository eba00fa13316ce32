"""The README tells the truth: its Python runs, in order, and its table of limits is that of the code."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

import agui_core as agui

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def readme() -> dict[str, Any]:
    """What the examples define, run one after the other."""
    assert len(BLOCKS) >= 7
    namespace: dict[str, Any] = {"__name__": "readme"}
    for number, block in enumerate(BLOCKS):
        exec(compile(block, f"README.md, example {number}", "exec"), namespace)
    return namespace


def test_the_address_and_the_agent_talk(
    readme: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class InProcess(httpx2.AsyncClient):
        def __init__(self, **options: Any) -> None:
            super().__init__(transport=httpx2.ASGITransport(readme["app"]))

    monkeypatch.setattr(httpx2, "AsyncClient", InProcess)
    assert anyio.run(readme["ask"], "http://localhost/agent", "When is high water?") == "finished"
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("finished AssistantMessage(")
    assert "High water at 06:12." in last


@pytest.mark.parametrize(("cups", "answer"), [(2, "ordered 2 x oolong"), (3, "Denied")])
def test_the_thread_runs_its_tool(readme: dict[str, Any], cups: int, answer: str) -> None:
    seen: list[agui.messages.Message] = []

    class Waiter:
        async def run(self, run_input: agui.RunAgentInput) -> AsyncIterator[object]:
            seen[:] = run_input.messages
            ids = {"threadId": run_input.thread_id, "runId": run_input.run_id}
            yield {"type": "RUN_STARTED", **ids}
            if seen[-1].role == "user":
                yield {
                    "type": "TOOL_CALL_CHUNK",
                    "toolCallId": "c",
                    "toolCallName": "order",
                    "delta": f'{{"tea": "oolong", "cups": {cups}}}',
                }
            yield {"type": "RUN_FINISHED", **ids}

    assert anyio.run(readme["talk"], Waiter(), "Tea, please.") == "finished"
    assert answer in str(seen[-1].content)


def test_the_table_names_every_limit() -> None:
    table = README[README.index("## Limits") : README.index("## Errors")]
    assert set(agui.Limits.__struct_fields__) <= set(re.findall(r"`([a-z_]+)`", table))
