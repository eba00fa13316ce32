"""Async sources and sinks around the reducer. Needs anyio; HTTP needs the extra `http`, loaded when first used."""

from __future__ import annotations

from agui_core.stream.follow import LiveRun, follow
from agui_core.stream.follow_sync import SyncRun, follow_sync
from agui_core.stream.update import Update

__all__ = ["LiveRun", "SyncRun", "Update", "follow", "follow_sync"]
