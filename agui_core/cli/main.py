"""The entry point of the `agui` command: the subcommands, and the exit status."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from io import TextIOWrapper
from typing import NoReturn

from agui_core.cli import chat, compact, demo, reduce, rules, serve, verify, watch
from agui_core.cli.escape import escape_line
from agui_core.cli.input import WrongUse

__all__ = ["main"]

_COMMANDS = (reduce, verify, compact, watch, chat, serve, demo, rules)
_BROKEN_PIPE = 128 + 13
_INTERRUPTED = 128 + 2
_WRONG_USE = 2
_PIPE_ERRORS = frozenset({errno.EPIPE, errno.EINVAL})  # Windows reports a broken pipe as an invalid argument

_DESCRIPTION = """\
Read recorded AG-UI event streams: what conversation they hold, and whether they keep to the protocol.

A stream is a file (or - for standard input) of server-sent events or JSON Lines; which of them, its content tells."""
_EPILOG = """\
"agui COMMAND --help" explains a command. Exit status: 0 good, 1 the stream is not, 2 wrong use,
130 interrupted, 141 the reader of the output went away."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (the process's if not said). Returns the exit status.

    Raises: as argparse does, `SystemExit(2)` for wrong arguments, `SystemExit(0)` for `--help` and `--version`.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        args = _parser().parse_args(argv)
        status: int = args.run(args)
        sys.stdout.flush()
    except WrongUse as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        return _INTERRUPTED
    except OSError as error:
        _drop_output()
        if isinstance(error, BrokenPipeError) or error.errno in _PIPE_ERRORS:
            return _BROKEN_PIPE
        return _complain(f"cannot write the output: {error.strerror or error}")
    return status


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="agui",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"agui {_version()}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in _COMMANDS:
        command.add(commands)
    return parser


class _Parser(argparse.ArgumentParser):
    """A parser that escapes the arguments in its errors. The parsers of the commands do so too."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and exit."""
        super().error(escape_line(message))


def _version() -> str:
    try:
        return version("agui_core")
    except PackageNotFoundError:
        return "(not installed)"


def _complain(text: str) -> int:
    print(f"agui: {escape_line(text)}", file=sys.stderr)
    return _WRONG_USE


def _drop_output() -> None:
    """Send buffered output nowhere, so that the interpreter does not fail to flush it at the exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
