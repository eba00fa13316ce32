"""The promises of PartialJson about time, as ratios against its peers or against itself, in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from partial_json import deltas, edits, jiter_prefixes, jsonriver_stream, minima, ours, plain, small

from agui_core.reducer.partial_json.parser import PartialJson

Pass = Callable[[Sequence[str]], Any]


def ratio(other: Pass, documents: list[str], rounds: int) -> float:
    """How many times our time the other takes."""
    cut = [deltas(document) for document in documents]

    def over(one_pass: Pass) -> Callable[[], None]:
        def call() -> None:
            for pieces in cut:
                one_pass(pieces)

        return call

    best = minima({"ours": over(ours), "other": over(other)}, rounds)
    return best["other"] / best["ours"]


def growth(short: list[str], long: list[str], rounds: int = 9) -> float:
    """How many times as long the long text takes; compared at equal amounts of text, so that noise hits both alike."""
    times = len(long) // len(short)

    def repeated() -> None:
        for _ in range(times):
            ours(short)

    best = minima({"short": repeated, "long": lambda: ours(long)}, rounds)
    return times * best["long"] / best["short"]


@pytest.mark.parametrize(
    ("peer", "size", "at_least", "rounds"),
    [
        (jiter_prefixes, 30_000, 25, 7),
        (jiter_prefixes, 150_000, 150, 3),
        (jsonriver_stream, 30_000, 5, 7),
        (jsonriver_stream, 150_000, 5, 5),
        (jsonriver_stream, 1_500_000, 5, 3),
    ],
)
def test_times_the_peer_on_edits(peer: Pass, size: int, at_least: float, rounds: int) -> None:
    assert ratio(peer, [edits(size)], rounds) >= at_least


def test_small_documents_cost_at_most_three_times_jiter() -> None:
    assert ratio(jiter_prefixes, [small(n) for n in range(40)], 60) >= 1 / 3


def test_one_plain_string_where_jiter_is_at_its_best() -> None:
    assert ratio(jiter_prefixes, [plain(100_000)], 25) >= 25


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (edits, 150_000),
        (plain, 100_000),
    ],
)
def test_ten_times_the_text_takes_at_most_twelve_times_the_time(make: Callable[[int], str], size: int) -> None:
    assert growth(deltas(make(size)), deltas(make(10 * size))) <= 12


@pytest.mark.parametrize(
    ("opening", "delta"),
    [
        ('{"text":"', "lorem ipsum "),
        ('{"text":"', "n\\u00e9 \\"),
        ('{"', "a long key "),
        ("[", "1234567890"),
        ("[0.", "0000000000"),
        ("[0e", "0000000000"),
        ("[", "1,2,3,   "),
        ("[1", "          "),
        ("[", '{"a":[]},\n'),
        ("[", '"","é",'),
    ],
)
def test_twice_the_deltas_take_at_most_three_times_the_time(opening: str, delta: str) -> None:
    assert growth([opening, *[delta] * 20_000], [opening, *[delta] * 40_000]) <= 3


def test_a_string_at_the_root_grows_in_place_when_nobody_keeps_it() -> None:
    def passes(times: int, deltas: int) -> None:
        for _ in range(times):
            parser = PartialJson()
            parser.feed('"')
            for _ in range(deltas):
                parser.feed("lorem ipsum ")
                assert parser.value

    best = minima({"short": lambda: passes(2, 20_000), "long": lambda: passes(1, 40_000)}, 5)
    assert best["long"] / best["short"] <= 1.5


def test_copy_costs_the_open_containers_only() -> None:
    """A copy beside 100,000 closed values takes about as long as one beside a hundred."""

    def beside(closed: int) -> PartialJson:
        parser = PartialJson()
        parser.feed('{"closed":[' + ",".join("1" * closed) + '],"open":{"text":"')
        return parser

    few, many = beside(100), beside(100_000)
    best = minima(
        {"few": lambda: [few.copy() for _ in range(1_000)], "many": lambda: [many.copy() for _ in range(1_000)]}, 7
    )
    assert best["many"] / best["few"] <= 3
