"""Arguments that several commands take, declared once."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any

__all__ = ["add_command", "add_file", "add_lenient", "add_source", "add_speed", "rate"]


def add_command(
    commands: Any,
    name: str,
    run: Callable[[argparse.Namespace], int],
    description: str,
    epilog: str,
    *,
    help: str,
) -> argparse.ArgumentParser:
    """A parser for the subcommand `name`. Texts are shown as they are, lines and all; `run` gives the exit status."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=help,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser


def add_file(parser: argparse.ArgumentParser) -> None:
    """FILE, the recording."""
    parser.add_argument(
        "file", metavar="FILE", help="the stream, SSE or JSON Lines (told by its content); - is standard input"
    )


def add_source(parser: argparse.ArgumentParser) -> None:
    """FILE, and what was there before its first event."""
    add_file(parser)
    parser.add_argument(
        "--input", metavar="RUN_INPUT.json", help="the RunAgentInput that was sent: its messages and state come first"
    )


def add_lenient(parser: argparse.ArgumentParser) -> None:
    """--lenient, read as `policy`."""
    parser.add_argument(
        "--lenient",
        dest="policy",
        action="store_const",
        const="lenient",
        default="strict",
        help="repair or skip what the protocol forbids, and go on",
    )


def add_speed(parser: Any) -> None:
    """--speed, from 0 up, for a parser or a group of one."""
    parser.add_argument(
        "--speed", metavar="FACTOR", type=_speed, default=1.0, help="2 is twice as fast as recorded, 0 does not wait"
    )


def rate(text: str) -> float:
    """Events a second, from the command line."""
    events = _number(text)
    if not 0 < events < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no rate: give events a second, more than 0")
    return events


def _speed(text: str) -> float:
    factor = _number(text)
    if not 0 <= factor < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no speed: give a number from 0 up")
    return factor


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return -1.0
