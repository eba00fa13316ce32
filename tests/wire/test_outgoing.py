"""What leaves: enforced, without activities, our version declared, and brought to what a pinned older peer reads."""

from __future__ import annotations

import json
from typing import Any

import pytest

import agui_core as agui
from agui_core.protocol.messages import AssistantMessage, UserMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.warnings import WarningLog
from agui_core.wire import encode, to_wire
from agui_core.wire.old_peers import Peer, WithoutSubagents
from agui_core.wire.outgoing import address_input, enforce_input

Wire = dict[str, Any]

IMAGE = {"type": "image", "source": {"type": "url", "value": "https://a/b.png", "mimeType": "image/png"}}
BINARY = {"type": "binary", "mimeType": "image/png", "url": "https://a/b.png"}


def user(content: Any, **more: Any) -> Wire:
    return {"id": "u", "role": "user", "content": content, **more}


def run_input(*messages: Wire, **more: Any) -> Wire:
    return {"threadId": "t", "runId": "r", "messages": list(messages), **more}


def whole(*messages: Wire, **more: Any) -> Wire:
    """The input as it is sent: with everything that an older agent wants to see."""
    return run_input(*messages, **{"tools": [], "context": [], "forwardedProps": {}, **more})


def sent(value: Any, version: str | None = None) -> tuple[Wire, list[str]]:
    """What goes over the wire, and the rules of the warnings."""
    log = WarningLog()
    peer = None if version is None else Peer.pinned(version)
    prepared = address_input(enforce_input(value, log), log, peer)
    return json.loads(encode(prepared)), [warning.rule for warning in log]


def test_IN_2_the_version_is_declared() -> None:
    assert sent(run_input())[0] == whole(protocolVersion="1.0")
    assert sent(run_input(), "1.0")[0]["protocolVersion"] == "1.0"
    assert sent(run_input(protocolVersion="1.1"))[0]["protocolVersion"] == "1.1"


def test_OLD_5_an_old_peer_gets_no_version() -> None:
    for version in ("0.9", "0.0.57", "0.0.39"):
        assert sent(run_input(protocolVersion="1.0"), version) == (whole(), [])


def test_IN_5_what_is_left_out_is_sent_empty() -> None:
    """Agents with `ag-ui-protocol` before 1.0 refuse an input without, and one cannot know who is one."""
    for version in (None, "1.0", "0.0.57", "0.0.39"):
        prepared, warnings = sent(run_input(user("hi")), version)
        assert (prepared["tools"], prepared["context"], prepared["forwardedProps"]) == ([], [], {})
        assert "state" not in prepared
        assert "resume" not in prepared
        assert warnings == []
    tool = {"name": "f", "description": "d"}
    context = {"description": "d", "value": "v"}
    for props in (False, 0, "", [], {"a": None}):
        given = run_input(tools=[tool], context=[context], forwardedProps=props)
        assert sent(given)[0] == {**given, "protocolVersion": "1.0"}


def test_ACT_10_activities_stay_here() -> None:
    activity = {"id": "a", "role": "activity", "activityType": "plan", "content": {}}
    prepared, warnings = sent(run_input(user("hi"), activity, user("ho")))
    assert [message["content"] for message in prepared["messages"]] == ["hi", "ho"]
    assert warnings == []


def test_PROC_16_unknown_material_is_stripped_with_a_warning() -> None:
    value = run_input(user("hi", mood="good"), {"id": "c", "role": "critic"}, surplus=1)
    prepared, warnings = sent(value)
    assert prepared == whole(user("hi"), protocolVersion="1.0")
    assert sorted(warnings) == ["PROC-5", "PROC-5", "PROC-9"]


@pytest.mark.parametrize(
    "value",
    [
        {},
        run_input(user(3)),
        run_input({"id": "x"}),
        run_input(state=None),
        run_input(forwardedProps=None),
        run_input(resume=[{"interruptId": "i", "status": "resolved", "payload": None}]),
        run_input(tools=[{"name": "t"}]),
        run_input(user([{"type": "image"}])),
        run_input(state={"x": float("nan")}),
        RunAgentInput(thread_id="t", run_id="r", messages=(UserMessage(id="u", content=3),)),  # type: ignore[arg-type]
        RunAgentInput(thread_id="t", run_id="r", messages=(), state=None),  # type: ignore[arg-type]
        b'{"threadId": 3}',
    ],
)
def test_PROC_16_malformed_input_does_not_leave(value: Any) -> None:
    with pytest.raises(agui.ProtocolError):
        sent(value)


def test_other_errors_of_the_input() -> None:
    with pytest.raises(agui.DecodeError):
        sent(b"{")
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    with pytest.raises(agui.LimitExceeded):
        sent(run_input(state=deep))
    with pytest.raises(TypeError, match="int"):
        sent(3)


def test_every_form_of_input_is_the_same() -> None:
    from ag_ui import core

    value = run_input(user("hi"), tools=[], context=[], state={"a": None}, forwardedProps={})
    model = core.RunAgentInput.model_validate(value)
    struct = agui.RunAgentInput(
        thread_id="t", run_id="r", messages=(UserMessage(id="u", content="hi"),), state={"a": None}, tools=(),
        context=(), forwarded_props={},
    )  # fmt: skip
    for form in (value, model, struct, json.dumps(value), json.dumps(value).encode()):
        assert sent(form) == ({**value, "protocolVersion": "1.0"}, [])


