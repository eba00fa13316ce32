"""What a writer of streams draws from, and what it has to remember to stay within the protocol's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

from hypothesis import strategies as st

__all__ = [
    "DELTAS",
    "EVERY_ID",
    "OPENERS",
    "OPERATIONS",
    "PARTS",
    "POOLS",
    "ROLES",
    "SHARED",
    "STATES",
    "TAGS",
    "VALUES",
]
__all__ += ["METADATA", "VALUES", "Draw", "Ledger", "Owners", "Wire", "below"]

T = TypeVar("T")
Wire = dict[str, Any]
Owners = dict[str, str | None]
"""Ids and who owns them: a subagent run, or None for the parent agent."""
Draw = Callable[[st.SearchStrategy[Any]], Any]

TAGS = ["s1", "s2", "s3"]
POOLS: dict[str, list[str]] = {
    "text": ["t0", "t1", "t2"],
    "parent": ["t0", "t1", "p0", "p1"],
    "call": ["c0", "c1", "c2"],
    "result": ["r0", "r1", "r2"],
    "reasoning": ["k0", "k1"],
    "span": ["k0", "g0"],
    "activity": ["a0", "a1"],
}
SHARED = ["x0", ""]
"""Ids that every family uses now and then, always without a tag: who owns them is nobody's rule."""
EVERY_ID = sorted({name for pool in POOLS.values() for name in pool} | {"u0", "nobody", *SHARED})
DELTAS = ["x", "", "ab ", '{"a":', "1}", '"', "\\", "é\u2028", "😀", "\n"]
VALUES: list[Any] = [1, "v", None, True, [1, {"z": None}], {"k": {"n": 1}}, -2.5, [], {}]
METADATA: list[Wire] = [{"x.a": 1}, {"x.a": None}, {"x.b": {"in": 1}}, {"x.b": {"out": 2}, "x.a": [1]}, {}]
STATES: list[Any] = [{"a": 1, "b": [1, 2], "c": {"d": None}, "x/y": "s"}, {}, {"b": []}, None, 3, ["l"]]
OPERATIONS: list[Wire] = [
    {"op": "add", "path": "/a", "value": 2},
    {"op": "add", "path": "/b/-", "value": {"q": [None]}},
    {"op": "add", "path": "/b/0", "value": 0},
    {"op": "add", "path": "/x~1y", "value": "~", "note": "kept"},
    {"op": "add", "path": "/n", "value": {"deep": {"er": 1}}},
    {"op": "replace", "path": "/a", "value": [True]},
    {"op": "replace", "path": "/c/d", "value": 1.5},
    {"op": "remove", "path": "/b/0"},
    {"op": "remove", "path": "/missing"},
    {"op": "move", "from": "/a", "path": "/moved"},
    {"op": "move", "from": "/c", "path": "/c/inside"},
    {"op": "copy", "from": "/c", "path": "/n"},
    {"op": "copy", "from": "/nowhere", "path": "/n"},
    {"op": "test", "path": "/a", "value": 1},
    {"op": "test", "path": "/a", "value": True},
    {"op": "test", "path": "/c", "value": {"d": None}},
    {"op": "merge", "path": "/a", "value": 1},
]
PARTS: list[Wire] = [
    {"type": "text", "text": "seen"},
    {"type": "image", "source": {"type": "url", "value": "https://example.org/a.png"}, "metadata": "m"},
    {"type": "document", "id": "d", "source": {"type": "file", "value": "f-1", "provider": "acme"}},
]
ROLES = ["assistant", "user", "system", "developer"]
OPENERS = {"text": "TEXT_MESSAGE", "tool": "TOOL_CALL", "reasoning": "REASONING_MESSAGE"}


@lru_cache(maxsize=256)
def below(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, count - 1)


class Ledger:
    """What the author of a valid stream has to know, and the events written so far."""

    def __init__(self, draw: Draw, noise: bool) -> None:
        self._draw = draw
        self._noise = noise
        self.events: list[Wire] = []
        # The conversation, roughly: the role and stored owner of each message, the message of each call.
        self.roles: dict[str, str] = {}
        self.stored: Owners = {}
        self.home: dict[str, str] = {}
        self.runs = 0
        self.forget()

    def forget(self) -> None:
        """RUN-9: what a new run does not know of any more."""
        self.text: Owners = {}
        self.calls: Owners = {}
        self.reasoning: Owners = {}
        self.spans: Owners = {}
        self.steps: list[tuple[str | None, str]] = []
        self.active: list[str] = []
        self.ended: list[str] = []
        self.lanes: dict[str | None, dict[str, Any]] = {}
        # Who owns an id in this run, by family. A missing id is owned by whoever comes.
        self.owners: dict[str, Owners] = {
            "text": {}, "call": {}, "reasoning": {}, "activity": {}, "minted": {}
        }  # fmt: skip

    # Draws

    def pick(self, options: Sequence[T]) -> T:
        return options[self._draw(below(len(options)))] if len(options) > 1 else options[0]

    def below(self, count: int) -> int:
        return self._draw(below(count))

    def chance(self, one_in: int) -> bool:
        return self.below(one_in) == one_in - 1

    def tag(self, name: str | None = None) -> str | None:
        """Any owner, for an event about the id."""
        return None if name in SHARED else self.pick([None, None, *TAGS])

    def id(self, family: str) -> str:
        return self.pick(SHARED) if self.chance(60) else self.pick(POOLS[family])

    def tag_for(self, family: str, name: str) -> str | None:
        """A tag that agrees with the owner of an id, or any when nobody owns it yet."""
        owners = self.owners[family]
        if name in SHARED:
            return None
        if name in owners:
            return self.pick([None, owners[name]])
        return self.owners["minted"][name] if name in self.owners["minted"] else self.tag()

    # Writing

    def write(self, type: str, tag: str | None = None, *, nullable: Wire | None = None, **members: Any) -> None:
        """An event of the members that are not None, and of `nullable` as it is; now and then with the common ones."""
        event: Wire = {"type": type, **{name: value for name, value in members.items() if value is not None}}
        event |= nullable or {}
        if tag is not None:
            event["subagentRunId"] = tag
        extra = self.below(24)
        if extra == 20:
            event["timestamp"] = 1_700_000_000_000
        elif extra == 21:
            event["rawEvent"] = {"r": None}
        elif extra >= 22:
            event["metadata"] = self.pick(METADATA)
        if self._noise and self.chance(25):
            self._add_noise(event)
        self.events.append(event)

    def _add_noise(self, event: Wire) -> None:
        if self.chance(2):
            event["somethingNewer"] = {"deep": [1]}
        else:
            self.events.append({"type": "FUTURE_EVENT", "messageId": "t0"})

    def close_lane(self, lane: str | None) -> None:
        stream = self.lanes.pop(lane, None)
        if stream is not None:
            stream["open"].pop(stream["id"], None)

    def close_lanes(self) -> None:
        for lane in list(self.lanes):
            self.close_lane(lane)

    def hold(self, name: str, role: str, owner: str | None) -> None:
        if name not in self.roles:
            self.roles[name] = role
            self.stored[name] = owner
