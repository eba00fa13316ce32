"""What reducing costs, as a table: `python benches/reduce.py`. The floor is what msgspec's decoder alone costs.

The official package's pydantic models are in it where they are installed. `test_reduce_speed.py` holds the targets.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import msgspec
from measure import minima
from workloads import as_lines, as_sse, payloads, tool_calls

import agui_core as agui

_decoder = msgspec.json.Decoder(agui.Event)


def floor_lines(data: bytes) -> Callable[[], object]:
    """Decode a buffer of JSON Lines and do nothing else."""
    return lambda: _decoder.decode_lines(data)


def floor_one_by_one(texts: list[bytes]) -> Callable[[], object]:
    """Decode one bytes object per event and keep the events, as `decode_lines` does."""
    decode = _decoder.decode
    return lambda: [decode(text) for text in texts]


def reduce_lines(data: bytes) -> Callable[[], object]:
    """From a buffer of JSON Lines to messages."""

    def run() -> object:
        reducer = agui.Reducer()
        reducer.apply_lines(data)
        return reducer.messages

    return run


def reduce_one_by_one(texts: list[bytes], read_each: bool = False, held: tuple[Any, ...] = ()) -> Callable[[], object]:
    """From one bytes object per event to messages, read at the end or after each event."""

    def run() -> object:
        reducer = agui.Reducer(messages=held)
        apply = reducer.apply
        if read_each:
            for text in texts:
                apply(text)
                reducer.messages  # noqa: B018
        else:
            for text in texts:
                apply(text)
        return reducer.messages

    return run


def reduce_sse(reads: list[bytes]) -> Callable[[], object]:
    """From reads of a server-sent event stream to messages."""

    def run() -> object:
        reducer = agui.Reducer()
        for read in reads:
            reducer.apply_sse(read)
        return reducer.messages

    return run


def official(texts: list[bytes]) -> Callable[[], object] | None:
    """Decode with the official package's models, where they are installed."""
    try:
        from ag_ui.core import Event
        from pydantic import TypeAdapter
    except ImportError:
        return None
    adapter: TypeAdapter[Any] = TypeAdapter(Event)
    return lambda: [adapter.validate_json(text) for text in texts]


def memory_growth() -> float:
    """Growth of a fresh process while 1,000,000 deltas become 100 messages, in multiples of the final text (Linux)."""
    script = (
        "import os; import agui_core as agui; from workloads import text_deltas\n"
        "def held(): return int(open('/proc/self/statm').read().split()[1]) * os.sysconf('SC_PAGE_SIZE')\n"
        "before = held()\n"
        "reducer = agui.Reducer()\n"
        "for event in text_deltas(1_000_000, 100): reducer.apply(event)\n"
        "size = sum(len(message.content) for message in reducer.messages)\n"
        "print((held() - before) / size)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=sys.path[0])
    return float(done.stdout)


def main() -> None:
    """Print the table."""
    texts = payloads(tool_calls())
    lines, reads = as_lines(texts), as_sse(texts)
    rows: list[tuple[str, Callable[[], object]]] = [
        ("msgspec alone, lines", floor_lines(lines)),
        ("reduce lines", reduce_lines(lines)),
        ("reduce SSE, 16 KiB reads", reduce_sse(reads)),
        ("msgspec alone, one by one", floor_one_by_one(texts)),
        ("reduce one by one", reduce_one_by_one(texts)),
        ("reduce one by one, read each", reduce_one_by_one(texts, read_each=True)),
        ("reduce lines, two unknown fields", reduce_lines(as_lines(payloads(tool_calls(run_id="r", thread_id="t"))))),
        ("reduce SSE, a comment each", reduce_sse(as_sse(texts, b": ping\n\n"))),
    ]
    pydantic = official(texts)
    if pydantic is not None:
        rows.append(("official pydantic, decode only", pydantic))
    best = minima(*(function for _, function in rows))
    for (name, _), seconds in zip(rows, best, strict=True):
        print(f"{name:34} {seconds / len(texts) * 1e6:7.3f} us an event   {seconds / best[0]:6.2f} of the floor")
    print(f"{'memory, of the final text':34} {memory_growth():7.2f} times")


if __name__ == "__main__":
    main()
