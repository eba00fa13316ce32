"""What must not grow faster than its input, however it is cut: the time of n and of 4n."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from measure import Target, minima

import agui_core as agui
from agui_core.stream.json_line_end import JsonLineEnd
from agui_core.tools.context import ToolContext
from agui_core.tools.errors import InvalidArguments
from agui_core.tools.toolset import Toolset

CONTEXT = ToolContext(call_id="c", thread_id="t", run_id="r")


def four_times(cost: Callable[[int], None], size: int) -> float:
    """How much longer `4 * size` takes than `size`."""
    once, longer = minima(lambda: cost(size), lambda: cost(4 * size), rounds=5)
    return longer / once


@pytest.mark.parametrize(("decoder", "head"), [(agui.SSEDecoder, b"data: "), (agui.JSONLinesDecoder, b"")])
def test_byte_by_byte_is_linear(
    target: Target, decoder: type[agui.SSEDecoder | agui.JSONLinesDecoder], head: bytes
) -> None:
    def feed(size: int) -> None:
        reader = decoder()
        reader.feed(head)
        for _ in range(size):
            reader.feed(b"x")
        assert len(reader.feed(b"\n\n")) == 1

    target(four_times(feed, 10_000), at_most=8)


def test_small_pieces_of_whole_events_are_linear(target: Target) -> None:
    def feed(size: int) -> None:
        line = JsonLineEnd()
        assert not any(map(line.closes, [b'{"type":"RAW","event":"', *[b"}", b"{"] * size]))

    target(four_times(feed, 10_000), at_most=8)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a|aa)+$", "^(.*a){9}$"])
def test_patterns_match_in_linear_time(target: Target, pattern: str) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}}
    tool = Toolset().add({"name": "it", "description": "", "parameters": schema}, handler=dict)

    def match(size: int) -> None:
        with pytest.raises(InvalidArguments):
            tool.convert({"a": "a" * size + "!"})

    target(four_times(match, 10_000), at_most=8)
