"""What real frameworks put on the wire: `strict` agrees with the reference client, messages, state and refusals alike;
where a recording is refused, `lenient` gives the conversation that a person reading the stream would expect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.corpora import shared_root
from support.folding import Fold, canonical, fold_bytes

ROOT = shared_root()
assert ROOT is not None
FOLDER = ROOT / "recordings"
INDEX = {entry["file"].removesuffix(".sse"): entry for entry in json.loads((FOLDER / "INDEX.json").read_text("utf-8"))}

# Why `strict` refuses a recording, as rule ids; the reference refuses the same ones for the same reasons.
REFUSALS = {
    "adk_old__state_delta": {"PATCH-2", "PROC-7"},  # a pointer "/a/b~c"
    "adk_old__tool_raises": {"RUN-2", "RUN-7"},  # RUN_FINISHED after RUN_ERROR
    "agent_framework__parallel_interleaved": {"STR-1"},  # a start for every fragment of the arguments
    "agno_old__custom_event": {"PASS-6", "PROC-7"},  # CUSTOM without a value
    "langgraph_old__interrupt_resume": {"RUN-2"},  # RUN_STARTED twice
    "pydantic_ai__parallel_interleaved": {"STR-2"},  # arguments after the call's end
}


# The connection broke inside the run; the reference client takes that for a success (RUN-17).
TRUNCATED = {"langgraph_old__model_error_mid_text"}


def _load(name: str, kind: str) -> Any:
    return json.loads((FOLDER / f"{name}.{kind}.json").read_text("utf-8"))


def _replay(name: str, policy: str) -> Fold:
    data = (FOLDER / f"{name}.sse").read_bytes()
    pieces = (data[start : start + 1024] for start in range(0, len(data), 1024))
    return fold_bytes(pieces, _load(name, "input"), policy)


def _with_known_ids(name: str, messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The messages, with ids that a client had to invent (OLD-1) numbered."""
    sent = (FOLDER / f"{name}.sse").read_text("utf-8") + json.dumps(_load(name, "input"))
    invented: dict[str, str] = {}
    for message in messages:
        if message["id"] in sent:
            yield message
        else:
            yield {**message, "id": invented.setdefault(message["id"], f"invented-{len(invented)}")}


def _assert_same(name: str, run: Fold, expected: dict[str, Any]) -> None:
    ours = list(_with_known_ids(name, run.messages))
    theirs = list(_with_known_ids(name, expected["messages"]))
    assert canonical(ours) == canonical(theirs)
    assert canonical(run.reducer.state) == canonical(expected["state"])


@pytest.mark.parametrize("name", INDEX)
def test_a_recording_ends_as_expected_when_strict(name: str) -> None:
    expected = _load(name, "expected")
    run = _replay(name, "strict")
    _assert_same(name, run, expected)
    if name in REFUSALS:
        assert expected["error"] is not None
        assert run.error is not None
        assert run.error.rule in REFUSALS[name]
        assert run.reducer.status == "rejected"
    else:
        assert expected["error"] is None
        assert run.error is None, str(run.error)
        assert (run.reducer.status == "truncated") == (name in TRUNCATED)
        assert run.reducer.status not in ("idle", "running", "rejected")
    run_error = run.reducer.run.error
    assert (run_error.message if run_error else None) == INDEX[name]["run_error"]


@pytest.mark.parametrize("name", [name for name in INDEX if name not in REFUSALS])
def test_lenient_agrees_where_nothing_is_refused(name: str) -> None:
    strict, lenient = _replay(name, "strict"), _replay(name, "lenient")
    assert lenient.error is None
    assert canonical(lenient.messages) == canonical(strict.messages)
    assert canonical(lenient.reducer.state) == canonical(strict.reducer.state)
    assert lenient.reducer.status == strict.reducer.status
    assert lenient.types == strict.types
    assert [str(item) for item in lenient.reducer.warnings] == [str(item) for item in strict.reducer.warnings]


