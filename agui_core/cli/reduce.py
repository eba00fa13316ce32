"""`agui reduce`: a recorded stream becomes messages and state, as a transcript or as one JSON object.

Memory grows with the conversation, not with the stream.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

import msgspec

from agui_core.cli.arguments import add_command, add_lenient, add_source
from agui_core.cli.escape import escape_json, escape_line
from agui_core.cli.input import RecordedInput, WrongUse, read_file
from agui_core.cli.terminal import Progress, Style, is_terminal, plural, speaks_unicode
from agui_core.cli.transcript import transcript
from agui_core.errors import AGUIError
from agui_core.protocol.base import UNSET
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.state import Policy
from agui_core.status import WHOLE
from agui_core.warnings import ProtocolWarning
from agui_core.wire import to_wire

__all__ = ["add", "make_reducer", "run", "warn_of_end"]

_WARNINGS_SHOWN = 20

_DESCRIPTION = """\
Fold a recorded AG-UI stream into its messages and state.

Prints a transcript: every message with its role, tool calls with their arguments and then the results, the
state, and how the run ended. Deviations that do not end the run are listed on standard error."""
_EPILOG = """\
exit status:
  0  the run finished, was interrupted (it waits for an answer) or was cancelled
  1  it failed, was refused or truncated, or there was no run at all
  2  wrong use: a file that cannot be read, a run input that is none

examples:
  agui reduce session.sse
  curl -sN https://example.org/agent --json @input.json | agui reduce - --input input.json
  agui reduce --json events.jsonl | jq .state"""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(commands, "reduce", run, _DESCRIPTION, _EPILOG, help="show the messages and state of a stream")
    add_source(parser)
    add_lenient(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object for programs")


def make_reducer(
    path: str | None, policy: Policy = "strict", on_warning: Callable[[ProtocolWarning], object] | None = None
) -> Reducer:
    """A reducer that starts from the run input in the file `path`, or from nothing. Raises `WrongUse`."""
    if path is None:
        return Reducer(policy=policy, on_warning=on_warning)
    try:
        return Reducer.from_input(read_file(path), policy=policy, on_warning=on_warning)
    except AGUIError as error:
        raise WrongUse(f"{path} is no run input: {error}") from None


def warn_of_end(source: RecordedInput, *, empty: bool) -> None:
    """Warn on standard error of a stream that ends inside a block, or that is `empty`: without an event."""
    if source.cut_off:
        print("warning: the last block was discarded, as no blank line follows it [SSE-12]", file=sys.stderr)
    if empty:
        print(f"agui: {escape_line(source.no_event)}", file=sys.stderr)


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit status."""
    reducer = make_reducer(args.input, policy=args.policy)
    before = reducer.version
    with RecordedInput(args.file) as source:
        _fold(source, reducer)
    empty = reducer.error is None and reducer.version == before
    warn_of_end(source, empty=empty)
    if args.json:
        print(escape_json(as_json(reducer), ascii=not speaks_unicode(sys.stdout)))
    else:
        for line in transcript(reducer, Style(sys.stdout)):
            print(line)
        sys.stdout.flush()
        _report(reducer, "" if empty else source.name)
    return 0 if reducer.status in WHOLE else 1


def as_json(reducer: Reducer) -> dict[str, Any]:
    """What `--json` prints. In `toolArgs` an open or broken call has its value so far, null where there is none."""
    error, run = reducer.error, reducer.run
    calls = reducer.tool_calls
    return {
        "status": reducer.status,
        "error": None if error is None else _refusal(error),
        "runError": None if run.error is None else to_wire(run.error),
        "messages": to_wire(reducer.messages),
        "state": reducer.state,
        "interrupts": to_wire(run.interrupts),
        "pendingToolCallIds": list(run.pending_tool_calls),
        "toolArgs": {id: None if (args := calls[id].args) is UNSET else args for id in calls},
        "warnings": [msgspec.to_builtins(warning) for warning in reducer.warnings],
    }


def _refusal(error: Any) -> dict[str, Any]:
    return {"rule": error.rule, "index": error.index, "type": error.type, "message": error.message}


def _fold(source: RecordedInput, reducer: Reducer) -> None:
    """Apply everything, to the end or the refusal. The reducer keeps a refusal as its `error`."""
    apply = reducer.apply_lines if source.json_lines else reducer.apply_sse
    progress = Progress(source, lambda: reducer.version)
    try:
        for piece in source:
            apply(piece)
            progress.tick()
        reducer.end()
    except AGUIError:
        assert reducer.error is not None
    finally:
        progress.clear()


def _report(reducer: Reducer, name: str) -> None:
    """Warnings; and the bad end of `name` too, if standard output, which shows it, is not a terminal."""
    warnings = reducer.warnings
    for warning in warnings[:_WARNINGS_SHOWN]:
        print(f"warning: {escape_line(str(warning))}", file=sys.stderr)
    if len(warnings) > _WARNINGS_SHOWN:
        print(
            f"... and {plural(len(warnings) - _WARNINGS_SHOWN, 'more warning')} (agui verify lists all)",
            file=sys.stderr,
        )
    if name and reducer.status not in WHOLE and not is_terminal(sys.stdout):
        reason = reducer.error or (reducer.run.error.message if reducer.run.error else "")
        because = f": {escape_line(str(reason))}" if reason else ""
        print(f"agui: {escape_line(name)}: {reducer.status}{because}", file=sys.stderr)
