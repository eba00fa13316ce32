"""Attacks on the secrets of an address: no refusal, error, `repr` or log record tells user, password or query."""

from __future__ import annotations

import logging
import re

import pytest
from test_attacks_places import check

import agui_core as agui

httpx2 = pytest.importorskip("httpx2")

SECRET = re.compile("user|hunter2|token|s3cret")


@pytest.mark.parametrize(
    "url",
    [
        "ftp://user:hunter2@host/?token=s3cret",
        "http://user:hunter2@:80/?token=s3cret",
        "http://user:hunter2@host:99999/?token=s3cret",
        "http://user:hunter2@host:0x/?token=s3cret",
        "http://user:hun/ter2hunter2@host/",
        "http://user:hun?hunter2@host/",
        "http://user:hun\nhunter2@host/",
        "http://user:hunter2@[bad/?token=s3cret",
        "user:hunter2@host?token=s3cret",
        "ftp://host/?token=s3cret#token",
        "host?x=@s3cret",
    ],
)
def test_an_address_that_is_refused_tells_no_secret(url: str) -> None:
    with pytest.raises(ValueError, match="takes an http or https address") as raised:
        agui.HttpAgent(url)
    assert not SECRET.search(str(raised.value))
    check(str(raised.value))


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (200, {"content-type": "text/event-stream"}),
        (200, {"content-type": "text/" + "x" * 10_000}),
        (500, {}),
        (302, {"location": "http://user:hunter2@host/?token=s3cret"}),
        (302, {"location": "//user:hunter2@host/" + "x" * 10_000}),
        (302, {"location": "http://[bad?token=s3cret"}),
    ],
)
async def test_errors_and_logs_of_an_agent_tell_no_secret(
    status: int, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    transport = httpx2.MockTransport(lambda request: httpx2.Response(status, headers=headers))
    async with httpx2.AsyncClient(transport=transport) as client:
        agent = agui.HttpAgent("http://user:hunter2@example.org/agent?token=s3cret", client=client)
        texts = [repr(agent)]
        try:
            async with agent.run({"threadId": "t", "runId": "r", "messages": []}) as run:
                texts.append(repr(run))
        except agui.TransportError as error:
            texts.append(str(error))
    logged = [record.getMessage() for record in caplog.records]
    assert any("http://example.org/agent" in text for text in logged)
    for text in texts + logged:
        assert not SECRET.search(text)
        check(text)
