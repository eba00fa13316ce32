"""`agui verify`: every violation of a recorded stream, with its line, event and rule.

After a violation it goes on as the lenient policy does, so that one mistake does not hide the next. Memory grows with
the conversation, not with the stream. Findings are written at once.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import msgspec

from agui_core.cli.arguments import add_command, add_source
from agui_core.cli.escape import escape_json, escape_line
from agui_core.cli.input import RecordedInput
from agui_core.cli.line_numbers import LineNumbers
from agui_core.cli.reduce import make_reducer
from agui_core.cli.terminal import Progress, Style, plural, speaks_unicode
from agui_core.errors import AGUIError
from agui_core.limits import Limits
from agui_core.reducer.reducer import Reducer
from agui_core.warnings import ProtocolWarning

__all__ = ["add", "run"]

_DESCRIPTION = """\
Check a recorded AG-UI stream against the protocol.

Prints one line for each violation:

  FILE:LINE: LEVEL: event INDEX TYPE: what is wrong [RULE]

LINE is where the event begins in the file, counted from 1; INDEX counts events from 0. An "error" is what a consumer
has to refuse the stream for; the check goes on after it by repairing or skipping the event, and says how ("opened:",
"skipped:"). A "warning" refuses nothing: something unknown was removed, a patch did not apply, a duty was missed. A
summary goes to standard error."""
_EPILOG = """\
exit status:
  0  no errors
  1  errors (also: the stream ends inside a run, or holds no event), or, with --fail-on-warnings, warnings
  2  wrong use: a file that cannot be read, a run input that is none

A run that fails with a well-formed RUN_ERROR is no violation."""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(
        commands, "verify", run, _DESCRIPTION, _EPILOG, help="report every violation of the protocol in a stream"
    )
    add_source(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object for programs")
    parser.add_argument("--fail-on-warnings", action="store_true", help="exit with status 1 for warnings as well")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One violation, as `--json` shows it."""

    level: str
    line: int
    index: int | None
    type: str | None
    rule: str
    path: str
    message: str


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit status."""
    with RecordedInput(args.file) as source:
        report = (_JsonReport if args.json else _TextReport)(source)
        check = _Check(source, report)
        check.run(make_reducer(args.input, policy="lenient", on_warning=check.note))
    report.end(check)
    if check.empty:
        print(f"agui: {escape_line(source.no_event)}", file=sys.stderr)
    failed = check.errors or (args.fail_on_warnings and check.warnings)
    return 1 if failed else 0


class _Check:
    """One pass over the stream."""

    def __init__(self, source: RecordedInput, report: _TextReport) -> None:
        self.events = self.errors = self.warnings = 0
        self.status = "idle"
        self.empty = False
        self._source = source
        self._report = report
        self._line = 1
        self._progress = Progress(source, lambda: self.events)

    def run(self, reducer: Reducer) -> None:
        """Read to the end, or to where a limit is exceeded."""
        line_numbers = LineNumbers(self._source, Limits().event_bytes)
        try:
            for self._line, payload in line_numbers:
                reducer.apply(payload)
                self.events += 1
                if not self.events % 256:
                    self._progress.tick()
            reducer.end()
        except AGUIError as error:  # a limit, which ends the lenient policy too
            self._line = max(self._line, line_numbers.line) if reducer.error is None else self._line
            self._refusal(error)
        else:
            self._end(reducer, line_numbers)
        self.status = reducer.status
        self._progress.clear()

    def note(self, warning: ProtocolWarning) -> None:
        """A deviation in the event that is being applied."""
        self._found(
            "error" if warning.refused else "warning",
            warning.rule,
            warning.message,
            index=warning.index,
            type=warning.type,
            path=warning.path,
        )

    def _refusal(self, error: Any) -> None:
        index = self.events if error.index is None else error.index
        self._found("error", error.rule, f"{error.message}; the check ends here", index=index, type=error.type)

    def _end(self, reducer: Reducer, line_numbers: LineNumbers) -> None:
        if line_numbers.discarded is not None:
            self._line = line_numbers.discarded
            self._found("warning", "SSE-12", "the last block is discarded: no blank line follows it")
        self._line = line_numbers.line
        if reducer.status == "truncated":
            self._found("error", "RUN-17", "the stream ends inside a run: it is truncated")
        elif not self.events:
            self.empty = True
            self._found("error", "RUN-17", "the stream holds no event")

    def _found(
        self, level: str, rule: str, message: str, *, index: int | None = None, type: str | None = None, path: str = ""
    ) -> None:
        if level == "error":
            self.errors += 1
        else:
            self.warnings += 1
        self._progress.clear()
        self._report.add(
            Finding(level=level, line=self._line, index=index, type=type, rule=rule, path=path, message=message)
        )


class _TextReport:
    """A line for each finding, and the summary on standard error."""

    def __init__(self, source: RecordedInput) -> None:
        self._source = source
        self._style = Style(sys.stdout)

    def add(self, finding: Finding) -> None:
        level = self._style("red" if finding.level == "error" else "yellow", finding.level)
        kind = f" {escape_line(finding.type)}" if finding.type else ""
        event = "" if finding.index is None else f"event {finding.index}{kind}: "
        place = f"{escape_line(self._source.name)}:{finding.line}"
        print(f"{place}: {level}: {event}{escape_line(finding.message)} [{finding.rule}]")

    def end(self, check: _Check) -> None:
        sys.stdout.flush()
        found = [plural(n, noun) for n, noun in ((check.errors, "error"), (check.warnings, "warning")) if n]
        verdict = ", ".join(found) or "no violations"
        print(f"{escape_line(self._source.name)}: {plural(check.events, 'event')}, {verdict}", file=sys.stderr)


class _JsonReport(_TextReport):
    """One JSON object, written as it grows."""

    def __init__(self, source: RecordedInput) -> None:
        super().__init__(source)
        self._ascii = not speaks_unicode(sys.stdout)
        self._before = '{"violations": [\n'

    def add(self, finding: Finding) -> None:
        print(self._before + escape_json(finding, indent=0, ascii=self._ascii), end="")
        self._before = ",\n"

    def end(self, check: _Check) -> None:
        if self._before != ",\n":
            print(self._before, end="")
        summary = {
            "file": self._source.name,
            "format": self._source.format,
            "events": check.events,
            "errors": check.errors,
            "warnings": check.warnings,
            "status": check.status,
        }
        print(f"\n], {escape_json(summary, indent=0, ascii=self._ascii)[1:]}")
