"""`agui demo`: a question to a small assistant with tools, whose events are shown as they come. Offline."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from agui_core.cli.arguments import add_command
from agui_core.cli.escape import escape_block, escape_json, escape_line
from agui_core.cli.input import WrongUse
from agui_core.cli.terminal import Style, speaks_unicode
from agui_core.protocol.base import UNSET
from agui_core.protocol.events import Event
from agui_core.protocol.messages import UserMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.reducer.reducer import Reducer
from agui_core.status import WHOLE

if TYPE_CHECKING:
    from agui_core.tools.loop import ToolLoop

__all__ = ["add", "run", "demo_loop"]

_QUESTION = "What is the gain on 100 AAPL shares bought at 150?"

_DESCRIPTION = """\
Ask a small assistant that has three tools: search_information, get_stock_price and calculate_expression.

Rules stand in for the model, so it works offline and answers the same each time; all else is real: its loop of deciding
and calling tools, its events, and the reducer that folds them into the answer. The events are shown as they come."""
_EPILOG = """\
exit status:
  0  the run finished
  1  it failed
  2  wrong use

examples:
  agui demo
  agui demo "What is the price of MSFT?"
  agui demo --json "What is 2 * (3 + 4)?" | agui reduce -"""

_DETAILS: dict[str, tuple[str, ...]] = {
    "RUN_STARTED": ("thread_id", "run_id"),
    "TOOL_CALL_START": ("tool_call_name",),
    "TOOL_CALL_ARGS": ("delta",),
    "TOOL_CALL_RESULT": ("content",),
    "TEXT_MESSAGE_CONTENT": ("delta",),
    "RUN_ERROR": ("message",),
}
"""What is shown of an event beside its type."""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(commands, "demo", run, _DESCRIPTION, _EPILOG, help="ask an assistant with tools, offline")
    parser.add_argument(
        "question", metavar="QUESTION", nargs="?", default=_QUESTION, help=f'"{_QUESTION}" if not given'
    )
    parser.add_argument("--json", action="store_true", help="print the events as JSON Lines and nothing else")


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit status."""
    import anyio

    question = args.question.encode("utf-8", "replace").decode()  # an argument may hold bytes that are no text
    if not question.strip():
        raise WrongUse(f'the question is blank; ask one, such as "{_QUESTION}"')
    return anyio.run(_show, question, args.json)


def demo_loop() -> ToolLoop:
    """The assistant: its tools and its rules, in a loop."""
    from agui_core.cli.demo_agent import decide, toolset  # tools are loaded when they are used
    from agui_core.tools.loop import ToolLoop

    return ToolLoop(decide, toolset)


async def _show(question: str, as_json: bool) -> int:
    asked = UserMessage(id="question", content=question)
    run_input = RunAgentInput(thread_id="demo", run_id="demo-1", messages=(asked,))
    reducer = Reducer.from_input(run_input)
    style = Style(sys.stdout)
    async with demo_loop().run(run_input) as events:
        async for event in events:
            reducer.apply(event)
            print(_json(event) if as_json else _line(event, style), flush=True)
    if not as_json:
        answer = getattr(reducer.messages[-1], "content", UNSET)
        print()
        print(style("bold", escape_block(answer if isinstance(answer, str) else "There is no answer.")))
    return 0 if reducer.status in WHOLE else 1


def _json(event: Event) -> str:
    return escape_json(event, indent=-1, ascii=not speaks_unicode(sys.stdout))


def _line(event: Event, style: Style) -> str:
    details = (str(getattr(event, name)) for name in _DETAILS.get(event.type, ()))
    return f"{style('dim', f'{event.type:<20}')} {escape_line(' '.join(details))}".rstrip()
