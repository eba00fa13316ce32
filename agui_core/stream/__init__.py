"""Async sources and sinks around the reducer. Needs anyio; HTTP needs the extra `http`, loaded when first used.

Start with `follow`: a source goes into a reducer, and updates come out as often as they are wanted.

    source, applier    what a source gives, and how an item of it is applied, whichever form it has
    pump, notifier     one task that pulls the source, and what wakes `readers`; `update` is what they see
    follow             `LiveRun`; `follow_sync` the same for threads
    conversation       `Conversation`: a thread of turns; `turn_runner` runs and answers, `turn` shows it;
                       `saved_conversation` is its checkpoint
    http_agent         `HttpAgent`: runs over HTTP
    event_stream       `EventStream`: events out over HTTP; `serve` an ASGI app, `asgi` what its answers need
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
