"""`agui watch`: a recorded stream played on the terminal as it once arrived. Needs `rich`, from the extra `cli`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

from agui_core.cli.arguments import add_command, add_lenient, add_source, add_speed
from agui_core.cli.input import RecordedInput, WrongUse
from agui_core.cli.pacing import Pacing, read_head
from agui_core.cli.reduce import make_reducer
from agui_core.cli.terminal import Style, is_terminal
from agui_core.cli.transcript import transcript
from agui_core.errors import AGUIError
from agui_core.reducer.reducer import Reducer
from agui_core.status import WHOLE

if TYPE_CHECKING:
    from agui_core.cli.screen import Screen

__all__ = ["add", "run"]

_FRAME = 0.05
"""Seconds between two pictures, at least."""
_LONGEST = 2.0
"""Seconds that a pause lasts, at most."""

_DESCRIPTION = """\
Play a recorded AG-UI stream: messages, growing arguments and the state, live on the terminal, and then the transcript.

Events with timestamps come at their recorded pace, others 50 a second; a pause lasts at most two seconds. From standard
input events are shown as they arrive. Ctrl-C ends it."""
_EPILOG = """\
exit status:
  0  the run finished, was interrupted (it waits for an answer) or was cancelled
  1  it failed, was refused or truncated, or there was no run at all
  2  wrong use: no terminal, rich is not installed, a file that cannot be read

examples:
  agui watch session.sse
  agui watch --speed 4 session.sse
  curl -sN https://example.org/agent --json @input.json | agui watch -"""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(commands, "watch", run, _DESCRIPTION, _EPILOG, help="play a stream on the terminal")
    add_source(parser)
    add_speed(parser)
    add_lenient(parser)


def run(args: argparse.Namespace) -> int:
    """Do it; returns the exit status."""
    try:
        from agui_core.cli.screen import Screen
    except ModuleNotFoundError as error:
        if not str(error.name).startswith("rich"):
            raise
        raise WrongUse("watch needs rich: pip install 'agui_core[cli]' (agui reduce does without)") from None
    if not is_terminal(sys.stdout):
        raise WrongUse("watch needs a terminal to draw on; agui reduce writes the same conversation anywhere")
    reducer = make_reducer(args.input, policy=args.policy)
    with RecordedInput(args.file) as source:
        with Screen(reducer, source) as screen:
            _play(source, reducer, screen, 0.0 if args.file == "-" else args.speed)
        for line in transcript(reducer, Style(sys.stdout)):
            print(line)
    return 0 if reducer.status in WHOLE else 1


def _play(source: RecordedInput, reducer: Reducer, screen: Screen, speed: float) -> None:
    clock = _Clock(screen, speed)
    try:
        for payloads in source.payloads():
            begun = screen.shown
            for number, payload in enumerate(payloads, 1):
                clock.wait(payload)
                reducer.apply(payload)
                screen.shown = begun + (source.read - begun) * number / len(payloads)
            clock.draw()  # more may not come for a while
        reducer.end()
    except AGUIError:
        pass  # the transcript shows it
    clock.draw()


class _Clock:
    """Waits until an event is due, and draws pictures during the wait. `speed` 0 does not wait."""

    def __init__(self, screen: Screen, speed: float) -> None:
        self._screen = screen
        self._pacing = Pacing(speed, _LONGEST)
        self._waits = speed > 0
        self._due = time.monotonic()
        self._drawn = 0.0

    def wait(self, payload: bytes) -> None:
        """Wait until this event is due."""
        now = time.monotonic()
        if self._waits:
            # Measured from when the last one was due, so that the time it takes to draw does not add up.
            self._due = max(self._due, now - _LONGEST) + self._pacing.pause(read_head(payload))
        else:
            self._due = now
        while True:
            if now - self._drawn >= _FRAME:
                self.draw()
                now = time.monotonic()
            if now >= self._due:
                return
            time.sleep(min(self._due - now, _FRAME))
            now = time.monotonic()

    def draw(self) -> None:
        """Draw the picture as it is now."""
        self._screen.draw()
        self._drawn = time.monotonic()
