"""Objects that are not ours: what a pydantic model hides stays hidden, wherever it comes in; errors and reducers that
travel between processes.
"""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import json
import multiprocessing
import pickle
from collections.abc import Callable
from typing import Any

import pytest

import agui_core as agui
from agui_core.errors import AGUIError
from agui_core.protocol.content import TextPart
from agui_core.protocol.run import Interrupt, InterruptOutcome
from agui_core.tools import InvalidArguments, ToolError
from agui_core.warnings import WarningLog
from agui_core.wire.outgoing import enforce_input
from support.call_streams import answers, call, one, run, thread
from support.clocks import PATIENCE

pydantic = pytest.importorskip("pydantic")
official = pytest.importorskip("ag_ui.core")


class Plan(enum.Enum):
    GOLD = "gold"


class Account(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    user: str = pydantic.Field(alias="userName")
    password: str = pydantic.Field("hunter2", exclude=True)
    key: pydantic.SecretStr = pydantic.SecretStr("hunter2")
    since: datetime.date = datetime.date(2026, 1, 2)
    balance: decimal.Decimal = decimal.Decimal("1.50")
    plan: Plan = Plan.GOLD
    nickname: str | None = None

    @pydantic.computed_field  # type: ignore[prop-decorator,untyped-decorator]
    @property
    def initials(self) -> str:
        return self.user[:1]


KIM = Account(userName="kim")
WRITTEN = KIM.model_dump(mode="json", by_alias=True)
RUN = {"threadId": "t", "runId": "r"}
STARTED = {"type": "RUN_STARTED", **RUN}


def reduced(event: Any) -> agui.Reducer:
    reducer = agui.Reducer()
    reducer.apply(STARTED)
    reducer.apply(event)
    return reducer


def seen(event: Any) -> Any:
    events: list[Any] = []
    reducer = agui.Reducer(on_event=events.append)
    reducer.apply(STARTED)
    reducer.apply(event)
    return agui.to_wire(events[-1])


WAYS: dict[str, Callable[[Any], Any]] = {
    "official event": lambda v: reduced(official.StateSnapshotEvent(snapshot=v)).state,
    "dict event": lambda v: reduced({"type": "STATE_SNAPSHOT", "snapshot": v}).state,
    "custom": lambda v: seen(official.CustomEvent(name="n", value=v))["value"],
    "result": lambda v: seen(official.RunFinishedEvent(thread_id="t", run_id="r", result=v))["result"],
    "raw event": lambda v: seen(official.StepStartedEvent(step_name="s", raw_event={"x": v}))["rawEvent"]["x"],
    "metadata": lambda v: seen({"type": "STEP_STARTED", "stepName": "s", "metadata": {"x": v}})["metadata"]["x"],
    "patch": lambda v: reduced(official.StateDeltaEvent(delta=[{"op": "add", "path": "/x", "value": v}])).state["x"],
    "initial state": lambda v: agui.Reducer(state={"x": v}).state["x"],
    "input": lambda v: agui.Reducer.from_input(
        official.RunAgentInput(
            thread_id="t", run_id="r", state={"x": v}, messages=[], tools=[], context=[], forwarded_props={}
        )
    ).state["x"],
    "sent": lambda v: json.loads(
        agui.encode(enforce_input({**RUN, "messages": [], "forwardedProps": {"x": v}}, WarningLog()))
    )["forwardedProps"]["x"],
    "forwarded": lambda v: json.loads(
        agui.encode(agui.Calls(agui.Reducer(), agui.Toolset()).next_input(thread_id="t", forwarded_props={"x": v}))
    )["forwardedProps"]["x"],
    "struct": lambda v: reduced(agui.events.StateSnapshotEvent(snapshot=v)).state,
    "struct in a struct": lambda v: seen(
        agui.events.RunFinishedEvent(
            thread_id="t",
            run_id="r",
            outcome=InterruptOutcome(interrupts=(Interrupt(id="i", reason="", metadata={"x": v}),)),
        )
    )["outcome"]["interrupts"][0]["metadata"]["x"],
    "conformed struct": lambda v: list(agui.conform([STARTED, agui.events.CustomEvent(name="n", value=v)]))[1].value,
    "encoded struct": lambda v: json.loads(agui.encode(agui.events.CustomEvent(name="n", value=v)))["value"],
    "wire of a struct": lambda v: agui.to_wire(agui.events.CustomEvent(name="n", value=v))["value"],
    "conformed": lambda v: agui.to_wire(list(agui.conform([STARTED, official.CustomEvent(name="n", value=v)]))[1])[
        "value"
    ],
}


@pytest.mark.parametrize("shape", [lambda v: v, lambda v: [v], lambda v: {"deep": (v,)}], ids=["bare", "list", "deep"])
@pytest.mark.parametrize("way", WAYS)
def test_a_model_writes_itself(way: str, shape: Callable[[Any], Any]) -> None:
    got = WAYS[way](shape(KIM))
    assert got == json.loads(json.dumps(shape(WRITTEN)))
    assert "hunter2" not in json.dumps(got)
    assert WRITTEN["nickname"] is None, "null inside open data is data (EVT-9)"


@pytest.mark.anyio
@pytest.mark.parametrize("shape", [lambda v: v, lambda v: [v], lambda v: {"deep": (v,)}], ids=["bare", "list", "deep"])
async def test_a_result_of_a_tool_writes_itself(shape: Callable[[Any], Any]) -> None:
    calls = one(lambda: shape(KIM))
    await calls.answer()
    assert json.loads(str(answers(calls)["a"].content)) == json.loads(json.dumps(shape(WRITTEN)))
    by_hand = thread(agui.Toolset(), run("r", call("a", "theirs")))
    by_hand.set_output("a", shape(KIM))
    assert json.loads(str(answers(by_hand)["a"].content)) == json.loads(json.dumps(shape(WRITTEN)))


@pytest.mark.anyio
async def test_content_parts_of_the_official_package_are_parts() -> None:
    calls = one(lambda: [official.TextInputContent(text="a harbour")])
    await calls.answer()
    assert answers(calls)["a"].content == (TextPart(text="a harbour"),)


def test_a_struct_that_holds_no_json_is_malformed() -> None:
    event = agui.events.CustomEvent(name="n", value={"a": object()})
    with pytest.raises(agui.ProtocolError, match=r"object is no JSON \[PROC-7\]"):
        reduced(event)
    lenient = agui.Reducer(policy="lenient")
    for each in (STARTED, event):
        lenient.apply(each)
    assert [warning.rule for warning in lenient.warnings] == ["PROC-7"]


def test_what_pydantic_cannot_write_is_malformed_with_its_place() -> None:
    class Odd(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        inside: Any

    for value in (Odd(inside=[object()]), {"a": [Odd(inside=object())]}):
        reducer = agui.Reducer()
        reducer.apply(STARTED)
        with pytest.raises(agui.ProtocolError, match=r"`/snapshot/.*inside.* is a object.*\[PROC-7\]"):
            reducer.apply(official.StateSnapshotEvent(snapshot=value))


class Circle(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    round: Any = None


class Breaking(pydantic.BaseModel):  # type: ignore[name-defined,misc]
    @pydantic.model_serializer  # type: ignore[untyped-decorator]
    def fail(self) -> Any:
        raise RuntimeError("no")


def test_models_that_cannot_be_written_raise_our_errors_only() -> None:
    circle = Circle()
    circle.round = circle
    deep: Any = 1
    for _ in range(3_000):
        deep = [deep]
    for value in (circle, Breaking(), Circle(round=deep)):
        reducer = agui.Reducer()
        reducer.apply(STARTED)
        with pytest.raises(AGUIError):
            reducer.apply({"type": "CUSTOM", "name": "n", "value": value})
        with pytest.raises(AGUIError):
            agui.to_wire(agui.events.CustomEvent(name="n", value=value))


def test_none_in_an_optional_field_of_an_older_package_is_absent() -> None:
    class Call(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        """As the package wrote itself before it left absent fields out."""

        type: str = "TOOL_CALL_START"
        tool_call_id: str = pydantic.Field(alias="toolCallId")
        tool_call_name: str = pydantic.Field(alias="toolCallName")
        parent_message_id: str | None = pydantic.Field(None, alias="parentMessageId")
        timestamp: int | None = None
        metadata: Any

    reducer = reduced(Call(toolCallId="a", toolCallName="look_up", metadata={"x": None}))
    assert reducer.warnings == ()
    assert reducer.tool_calls["a"].metadata == {"x": None}


# --- errors and reducers travel ---------------------------------------------------------------------------------------

ERRORS: list[Exception] = [
    agui.ProtocolError("m", rule="STR-2", index=3, type="CUSTOM", ids=("a",)),
    agui.DecodeError("m", rule="SSE-8"),
    agui.LimitExceeded("m", limit="messages", index=1),
    agui.PatchError("m", operation=2),
    agui.ResumeError("m"),
    agui.ApprovalError("m"),
    agui.TransportError("m", status=500, body="b"),
    agui.StillWaiting("m", who="approver", calls=("a",), interrupts=("i",)),
    agui.ArgumentsError("m", call_id="a", tool="t", path="x"),
    agui.DeclarationError("m"),
    InvalidArguments("m", path="x", expected="int", value="1"),
    ToolError("model", "human"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("travel", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy, copy.deepcopy])
def test_errors_travel_with_all_they_carry(error: Exception, travel: Callable[[Any], Any]) -> None:
    error.add_note("seen in the cellar")
    again = travel(error)
    assert type(again) is type(error)
    assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


def _fail(_: int) -> None:
    agui.reduce([{"type": "TEXT_MESSAGE_END", "messageId": "m"}])


def test_an_error_comes_back_from_a_worker() -> None:
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool, pytest.raises(agui.ProtocolError, match=r"RUN-1") as raised:
        pool.map_async(_fail, [1]).get(timeout=PATIENCE)
    assert raised.value.index == 0


class Own(agui.Reducer):
    """A subclass of an application's."""


@pytest.mark.parametrize("kind", [agui.Reducer, Own])
@pytest.mark.parametrize(
    "travel", [lambda r: pickle.loads(pickle.dumps(r)), copy.copy, copy.deepcopy, lambda r: r.copy()]
)
def test_a_reducer_survives_copying_and_pickling(kind: type[agui.Reducer], travel: Callable[[Any], Any]) -> None:
    reducer = kind(on_event=lambda event: None, limits=agui.Limits(messages=7))
    for event in (STARTED, {"type": "TEXT_MESSAGE_START", "messageId": "m"}):
        reducer.apply(event)
    reducer.apply_sse(b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hel')
    again = travel(reducer)
    assert type(again) is kind
    for each in (reducer, again):
        each.apply_sse(b'lo."}\n\n')
    assert again.messages == reducer.messages
    assert (again.version, again.status, again.limits) == (reducer.version, "running", agui.Limits(messages=7))
    assert type(again.renew()) is kind
