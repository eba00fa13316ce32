"""Async sources and sinks around the reducer. Needs anyio; HTTP needs the extra `http`, loaded when first used.

Start with `follow`: a source goes into a reducer, and updates come out at the reader's pace. From there `pump` shows
who pulls and when, and `turn_runner` how one run leads to the next.

    source             an async iterable: one task pulls it, the same task closes it
    applier            an item of a source, in any form, goes into the reducer; `json_line_end` ends lines early
    pump, notifier     the task that reads ahead; the wake-up of the readers
    readers, update    every event, or merged updates at a pace; the conversation as a reader sees it
    follow             `LiveRun`, one run; `follow_sync` the same without an event loop
    conversation       `Conversation`, a thread of turns; `turn` shows one, `turn_runner` makes its runs,
                       `half_said` takes back a broken run, `usage` adds up tokens,
                       `saved_conversation` is its checkpoint
    http_agent         `HttpAgent`, runs over HTTP; `headers` checks what the application adds
    serve              an ASGI application; `asgi` the part without a handler, `event_stream` the response
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agui_core.errors import StillWaiting
from agui_core.stream.conversation import Content, Conversation
from agui_core.stream.event_stream import EventStream
from agui_core.stream.follow import LiveRun, follow
from agui_core.stream.follow_sync import SyncRun, follow_sync
from agui_core.stream.serve import serve
from agui_core.stream.turn import ChatUpdate, Ending, Turn
from agui_core.stream.turn_runner import Agent
from agui_core.stream.update import Update
from agui_core.stream.usage import Usage

if TYPE_CHECKING:
    from agui_core.stream.http_agent import HttpAgent, HttpRun

__all__ = [
    "Agent",
    "ChatUpdate",
    "Content",
    "Conversation",
    "Ending",
    "EventStream",
    "HttpAgent",
    "HttpRun",
    "LiveRun",
    "SyncRun",
    "Turn",
    "Update",
    "Usage",
    "StillWaiting",
    "follow",
    "follow_sync",
    "serve",
]


def __getattr__(name: str) -> Any:
    if name in ("HttpAgent", "HttpRun"):
        from agui_core.stream import http_agent

        return getattr(http_agent, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