def test_OLD_2_an_own_legacy_part_is_upgraded_without_a_word() -> None:
    assert sent(run_input(user([BINARY]))) == (whole(user([IMAGE]), protocolVersion="1.0"), [])
    prepared, warnings = sent(run_input(user([{"type": "binary", "mimeType": "image/png", "id": "only"}])))
    assert prepared["messages"] == [user([])]
    assert warnings == ["PROC-9"]


def test_OLD_3_tags_are_kept_from_a_peer_without_subagents() -> None:
    value = run_input(user("hi", subagentRunId="s"), parentRunId="p")
    assert sent(value, "0.0.57") == (whole(user("hi"), parentRunId="p"), [])
    assert sent(value, "0.0.58") == (whole(user("hi", subagentRunId="s"), parentRunId="p"), [])


def test_OLD_4_content_is_flattened_with_a_warning_that_names_what_is_lost() -> None:
    log = WarningLog()
    parts = [{"type": "text", "text": "a"}, IMAGE, {"type": "text", "text": "b"}, {**IMAGE, "type": "audio"}]
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    value = run_input(
        user(parts),
        {"id": "s", "role": "assistant", "toolCalls": [call]},
        {"id": "o", "role": "tool", "toolCallId": "c", "content": [{"type": "text", "text": "x"}]},
        parentRunId="p",
    )
    prepared = to_wire(address_input(enforce_input(value, log), log, Peer.pinned("0.0.39")))
    assert [message["content"] for message in prepared["messages"]] == ["ab", "", "x"]
    assert "parentRunId" not in prepared
    lost, parent = log
    assert (lost.rule, lost.path) == ("OLD-4", "/messages/0/content")
    assert "audio, image" in lost.message
    assert "0.0.39" in lost.message
    assert parent.path == "/parentRunId"
    assert sent(value, "0.0.40")[0]["messages"][0]["content"] == parts


def test_VER_9_flattening_hides_nothing_malformed() -> None:
    with pytest.raises(agui.ProtocolError, match="text"):
        sent(run_input(user([{"type": "text", "text": 3}])), "0.0.39")


def test_VER_2_versions_are_compared_by_number() -> None:
    assert Peer.pinned("1.10").version > Peer.pinned("1.9").version
    assert Peer.pinned("1.0").reads_version
    assert not Peer.pinned("0.10").reads_version
    for version in ("", "v1", "1.", "1.x", "-1", "1.٣"):
        with pytest.raises(ValueError, match="numbers with dots"):
            Peer.pinned(version)


# --- what comes from a peer without subagents ----------------------------------------------------------------------


def stripped(*events: Any, pieces: int = 1) -> tuple[list[Any], list[str]]:
    log = WarningLog()
    stage = WithoutSubagents(Peer.pinned("0.0.57"), log)
    data = b"".join(
        b"data: %b\n\n" % (event if isinstance(event, bytes) else json.dumps(event).encode()) for event in events
    )
    size = -(-len(data) // pieces)
    kept = b"".join(stage.feed(data[at : at + size]) for at in range(0, len(data), size))
    payloads = agui.SSEDecoder().feed(kept)
    return [payload if payload[:1] != b"{" else json.loads(payload) for payload in payloads], [w.rule for w in log]


@pytest.mark.parametrize("pieces", [1, 9])
def test_OLD_3_subagents_are_taken_out(pieces: int) -> None:
    started = {"type": "RUN_STARTED", "threadId": "t", "runId": "r"}
    finished = {"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}
    interrupt = {"id": "i", "reason": "x"}

    def events(tag: Wire) -> list[Wire]:
        return [
            {**started, "input": run_input(user("a", **tag))},
            {"type": "MESSAGES_SNAPSHOT", "messages": [user("a", **tag)]},
            {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "delta": "é", **tag},
            {"type": "CUSTOM", "name": "n", "value": {"subagentRunId": "data"}},
            {**finished, "outcome": {"type": "interrupt", "interrupts": [{**interrupt, **tag}]}},
        ]

    subagent = [{"type": "SUBAGENT_STARTED", "subagentRunId": "s", "name": "n"}]
    subagent += [{"type": kind, "subagentRunId": "s"} for kind in ("SUBAGENT_FINISHED", "SUBAGENT_ERROR")]
    tagged = events({"subagentRunId": "s"})
    assert stripped(tagged[0], *subagent, *tagged[1:], pieces=pieces) == (events({}), ["OLD-3"] * 3)


def test_VER_9_what_is_malformed_is_handed_on() -> None:
    odd = [
        {"type": "TEXT_MESSAGE_CHUNK", "messageId": "m", "subagentRunId": 3},
        {"type": "MESSAGES_SNAPSHOT", "messages": {"subagentRunId": "s"}},
        {"type": "RUN_FINISHED", "outcome": "subagentRunId"},
        {"type": ["SUBAGENT_STARTED"]},
        b'"SUBAGENT_STARTED"',
        b"no json, SUBAGENT_STARTED",
    ]
    assert stripped(*odd) == (odd, [])


def test_assistant_content_stays_absent_for_a_current_peer() -> None:
    log = WarningLog()
    value = RunAgentInput(thread_id="t", run_id="r", messages=(AssistantMessage(id="a"),))
    assert to_wire(address_input(enforce_input(value, log), log))["messages"] == [{"id": "a", "role": "assistant"}]
