"""Reasoning spans, reasoning messages and encrypted values (protocol section 10)."""

from __future__ import annotations

import pytest

from support.events import (
    activity,
    call,
    call_end,
    ending,
    event,
    msg,
    reason,
    reason_end,
    reason_start,
    result,
    run,
    sealed,
    snapshot,
    span,
    span_end,
    text,
    text_end,
    tool_call,
)
from support.rule_cases import Case, accept, check, refuse

SPANS = [
    accept("REAS-2", "a span makes no message", run(span(), span_end()), messages=[]),
    accept(
        "REAS-4",
        "several messages in a span",
        run(span(), reason_start("a"), reason("a"), reason_end("a"), reason_start("b"), reason_end("b"), span_end()),
        messages=[msg("reasoning", "a", "hm"), msg("reasoning", "b", "")],
    ),
    accept(
        "REAS-4",
        "messages outside any span",
        run(reason_start(), reason(), reason_end()),
        messages=[msg("reasoning", "q", "hm")],
    ),
    accept(
        "REAS-1",
        "one id for a span and its message",
        run(span("q"), reason_start("q"), reason("q"), span_end("q"), reason_end("q")),
        messages=[msg("reasoning", "q", "hm")],
    ),
    accept("REAS-3 STR-6", "a span opens again", run(span(), span_end(), span(), span_end())),
    accept("REAS-3", "two spans at a time", run(span("a"), span("b"), span_end("a"), span_end("b"))),
    accept(
        "REAS-6",
        "owner and metadata",
        run(reason_start(by="s1", meta={"k": 1}), reason(), reason_end()),
        messages=[msg("reasoning", "q", "hm", by="s1", meta={"k": 1})],
    ),
    refuse("REAS-2 STR-2", "content for a span", ending(span("s"), reason("s")), ids=("s",)),
    refuse("REAS-2 STR-2", "a message's end for a span", ending(span("s"), reason_end("s")), ids=("s",)),
    refuse("REAS-3", "a span that is open", ending(span("s"), span("s")), ids=("s",)),
    refuse("REAS-3", "the end of no span", ending(span_end("s")), ids=("s",), says=("start",)),
    refuse("REAS-3", "a span ended twice", ending(span("s"), span_end("s"), span_end("s")), ids=("s",)),
    refuse("REAS-3", "a span's end for a message", ending(reason_start("q"), span_end("q")), ids=("q",)),
    refuse("REAS-7 PROC-7", "a start without a role", ending(event("REASONING_MESSAGE_START", messageId="q"))),
    refuse("REAS-7 PROC-7", "a role that is null", ending(event("REASONING_MESSAGE_START", messageId="q", role=None))),
    accept(
        "PROC-18",
        "a start with a foreign role is dropped",
        run(event("REASONING_MESSAGE_START", messageId="q", role="assistant")),
        messages=[],
        warns="PROC-6|PROC-9|PROC-18|PROC-6 /role|PROC-9 /role|PROC-18 /role",
    ),
    refuse(
        "PROC-18 REAS-5 STR-2",
        "and its content is then orphaned",
        ending(event("REASONING_MESSAGE_START", messageId="q", role="assistant"), reason("q")),
        ids=("q",),
    ),
]

