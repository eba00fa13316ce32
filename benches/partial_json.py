"""Partial JSON against its peers: feed a document in 20-character deltas and read the value after each.

    python benches/partial_json.py [--quick]

Prints, for each workload, the processor time of one pass and how many times that of `PartialJson` it is. Times are
minima over interleaved rounds in this run; only the ratios mean anything. A peer that parses the whole text anew at
each delta is left out where one pass would take minutes. Where Node and the npm package `ai` are present (in the
current folder or the one that AI_SDK names), its `parsePartialJson` takes part, by its own clock.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import jiter
import jsonriver
import partial_json_parser
from measure import minima

from agui_core.reducer.partial_json.parser import PartialJson

__all__ = [
    "DELTA",
    "PEERS",
    "deltas",
    "edits",
    "jiter_prefixes",
    "jsonriver_stream",
    "ours",
    "plain",
    "small",
]

DELTA = 20
Pass = Callable[[Sequence[str]], Any]


def edits(size: int) -> str:
    """About `size` characters: a list of edits, then a long text; escapes and two-byte letters in both."""
    items: list[dict[str, Any]] = []
    length = 0
    while length < size // 2:
        n = len(items)
        items.append({"line": n, "old": f"x = {n}", "new": f"größe = {n}\n"})
        length += len(json.dumps(items[-1], ensure_ascii=False)) + 2
    line = 'Eine Zeile mit "Anführung"\tund Umlauten, äöü.\n'
    head = {"path": "src/main.py", "edits": items, "text": ""}
    rest = max(size - len(json.dumps(head, ensure_ascii=False)), 0)
    head["text"] = line * (rest // len(json.dumps(line, ensure_ascii=False)))
    return json.dumps(head, ensure_ascii=False)


def small(n: int = 0) -> str:
    """One of many documents of about 300 characters."""
    return json.dumps(
        {
            "path": f"src/module_{n}/file.py",
            "edits": [
                {"line": n, "old": f'return "{n}"', "new": "return größer\n"},
                {"line": n + 1, "old": "pass", "new": "raise ValueError(x)\n"},
            ],
            "dry_run": False,
            "text": 'A sentence or two about it,\nwith "quotes" and Umlaute: äöü. ' + "No more than that. " * 3,
        },
        ensure_ascii=False,
    )


def plain(size: int) -> str:
    """One long string without anything special in it."""
    return json.dumps({"text": ("lorem ipsum dolor sit amet " * (size // 27 + 1))[:size]})


def deltas(text: str, length: int = DELTA) -> list[str]:
    return [text[at : at + length] for at in range(0, len(text), length)]


# One pass of each candidate: all deltas, the value read after each.


def ours(pieces: Sequence[str]) -> Any:
    parser = PartialJson()
    feed = parser.feed
    for piece in pieces:
        feed(piece)
        value = parser.value
    parser.close()
    return value


def jiter_prefixes(pieces: Sequence[str]) -> Any:
    from_json = jiter.from_json
    buffer = b""
    value = None
    for piece in pieces:
        buffer += piece.encode()
        value = from_json(buffer, partial_mode="trailing-strings")
    return value


def jsonriver_stream(pieces: Sequence[str]) -> Any:
    """Driven by hand, so that no event loop is measured. Values are yielded as the stream is pulled."""

    async def source() -> AsyncIterator[str]:
        for piece in pieces:
            yield piece

    async def read() -> Any:
        value = None
        async for value in jsonriver.parse(source()):  # noqa: B007
            pass
        return value

    try:
        read().send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("the stream never waits")


def partial_json_parser_prefixes(pieces: Sequence[str]) -> Any:
    loads = partial_json_parser.loads
    text = ""
    value = None
    for piece in pieces:
        text += piece
        value = loads(text)
    return value


PEERS: dict[str, Pass] = {
    "PartialJson": ours,
    "jiter": jiter_prefixes,
    "jsonriver": jsonriver_stream,
    "partial-json-parser": partial_json_parser_prefixes,
}


_NODE = """
const { parsePartialJson } = await import('ai');
let input = '';
for await (const chunk of process.stdin) input += chunk;
const { rounds, documents } = JSON.parse(input);
let best = Infinity;
for (let round = 0; round < rounds; round++) {
  const start = performance.now();
  for (const pieces of documents) {
    let text = '';
    for (const piece of pieces) { text += piece; await parsePartialJson(text); }
  }
  best = Math.min(best, performance.now() - start);
}
console.log(best / 1000);
"""


def sdk_seconds(documents: list[list[str]], rounds: int) -> float | None:
    """The chat SDK's own minimum, or None without Node or the package."""
    node = shutil.which("node")
    if node is None:
        return None
    done = subprocess.run(
        [node, "--input-type=module", "-e", _NODE],
        input=json.dumps({"rounds": rounds, "documents": documents}),
        cwd=os.environ.get("AI_SDK", "."),
        capture_output=True,
        text=True,
        check=False,
    )
    return float(done.stdout) if done.returncode == 0 else None


# name, documents, names of the peers that can finish, rounds
_WORKLOADS: list[tuple[str, Callable[[], list[str]], set[str], int]] = [
    (
        "300 B, 40 documents",
        lambda: [small(n) for n in range(40)],
        {"jiter", "jsonriver", "partial-json-parser", "ai"},
        7,
    ),
    ("3 KB", lambda: [edits(3_000)], {"jiter", "jsonriver", "partial-json-parser", "ai"}, 7),
    ("30 KB", lambda: [edits(30_000)], {"jiter", "jsonriver", "partial-json-parser", "ai"}, 3),
    ("150 KB", lambda: [edits(150_000)], {"jiter", "jsonriver"}, 3),
    ("1.5 MB", lambda: [edits(1_500_000)], {"jsonriver"}, 3),
    ("one string, 100 KB", lambda: [plain(100_000)], {"jiter", "jsonriver"}, 5),
    ("one string, 1 MB", lambda: [plain(1_000_000)], {"jsonriver"}, 3),
]


def _rows(quick: bool) -> list[tuple[str, str, float, float]]:
    rows = []
    for name, make, peers, rounds in _WORKLOADS:
        documents = [deltas(text) for text in make()]
        if quick:
            peers, rounds = peers - {"partial-json-parser", "ai"}, min(rounds, 2)

        def over(one_pass: Pass, documents: list[list[str]] = documents) -> Callable[[], None]:
            return lambda: [one_pass(pieces) for pieces in documents] and None

        chosen = {peer: over(call) for peer, call in PEERS.items() if peer in peers | {"PartialJson"}}
        best = dict(zip(chosen, minima(*chosen.values(), rounds=rounds), strict=True))
        if "ai" in peers and (seconds := sdk_seconds(documents, rounds)) is not None:
            best["ai parsePartialJson"] = seconds
        rows += [(name, peer, seconds, seconds / best["PartialJson"]) for peer, seconds in best.items()]
    return rows


def main() -> None:
    options = argparse.ArgumentParser(description="Partial JSON against its peers.")
    options.add_argument("--quick", action="store_true", help="two rounds, and without the slowest peers")
    print(f"{'workload':24}{'parser':24}{'seconds':>10}{'times ours':>12}")
    for workload, peer, seconds, ratio in _rows(options.parse_args().quick):
        print(f"{workload:24}{peer:24}{seconds:10.4f}{ratio:12.1f}")


if __name__ == "__main__":
    main()
