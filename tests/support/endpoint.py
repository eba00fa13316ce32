"""A small AG-UI endpoint on 127.0.0.1, in threads of its own, that answers each run as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support import events

__all__ = ["HANG", "Endpoint", "call", "endpoint", "say"]

Wire = dict[str, Any]
HANG: Wire = {"type": "HANG"}
"""In the place of an event: nothing more comes until the client has gone."""


def say(text: str, id: str = "m") -> list[Wire]:
    """A message in the pieces between the bars."""
    return events.spoken(id, *text.split("|"))


def call(id: str, name: str, *arguments: str) -> list[Wire]:
    return events.called(id, *arguments, name=name)


class Endpoint:
    """`answer(run_input)` gives a run's events; RUN_STARTED, and RUN_FINISHED where none ends it, are put around."""

    def __init__(self, answer: Callable[[Wire], list[Wire]]) -> None:
        self.answer = answer
        self.url = ""
        self.inputs: list[Wire] = []
        self.headers: list[dict[str, str]] = []
        self.hanging = threading.Event()
        self.closing = threading.Event()


@contextmanager
def endpoint(answer: Callable[[Wire], list[Wire]]) -> Iterator[Endpoint]:
    """An endpoint for the time of the block."""
    served = Endpoint(answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            run_input = json.loads(self.rfile.read(int(self.headers["content-length"])))
            served.inputs.append(run_input)
            served.headers.append({name.lower(): value for name, value in self.headers.items()})
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            ids = {"threadId": run_input["threadId"], "runId": run_input["runId"]}
            events = [{"type": "RUN_STARTED", **ids}, *answer(run_input)]
            if events[-1]["type"] not in ("RUN_FINISHED", "RUN_ERROR", "HANG"):
                events.append({"type": "RUN_FINISHED"})
            for event in events:
                if event is HANG:
                    served.hanging.set()
                    served.closing.wait()
                    return
                event = {**event, **ids} if event["type"] == "RUN_FINISHED" else event
                self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
                self.wfile.flush()

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    served.url = f"http://127.0.0.1:{server.server_address[1]}/"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield served
    finally:
        served.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()
