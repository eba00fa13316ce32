"""Examples of tools, from the agent's call to the next input."""

from __future__ import annotations

import json
from typing import Any, Literal

import anyio
import pytest

import agui_core as agui
from agui_core.protocol.content import DataSource, ImagePart, TextPart
from agui_core.tools import ApprovalRequest, Calls, ToolContext, ToolError, Toolset, Verdict
from support.clocks import PATIENCE

pytestmark = pytest.mark.anyio


def ask(toolset: Toolset, *wanted: tuple[str, str, Any], offered: Toolset | None = None) -> Calls:
    """What a run leaves behind in which the agent makes these calls: (id, name, arguments)."""
    calls = Calls(agui.Reducer(messages=[{"id": "u", "role": "user", "content": "please"}]), toolset)
    run_input = calls.next_input(thread_id="t", tools=offered)
    ids = {"threadId": run_input.thread_id, "runId": run_input.run_id}
    calls.reducer.apply({"type": "RUN_STARTED", **ids})
    for id, name, arguments in wanted:
        start = {"toolCallId": id, "toolCallName": name, "parentMessageId": "m"}
        calls.reducer.apply({"type": "TOOL_CALL_START", **start})
        calls.reducer.apply({"type": "TOOL_CALL_ARGS", "toolCallId": id, "delta": json.dumps(arguments)})
        calls.reducer.apply({"type": "TOOL_CALL_END", "toolCallId": id})
    calls.reducer.apply({"type": "RUN_FINISHED", **ids})
    return calls


def answers(calls: Calls) -> dict[str, Any]:
    """What the next input tells the agent, by call."""
    wire = agui.to_wire(calls.next_input())
    return {message["toolCallId"]: message["content"] for message in wire["messages"] if message["role"] == "tool"}


# --- an action that a person confirms -----------------------------------------------------------------------------


def confirming() -> tuple[Toolset, list[str]]:
    toolset, done = Toolset(), []

    @toolset.tool(effects=True)
    async def confirmAction(action: str, importance: Literal["low", "high"] = "low") -> str:
        """Carry out an action that the user has confirmed."""
        done.append(action)
        return f"done: {action}"

    return toolset, done


DELETE = {"action": "delete all", "importance": "high"}


@pytest.mark.parametrize(
    ("verdict", "actions", "state", "told"),
    [
        (True, ["delete all"], "output-available", "done: delete all"),
        (
            Verdict(approved=True, edited_args={"action": "delete one"}),
            ["delete one"],
            "output-available",
            'A person changed the arguments; it ran with {"action":"delete one"}\n\ndone: delete one',
        ),
        (False, [], "output-denied", "Denied: a person did not allow this call; it was not run."),
        (
            Verdict(approved=False, reason="keep them"),
            [],
            "output-denied",
            "Denied: a person did not allow this call; it was not run. Reason: keep them",
        ),
    ],
)
async def test_an_action_is_carried_out_as_the_person_says(
    verdict: Any, actions: list[str], state: str, told: str
) -> None:
    toolset, done = confirming()
    calls = ask(toolset, ("c", "confirmAction", DELETE))
    shown: list[ApprovalRequest] = []

    async def confirm(request: ApprovalRequest) -> Any:
        shown.append(request)
        return verdict

    assert calls.waiting().who == "approver"
    assert await calls.answer(confirm) == ("c",)
    assert [(request.tool_name, json.loads(request.arguments)) for request in shown] == [("confirmAction", DELETE)]
    assert done == actions
    assert calls.state("c") == state
    assert answers(calls) == {"c": told}


async def test_without_a_person_the_action_waits_and_nothing_is_sent() -> None:
    toolset, done = confirming()
    calls = ask(toolset, ("c", "confirmAction", DELETE))
    assert await calls.answer() == ()
    assert calls.state("c") == "approval-requested"
    with pytest.raises(agui.ResumeError, match="FT-5"):
        calls.next_input()
    calls.approve("c")
    await calls.answer()
    assert done == ["delete all"]
    assert answers(calls) == {"c": "done: delete all"}


# --- data from several places at once -----------------------------------------------------------------------------


async def test_data_is_fetched_in_parallel_and_told_in_order() -> None:
    toolset = Toolset()
    going: list[int] = []
    all_going = anyio.Event()

    @toolset.tool(timeout=PATIENCE)
    async def fetch_orders(customer: int) -> dict[str, int]:
        """Fetch the orders of a customer."""
        going.append(customer)
        if len(going) == 4:
            all_going.set()
        await all_going.wait()  # nobody gets on before all have begun
        for _ in range(4 - customer):  # later ones are back earlier
            await anyio.lowlevel.checkpoint()
        if customer == 2:
            raise ToolError("customer 2 is not known", "not found")
        return {"customer": customer}

    wanted = [(f"c{number}", "fetch_orders", {"customer": number}) for number in range(4)]
    calls = ask(toolset, *wanted, ("c4", "fetch_orders", {"customer": "five"}))
    assert await calls.answer() == ("c0", "c1", "c2", "c3", "c4")
    assert list(answers(calls).values()) == [
        '{"customer":0}',
        '{"customer":1}',
        "customer 2 is not known",
        '{"customer":3}',
        'Not run: argument customer: expected int, got "five"',
    ]
    assert [calls.state(id) for id, *_ in wanted] == [
        "output-available",
        "output-available",
        "output-error",
        "output-available",
    ]


# --- the user interface -------------------------------------------------------------------------------------------


async def test_navigating_is_possible_where_the_screen_allows_it() -> None:
    toolset, seen = Toolset(), ["home"]

    @toolset.tool
    async def navigate(page: Literal["home", "orders"]) -> str:
        """Show a page of the application."""
        seen.append(page)
        return f"the user now sees {page}"

    @toolset.tool
    async def print_page() -> str:
        """Print the page."""
        raise AssertionError("this screen cannot print")

    wanted = ("a", "navigate", {"page": "orders"}), ("b", "navigate", {"page": "admin"}), ("c", "print_page", {})
    offered = toolset.filter(["navigate"])
    calls = ask(toolset, *wanted, offered=offered)
    await calls.answer()
    assert seen == ["home", "orders"]
    told = answers(calls)
    assert told["a"] == "the user now sees orders"
    assert told["b"].startswith("Not run: argument page: ")
    assert told["c"] == "Not run: there is no tool named print_page here."
    assert [tool.name for tool in offered.as_tools()] == ["navigate"]


# --- a picture ----------------------------------------------------------------------------------------------------


async def test_a_picture_reaches_the_next_input_as_content_parts() -> None:
    toolset = Toolset()
    picture = "iVBORw0KGgo="

    @toolset.tool
    async def generate_image(prompt: str, context: ToolContext) -> list[Any]:
        """Draw a picture."""
        for percent in (50, 100):
            await context.progress({"percent": percent})
        return [TextPart(text=prompt), ImagePart(source=DataSource(value=picture, mime_type="image/png"))]

    reports: list[Any] = []

    async def watch(id: str, value: Any) -> None:
        reports.append((id, value["percent"]))

    calls = ask(toolset, ("c", "generate_image", {"prompt": "a harbour"}))
    await calls.answer(progress=watch)
    assert reports == [("c", 50), ("c", 100)]
    assert answers(calls)["c"] == [
        {"type": "text", "text": "a harbour"},
        {"type": "image", "source": {"type": "data", "value": picture, "mimeType": "image/png"}},
    ]
