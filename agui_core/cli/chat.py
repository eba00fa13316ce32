"""`agui chat`: talk to an agent over HTTP, on a terminal or through a pipe. Needs `httpx2`, from the extra `http`."""

from __future__ import annotations

import argparse
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

from agui_core.cli.arguments import add_command, add_lenient
from agui_core.cli.input import WrongUse

if TYPE_CHECKING:
    from agui_core.stream import HttpAgent

__all__ = ["Recorder", "add", "run"]

_DESCRIPTION = """\
Talk to an AG-UI agent. What you type is sent line by line; texts, arguments of tool calls and results are shown as they
come, and where the agent asks for an approval or an answer, you are asked.

Ctrl-C stops what the agent is doing, a second one leaves. /help lists what else you can type."""
_EPILOG = """\
exit status:
  0  you left, and the last run finished, was interrupted or cancelled, or you stopped it
  1  the last run failed, was refused or broke off, or the agent could not be reached
  2  wrong use: no such address, a file that cannot be written, httpx2 is not installed
130  left by Ctrl-C

examples:
  agui chat http://127.0.0.1:8000/
  agui chat https://example.org/agent --header "Authorization: Bearer $TOKEN" --record session.jsonl
  echo "What is new?" | agui chat http://127.0.0.1:8000/"""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(commands, "chat", run, _DESCRIPTION, _EPILOG, help="talk to an agent")
    parser.add_argument("url", metavar="URL", help="the agent's endpoint")
    parser.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        type=_header,
        action="append",
        default=[],
        help="a header of every request; may be repeated",
    )
    parser.add_argument(
        "--record",
        metavar="FILE",
        help="write the events to this file as they come, one JSON object a line, for agui watch, reduce, verify and"
        " serve; those without a timestamp get one; what an existing file holds is overwritten when the first event"
        " comes, and left alone when none does",
    )
    parser.add_argument("--thread", metavar="ID", help="the id of the thread (default: a random one)")
    add_lenient(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit status."""
    try:
        from agui_core.stream.http_agent import HttpAgent
    except ImportError as error:
        raise WrongUse("chat needs httpx2: pip install 'agui_core[http]'") from error
    try:
        agent = HttpAgent(args.url, headers=args.header)
    except ValueError as error:
        raise WrongUse(str(error)) from None
    if args.record is None:
        return _talk(agent, args, ())
    try:
        file = open(args.record, "ab", buffering=0)  # noqa: SIM115  # the recorder empties it
    except OSError as error:
        raise WrongUse(f"cannot write {args.record}: {error.strerror or error}") from None
    with file:
        return _talk(agent, args, (Recorder(file),))


def _talk(agent: HttpAgent, args: argparse.Namespace, middleware: Iterable[Any]) -> int:
    import anyio

    from agui_core.cli.chat_session import ChatSession  # it loads what is async, which the other commands do without
    from agui_core.reducer.reducer import Reducer

    reducer = Reducer(policy=args.policy, middleware=middleware)
    session = ChatSession(agent, reducer, args.thread)
    anyio.run(session.run)
    if session.interrupted:
        raise KeyboardInterrupt
    return 0 if session.good else 1


class Recorder:
    """A middleware that writes down every event as received, refused events too (PROC-3).

    The first event replaces the old content of `file`.
    """

    def __init__(self, file: IO[bytes], clock: Callable[[], float] = time.time) -> None:
        self._file = file
        self._clock = clock
        self._holds_old = stat.S_ISREG(os.fstat(file.fileno()).st_mode)  # a pipe or a device cannot be emptied

    def __call__(self, events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The same events."""
        from agui_core.wire import encode

        for event in events:
            if self._holds_old:
                self._file.truncate(0)
                self._holds_old = False
            stamped = event if "timestamp" in event else {**event, "timestamp": int(self._clock() * 1000)}
            self._file.write(encode(stamped) + b"\n")  # type: ignore[arg-type]  # any JSON object will do
            yield event


def _header(text: str) -> tuple[str, str]:
    from agui_core.stream.headers import header_fields  # it loads what is async, which the other commands do without

    name, colon, value = text.partition(":")
    try:
        header_fields([(name, value)])
    except ValueError:
        colon = ""
    if not colon:
        raise argparse.ArgumentTypeError("a header is 'Name: value', in one line of Latin-1")
    return name, value
