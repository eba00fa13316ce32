"""Attacks with values of the wrong type in every place that is looked up somewhere: only our errors come out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import agui_core as agui
from agui_core.warnings import WarningLog
from agui_core.wire.old_peers import Peer, WithoutSubagents
from agui_core.wire.outgoing import address_input, enforce_input
from support.full_documents import COMMON, EVENTS, INPUT, MESSAGES, OPENED, places, with_odd

ODD: list[Any] = [[], {}, [[]], {"a": {}}, 5, 1.5, True, None, "", "odd", 10**400, float("inf"), -(2**70)]


def variants(document: Any) -> Iterator[Any]:
    for path in places(document):
        for odd in ODD:
            yield with_odd(document, path, odd)


def opened(policy: Any, **options: Any) -> agui.Reducer:
    reducer = agui.Reducer(policy=policy, **options)
    for event in OPENED:
        reducer.apply(event)
    return reducer


def text(event: Any) -> bytes:
    return json.dumps(event).encode()


def into(event: Any, policy: Any) -> None:
    opened(policy).apply(event)


def as_text(event: Any, policy: Any) -> None:
    opened(policy).apply(text(event))


def as_sse(event: Any, policy: Any) -> None:
    reducer = opened(policy)
    reducer.apply_sse(b"data: " + text(event) + b"\n\n")
    reducer.end()


def as_lines(event: Any, policy: Any) -> None:
    reducer = opened(policy)
    reducer.apply_lines(text(event) + b"\n")
    reducer.end()


def behind_middleware(event: Any, policy: Any) -> None:
    opened(policy, middleware=[lambda events: list(events)]).apply(event)


def conformed(event: Any, policy: Any) -> None:
    list(agui.conform([*OPENED, event], policy=policy))


def compacted(event: Any, policy: Any) -> None:
    list(agui.compact([*OPENED, event], policy=policy))


WAYS: list[Callable[[Any, Any], None]] = [
    into,
    as_text,
    as_sse,
    as_lines,
    behind_middleware,
    conformed,
    compacted,
]


@pytest.mark.parametrize("number", range(len(EVENTS)), ids=lambda number: f"{number}-{EVENTS[number]['type']}")
def test_only_our_errors_come_out_of_an_event(number: int) -> None:
    base = EVENTS[number]
    document = base if base["type"].startswith("RUN") or "subagentRunId" in base else {**COMMON, **base}
    for place, event in enumerate(variants(document)):
        way = WAYS[place % len(WAYS)]
        for policy in ("strict", "lenient"):
            try:
                way(event, policy)
            except agui.LimitExceeded:
                pass
            except agui.AGUIError:
                assert policy == "strict" or way is compacted, (way.__name__, event)


def test_the_unhashable_type_of_a_content_part() -> None:
    event = {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "m", "role": "user", "content": [{"type": []}]}]}
    for way in WAYS:
        with pytest.raises(agui.ProtocolError, match=r"\[PROC-10a\]"):
            way(event, "strict")
        way(event, "lenient")


def test_only_our_errors_come_out_of_a_run_input_or_a_message() -> None:
    for document in variants(INPUT):
        for read in (
            agui.Reducer.from_input,
            lambda value: agui.Reducer.from_input(text(value)),
            lambda value: address_input(enforce_input(value, WarningLog()), WarningLog(), Peer.pinned("0.0.39")),
        ):
            with suppress(agui.AGUIError):
                read(document)
    for message in MESSAGES:
        for document in variants(message):
            for read in (lambda value: agui.Reducer(messages=[value]), lambda value: agui.Reducer().add(value)):
                with suppress(agui.AGUIError):
                    read(document)


def test_only_our_errors_come_out_of_what_an_old_peer_gets_and_sends() -> None:
    for base in EVENTS:
        stage = WithoutSubagents(Peer.pinned("0.0.57"), WarningLog(), agui.Limits())
        for event in variants(base):
            try:
                stage.feed(b"data: " + text(event) + b"\n\n")
            except agui.AGUIError:
                break
