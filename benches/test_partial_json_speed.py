"""The promises of PartialJson about time, as ratios against its peers or against itself, in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from measure import Target, minima
from partial_json import deltas, edits, jiter_prefixes, jsonriver_stream, ours, plain, small

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

    mine, theirs = minima(over(ours), over(other), rounds=rounds)
    return theirs / mine


def growth(short: list[str], long: list[str], rounds: int = 9) -> float:
    """How many times as long the long text takes; compared at equal amounts of text, so that noise hits both alike."""
    times = len(long) // len(short)

    def repeated() -> None:
        for _ in range(times):
            ours(short)

    at_once, in_parts = minima(lambda: ours(long), repeated, rounds=rounds)
    return times * at_once / in_parts


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
def test_times_the_peer_on_edits(target: Target, peer: Pass, size: int, at_least: float, rounds: int) -> None:
    target(ratio(peer, [edits(size)], rounds), at_least=at_least)


def test_small_documents_cost_at_most_three_times_jiter(target: Target) -> None:
    target(ratio(jiter_prefixes, [small(n) for n in range(40)], 60), at_least=1 / 3)


def test_one_plain_string_where_jiter_is_at_its_best(target: Target) -> None:
    target(ratio(jiter_prefixes, [plain(100_000)], 25), at_least=25)


@pytest.mark.parametrize(
    ("make", "size"),
    [
        (edits, 150_000),
        (plain, 100_000),
    ],
)
def test_ten_times_the_text_takes_at_most_twelve_times_the_time(
    target: Target, make: Callable[[int], str], size: int
) -> None:
    target(growth(deltas(make(size)), deltas(make(10 * size))), at_most=12)


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
def test_twice_the_deltas_take_at_most_three_times_the_time(target: Target, opening: str, delta: str) -> None:
    target(growth([opening, *[delta] * 20_000], [opening, *[delta] * 40_000]), at_most=3)


def test_a_string_at_the_root_grows_in_place_when_nobody_keeps_it(target: Target) -> None:
    def passes(times: int, deltas: int) -> None:
        for _ in range(times):
            parser = PartialJson()
            parser.feed('"')
            for _ in range(deltas):
                parser.feed("lorem ipsum ")
                assert parser.value

    short, long = minima(lambda: passes(2, 20_000), lambda: passes(1, 40_000), rounds=5)
    target(long / short, at_most=1.5)


def test_copy_costs_the_open_containers_only(target: Target) -> None:
    """A copy beside 100,000 closed values takes about as long as one beside a hundred."""

    def beside(closed: int) -> PartialJson:
        parser = PartialJson()
        parser.feed('{"closed":[' + ",".join("1" * closed) + '],"open":{"text":"')
        return parser

    few, many = beside(100), beside(100_000)
    beside_few, beside_many = minima(
        lambda: [few.copy() for _ in range(1_000)], lambda: [many.copy() for _ in range(1_000)], rounds=7
    )
    target(beside_many / beside_few, at_most=3)
