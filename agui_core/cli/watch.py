"""`agui watch`: a recorded stream played on the terminal as it once arrived. Needs `rich`, from the extra `cli`."""

from __future__ import annotations

import argparse
import sys
import time
from typing import TYPE_CHECKING, Any

import msgspec

from agui_core.cli.input import RecordedInput, WrongUse
from agui_core.cli.reduce import add_source, make_reducer
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
_STEP = 0.02
"""Seconds between two events of a stream without timestamps."""

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
    parser = commands.add_parser(
        "watch",
        help="play a stream on the terminal",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_source(parser)
    parser.add_argument(
        "--speed", metavar="FACTOR", type=_factor, default=1.0, help="2 is twice as fast as recorded, 0 does not wait"
    )
    parser.add_argument("--lenient", action="store_true", help="repair or skip what the protocol forbids, and go on")
    parser.set_defaults(run=run)


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
    reducer = make_reducer(args.input, policy="lenient" if args.lenient else "strict")
    with RecordedInput(args.file) as source:
        with Screen(reducer, source) as screen:
            _play(source, reducer, screen, 0.0 if args.file == "-" else args.speed)
        for line in transcript(reducer, Style(sys.stdout)):
            print(line)
    return 0 if reducer.status in WHOLE else 1


def _factor(text: str) -> float:
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is no speed: give a number from 0 up")
    return factor


def _play(source: RecordedInput, reducer: Reducer, screen: Screen, speed: float) -> None:
    decoder = source.decoder()
    pace = _Pace(screen, speed)
    try:
        for piece in source:
            payloads = decoder.feed(piece)
            for payload in payloads:
                pace.wait(payload)
                reducer.apply(payload)
                screen.shown += len(piece) / len(payloads)
            pace.draw()  # more may not come for a while
        for payload in decoder.close():
            reducer.apply(payload)
        reducer.end()
    except AGUIError:
        pass  # the transcript says so
    pace.draw()


class _Stamped(msgspec.Struct):
    timestamp: Any = None


_stamp_of = msgspec.json.Decoder(_Stamped).decode


class _Pace:
    """Waits until an event is due, and has a picture drawn now and then meanwhile. `speed` 0: nothing is waited for."""

    def __init__(self, screen: Screen, speed: float) -> None:
        self._screen = screen
        self._speed = speed
        self._due = time.monotonic()
        self._drawn = 0.0
        self._last: float | None = None

    def wait(self, payload: bytes) -> None:
        """Until this event is due. A timestamp earlier than the one before is due at once (EVT-3)."""
        now = time.monotonic()
        if self._speed:
            # Measured from when the last one was due, so that the time it takes to draw does not add up.
            self._due = max(self._due, now - _LONGEST) + min(self._pause(payload) / self._speed, _LONGEST)
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

    def _pause(self, payload: bytes) -> float:
        """Seconds between the event before and this one."""
        try:
            stamp = _stamp_of(payload).timestamp
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            stamp = None
        if type(stamp) is not int:
            return _STEP
        before, self._last = self._last, stamp
        return 0.0 if before is None else max(0.0, (stamp - before) / 1000)
