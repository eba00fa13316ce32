"""The conformance streams through `HttpAgent`: what it sends, and what a pinned old peer makes of what comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import agui_core as agui
from agui_core.stream import HttpAgent
from support.corpora import shared_root
from support.events import sse
from support.folding import canonical

httpx2 = pytest.importorskip("httpx2")
pytestmark = pytest.mark.anyio

STREAMS = Path(str(shared_root())) / "conformance/streams"
CONCERNED = {
    path.stem: fixture
    for path in sorted(STREAMS.glob("*.json"))
    for fixture in [json.loads(path.read_text("utf-8"))]
    if "client" in fixture or {"request", "requestAbsentPaths"} & fixture["expect"].keys()
}
WARNINGS = {
    "era-0-0-39-flattens-content": {"OLD-4"},
    "era-0-0-45-thinking-translated": {"OLD-1"},
    "era-0-0-57-subagent-dropped-with-warning": {"OLD-3"},
}
"""The corpus names warnings in another client's words."""


def _has(actual: Any, expected: Any) -> bool:
    """Whether `expected` is a part of `actual`: members of objects may be missing, everything else is exact."""
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(_has(actual.get(key), item) for key, item in expected.items())
    if isinstance(expected, list):
        return isinstance(actual, list) and len(actual) == len(expected) and all(map(_has, actual, expected))
    return canonical(actual) == canonical(expected)


def test_the_suite_has_fixtures_for_http() -> None:
    assert len(CONCERNED) >= 7


@pytest.mark.parametrize("name", CONCERNED)
async def test_request_and_answer_are_as_the_suite_expects(name: str) -> None:
    fixture = CONCERNED[name]
    expect = fixture["expect"]
    sent: list[Any] = []
    seen: list[Any] = []

    def respond(request: Any) -> Any:
        sent.append(json.loads(request.content))
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, content=sse(fixture["stream"]))

    given = {"threadId": "t", "runId": "r", "messages": [], **fixture.get("input", {})}
    reducer = agui.Reducer(on_event=seen.append)
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(respond)) as client:
        pinned = fixture.get("client", {}).get("maxProtocolVersion")
        agent = HttpAgent("http://agent/", client=client, max_protocol_version=pinned)
        async with agent.run(given, reducer=reducer) as run:
            async for _ in run.updates():
                pass

    assert run.status == "finished"
    assert _has(sent[0], expect.get("request", {})), sent[0]
    for path in expect.get("requestAbsentPaths", ()):
        assert path not in sent[0]
    rules = {warning.rule for warning in run.warnings}
    assert rules == WARNINGS.get(name, set())
    assert not (expect.get("noWarnings") and rules)
    types = [event.type for event in seen]
    assert types == expect.get("eventTypes", types)
    assert not set(expect.get("eventTypesAbsent", ())) & set(types)
    messages = agui.to_wire(reducer.messages)
    assert _has(messages, expect.get("messages", messages)), messages
