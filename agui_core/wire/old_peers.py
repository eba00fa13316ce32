"""Peers that are known to be old: what their version means, and events without subagents for them (VER, OLD-3).

Only the application knows a peer's version. Without it, a peer counts as current (VER-7).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from agui_core.limits import Limits
from agui_core.protocol.run import PROTOCOL_VERSION
from agui_core.warnings import WarningLog
from agui_core.wire.sse import SSEReader

__all__ = ["NO_PARENTS", "NO_SUBAGENTS", "Peer", "WithoutSubagents"]

NO_SUBAGENTS = (0, 0, 57)
"""The last version without subagents (OLD-3)."""
NO_PARENTS = (0, 0, 39)
"""The last version without parent runs and content parts (OLD-4)."""
_VERSIONED = (1,)
"""The first version that declares itself (OLD-5)."""


class Peer(NamedTuple):
    """A peer pinned at a version, such as `0.0.57` or `1.0`, compared number by number (VER-2)."""

    version: tuple[int, ...]

    @classmethod
    def pinned(cls, version: str) -> Peer:
        """The peer of a version. Raises `ValueError` for text that is not a version."""
        numbers = version.split(".")
        if not all(number.isascii() and number.isdigit() and len(number) < 10 for number in numbers):
            raise ValueError(f'a protocol version is numbers with dots, as "1.0" or "0.0.57", not {version!r}')
        return cls(tuple(map(int, numbers)))

    @classmethod
    def current(cls) -> Peer:
        """A peer without a known version."""
        return cls.pinned(PROTOCOL_VERSION)

    @property
    def reads_version(self) -> bool:
        """Whether it expects a `protocolVersion`."""
        return self.version >= _VERSIONED

    def at_most(self, version: tuple[int, ...]) -> bool:
        """Whether it has that version or an older one."""
        return self.version <= version

    def __str__(self) -> str:
        return f"the peer, pinned at {'.'.join(map(str, self.version))},"


class WithoutSubagents:
    """Removes subagents from a stream of server-sent events, bytes in and bytes out, cut anywhere (OLD-3).

    `SUBAGENT_*` events are dropped, with a warning in `log`. Tags, which mean nothing to such a peer, are removed. All
    other bytes pass unchanged, malformed or not (VER-9).
    """

    def __init__(self, peer: Peer, log: WarningLog, limits: Limits | None = None) -> None:
        self._peer = peer
        self._log = log
        self._reader = SSEReader((limits or Limits()).event_bytes)

    def feed(self, data: bytes) -> bytes:
        """The blocks that `data` completes, without subagents. Raises `LimitExceeded` for a block that is too long."""
        return b"".join(b"data: %b\n\n" % kept for payload in self._reader.feed(data) if (kept := self._strip(payload)))

    def _strip(self, payload: bytes) -> bytes:
        payload = payload.replace(b"\n", b" ")  # data of several lines: JSON text holds no raw line end but as a blank
        if b"ubagent" not in payload and b"SUBAGENT_" not in payload and b"\\u" not in payload:
            return payload
        try:
            event = msgspec.json.decode(payload)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return payload
        if not isinstance(event, dict):
            return payload
        kind = event.get("type")
        if isinstance(kind, str) and kind.startswith("SUBAGENT_"):
            message = f"{kind} was dropped: {self._peer} has no subagents; upgrade it, or pin a later version"
            self._log.add("OLD-3", message, type=kind)
            return b""
        found = [_untag(holder) for holder in (event, *_TAGGED.get(str(kind), _nothing)(event))]
        return msgspec.json.encode(event) if any(found) else payload


def _untag(holder: Any) -> bool:
    """Remove a well-formed tag."""
    if isinstance(holder, dict) and isinstance(holder.get("subagentRunId"), str):
        del holder["subagentRunId"]
        return True
    return False


def _items(holder: Any, *path: str) -> list[Any]:
    for name in path:
        holder = holder.get(name) if isinstance(holder, dict) else None
    return holder if isinstance(holder, list) else []


def _nothing(event: dict[str, Any]) -> list[Any]:
    return []


_TAGGED: dict[str, Callable[[dict[str, Any]], list[Any]]] = {
    "MESSAGES_SNAPSHOT": lambda event: _items(event, "messages"),
    "RUN_FINISHED": lambda event: _items(event, "outcome", "interrupts"),
    "RUN_STARTED": lambda event: _items(event, "input", "messages"),
}
"""The parts of an event that carry tags too, by its type."""
