"""Async sources and sinks around the reducer. Needs anyio; HTTP needs the extra `http`, loaded when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agui_core.errors import StillWaiting
from agui_core.stream.conversation import Conversation
from agui_core.stream.event_stream import EventStream
from agui_core.stream.follow import LiveRun, follow
from agui_core.stream.follow_sync import SyncRun, follow_sync
from agui_core.stream.serve import serve
from agui_core.stream.turn import ChatUpdate, Turn
from agui_core.stream.turn_runner import Agent
from agui_core.stream.update import Update
from agui_core.stream.usage import Usage

if TYPE_CHECKING:
    from agui_core.stream.http_agent import HttpAgent, HttpRun

__all__ = [
    "Agent",
    "ChatUpdate",
    "Conversation",
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
