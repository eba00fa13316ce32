"""What users see of the package: its names, the public attributes of its classes, what each says of itself.

A change of any of these shows up here. What a test prints on failure is what belongs into the table.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

import agui_core as agui
from agui_core.reducer import ToolCalls
from agui_core.reducer.partial_json import JsonFault
from agui_core.stream.follow_sync import SyncUpdates
from agui_core.stream.http_agent import HttpAgent, HttpRun
from agui_core.stream.readers import EveryEvent, Paced
from agui_core.stream.serve import ServeEndpoint
from agui_core.stream.turn import Updates
from agui_core.stream.usage import TokenSum
from agui_core.tools.loop_result import Failure, Observation

VALUES = [getattr(agui, name) for name in agui.__all__]
README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
BEGIN, END = "<!-- names: what tests/test_public_face.py makes -->", "<!-- end of names -->"

FACE = """
UNSET
AGUIError
Agent: run
ApprovalError
ApprovalRequest: args arguments call_id digest interrupt interrupts message tool tool_name
ArgumentsError: call_id path problem tool
CallState
Calls: abandon answer approve checkpoint continue_with deny interrupts next_input ready reducer renew request
    restore resume set_output state toolset unknown waiting warnings
Changes: added calls changed removed reordered reset run state version
ChatUpdate: changes messages run state status stopped
Conformer: close feed warnings
Content
Conversation: approve calls checkpoint deny error messages options proceed reducer request restore resume retry run
    send set_output state status stop stopped thread_id turn updates usage waiting warnings
DeclarationError
DecodeError: ids index message rule type
Ending
Event
EventStream
HttpAgent: run url
Interrupt: expires_at id message metadata reason response_schema subagent_run_id tool_call_id
InvalidArguments: expected message path value
JSONLinesDecoder: close feed held_bytes
LimitExceeded: ids index limit message rule type
Limits: characters event_bytes item_characters lanes messages nesting nodes open_items patch_operations subagents
    tool_calls tool_calls_per_message warnings
LiveRun: reader reducer status updates warnings
LoopResult: final_output metadata status tool_call_count tool_errors tool_results
LoopRun: aclose result
Middleware
PartialJson: close complete copy error feed path value
PatchError: message operation
Policy
ProtocolError: ids index message rule type
ProtocolWarning: count index message path refused rule type
Reducer: add apply apply_each apply_lines apply_sse changes checkpoint copy end error extra from_input limits
    messages policy renew restore run state status supersede tool_calls version warnings
ResumeEntry: interrupt_id metadata payload status
ResumeError
Run: calls_without_result error interrupts last_calls named_calls pending_tool_calls protocol_version result
    reused_calls run_id thread_id usage
RunAgentInput: context forwarded_props messages parent_run_id protocol_version resume run_id state thread_id tools
SSEDecoder: close feed held_bytes
Status
StillWaiting: calls interrupts who
SyncRun: reducer status updates warnings
Tool: approval as_wire bind by_name context convert description effects handler is_async judge metadata name
    parameters result_bytes timeout
ToolCallView: args args_as arguments complete encrypted_value error id message_id metadata name partial_as result
    valid
