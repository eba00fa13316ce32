"""The bounds on everything that a hostile stream can grow."""

from __future__ import annotations

import msgspec

__all__ = ["Limits"]


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds that hold in every policy; exceeding one raises `LimitExceeded`, which names it (`warnings` never
    raises).
    """

    event_bytes: int = 16 * 1024 * 1024
    """Bytes of one event, and of one line or block before it is complete."""
    nesting: int = 200
    """Containers inside containers, in any JSON value; also of a state built by patches."""
    messages: int = 100_000
    """Messages held."""
    tool_calls: int = 100_000
    """Tool calls held, in all."""
    tool_calls_per_message: int = 100_000
    """Tool calls of one message."""
    open_items: int = 10_000
    """Messages, calls, spans and steps open at one time."""
    lanes: int = 1_000
    """Chunk streams open at one time."""
    subagents: int = 10_000
    """Subagent invocations announced in one run."""
    item_characters: int = 64 * 1024 * 1024
    """Characters of one message's content or one call's arguments."""
    characters: int = 256 * 1024 * 1024
    """Characters of all streamed text held."""
    nodes: int = 5_000_000
    """JSON values in the state, or in one activity's content; shared parts count each time they occur, and text counts
    once more for every 64 characters."""
    patch_operations: int = 100_000
    """Operations of one patch."""
    warnings: int = 1_000
    """Distinct warnings kept; more are only counted."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise TypeError(f"Limits({name}=...) takes an int of at least 0, not {value!r}")