SEALED = [
    *[
        accept(
            "REAS-10",
            f"on a {role} message",
            run(sealed("m", "BB")),
            held=[msg(role, "m", "x")],
            messages=[msg(role, "m", "x", encryptedValue="BB")],
        )
        for role in ("developer", "system", "assistant", "user", "reasoning")
    ],
    accept(
        "REAS-10",
        "on a tool message",
        run(result(), sealed("t", "BB")),
        messages=[msg("tool", "t", "ok", toolCallId="c", encryptedValue="BB")],
    ),
    accept(
        "REAS-10",
        "on a call",
        run(call(), call_end(), sealed("c", "BB", "tool-call")),
        messages=[msg("assistant", "c", toolCalls=[tool_call("c", encryptedValue="BB")])],
    ),
    accept(
        "REAS-10",
        "subtype message means the call's message",
        run(call(), call_end(), sealed("c", "BB", "message")),
        messages=[msg("assistant", "c", encryptedValue="BB", toolCalls=[tool_call("c")])],
    ),
    accept(
        "REAS-10",
        "the second replaces the first",
        run(text(), sealed("m", "AA"), sealed("m", ""), text_end()),
        messages=[msg("assistant", "m", "", encryptedValue="")],
    ),
    accept(
        "REAS-10",
        "on a call of the history",
        run(sealed("c", "BB", "tool-call")),
        held=[msg("assistant", "m", toolCalls=[tool_call("c")])],
        messages=[msg("assistant", "m", toolCalls=[tool_call("c", encryptedValue="BB")])],
    ),
    accept(
        "REAS-8 REAS-9",
        "it is kept as it came",
        run(text(), text_end(), sealed("m", '{"a": "\\u0000é"}')),
        messages=[msg("assistant", "m", "", encryptedValue='{"a": "\\u0000é"}')],
    ),
    accept("REAS-11", "nobody has the id", run(sealed("zz")), messages=[], warns="REAS-11"),
    accept(
        "REAS-11",
        "no call has the id, a message has",
        run(text("m"), text_end("m"), sealed("m", subtype="tool-call")),
        messages=[msg("assistant", "m", "")],
        warns="REAS-11",
    ),
    accept(
        "REAS-11",
        "no message has the id, a call has",
        run(call("c", parentMessageId="m"), call_end("c"), sealed("c")),
        messages=[msg("assistant", "m", toolCalls=[tool_call("c")])],
        warns="REAS-11",
    ),
    accept(
        "REAS-11",
        "an activity",
        run(activity("a"), sealed("a")),
        messages=[msg("activity", "a", {}, activityType="todo")],
        warns="REAS-11",
    ),
    accept(
        "REAS-12",
        "a snapshot takes it away",
        run(text("m"), text_end("m"), sealed("m"), snapshot(msg("assistant", "m", ""))),
        messages=[msg("assistant", "m", "")],
    ),
    accept(
        "REAS-12",
        "a snapshot sets it",
        run(snapshot(msg("assistant", "m", "", encryptedValue="CC"))),
        messages=[msg("assistant", "m", "", encryptedValue="CC")],
    ),
    accept(
        "REAS-14",
        "it stands alone, in a triad too",
        run(text(), sealed("m"), text_end()),
        messages=[msg("assistant", "m", "", encryptedValue="AA")],
    ),
    accept(
        "PROC-10 PROC-9",
        "an unknown subtype",
        run(text(), sealed("m", subtype="span"), text_end()),
        messages=[msg("assistant", "m", "")],
        warns="PROC-6|PROC-9|PROC-6 /subtype|PROC-9 /subtype",
    ),
    accept(
        "V11-7 PROC-5",
        "a type of a later version",
        run(text(), sealed("m", encryptedValueType="acme.sig"), text_end()),
        messages=[msg("assistant", "m", "", encryptedValue="AA")],
        warns="PROC-5 /encryptedValueType",
    ),
    refuse("PROC-10 PROC-7", "a subtype that is a number", ending(text(), sealed("m", subtype=1))),  # type: ignore[arg-type]
    refuse(
        "PROC-10 PROC-7",
        "no subtype",
        ending(text(), event("REASONING_ENCRYPTED_VALUE", entityId="m", encryptedValue="AA")),
    ),
    refuse("PROC-7", "no value", ending(text(), event("REASONING_ENCRYPTED_VALUE", subtype="message", entityId="m"))),
    refuse(
        "PROC-17 PROC-7",
        "an unknown subtype with a malformed sibling",
        ending(text(), event("REASONING_ENCRYPTED_VALUE", subtype="span", entityId=5, encryptedValue="AA")),
    ),
]


@pytest.mark.parametrize("case", [*SPANS, *SEALED], ids=str)
def test_a_case_comes_out_alike_every_way_in(case: Case) -> None:
    check(case)