ToolContext: call_id progress run_id state thread_id
ToolError: human_text model_text
ToolLoop: run toolset
Toolset: add as_tools filter get merge tool
TransportError: body status
Turn: ending error over wait
Update: changes messages run state status
Usage: models plus runs silent total
Verdict: approved cancelled edited_args reason
Waiting: agent application approver interrupts who
apply_patch
compact
conform
decisions
decode
encode
encode_sse
events
follow
follow_sync
interrupt_for
langgraph_interrupts
messages
reduce
serve
to_wire
validate
HttpRun
EveryEvent: aclose
Paced: aclose
ServeEndpoint
SyncUpdates
ToolCalls
Updates
"""
_ELSEWHERE = {"UNSET": "What an absent field holds; never `None`."}
"""Names that we hand on and others wrote."""


def attributes(kind: type) -> list[str]:
    """The public attributes of a class: methods, properties, fields, and what `__init__` sets."""
    found: set[str] = set()
    for base in kind.__mro__:
        if not base.__module__.startswith("agui_core"):
            continue
        found |= set(vars(base)) | set(getattr(base, "__struct_fields__", ()))
        init = vars(base).get("__init__")
        if inspect.isfunction(init) and init.__code__.co_filename.endswith(".py"):  # neither C's nor a dataclass's
            tree = ast.parse(textwrap.dedent(inspect.getsource(init)))
            found |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and _sets_own(node)}
    return sorted(name for name in found if not name.startswith("_"))


def _sets_own(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name) and node.value.id == "self"


REACHED = [HttpRun, EveryEvent, Paced, ServeEndpoint, SyncUpdates, ToolCalls, Updates]
"""Classes whose objects users get from those above, and that have no name at the top."""


def face() -> str:
    """Each exported name with the public attributes of its class, one under the other; then what these lead to."""
    lines: list[str] = []
    for name, value in [*zip(agui.__all__, VALUES, strict=True), *((kind.__name__, kind) for kind in REACHED)]:
        shown = f"{name}: {' '.join(attributes(value))}" if isinstance(value, type) else name
        lines += textwrap.wrap(shown.removesuffix(": "), width=116, subsequent_indent="    ")
    return "\n".join(lines)


def sentence(name: str) -> str:
    """The first sentence of what an exported name says of itself."""
    value: Any = getattr(agui, name)
    documented = isinstance(value, type | ModuleType) or inspect.isfunction(value)
    text = _ELSEWHERE.get(name) or (inspect.getdoc(value) if documented else _after_assignment(name)) or ""
    first = " ".join(text.partition("\n\n")[0].split())
    return first.partition(". ")[0].removesuffix(".")


def _after_assignment(name: str) -> str | None:
    """The text behind the assignment of an alias."""
    for module in [module for key, module in sorted(sys.modules.items()) if key.startswith("agui_core.")]:
        if name not in vars(module) or name not in getattr(module, "__all__", ()):
            continue
        body = ast.parse(inspect.getsource(module)).body
        for node, after in pairwise(body):
            target = node.target if isinstance(node, ast.AnnAssign) else None
            if isinstance(target, ast.Name) and target.id == name and isinstance(after, ast.Expr):
                return inspect.cleandoc(ast.literal_eval(after.value))
    return None


def table() -> str:
    """The names as README.md lists them."""
    rows = [f"| `{name}` | {sentence(name)} |" for name in agui.__all__]
    return "\n".join(["| `agui.` | |", "| --- | --- |", *rows])


def test_the_public_face_is_this() -> None:
    assert face() == FACE.strip(), f"the public face changed; now it is\n\n{face()}\n"


def test_the_readme_lists_every_name() -> None:
    listed = README.partition(BEGIN)[2].partition(END)[0].strip()
    assert listed == table(), f"the names changed; now they are\n\n{table()}\n"


@pytest.mark.parametrize("name", agui.__all__)
def test_a_name_says_what_it_is(name: str) -> None:
    assert 10 < len(sentence(name)) < 130


@pytest.mark.parametrize("value", VALUES, ids=agui.__all__)
def test_no_signature_hides_its_options(value: Any) -> None:
    names = ("__init__", *attributes(value)) if isinstance(value, type) else ()
    for function in [value, *(getattr(value, name, None) for name in names)]:
        if inspect.isfunction(function) or inspect.ismethod(function):
            kinds = [parameter.kind for parameter in inspect.signature(function).parameters.values()]
            hides = inspect.Parameter.VAR_KEYWORD in kinds
            assert not hides or function.__name__ == "_no_init_or_replace_init", function  # a Protocol's


STRUCTS = [value for value in VALUES if isinstance(value, type) and issubclass(value, msgspec.Struct)]


@pytest.mark.parametrize("kind", [*STRUCTS, Failure, JsonFault, Observation, TokenSum], ids=lambda kind: kind.__name__)
def test_help_says_what_each_field_is(kind: type[msgspec.Struct]) -> None:
    text = inspect.getdoc(kind) or ""
    told = re.findall(r"^(\w+): \S", text, re.MULTILINE) + re.findall(r"`(\w+)`", text.partition("\n\n")[0])
    assert set(kind.__struct_fields__) <= set(told)


def test_structs_print_what_they_hold() -> None:
    reducer = agui.Reducer()
    assert repr(reducer.run) == "Run()"
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})
    assert repr(reducer.run) == "Run(thread_id='t', run_id='r')"
    assert repr(reducer.changes(0)) == "Changes(version=1, run=True)"
    assert repr(agui.Limits(messages=5)) == "Limits(messages=5)"


def test_objects_print_on_one_line() -> None:
    tools, reducer = agui.Toolset(), agui.Reducer()
    run_input = agui.RunAgentInput(thread_id="t", run_id="r", messages=())
    tools.tool(name="pay")(print_nothing)
    reducer.apply({"type": "RUN_STARTED", "threadId": "t", "runId": "r\u2028" + "x" * 500})
    shown = {
        "Reducer": repr(reducer),
        "Calls": repr(agui.Calls(reducer, tools)),
        "Conversation": repr(agui.Conversation(HttpAgent("http://h"), reducer=reducer, thread_id="t\n" + "y" * 500)),
        "EventStream": repr(agui.EventStream(no_events(), ping=None, policy=None)),
        "HttpAgent": repr(HttpAgent("https://user:secret@host/agent?token=secret")),
        "LiveRun": repr(agui.follow(no_events(), reducer=reducer)),
        "LoopRun": repr(agui.ToolLoop(print_nothing, tools).run(run_input)),
        "SSEDecoder": repr(agui.SSEDecoder()),
        "SyncRun": repr(agui.follow_sync([], reducer=reducer)),
        "Tool": repr(tools["pay"]),
        "ToolLoop": repr(agui.ToolLoop(print_nothing, tools)),
    }
    for name, text in shown.items():
        assert re.match(rf"<{name}[ ,]", text)
        assert text.endswith(">")
        assert len(text) < 300
        assert text.isprintable()
        assert "secret" not in text
    assert shown["HttpAgent"] == "<HttpAgent https://host/agent>"
    assert shown["EventStream"] == "<EventStream unchecked, no pings>"
    assert shown["ToolLoop"] == "<ToolLoop of <Toolset pay>, at most 8 calls>"
    assert shown["LoopRun"] == "<LoopRun r: no result yet>"
    assert shown["Tool"] == "<Tool pay>"
    assert shown["SSEDecoder"] == "<SSEDecoder, 0 bytes held>"


def test_looking_at_an_update_by_its_repr_does_not_freeze_it() -> None:
    ids = {"threadId": "t", "runId": "r"}
    events = iter([{"type": "RUN_STARTED", **ids}, {"type": "RUN_FINISHED", **ids}])
    with agui.follow_sync(events) as run:
        updates = run.updates()
        update = next(updates)
        assert repr(update) == "<Update, not looked at yet>"
        next(updates)
        assert update.status == "finished"
        assert repr(update) == "<Update run r finished: 0 messages, 0 new, 0 changed>"


@pytest.mark.anyio
async def test_a_turn_prints_how_it_stands() -> None:
    class Silent:
        def run(self, run_input: agui.RunAgentInput) -> Any:
            return no_events()

    async with agui.Conversation(Silent(), thread_id="t") as chat:
        turn = chat.send("hi")
        assert repr(turn) == "<Turn, going on>"
        assert repr(chat) == "<Conversation t idle: 1 messages, 0 runs, a turn is going on>"
        with pytest.raises(agui.TransportError):
            await turn.wait()
        assert repr(turn) == "<Turn raised TransportError>"
        assert repr(chat) == "<Conversation t idle: 1 messages, 0 runs>"


def print_nothing(text: str = "") -> str:
    """A tool, or a function that decides."""
    return text


async def no_events() -> Any:
    for event in ():
        yield event
