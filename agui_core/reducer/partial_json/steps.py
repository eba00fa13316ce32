"""What `partial_json` does with a match: one step for each group that can be its last, in a table by group.

A step stores what the match found in the parser's value and returns the state after it. Objects and lists (with the
root) have their own steps, because they store and number differently. Importing this gives the states their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from agui_core.reducer.partial_json.grammar import (
    LIST,
    LISTED_OBJECT,
    OBJECT,
    ROOT,
    GrammarState,
    Item,
    Kind,
    Match,
    Member,
)
from agui_core.reducer.partial_json.number import PartialNumber

if TYPE_CHECKING:
    from agui_core.reducer.partial_json.parser import PartialJson

__all__ = ["LITERALS", "RefusedError", "decode", "decode_string"]

Step: TypeAlias = "Callable[[PartialJson, Match], GrammarState]"

LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}

decode = msgspec.json.decode
decode_string = msgspec.json.Decoder(str).decode


class RefusedError(Exception):
    """Leaves the parser's loop: the text, as cut for this feed, is broken at `offset`."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        self.reason = reason


def _text_of(found: Match, group: int) -> str:
    run = found[group]
    return decode_string(f'"{run}"') if "\\" in run else run


def _number_of(parser: PartialJson, found: Match, group: int) -> int | float:
    try:
        number: int | float = decode(found[group])
    except ValueError:  # out of range: reading it once more, character by character, tells where
        parser._state = parser._kind.value
        parser._go_on_number(PartialNumber(), found.string, found.start(group))
        raise
    return number


def _open(parser: PartialJson, slot: str | int, kind: Kind, position: int) -> GrammarState:
    """Go into a new container in `slot` of the one now open."""
    stack = parser._stack
    top = parser._top
    if len(stack) >= parser._depth_limit:
        parser._state = parser._kind.value
        raise RefusedError(position, f"nested deeper than {parser._depth_limit} containers")
    container: Any = {} if kind.is_object else []
    if parser._kind.is_object:
        top[slot] = container
    else:
        top.append(container)
    if not stack:
        parser.value = container
    stack.append((top, slot, parser._kind))
    parser._top = container
    parser._kind = kind
    return kind.first


def _begin_key(parser: PartialJson, found: Match, group: int) -> GrammarState:
    run = found[group]
    parser._growing = name = parser._name
    parser._slot = 0
    name[0] = decode_string(f'"{run}"') if "\\" in run else run
    return parser._kind.in_key


def _close(parser: PartialJson, found: Match) -> GrammarState:
    parser._top, _, kind = parser._stack.pop()
    parser._kind = kind
    return kind.after


def _comma(parser: PartialJson, found: Match) -> GrammarState:
    return parser._kind.comma


# Lists and the root.


def _item_text(parser: PartialJson, found: Match) -> GrammarState:
    parser._growing = top = parser._top
    parser._slot = -1
    top.append(_text_of(found, Item.TEXT))
    return parser._kind.string


def _item_text_end(parser: PartialJson, found: Match) -> GrammarState:
    parser._top.append(_text_of(found, Item.TEXT))
    return parser._kind.after


def _item_number(parser: PartialJson, found: Match) -> GrammarState:
    parser._top.append(_number_of(parser, found, Item.NUMBER))
    return parser._kind.after


def _item_literal(parser: PartialJson, found: Match) -> GrammarState:
    parser._top.append(LITERALS[found[Item.LITERAL]])
    return parser._kind.after


def _item_open_list(parser: PartialJson, found: Match) -> GrammarState:
    return _open(parser, len(parser._top), LIST, found.start(Item.OPEN_LIST) - 1)


def _item_open_object(parser: PartialJson, found: Match) -> GrammarState:
    return _open(
        parser, len(parser._top), LISTED_OBJECT if parser._stack else OBJECT, found.start(Item.OPEN_OBJECT) - 1
    )


def _item_first_key(parser: PartialJson, found: Match) -> GrammarState:
    _item_open_object(parser, found)
    return _begin_key(parser, found, Item.FIRST_KEY)


# Objects. The key that a value belongs to is that of its match, or the parser's when it ended before.


def _take_name(parser: PartialJson, found: Match) -> str:
    name: str | None = found[Member.KEY]
    if name is None:
        return parser._name[0]
    if "\\" in name:
        name = decode_string(f'"{name}"')
    parser._name[0] = name
    return name


def _key(parser: PartialJson, found: Match) -> GrammarState:
    return _begin_key(parser, found, Member.KEY)


