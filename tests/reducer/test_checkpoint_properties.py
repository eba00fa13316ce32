"""A reducer restored at any event of any stream goes on as if it had never stopped (DESIGN 8.3)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import agui_core as agui
from support.folding import canonical
from support.properties import steady
from support.strategies import Case, cut, mutated_streams, streams, to_lines, to_sse

ANY_STREAM = streams(noise=True, length=40) | mutated_streams(length=30)
POLICIES = st.sampled_from(["strict", "lenient"])

fixed = steady(60)


def seen(reducer: agui.Reducer) -> list[Any]:
    """Everything that can be seen of a reducer."""
    version = reducer.version
    return [
        version,
        agui.to_wire(reducer.messages),
        canonical(reducer.state),
        reducer.status,
        repr(reducer.error),
        reducer.run,
        [
            [
                call.id,
                call.message_id,
                call.name,
                call.arguments,
                canonical(_json(call.args)),
                call.complete,
                call.valid,
            ]
            for call in reducer.tool_calls.values()
        ],
        [[call.metadata, call.encrypted_value, call.result, call.error] for call in reducer.tool_calls.values()],
        reducer.warnings,
        [reducer.changes(since) for since in range(0, version + 1, version // 5 + 1)],
    ]


def _json(value: Any) -> Any:
    return "nothing yet" if value is agui.UNSET else value


def feed(reducer: agui.Reducer, event: Any) -> None:
    """Apply an event; what is refused stays refused."""
    with suppress(agui.AGUIError):
        reducer.apply(event)


def finish(reducer: agui.Reducer) -> None:
    with suppress(agui.AGUIError):
        reducer.end()


def hold(case: Case, policy: Any) -> agui.Reducer:
    return agui.Reducer(**case["input"], policy=policy)


@fixed
@given(ANY_STREAM, POLICIES)
def test_restored_at_every_event(case: Case, policy: str) -> None:
    steady_one = hold(case, policy)
    moving = agui.Reducer.restore(hold(case, policy).checkpoint())
    for event in case["events"]:
        feed(steady_one, event)
        feed(moving, event)
        assert seen(moving) == seen(steady_one)
        moving = agui.Reducer.restore(moving.checkpoint())
        assert seen(moving) == seen(steady_one)
    finish(steady_one)
    finish(moving)
    assert seen(moving) == seen(steady_one)


@fixed
@given(ANY_STREAM, POLICIES, st.integers(1, 5))
def test_restored_from_increments(case: Case, policy: str, every: int) -> None:
    reducer = hold(case, policy)
    pieces = [reducer.checkpoint()]
    since = reducer.version
    for number, event in enumerate(case["events"]):
        feed(reducer, event)
        if number % every == 0:
            pieces.append(reducer.checkpoint(extra=b"%d" % number, since=since))
            since = reducer.version
            restored = agui.Reducer.restore(*pieces)
            assert restored.extra == b"%d" % number
            assert seen(restored) == seen(reducer)
    finish(reducer)
    pieces.append(reducer.checkpoint(since=since))
    assert seen(agui.Reducer.restore(*pieces)) == seen(reducer)


@fixed
@given(ANY_STREAM, POLICIES, st.data())
def test_increments_on_one_and_the_same_checkpoint(case: Case, policy: str, data: st.DataObject) -> None:
    reducer = hold(case, policy)
    at = data.draw(st.integers(0, len(case["events"])))
    for event in case["events"][:at]:
        feed(reducer, event)
    base, since = reducer.checkpoint(), reducer.version
    for event in case["events"][at:]:
        feed(reducer, event)
        restored = agui.Reducer.restore(base, reducer.checkpoint(since=since))
        assert seen(restored) == seen(reducer)
        restored.checkpoint(since=reducer.version)


@fixed
@given(ANY_STREAM, POLICIES, st.booleans(), st.data())
def test_restored_in_the_middle_of_bytes(case: Case, policy: str, lines: bool, data: st.DataObject) -> None:
    encoded = b"\xef\xbb\xbf" + (to_lines if lines else to_sse)(case["events"])
    if data.draw(st.booleans()):
        encoded = encoded.replace(b"\n", b"\r\n")
    steady_one = hold(case, policy)
    moving = agui.Reducer.restore(hold(case, policy).checkpoint())
    for piece in data.draw(cut(encoded)):
        for reducer in (steady_one, moving):
            with suppress(agui.AGUIError):
                (reducer.apply_lines if lines else reducer.apply_sse)(piece)
        assert seen(moving) == seen(steady_one)
        moving = agui.Reducer.restore(moving.checkpoint())
    finish(steady_one)
    finish(moving)
    assert seen(moving) == seen(steady_one)


@fixed
@given(streams(length=30), st.data())
def test_damage_is_refused(case: Case, data: st.DataObject) -> None:
    reducer = hold(case, "strict")
    for event in case["events"]:
        feed(reducer, event)
    whole = reducer.checkpoint()
    at = data.draw(st.integers(0, len(whole) - 1))
    for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1 << data.draw(st.integers(0, 7))]) + whole[at + 1 :]):
        with pytest.raises(agui.AGUIError, match="checkpoint"):
            agui.Reducer.restore(damaged)
