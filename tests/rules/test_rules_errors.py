"""What a refusal says: the event, the ids, what to do, and the rule in brackets."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from test_rules_lenient import STRICT

import agui_core as agui
from support.events import (
    activity,
    activity_patch,
    args,
    call,
    call_chunk,
    ending,
    event,
    failed,
    finished,
    op,
    patch,
    reason,
    reason_start,
    run,
    say,
    sealed,
    snapshot,
    span,
    span_end,
    started,
    step,
    step_end,
    subagent,
    subagent_end,
    text,
    text_chunk,
    text_end,
)

# A stream, and words of the refusal of its last event: besides the event and the rule, ids and the way out.
TEXTS: list[tuple[list[Any], str, list[str]]] = [
    ([text()], "RUN-1", ["first", "RUN_STARTED"]),
    (ending(started("r2")), "RUN-2", ["'r'", "finish"]),
    ([*run(), text()], "RUN-2", ["RUN_STARTED"]),
    (ending(failed(), text()), "RUN-7", ["RUN_STARTED"]),
    (run(text("m1"), text("m2")), "RUN-4", ["'m1'", "'m2'", "close"]),
    (run(call("c1")), "RUN-4", ["tool call", "'c1'", "close"]),
    (run(subagent("s1")), "RUN-4", ["subagent", "'s1'", "close"]),
    (ending(say("m1")), "STR-2", ["text message", "'m1'", "start"]),
    (ending(args("c1")), "STR-2", ["tool call", "'c1'", "start"]),
    (ending(reason("q1")), "STR-2", ["reasoning message", "'q1'", "start"]),
    (ending(text("m1"), text("m1")), "STR-1", ["text message", "'m1'", "open", "end it"]),
    (ending(span("s1"), span("s1")), "REAS-3", ["span", "'s1'", "end it"]),
    (ending(span_end("s1")), "REAS-3", ["span", "'s1'", "start"]),
    (ending(step("plan"), step("plan")), "STEP-2", ["step", "'plan'", "open"]),
    (ending(step("plan", by="s1"), step_end("plan")), "STEP-3", ["step", "'plan'", "'s1'"]),
    (ending(text("m1", by="s1"), say("m1", by="s2")), "SUB-8", ["'m1'", "'s1'", "'s2'", "leave the tag out"]),
    (ending(text("m1", by="s1"), text_end("m1"), text("m1", by="s2")), "SUB-10", ["'m1'", "'s1'", "'s2'"]),
    (ending(text("m1", by="s1"), call("c1", parentMessageId="m1", by="s2")), "SUB-12", ["'m1'", "'s1'", "'s2'"]),
    (ending(activity("a1"), activity_patch("a1", "t", by="s2")), "ACT-9", ["'a1'", "'s2'", "parent agent"]),
    (ending(text("m1"), sealed("m1", by="s1")), "SUB-8", ["'m1'", "'s1'", "parent agent"]),
    (ending(subagent_end("s1")), "SUB-4", ["'s1'", "SUBAGENT_STARTED"]),
    (ending(subagent("s1"), subagent_end("s1"), subagent("s1")), "SUB-4", ["'s1'", "new id"]),
    (ending(subagent("s1", parentSubagentRunId="s0")), "SUB-13", ["parentSubagentRunId", "'s0'"]),
    (ending(text_chunk(delta="x")), "CHUNK-3", ["messageId"]),
    (ending(call_chunk("c1", "x")), "CHUNK-3", ["'c1'", "toolCallName"]),
    (ending(text_chunk("m1"), text_chunk("m1", role="user")), "CHUNK-7", ["'m1'", "role", "'user'", "'assistant'"]),
    (ending({"messageId": "m1"}), "PROC-10a", ["type"]),
    (ending(event("TEXT_MESSAGE_START")), "PROC-7", ["/messageId", "missing"]),
    (ending(text(5)), "PROC-7", ["/messageId", "string", "5"]),  # type: ignore[arg-type]
    (ending(text(name=None)), "PROC-7", ["/name", "string", "null"]),
    (ending(finished(usage=[{"inputTokens": -1}])), "PROC-7", ["/usage/0/inputTokens", "-1"]),
    (ending(snapshot({"id": "u", "role": "user"})), "PROC-7", ["/messages/0/content", "missing"]),
    (ending(patch(op("add", "a", 1))), "PATCH-2", ["/delta/0/path", "'a'", "slash"]),
    (ending(reason_start("q1", timestamp="now")), "EVT-3", ["/timestamp", "integer", "'now'"]),
    (ending(text(meta=[])), "META-1", ["/metadata", "object", "array"]),
]  # fmt: skip


@pytest.mark.parametrize(("events", "rule", "words"), TEXTS, ids=[f"{rule} {words}" for _, rule, words in TEXTS])
def test_a_refusal_names_the_event_the_ids_the_way_out_and_the_rule(
    events: list[Any], rule: str, words: list[str]
) -> None:
    with pytest.raises(agui.ProtocolError) as refusal:
        agui.reduce(events)
    said = str(refusal.value)
    assert said.startswith(f"event {len(events) - 1}")
    assert said.endswith(f"[{rule}]")
    assert events[-1].get("type", "") in said
    for word in words:
        assert word in said


WAY_OUT = re.compile(r"; |\bmust\b|\bhas to\b|\blacks its\b|\bonly\b")


def test_every_refusal_says_what_to_do_in_one_line() -> None:
    for case in STRICT:
        if not case.refused:
            continue
        with pytest.raises(agui.AGUIError) as refusal:
            agui.reduce(map(json.dumps, case.events), **case.options)
        said = str(refusal.value)
        assert WAY_OUT.search(said), said
        assert "\n" not in said
        assert len(said) < 400, said


def test_hostile_ids_make_no_endless_texts() -> None:
    long = "x" * 1_000_000
    streams = [
        ending(say(long)),
        ending(text(long), text(long)),
        run(*(text(f"{number}{long[:1000]}") for number in range(500))),
        ending(text("m", by=long), say("m", by=long + "y")),
        ending({"type": long}, text_end(long)),
        ending(custom_of(long), text_end("z")),
        ending(event("TEXT_MESSAGE_START", messageId={long: 1})),
        ending(patch(op(long, long, long)), patch(op("add", long, 1))),
    ]
    for events in streams:
        warnings: list[agui.ProtocolWarning] = []
        with pytest.raises(agui.AGUIError) as refusal:
            list(agui.conform(events, on_warning=warnings.append))
        for said in (str(refusal.value), *map(str, warnings)):
            assert len(said) < 10_000, len(said)


def test_a_patch_that_does_not_apply_makes_no_endless_text() -> None:
    reducer = agui.reduce(run(patch(op("remove", "/" + "x" * 1_000_000))))
    assert len(str(reducer.warnings[0])) < 10_000


def custom_of(name: str) -> Any:
    return {"type": "CUSTOM", "name": "x", "value": 1, name: 1}
