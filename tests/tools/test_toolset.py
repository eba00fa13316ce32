"""Toolsets: what is offered, to whom, and who has to agree."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agui_core.protocol import run as protocol
from agui_core.tools.context import ToolContext
from agui_core.tools.errors import DeclarationError, InvalidArguments, ToolError
from agui_core.tools.toolset import Toolset

CONTEXT = ToolContext(call_id="c", thread_id="t", run_id="r")


def weather(city: str) -> str:
    """Say how the weather is."""
    return f"sun in {city}"


async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@pytest.fixture
def toolset() -> Toolset:
    tools = Toolset()
    tools.tool(weather)
    tools.tool(effects=True, timeout=2.5)(pay)
    tools.add({"name": "navigate", "description": "Go to a page."})
    return tools


def test_declaring_gives_the_function_back() -> None:
    tools = Toolset()
    assert tools.tool(weather) is weather
    assert tools.tool(name="again", description="Other words.")(weather) is weather
    assert [(tool.name, tool.description) for tool in tools] == [
        ("weather", "Say how the weather is."),
        ("again", "Other words."),
    ]


def test_tools_come_in_the_order_of_declaration_and_by_exact_name(toolset: Toolset) -> None:
    assert [tool.name for tool in toolset] == ["weather", "pay", "navigate"]
    assert len(toolset) == 3
    assert toolset["pay"].timeout == 2.5
    assert "pay" in toolset
    for stranger in ("Pay", "pay ", "p\u0430y", "\uff50ay", "__class__", ""):
        assert stranger not in toolset
        assert toolset.get(stranger) is None
    assert repr(toolset) == "<Toolset weather, pay, navigate>"


def test_a_toolset_is_filtered_by_names_or_by_a_predicate(toolset: Toolset) -> None:
    assert [tool.name for tool in toolset.filter(["navigate", "weather", "unknown"])] == ["weather", "navigate"]
    assert [tool.name for tool in toolset.filter(lambda tool: not tool.effects)] == ["weather"]
    assert len(toolset) == 3
    with pytest.raises(TypeError, match=r"\['pay'\]"):
        toolset.filter("pay")


def test_merging_keeps_the_order_and_refuses_a_name_twice(toolset: Toolset) -> None:
    other = Toolset()
    other.tool(name="rain")(weather)
    assert [tool.name for tool in toolset | other] == ["weather", "pay", "navigate", "rain"]
    assert len(Toolset.merge()) == 0
    with pytest.raises(DeclarationError, match="two tools named weather"):
        Toolset.merge(other, toolset, toolset.filter(["weather"]))
    with pytest.raises(DeclarationError, match="two tools named weather"):
        toolset.tool(weather)
    with pytest.raises(TypeError):
        toolset | {}  # type: ignore[operator]


def test_ft1_a_toolset_becomes_the_tools_of_a_run_input(toolset: Toolset) -> None:
    toolset.add(protocol.ToolDeclaration(name="look", description="", parameters={"type": "object"}, metadata={"k": 1}))
    tools = toolset.as_tools()
    assert tools[0] == protocol.ToolDeclaration(
        name="weather",
        description="Say how the weather is.",
        parameters={
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    )
    assert tools[2] == protocol.ToolDeclaration(name="navigate", description="Go to a page.")
    assert tools[3].metadata == {"k": 1}


def test_a_tool_without_a_handler_is_only_advertised(toolset: Toolset) -> None:
    navigate = toolset["navigate"]
    assert navigate.handler is None
    assert navigate.convert('{"to": "/"}') == {"to": "/"}
    with pytest.raises(LookupError, match="navigate has no handler here"):
        navigate.bind({}, CONTEXT)


def test_a_bound_call_runs_with_the_arguments_by_name(toolset: Toolset) -> None:
    assert toolset["weather"].bind({"city": "Rome"}, CONTEXT)() == "sun in Rome"
    assert anyio.run(toolset["pay"].bind({"amount": 3}, CONTEXT)) == "paid 3"


def policy(arguments: dict[str, Any]) -> Any:
    return arguments["amount"] > 100


@pytest.mark.parametrize(
    ("options", "decision"),
    [
        ({}, "run"),
        ({"effects": True}, "ask"),
        ({"effects": True, "approval": "never"}, "run"),
        ({"approval": "always"}, "ask"),
        ({"approval": policy}, "run"),
        ({"approval": lambda arguments: True}, "ask"),
        ({"approval": lambda arguments: False}, "run"),
        ({"approval": lambda arguments: "run"}, "run"),
        ({"approval": lambda arguments: "ask"}, "ask"),
        ({"approval": lambda arguments: "deny"}, "deny"),
        ({"approval": lambda arguments: None}, "ask"),
        ({"approval": lambda arguments: []}, "ask"),
        ({"approval": lambda arguments: "no"}, "ask"),
        ({"approval": lambda arguments: arguments["missing"]}, "ask"),
    ],
)
def test_sec2_who_has_to_agree_to_a_declared_tool(options: dict[str, Any], decision: str) -> None:
    tools = Toolset()
    tools.tool(**options)(pay)
    tool = tools["pay"]
    assert tool.judge(tool.convert('{"amount": 5}')) == decision
    assert tool.effects is options.get("effects", False)


@pytest.mark.parametrize(
    ("options", "effects", "decision"),
    [
        ({}, True, "ask"),
        ({"effects": True}, True, "ask"),
        ({"effects": False}, False, "run"),
        ({"effects": False, "approval": "always"}, False, "ask"),
        ({"approval": "never"}, True, "run"),
    ],
)
def test_sec2_a_tool_known_by_its_schema_asks_unless_it_has_no_effects(
    options: dict[str, Any], effects: bool, decision: str
) -> None:
    tool = Toolset().add({"name": "a", "description": ""}, handler=dict, **options)
    assert (tool.effects, tool.judge({})) == (effects, decision)


def test_a_policy_cannot_change_the_arguments() -> None:
    tools = Toolset()
    tools.tool(approval=lambda arguments: bool(arguments.clear()))(pay)
    arguments = {"amount": 5}
    assert tools["pay"].judge(arguments) == "run"
    assert arguments == {"amount": 5}


async def async_policy(arguments: dict[str, Any]) -> bool:
    return False


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"name": ""}, "no name for a tool"),
        ({"name": "  "}, "no name for a tool"),
        ({"name": "pay\u200b"}, "no name for a tool"),
        ({"name": "\u202eyap"}, "no name for a tool"),
        ({"name": "a\nb"}, "no name for a tool"),
        ({"name": "\ud800"}, "no name for a tool"),
        ({"timeout": 0}, "seconds above 0"),
        ({"timeout": -1.0}, "seconds above 0"),
        ({"timeout": float("nan")}, "seconds above 0"),
        ({"timeout": float("inf")}, "seconds above 0"),
        ({"timeout": True}, "timeout is True, but takes seconds above 0, or None"),
        ({"timeout": "x"}, "the tool pay .*timeout is 'x', but takes seconds above 0, or None"),
        ({"timeout": 10**400}, "timeout is 1.*, but takes seconds above 0"),
        ({"timeout": 10**5000}, "timeout is .*, but takes seconds above 0"),
        ({"name": 5}, "5 is no name for a tool"),
        ({"description": 5}, "description is 5, but takes text"),
        ({"effects": "yes"}, "effects is 'yes', but takes True or False"),
        ({"effects": 1}, "effects is 1, but takes True or False"),
        ({"approval": True}, "approval is True, but takes never, always or a function"),
        ({"approval": "sometimes"}, "never, always or a function"),
        ({"approval": async_policy}, "a policy answers at once"),
    ],
)
def test_bad_options_are_refused_at_declaration(options: dict[str, Any], text: str) -> None:
    tools = Toolset()
    with pytest.raises(DeclarationError, match=text) as caught:
        tools.tool(**options)(pay)
    str(caught.value).encode()
    assert len(tools) == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"effects": "no"}, "the tool a .*effects is 'no', but takes True or False"),
        ({"timeout": "x"}, "timeout is 'x'"),
        ({"approval": 1}, "approval is 1"),
    ],
)
def test_bad_options_of_a_tool_known_by_its_schema_are_refused(options: dict[str, Any], text: str) -> None:
    tools = Toolset()
    with pytest.raises(DeclarationError, match=text):
        tools.add({"name": "a", "description": ""}, **options)
    assert len(tools) == 0


def test_a_context_reports_progress_to_whoever_watches() -> None:
    reports: list[tuple[str, Any]] = []

    async def watch(call_id: str, value: Any) -> None:
        reports.append((call_id, value))

    anyio.run(ToolContext(call_id="c7", thread_id="t", run_id="r", report=watch).progress, {"done": 0.5})
    anyio.run(CONTEXT.progress, "nobody listens")
    assert reports == [("c7", {"done": 0.5})]


def test_a_tool_words_its_failure_for_the_model_and_for_people() -> None:
    error = ToolError("no such account; ask for another", "The account does not exist.")
    assert (error.model_text, error.human_text, str(error)) == (
        "no such account; ask for another",
        "The account does not exist.",
        "no such account; ask for another",
    )
    assert ToolError("gone").human_text == "gone"
    assert not isinstance(error, InvalidArguments)
