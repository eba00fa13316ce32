"""The grammar of JSON as one pattern per state, for `partial_json`.

Theory of operation. A state says what may come next. Its pattern takes as much as it can of what may come, up to and
including the next value: every part is optional, so the pattern always matches, and the last group that took part
(`lastindex`) says how far the text went. When a pattern takes nothing, the next character is fatal or the text ends
inside a token that only makes sense whole (a number, a literal, an escape); that is for the parser to decide.

All patterns number their groups alike, by the constants below; groups that a pattern does not have can never match.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, TypeAlias, cast

__all__ = [
    "AFTER_KEY",
    "CLOSE",
    "COLON",
    "COMMA",
    "IN_KEY",
    "IN_STRING",
    "KEY",
    "KEY_END",
    "LIST",
    "LITERAL",
    "NUMBER",
    "OBJECT",
    "OPEN",
    "ROOT",
    "TEXT",
    "TEXT_END",
    "Kind",
    "Match",
    "State",
    "escape_end",
]

Match: TypeAlias = re.Match[str]

CLOSE: Final = 1
COMMA: Final = 2
KEY: Final = 3
KEY_END: Final = 4
COLON: Final = 5
TEXT: Final = 6
TEXT_END: Final = 7
NUMBER: Final = 8
LITERAL: Final = 9
OPEN: Final = 10

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
_RUN = f"{_PLAIN}(?:(?:{_ESCAPE}){_PLAIN}){{0,1000}}"
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"


def _value(ends: str) -> str:
    """Groups TEXT to OPEN. `ends` are the characters beside white space that end a number here."""
    string = f'"({_RUN})(")?'
    number = rf"({_NUMBER})(?=[ \t\n\r{ends}])"
    return rf"(?:{string}|{number}|(true|false|null)|([\[{{]))"


def _absent(groups: int) -> str:
    """Groups that never match, to keep the numbering."""
    return f"(?:(?!){'()' * groups})?"


_ITEM = _value(r",\]")
_MEMBER = _value(",}")
_AFTER_KEY = f"{_SPACE}(?:(:){_SPACE}{_MEMBER}?)?"
_REST_OF_KEY = f'({_RUN})(?:("){_AFTER_KEY})?'


class State:
    """What may come next.

    `match(text, position)` always matches. `expects` says in words what must come, `in_string` whether the text is
    between quotes, `has_slot` whether the key or the index of the value now growing is known.
    """

    __slots__ = ("expects", "has_slot", "in_string", "match")

    def __init__(self, expects: str, pattern: str, *, in_string: bool = False, has_slot: bool = False) -> None:
        self.match = cast("Callable[[str, int], Match]", re.compile(pattern).match)
        self.expects = expects
        self.in_string = in_string
        self.has_slot = has_slot


class Kind:
    """The states of one kind of container: at its beginning, for a value, after a comma and after a value."""

    __slots__ = ("after", "closer", "comma", "first", "number_ends", "value")

    def __init__(self, closer: str, *, first: State, value: State, comma: State, after: State) -> None:
        self.closer = closer
        self.first = first
        self.value = value
        self.comma = comma
        self.after = after
        self.number_ends = frozenset(" \t\n\r" + ("," + closer if closer else ""))


IN_STRING = State("the end of a string", f'{_absent(5)}({_RUN})(")?', in_string=True, has_slot=True)
IN_KEY = State("the end of a key", _absent(2) + _REST_OF_KEY, in_string=True)
AFTER_KEY = State("':'", _absent(4) + _AFTER_KEY, has_slot=True)
_ITEM_STATE = State("a value", f"{_absent(5)}{_SPACE}{_ITEM}?", has_slot=True)

_ROOT_STATE = State("a value", f"{_absent(5)}{_SPACE}{_value('')}?")
_END = State("the end of the text", _SPACE)

ROOT = Kind("", first=_ROOT_STATE, value=_ROOT_STATE, comma=_END, after=_END)
LIST = Kind(
    "]",
    first=State("a value or ']'", rf"{_SPACE}(?:(\])|{_absent(4)}{_ITEM})?"),
    value=_ITEM_STATE,
    comma=_ITEM_STATE,
    after=State("',' or ']'", rf"{_SPACE}(?:(\])|(,){_absent(3)}{_SPACE}{_ITEM}?)?"),
)
OBJECT = Kind(
    "}",
    first=State("a key or '}'", f'{_SPACE}(?:(}})|{_absent(1)}"{_REST_OF_KEY})?'),
    value=State("a value", f"{_absent(5)}{_SPACE}{_MEMBER}?", has_slot=True),
    comma=State("a key", f'{_absent(2)}{_SPACE}(?:"{_REST_OF_KEY})?'),
    after=State("',' or '}'", f'{_SPACE}(?:(}})|(,){_SPACE}(?:"{_REST_OF_KEY})?)?'),
)


def _prefix(parts: tuple[str, ...]) -> str:
    """A pattern for the longest beginning of what the parts match one after the other."""
    return parts[0] + (f"(?:{_prefix(parts[1:])})?" if len(parts) > 1 else "")


_escape_prefixes = [re.compile(_prefix(parts)) for parts in _ESCAPES]


def escape_end(text: str, position: int) -> int:
    """Where the escape that begins at `position` stops making sense, or the end of the text."""
    ends = [found.end() for prefix in _escape_prefixes if (found := prefix.match(text, position))]
    return max(ends)
