"""The grammar of JSON as one pattern per state, for `partial_json`.

Theory of operation. A state says what may come next. Its pattern takes as much as it can of what may come: the rest of
a string, a comma, a key, a value, and the beginning of the key after it. Every part is optional, so the pattern always
matches, and the last group that took part (`lastindex`) says how far the text went. When a pattern takes nothing, the
next character is fatal or the text ends inside a token that only makes sense whole (a number, a literal, an escape);
that is for the parser to decide.

What makes it quick: matches are long, because most of the cost is per match. What is optional is an alternative to
nothing, which costs a fraction of a repetition, and alternatives begin with their character, so that the matcher can
pass them over; the group that says they matched comes after it and is empty.

The states of objects number their groups alike, and so do those of lists and the root. Groups that a pattern has no
use for are empty, or cannot match where that makes a difference; the first group always matches.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final, TypeAlias, cast

__all__ = [
    "LIST",
    "LISTED_OBJECT",
    "OBJECT",
    "ROOT",
    "RUN",
    "RUN_END",
    "Item",
    "Kind",
    "Match",
    "Member",
    "GrammarState",
    "escape_end",
]

Match: TypeAlias = re.Match[str]

# Groups of every pattern: what a string or key goes on with, and its end.
RUN: Final = 1
RUN_END: Final = 2


class Item:
    """Groups of lists and the root. After an opened object its first key may begin."""

    CLOSE: Final = 3
    COMMA: Final = 4
    OPEN_LIST: Final = 5
    OPEN_OBJECT: Final = 6
    FIRST_KEY: Final = 7
    TEXT: Final = 8
    TEXT_END: Final = 9
    NUMBER: Final = 10
    LITERAL: Final = 11


class Member:
    """Groups of objects. After a whole scalar comes what may follow it; after an opened object its first key.

    A sibling is the object that follows in the same list, up to its first key.
    """

    CLOSE: Final = 3
    SIBLING: Final = 4
    COMMA: Final = 5
    KEY: Final = 6
    KEY_END: Final = 7
    COLON: Final = 8
    OPEN_LIST: Final = 9
    OPEN_OBJECT: Final = 10
    FIRST_KEY: Final = 11
    TEXT: Final = 12
    TEXT_END: Final = 13
    TEXT_CUT: Final = 14
    NUMBER: Final = 15
    LITERAL: Final = 16
    NEXT_CLOSE: Final = 17
    NEXT_SIBLING: Final = 18
    NEXT_COMMA: Final = 19
    NEXT_KEY: Final = 20


_SPACE = r"[ \t\n\r]*"
_HEX = "[0-9a-fA-F]"
_PLAIN = r'[^"\\\x00-\x1f\ud800-\udfff]*'

# The escapes, character by character. The halves of a surrogate pair make one escape; a half alone makes none.
_ESCAPES = (
    (r"\\", r'["\\/bfnrt]'),
    (r"\\", "u", "[0-9a-cefA-CEF]", _HEX, _HEX, _HEX),
    (r"\\", "u", "[dD]", "[0-7]", _HEX, _HEX),
    (r"\\", "u", "[dD]", "[89abAB]", _HEX, _HEX, r"\\", "u", "[dD]", "[c-fC-F]", _HEX, _HEX),
)
_ESCAPE = "|".join("".join(parts) for parts in _ESCAPES)
# The repetition is bounded because the matcher keeps a note for each round; whatever is left is taken next time.
_RUN = f"{_PLAIN}(?:(?:{_ESCAPE}){_PLAIN}(?:(?:{_ESCAPE}){_PLAIN}){{0,1000}}|)"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+|)(?:[eE][+-]?[0-9]+|)"
_LITERAL = "true|false|null"
_OPEN = rf'\[()|\{{()(?:{_SPACE}"({_RUN})|)'


def _item(ends: str) -> str:
    """The groups of a value in a list or at the root; `ends` beside white space end a number there."""
    return rf'{_OPEN}|"({_RUN})(?:"()|)|({_NUMBER})(?=[ \t\n\r{ends}])|({_LITERAL})'


def _absent(groups: int) -> str:
    """Groups that never match, to keep the numbering."""
    return f"(?:(?!){'()' * groups}|)"


class GrammarState:
    """What may come next.

    `match(text, position)` always matches. `expects` says in words what must come. `in_string`: the text is between
    quotes, and `plain`: a delta may be appended to it as it is. `has_slot`: the key or the index of the value now
    growing is known. `ended` is the state after the string that this one is in, or itself; `steps` are what the parser
    does for each group. A pattern is compiled when it is used first, as some take milliseconds.
    """

    __slots__ = ("_pattern", "ended", "expects", "has_slot", "in_string", "match", "plain", "steps")

    def __init__(
        self,
        expects: str,
        pattern: str,
        *,
        ended: GrammarState | None = None,
        plain: bool = False,
        has_slot: bool = False,
    ) -> None:
        self._pattern = pattern
        self.match: Callable[[str, int], Match] = self._compile
        self.expects = expects
        self.ended = ended or self
        self.in_string = ended is not None
        self.plain = plain
        self.has_slot = has_slot
        self.steps: Sequence[Callable[[Any, Match], GrammarState]] = ()

    def _compile(self, text: str, position: int) -> Match:
        self.match = match = cast("Callable[[str, int], Match]", re.compile(self._pattern).match)
        return match(text, position)


class Kind:
    """The states in one kind of container: at its beginning, for a value, after a comma, after a value, in a string.

    An object also has those in a key and after one.
    """

    __slots__ = (
        "after",
        "after_key",
        "closer",
        "comma",
        "first",
        "in_key",
        "is_object",
        "number_ends",
        "string",
        "value",
    )

    def __init__(
        self,
        closer: str,
        rest: str,
        *,
        first: GrammarState | None = None,
        value: GrammarState,
        comma: GrammarState | None = None,
        after: GrammarState,
        in_key: GrammarState | None = None,
    ) -> None:
        self.closer = closer
        self.is_object = in_key is not None
        self.first = first or value
        self.value = value
        self.comma = comma or value
        self.after = after
        self.string = GrammarState(
            "the end of a string", _running(rest), ended=after, plain=closer != "", has_slot=True
        )
        self.in_key = in_key or value
        self.after_key = self.in_key.ended
        self.number_ends = frozenset(" \t\n\r" + ("," + closer if closer else ""))

    def states(self) -> set[GrammarState]:
        return {self.first, self.value, self.comma, self.after, self.string, self.in_key, self.after_key}


def _running(rest: str) -> str:
    """A pattern for what a string or key goes on with, and for the rest after its end."""
    return f'({_RUN})(?:"(){rest}|)'


def _root() -> Kind:
    value = GrammarState("a value", f"(){_absent(3)}{_SPACE}(?:{_item('')}|)")
    return Kind("", _SPACE, value=value, after=GrammarState("the end of the text", f"(){_SPACE}"))


def _list() -> Kind:
    item = _item(r",\]")
    after = rf"{_SPACE}(?:\]()|,(){_SPACE}(?:{item}|)|)"
    return Kind(
        "]",
        after,
        first=GrammarState("a value or ']'", rf"(){_absent(1)}{_SPACE}(?:\]()|{_absent(1)}(?:{item})|)"),
        value=GrammarState("a value", f"()()()(){_SPACE}(?:{item}|)", has_slot=True),
        after=GrammarState("',' or ']'", f"()(){after}"),
    )


def _object(*, in_list: bool) -> Kind:
    sibling = rf'(?:{_SPACE},{_SPACE}\{{{_SPACE}"({_RUN})|)' if in_list else _absent(1)
    # A string that is cut takes part as the empty TEXT_CUT; nothing after it is to be taken for what follows a member.
    scalar = rf'"({_RUN})(?:"()|())|({_NUMBER})(?=[ \t\n\r,}}])|({_LITERAL})'
    following = f'{_SPACE}(?:}}(){sibling}|,(){_SPACE}(?:"({_RUN})|)|)'
    member = f"(?:{_OPEN}|(?:{scalar})(?({Member.TEXT_CUT})|{following})|)"
    colon = f"{_SPACE}(?::(){_SPACE}{member}|)"
    key = f'({_RUN})(?:"(){colon}|)'
    after = f'{_SPACE}(?:}}(){sibling}|,(){_SPACE}(?:"{key}|)|)'
    after_key = GrammarState("':'", f"(){_absent(6)}{colon}", has_slot=True)
    return Kind(
        "}",
        after,
        first=GrammarState("a key or '}'", f'(){_absent(1)}{_SPACE}(?:}}(){sibling}|"(){key}|)'),
        value=GrammarState("a value", f"(){_absent(7)}{_SPACE}{member}", has_slot=True),
        comma=GrammarState("a key", f'()()()()(){_SPACE}(?:"{key}|)'),
        after=GrammarState("',' or '}'", f"()(){after}"),
        in_key=GrammarState("the end of a key", _running(_absent(5) + colon), ended=after_key, plain=True),
    )


ROOT: Final = _root()
LIST: Final = _list()
OBJECT: Final = _object(in_list=False)
LISTED_OBJECT: Final = _object(in_list=True)


def _prefix(parts: tuple[str, ...]) -> str:
    """A pattern for the longest beginning of what the parts match one after the other."""
    return parts[0] + (f"(?:{_prefix(parts[1:])})?" if len(parts) > 1 else "")


@cache
def _escape_prefixes() -> list[re.Pattern[str]]:
    return [re.compile(_prefix(parts)) for parts in _ESCAPES]


def escape_end(text: str, position: int) -> int:
    """Where the escape that begins at `position` stops making sense, or the end of the text."""
    ends = [found.end() for prefix in _escape_prefixes() if (found := prefix.match(text, position))]
    return max(ends)
