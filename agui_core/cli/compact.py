"""`agui compact`: a recorded stream with fewer events that replays to the same conversation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from typing import IO, Any

from agui_core.cli.arguments import add_command, add_lenient, add_source
from agui_core.cli.atomic_file import AtomicFile
from agui_core.cli.escape import escape_json_bytes, escape_line
from agui_core.cli.input import RecordedInput, WrongUse
from agui_core.cli.reduce import make_reducer, warn_of_end
from agui_core.cli.terminal import Progress, plural
from agui_core.errors import AGUIError
from agui_core.protocol.base import UNSET
from agui_core.reducer.compaction import compact
from agui_core.wire import encode
from agui_core.wire.sse import sse_block

__all__ = ["add", "run"]

_DESCRIPTION = """\
Write a recorded AG-UI stream with fewer events, for storage and replay.

Text and arguments that came in many pieces become one event each, chunks become explicit events, state patches are
joined. Replayed, the result comes to the same messages, state, tool calls and run outcomes. A line on standard error
says how much was saved."""
_EPILOG = """\
exit status:
  0  done
  1  the stream is refused (--lenient repairs it first), or no event is there to write; standard output then ends with
     the events before the refused one, and the file of --output is left alone
  2  wrong use: a file that cannot be read or written, a run input that is none"""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(
        commands,
        "compact",
        run,
        _DESCRIPTION,
        _EPILOG,
        help="write a stream with fewer events that replays to the same",
    )
    add_source(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write here, not to standard output; may be the input")
    parser.add_argument(
        "--to", choices=("sse", "jsonl"), help="the format to write; without it, the format of the input"
    )
    add_lenient(parser)
    parser.add_argument("--drop-raw", action="store_true", help="leave RAW events out")
    parser.add_argument("--drop-custom", action="store_true", help="leave CUSTOM events out")


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit status."""
    work = _compact(args, sys.stdout.buffer) if args.output is None else _into_file(args)
    work.report()
    return 0 if work.good else 1


def _into_file(args: argparse.Namespace) -> _Work:
    try:
        with AtomicFile(args.output) as output:
            work = _compact(args, output.file)
            if work.good:
                output.keep()
            return work
    except OSError as error:
        raise WrongUse(f"cannot write {args.output}: {error.strerror or error}") from None


def _compact(args: argparse.Namespace, file: IO[bytes]) -> _Work:
    """Write the events to `file`, up to the end or to the refusal."""
    state = UNSET if args.input is None else make_reducer(args.input).state
    with RecordedInput(args.file) as source:
        work = _Work(source)
        events = compact(
            work.payloads(),
            policy=args.policy,
            state=state,
            keep_raw=not args.drop_raw,
            keep_custom=not args.drop_custom,
        )
        json_lines = args.to == "jsonl" if args.to else source.json_lines
        try:
            for event in events:
                text = escape_json_bytes(encode(event))
                piece = text + b"\n" if json_lines else sse_block(text)
                file.write(piece)
                work.count(piece)
        except AGUIError as error:
            work.refusal = error
        file.flush()
    return work


class _Work:
    """Counts what goes in and what comes out."""

    def __init__(self, source: RecordedInput) -> None:
        self.events_in = self.events_out = self.bytes_out = 0
        self.refusal: AGUIError | None = None
        self.progress = Progress(source, lambda: self.events_in)
        self._source = source

    def payloads(self) -> Iterator[bytes]:
        """The events as they are read."""
        for payloads in self._source.payloads():
            for payload in payloads:
                self.events_in += 1
                yield payload
            self.progress.tick()

    @property
    def good(self) -> bool:
        """Whether there is something to write, and it is whole."""
        return self.refusal is None and self.events_out > 0

    def count(self, piece: bytes) -> None:
        """One event was written."""
        self.events_out += 1
        self.bytes_out += len(piece)

    def report(self) -> None:
        """Say how much was saved, or why nothing was, on standard error."""
        self.progress.clear()
        name = escape_line(self._source.name)
        if self.refusal is not None:
            print(f"agui: {name}: refused: {escape_line(str(self.refusal))}", file=sys.stderr)
            return
        warn_of_end(self._source, empty=not self.events_in)
        if not self.events_in:
            return
        before, after = self._source.read, self.bytes_out
        saved = f", {1 - after / before:.0%} less" if 0 < after < before else ""
        print(
            f"{name}: {plural(self.events_in, 'event')} became {self.events_out:,};"
            f" {plural(before, 'byte')} became {after:,}{saved}",
            file=sys.stderr,
        )
