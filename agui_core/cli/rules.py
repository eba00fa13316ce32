"""`agui rules`: what the rule ids in errors and warnings mean, a sentence each."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from typing import Any

from agui_core.cli.arguments import add_command
from agui_core.cli.escape import escape_json
from agui_core.cli.input import WrongUse
from agui_core.cli.terminal import Style, is_terminal
from agui_core.rules import AREAS, RULES, near, rules_of

__all__ = ["add", "run"]

_DESCRIPTION = """\
Say what the protocol's rules ask of a consumer, a sentence each.

Errors and warnings end with the id of a rule in brackets, as in [STR-2]. Without an ID all rules are printed, one on a
line; the name of an area, such as STR, stands for all of its rules."""
_EPILOG = """\
exit status:
  0  the rules were printed
  2  wrong use: there is no such rule; those that look alike are named"""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(commands, "rules", run, _DESCRIPTION, _EPILOG, help="say what a rule id means")
    parser.add_argument(
        "names", nargs="*", metavar="ID", help="a rule (STR-2) or an area (STR); all when there is none"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, sentence by id, for programs")


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit status."""
    chosen = _chosen(args.names)
    if args.json:
        print(escape_json(chosen))
    else:
        _show(chosen, headed=not args.names)
    return 0


def _chosen(names: list[str]) -> dict[str, str]:
    if not names:
        return RULES
    chosen: dict[str, str] = {}
    for name in names:
        found = rules_of(name)
        if not found:
            raise WrongUse(f"there is no rule {name!r}; near it: {', '.join(near(name))}")
        chosen.update(found)
    return chosen


def _show(chosen: dict[str, str], *, headed: bool) -> None:
    style = Style(sys.stdout)
    room = max(map(len, chosen)) + 2
    width = max(40, shutil.get_terminal_size().columns) if is_terminal(sys.stdout) else sys.maxsize
    shown = ""
    for id, text in chosen.items():
        area = id.partition("-")[0]
        if headed and area != shown:
            print(f"{chr(10) if shown else ''}{style('bold', area)}: {AREAS[area]}")
            shown = area
        lines = textwrap.wrap(text, width - room)
        print(f"{style('cyan', id)}{' ' * (room - len(id))}{lines[0]}")
        for line in lines[1:]:
            print(" " * room + line)
