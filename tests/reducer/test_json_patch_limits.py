"""What a `Document` costs and holds: containers copied once between reads, and the bounds of `Limits` kept exactly."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

from agui_core.errors import LimitExceeded, PatchError
from agui_core.limits import Limits
from agui_core.reducer.json_patch import Document, apply_patch

Case = dict[str, Any]


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


def _limit_of(document: Document, patch: list[Case]) -> str:
    with pytest.raises(LimitExceeded) as caught:
        document.apply(patch)
    return caught.value.limit


class _Watched(dict[str, Any]):
    """An object whose copies, and theirs, are counted in `made`; those still in memory are in `alive`."""

    def __init__(self, members: dict[str, Any], made: list[int], alive: weakref.WeakSet[_Watched]) -> None:
        super().__init__(members)
        self.made, self.alive = made, alive

    __hash__ = object.__hash__  # type: ignore[assignment]

    def copy(self) -> _Watched:
        twin = _Watched(self, self.made, self.alive)
        self.made.append(len(self))
        self.alive.add(twin)
        return twin


def test_a_container_is_copied_once_between_two_reads() -> None:
    made: list[int] = []
    inner, other = (_Watched({"n": 0}, made, weakref.WeakSet()) for _ in range(2))
    document = Document(_Watched({"in": inner, "other": other}, made, weakref.WeakSet()))
    for n in range(10):
        document.apply([{"op": "replace", "path": "/in/n", "value": n}])
        with pytest.raises(PatchError):
            document.apply([{"op": "replace", "path": "/in/missing", "value": n}])
    assert made == [2, 1]
    first = document.value
    assert document.value is first
    document.apply([{"op": "replace", "path": "/in/n", "value": 10}])
    assert made == [2, 1, 2, 1]
    assert (first["in"]["n"], document.value["in"]["n"]) == (9, 10)


@pytest.mark.parametrize("applies", [True, False])
def test_what_left_the_document_is_let_go_although_nobody_reads(applies: bool) -> None:
    document = Document({})
    alive: weakref.WeakSet[_Watched] = weakref.WeakSet()
    for _ in range(50):
        patch: list[Case] = [
            {"op": "add", "path": "/v", "value": {"in": _Watched({}, [], alive)}},
            {"op": "add", "path": "/v/in/x", "value": 1},
        ]
        if applies:
            document.apply(patch)
        else:
            with pytest.raises(PatchError):
                document.apply([*patch, {"op": "remove", "path": "/missing"}])
    assert len(alive) <= 2


def test_copies_go_their_own_ways() -> None:
    one = Document({"list": [0]}, Limits(nodes=4))
    one.apply([{"op": "add", "path": "/list/-", "value": 1}])
    other = one.copy()
    one.apply([{"op": "replace", "path": "/list/0", "value": "one"}])
    other.apply([{"op": "replace", "path": "/list/1", "value": "other"}])
    assert (one.value, other.value) == ({"list": ["one", 1]}, {"list": [0, "other"]})
    for document in (one, other):
        assert _limit_of(document, [{"op": "add", "path": "/list/-", "value": 2}]) == "nodes"


def test_replace_gives_a_new_document_that_is_not_changed_in_place() -> None:
    snapshot: Any = {"list": [0]}
    alive: weakref.WeakSet[_Watched] = weakref.WeakSet()
    document = Document({"old": _Watched({}, [], alive), "other": _Watched({}, [], alive)})
    document.apply([{"op": "add", "path": "/old/x", "value": 1}, {"op": "copy", "from": "/old", "path": "/older"}])
    document.apply([{"op": "add", "path": "/other/x", "value": 1}])
    document.replace(snapshot)
    assert not alive
    document.apply([{"op": "add", "path": "/list/-", "value": 1}])
    assert (snapshot, document.value) == ({"list": [0]}, {"list": [0, 1]})


def _doubling(times: int) -> list[Case]:
    return [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(times)]


def test_copying_a_document_into_itself_is_refused_before_it_is_large() -> None:
    document = Document({"a": [1, 2]})  # 4 nodes
    document.apply(_doubling(20))  # 4 Mi nodes, in as good as no memory
    before = document.value
    assert _limit_of(document, [{"op": "copy", "from": "", "path": "/more"}]) == "nodes"
    assert document.value == before
    assert _limit_of(Document({"a": [1, 2]}), _doubling(100_000)) == "nodes"
    with pytest.raises(LimitExceeded):
        apply_patch({}, _doubling(100_000))


def test_copying_a_document_into_itself_is_refused_before_it_is_deep() -> None:
    nest = {"op": "copy", "from": "", "path": "/in"}
    document = Document({}, Limits(nesting=50))
    document.apply([nest] * 49)
    assert _limit_of(document, [nest]) == "nesting"


def test_the_limit_of_nodes_is_exact() -> None:
    document = Document({"a": [0, 0], "b": {"c": 0}}, Limits(nodes=8))  # has 6
    assert _limit_of(document, [{"op": "copy", "from": "/a", "path": "/d"}]) == "nodes"
    assert _limit_of(document, [{"op": "add", "path": "/d", "value": [1, [2]]}]) == "nodes"
    document.apply([{"op": "copy", "from": "/b", "path": "/d"}])  # 8
    assert _limit_of(document, [{"op": "add", "path": "/e", "value": 0}]) == "nodes"
    document.apply([{"op": "replace", "path": "/a", "value": [[1]]}])  # 8: the old value no longer counts
    document.apply([{"op": "move", "from": "/d", "path": "/a"}])  # 5
    document.apply([{"op": "add", "path": "/a/x", "value": [1, 1]}])  # 8
    assert _limit_of(document, [{"op": "add", "path": "/e", "value": 0}]) == "nodes"
    document.apply([{"op": "remove", "path": ""}])
    document.apply([{"op": "add", "path": "", "value": [1, 2, 3, 4, 5, 6, 7]}])
    assert _limit_of(document, [{"op": "add", "path": "/-", "value": 0}]) == "nodes"
    assert document.value == [1, 2, 3, 4, 5, 6, 7]


def test_copied_parts_count_each_time_and_no_longer_when_removed() -> None:
    document = Document({"a": {"b": [0]}}, Limits(nodes=8))  # has 4
    for _ in range(5):
        document.apply([{"op": "copy", "from": "/a", "path": "/c"}])  # 7
        document.apply([{"op": "add", "path": "/c/d", "value": 1}])  # 8
        assert _limit_of(document, [{"op": "add", "path": "/a/b/-", "value": 1}]) == "nodes"
        document.apply([{"op": "remove", "path": "/c"}])
    assert _limit_of(document, [{"op": "copy", "from": "", "path": f"/{n}"} for n in range(2)]) == "nodes"
    document.apply([{"op": "copy", "from": "", "path": "/c"}])  # 8
    assert _limit_of(document, [{"op": "add", "path": "/c/d", "value": 1}]) == "nodes"


def test_a_part_that_a_refused_patch_changed_and_copied_counts_as_it_is() -> None:
    document = Document({"a": {}}, Limits(nodes=4))
    for _ in range(2):
        grow = {"op": "add", "path": "/a/b", "value": 1}
        assert _limit_of(document, [grow, {"op": "copy", "from": "/a", "path": "/c"}]) == "nodes"
    document.apply([{"op": "copy", "from": "/a", "path": "/c"}, {"op": "copy", "from": "/a", "path": "/d"}])
    assert document.value == {"a": {}, "c": {}, "d": {}}


def test_a_refused_patch_leaves_the_count_as_it_was() -> None:
    document = Document({"a": [0, 0], "b": 1}, Limits(nodes=6))
    for _ in range(3):
        with pytest.raises(PatchError):
            document.apply([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a"}])
        with pytest.raises(PatchError):
            document.apply([{"op": "add", "path": "/c", "value": 1}, {"op": "remove", "path": "/d"}])
        assert _limit_of(document, [{"op": "add", "path": "/c", "value": [1]}]) == "nodes"
    document.apply([{"op": "add", "path": "/c", "value": 1}])


def test_the_limit_of_nesting_is_exact() -> None:
    document = Document({"a": {"b": []}, "low": [[]]}, Limits(nesting=4))
    assert _limit_of(document, [{"op": "add", "path": "/a/b/-", "value": _nested(2)}]) == "nesting"
    assert _limit_of(document, [{"op": "copy", "from": "/low", "path": "/a/b/-"}]) == "nesting"
    assert _limit_of(document, [{"op": "move", "from": "/low", "path": "/a/b/-"}]) == "nesting"
    assert document.value == {"a": {"b": []}, "low": [[]]}
    document.apply([{"op": "move", "from": "/low/0", "path": "/a/b/-"}])
    document.apply([{"op": "add", "path": "/a/b/0/-", "value": 1}])
    assert document.value == {"a": {"b": [[1]]}, "low": []}
    assert _limit_of(document, [{"op": "replace", "path": "/a/b/0/0", "value": {}}]) == "nesting"


def test_a_whole_value_is_held_to_the_limits() -> None:
    limits = Limits(nesting=3, nodes=10)
    document = Document({"kept": 1}, limits)
    for value, limit in ((_nested(4), "nesting"), ([0] * 10, "nodes"), ({"a": [[[]]]}, "nesting")):
        with pytest.raises(LimitExceeded) as caught:
            Document(value, limits)
        assert caught.value.limit == limit
        with pytest.raises(LimitExceeded):
            document.replace(value)
        assert document.value == {"kept": 1}
    document.replace([0] * 9)
    document.replace(_nested(3))


def test_the_number_of_operations_is_bounded() -> None:
    document = Document({"n": 0}, Limits(patch_operations=3))
    step = {"op": "replace", "path": "/n", "value": 1}
    assert _limit_of(document, [step] * 4) == "patch_operations"
    assert document.value == {"n": 0}
    document.apply([step] * 3)


def test_depth_is_no_trouble() -> None:
    deep, twin = _nested(50_000), _nested(50_000)
    with pytest.raises(LimitExceeded):
        apply_patch({}, [{"op": "add", "path": "/d", "value": deep}])
    with pytest.raises(LimitExceeded):
        Document(deep)
    document = Document({"d": deep}, Limits(nesting=1_000_000))
    document.apply([{"op": "test", "path": "/d", "value": twin}, {"op": "copy", "from": "/d", "path": "/e"}])
    document.apply([{"op": "add", "path": "/f", "value": []}, {"op": "move", "from": "/e", "path": "/f/0"}])
    document.apply([{"op": "test", "path": "/f/0", "value": twin}, {"op": "remove", "path": "/d"}])
    with pytest.raises(PatchError):
        document.apply([{"op": "test", "path": "/f", "value": twin}])
    document.apply([{"op": "add", "path": "/f" + "/0" * 2_000 + "/-", "value": 1}])
    document.apply([{"op": "remove", "path": "/f"}])
    assert document.value == {}


def test_many_copies_of_a_part_that_changes_are_counted_right_and_let_go() -> None:
    """What is remembered of sizes is dropped now and then; the count stays exact."""
    alive: weakref.WeakSet[_Watched] = weakref.WeakSet()
    part = _Watched({str(n): n for n in range(1_000)}, [], alive)
    document = Document({"l": part, "n": 0}, Limits(nodes=2_010))
    for n in range(200):
        document.apply([{"op": "replace", "path": "/l/0", "value": n}, {"op": "copy", "from": "/l", "path": "/c"}])
    assert len(alive) < 100
    assert document.value["c"]["0"] == 199
    document.apply([{"op": "add", "path": f"/{n}", "value": n} for n in range(6)])
    assert _limit_of(document, [{"op": "add", "path": "/one-more", "value": 0}]) == "nodes"