def _key_end(parser: PartialJson, found: Match) -> GrammarState:
    _take_name(parser, found)
    return parser._kind.after_key


def _colon(parser: PartialJson, found: Match) -> GrammarState:
    _take_name(parser, found)
    return parser._kind.value


def _member_text(parser: PartialJson, found: Match) -> GrammarState:
    parser._slot = name = _take_name(parser, found)
    parser._growing = top = parser._top
    run = found[Member.TEXT]
    top[name] = decode_string(f'"{run}"') if "\\" in run else run
    return parser._kind.string


def _member_scalar(parser: PartialJson, found: Match) -> GrammarState:
    """A whole string, number or literal."""
    name = _take_name(parser, found)
    run = found[Member.TEXT]
    if run is not None:
        parser._top[name] = decode_string(f'"{run}"') if "\\" in run else run
    elif found[Member.NUMBER] is not None:
        parser._top[name] = _number_of(parser, found, Member.NUMBER)
    else:
        parser._top[name] = LITERALS[found[Member.LITERAL]]
    return parser._kind.after


def _next_close(parser: PartialJson, found: Match) -> GrammarState:
    _member_scalar(parser, found)
    return _close(parser, found)


def _next_comma(parser: PartialJson, found: Match) -> GrammarState:
    _member_scalar(parser, found)
    return parser._kind.comma


def _next_key(parser: PartialJson, found: Match) -> GrammarState:
    _member_scalar(parser, found)
    return _begin_key(parser, found, Member.NEXT_KEY)


def _member_open_list(parser: PartialJson, found: Match) -> GrammarState:
    return _open(parser, _take_name(parser, found), LIST, found.start(Member.OPEN_LIST) - 1)


def _member_open_object(parser: PartialJson, found: Match) -> GrammarState:
    return _open(parser, _take_name(parser, found), OBJECT, found.start(Member.OPEN_OBJECT) - 1)


def _member_first_key(parser: PartialJson, found: Match) -> GrammarState:
    _member_open_object(parser, found)
    return _begin_key(parser, found, Member.FIRST_KEY)


def _sibling(parser: PartialJson, found: Match) -> GrammarState:
    return _begin_sibling(parser, found, Member.SIBLING)


def _next_sibling(parser: PartialJson, found: Match) -> GrammarState:
    _member_scalar(parser, found)
    return _begin_sibling(parser, found, Member.NEXT_SIBLING)


def _begin_sibling(parser: PartialJson, found: Match, group: int) -> GrammarState:
    """Go from one object of a list to the next."""
    stack = parser._stack
    siblings, slot, kind = stack[-1]
    stack[-1] = (siblings, slot + 1, kind)
    container: dict[str, Any] = {}
    parser._top = container
    siblings.append(container)
    return _begin_key(parser, found, group)


def _unused(parser: PartialJson, found: Match) -> GrammarState:
    raise AssertionError("no pattern ends with this group")


def _table(last: int, steps: dict[int, Step]) -> tuple[Step, ...]:
    return tuple(steps.get(group, _unused) for group in range(last + 1))


_ITEM_STEPS = _table(
    Item.LITERAL,
    {
        Item.CLOSE: _close,
        Item.COMMA: _comma,
        Item.OPEN_LIST: _item_open_list,
        Item.OPEN_OBJECT: _item_open_object,
        Item.FIRST_KEY: _item_first_key,
        Item.TEXT: _item_text,
        Item.TEXT_END: _item_text_end,
        Item.NUMBER: _item_number,
        Item.LITERAL: _item_literal,
    },
)
_MEMBER_STEPS = _table(
    Member.NEXT_KEY,
    {
        Member.CLOSE: _close,
        Member.SIBLING: _sibling,
        Member.COMMA: _comma,
        Member.KEY: _key,
        Member.KEY_END: _key_end,
        Member.COLON: _colon,
        Member.OPEN_LIST: _member_open_list,
        Member.OPEN_OBJECT: _member_open_object,
        Member.FIRST_KEY: _member_first_key,
        Member.TEXT_END: _member_scalar,
        Member.TEXT_CUT: _member_text,
        Member.NUMBER: _member_scalar,
        Member.LITERAL: _member_scalar,
        Member.NEXT_CLOSE: _next_close,
        Member.NEXT_SIBLING: _next_sibling,
        Member.NEXT_COMMA: _next_comma,
        Member.NEXT_KEY: _next_key,
    },
)

for _kind in (ROOT, LIST, OBJECT, LISTED_OBJECT):
    for _state in _kind.states():
        _state.steps = _MEMBER_STEPS if _kind.is_object else _ITEM_STEPS