def _call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _alone(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": call_id, "role": "assistant", "toolCalls": [_call(call_id, name, arguments)]}


def _user(content: str) -> dict[str, Any]:
    return {"id": "user-1", "role": "user", "content": content}


def _said(message_id: str, content: str, **members: Any) -> dict[str, Any]:
    return {"id": message_id, "role": "assistant", "content": content, **members}


def _answer(message_id: str, call_id: str, content: str) -> dict[str, Any]:
    return {"id": message_id, "role": "tool", "toolCallId": call_id, "content": content}


# Read off the streams by hand: the conversation, the state, how it ends, and each deviation's rule with its count.
LENIENT: dict[str, dict[str, Any]] = {
    "adk_old__state_delta": {
        "messages": [
            _user("Set"),
            _alone("call_s1", "set_state", '{"key": "a/b~c", "value": "\\ud83d\\udfe2"}'),
            _answer("7ed63b8a-122e-4529-84cb-9df0f8a3a30f", "call_s1", '{"result": "set"}'),
            _alone("call_s2", "set_state", '{"key": "a", "value": "2"}'),
            _answer("b57181c4-94ad-4dce-9fb3-9f019ea18a28", "call_s2", '{"result": "set"}'),
            _said("211fa129-5535-41f5-8881-2bc7f9908502", "Set."),
        ],
        "state": {"a": "2", "a/b~c": "🟢"},
        "status": "finished",
        "deviations": {("PATCH-2", 1)},
    },
    "adk_old__tool_raises": {
        "messages": [_user("Do it"), _alone("call_f", "failing", '{"x": 7}')],
        "state": {},
        "status": "failed",
        "deviations": {("RUN-7", 1)},
    },
    "agent_framework__parallel_interleaved": {
        "messages": [
            _user("All"),
            {
                "id": "77037ec7-3a97-4eca-b76f-adb05aa172cf",
                "role": "assistant",
                "toolCalls": [
                    _call("call_0", "slow", '{"city": "Oslo", "wait": 0.01}'),
                    _call("call_1", "slow", '{"city": "Rome", "wait": 0.01}'),
                    _call("call_2", "slow", '{"city": "Lima", "wait": 0.01}'),
                ],
            },
            _answer("5721b00f-6261-48cb-8d9f-39c15804f1ed", "call_0", '{"city": "Oslo", "wait": 0.01}'),
            _answer("c92b60e4-fc28-4be4-9f73-3ba358fa9de2", "call_1", '{"city": "Rome", "wait": 0.01}'),
            _answer("d8b55b0c-7687-4f65-97ac-1e46ecdab639", "call_2", '{"city": "Lima", "wait": 0.01}'),
            _said("14205299-3547-490c-9405-d54ee3e58096", "Done."),
        ],
        "state": {},
        "status": "finished",
        # 24 starts of open calls; the snapshot repeats three calls eight times, each time with cut arguments.
        "deviations": {("STR-1", 24), ("OPEN-13", 24), ("TOOL-3", 3)},
    },
    "agno_old__custom_event": {
        "messages": [
            _user("Card"),
            _alone("call_k1", "show_card", '{"title": "\\ud83d\\udcc7"}'),
            _answer("2983fb50-2e25-4b69-b60f-7cb92f44d22f", "call_k1", "card shown"),
            _said("ad62f6e0-9381-416a-b6fb-235a7f750f2c", "Shown."),
        ],
        "state": {},
        "status": "finished",
        "deviations": {("PROC-7", 1)},
    },
    "langgraph_old__interrupt_resume": {
        "messages": [_user("Send it"), _said("lc-msg-1", "I need your approval.")],
        "state": {},
        "status": "finished",
        "deviations": {("RUN-2", 1)},
    },
    "pydantic_ai__parallel_interleaved": {
        "messages": [
            _user("Run all"),
            _said(
                "ba0f72f3-bb02-4c96-8ed9-88cb3a35b9f2",
                "",
                toolCalls=[
                    _call("call_alpha", "alpha", '{"x": 1, "note": "first ✓"}'),
                    _call("call_beta", "beta", '{"x": 2, "note": "second"}'),
                    _call("call_gamma", "gamma", '{"x": 3, "note": "third"}'),
                ],
            ),
            _answer("733dfb39-b6a0-4290-b762-6410e631301d", "call_gamma", "gamma:3:third"),
            _answer("b245317a-0e80-4f52-a0d8-7a6f3c591366", "call_beta", "beta:2:second"),
            _answer("cc184ebe-52a9-4dcd-81bf-a16f21014918", "call_alpha", "alpha:1:first ✓"),
            _said("34032e5e-7e81-4d04-9f0e-b472f78e089b", "All three are done."),
        ],
        "state": {},
        "status": "finished",
        # Two calls were closed before their first fragment and reopened by it; nothing closed them again.
        "deviations": {("STR-2", 2), ("RUN-4", None)},
    },
}


def test_every_refusal_has_its_conversation() -> None:
    assert set(LENIENT) == set(REFUSALS) == {name for name, entry in INDEX.items() if entry["reference_error"]}


@pytest.mark.parametrize("name", LENIENT)
def test_a_recording_ends_as_expected_when_lenient(name: str) -> None:
    expected = LENIENT[name]
    run = _replay(name, "lenient")
    assert run.error is None
    _assert_same(name, run, expected)
    assert run.reducer.status == expected["status"]
    counted: dict[str, int] = {}
    for warning in run.reducer.warnings:
        counted[warning.rule] = counted.get(warning.rule, 0) + warning.count
    for rule, times in expected["deviations"]:
        assert rule in counted, counted
        assert times is None or counted[rule] == times, counted
    assert set(counted) == {rule for rule, _ in expected["deviations"]}
    assert all(call.complete and call.valid for call in run.reducer.tool_calls.values())
