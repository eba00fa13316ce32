"""`agui serve`: a recorded stream as an endpoint on this machine, for front-end work and tests.

Needs `uvicorn`, from the extra `cli`. The recording is read once and held in memory.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
from typing import Any

from agui_core.cli.arguments import add_command, add_file, add_speed, rate
from agui_core.cli.escape import escape_line
from agui_core.cli.input import RecordedInput, WrongUse
from agui_core.cli.terminal import plural

__all__ = ["add", "run"]

_HOST = "127.0.0.1"

_DESCRIPTION = """\
Serve a recorded AG-UI stream as an endpoint on this machine, 127.0.0.1, for front-end work and tests.

Every POST of a run input to any path is answered with the recording: its events as they are, right or wrong, with the
request's thread and run id in place of the recorded ones. Events with timestamps come at their recorded pace, others 50
a second; a pause lasts at most 30 seconds, and there is none between two runs. Ctrl-C ends it.

The ids of messages and calls are those of the recording. A run of which the request has a message or a call in its
"messages" was played in that thread before and is left out. When no run is left, the answer is a finished run with a
short text which says that the recording ends; a new thread begins it once more."""
_EPILOG = """\
exit status:
  0  ended by Ctrl-C
  2  wrong use: a file that cannot be read or holds no event, a port that is taken, uvicorn is not installed

examples:
  agui serve session.sse
  agui serve --turns --allow-origin http://localhost:3000 session.sse
  agui serve --port 9000 --rate 200 events.jsonl"""


def add(commands: Any) -> None:
    """Declare the subcommand."""
    parser = add_command(commands, "serve", run, _DESCRIPTION, _EPILOG, help="serve a stream as an endpoint")
    add_file(parser)
    parser.add_argument("--port", type=_port, default=8000, help="where to listen; 0 takes a free one (default: 8000)")
    pace = parser.add_mutually_exclusive_group()
    add_speed(pace)
    pace.add_argument("--rate", metavar="EVENTS", type=rate, help="so many events a second, whatever was recorded")
    parser.add_argument(
        "--turns",
        action="store_true",
        help="answer each request of a thread with the next run of the recording, not with all; after the last run it"
        " begins again, for requests that do not send along what they were answered",
    )
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="let pages of this origin call the endpoint, such as http://localhost:3000; * for all; may be repeated",
    )


def run(args: argparse.Namespace) -> int:
    """Do it, until Ctrl-C; returns the exit status."""
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        raise WrongUse("serve needs uvicorn: pip install 'agui_core[cli]'") from None
    from agui_core.cli.replay import Recording, ReplayEndpoint  # they load what is async, which no other command needs

    with RecordedInput(args.file) as source:
        recording = Recording(source, speed=args.speed, rate=args.rate, turns=args.turns)
    with _listen(args.port) as listener:
        size = f"{plural(recording.events, 'event')} in {plural(recording.runs, 'run')}"
        _say(f"{source.name}: {size}, at http://{_HOST}:{listener.getsockname()[1]}/")
        config = uvicorn.Config(
            ReplayEndpoint(recording, args.allow_origin, _say),
            lifespan="off",
            ws="none",
            log_level="critical",
            timeout_graceful_shutdown=0,
        )
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listener])
    return 0


def _say(text: str) -> None:
    print(escape_line(text), flush=True)


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((_HOST, port))
    except OSError as error:
        raise WrongUse(f"cannot listen on port {port}: {error.strerror or error}; --port names another") from None


# --- arguments ------------------------------------------------------------------------------------------------------


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 6 and int(text) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 0 to 65535")
    return int(text)
