"""The bounds on everything that a hostile stream can grow."""

from __future__ import annotations

import msgspec

__all__ = ["Limits"]


class Limits(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Bounds that hold in every policy; exceeding one raises `LimitExceeded`, which names it (`warnings` never
    raises).

    event_bytes: bytes of one event, and of one line or block before it is complete.
    nesting: containers inside containers, in any JSON value; also of a state built by patches.
    messages: messages held.
    tool_calls: tool calls held, in all.
    tool_calls_per_message: tool calls of one message.
    open_items: messages, calls, spans and steps open at one time.
    lanes: chunk streams open at one time.
    subagents: subagent invocations announced in one run.
    item_characters: characters of one message's content or one call's arguments.
    characters: characters of all streamed text held.
    nodes: JSON values in the state, or in one activity's content; shared parts count each time they occur, and text
      counts once more for every 64 characters.
    patch_operations: operations of one patch.
    warnings: distinct warnings kept; more are only counted.
    """

    event_bytes: int = 16 * 1024 * 1024
    nesting: int = 200
    messages: int = 100_000
    tool_calls: int = 100_000
    tool_calls_per_message: int = 100_000
    open_items: int = 10_000
    lanes: int = 1_000
    subagents: int = 10_000
    item_characters: int = 64 * 1024 * 1024
    characters: int = 256 * 1024 * 1024
    nodes: int = 5_000_000
    patch_operations: int = 100_000
    warnings: int = 1_000

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise TypeError(f"Limits({name}=...) takes an int of at least 0, not {value!r}")
