"""What `partial_json` does with a match: one step for each group that can be its last, in a table by group.

A step stores what the match found at the cursor and returns the state after it. Objects and lists (with the root) have
their own steps, because they store and number differently. Importing this gives the states their steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec

from agui_core.reducer.partial_json.cursor import Cursor, RefusedError
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

__all__ = ["LITERALS", "decode", "decode_string"]

Step: TypeAlias = Callable[[Cursor, Match], GrammarState]

LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}

decode = msgspec.json.decode
decode_string = msgspec.json.Decoder(str).decode


def _text_of(found: Match, group: int) -> str:
    run = found[group]
    return decode_string(f'"{run}"') if "\\" in run else run


def _number_of(cursor: Cursor, found: Match, group: int) -> int | float:
    try:
        number: int | float = decode(found[group])
    except ValueError:  # out of range: reading it once more, character by character, tells where
        cursor.state = cursor.kind.value
        cursor.go_on_number(PartialNumber(), found.string, found.start(group))
        raise
    return number


def _open(cursor: Cursor, slot: str | int, kind: Kind, position: int) -> GrammarState:
    """Go into a new container in `slot` of the one now open."""
    stack = cursor.stack
    top = cursor.top
    if len(stack) >= cursor.depth_limit:
        cursor.state = cursor.kind.value
        raise RefusedError(position, f"nested deeper than {cursor.depth_limit} containers")
    container: Any = {} if kind.is_object else []
    if cursor.kind.is_object:
        top[slot] = container
    else:
        top.append(container)
    stack.append((top, slot, cursor.kind))
    cursor.top = container
    cursor.kind = kind
    return kind.first


def _begin_key(cursor: Cursor, found: Match, group: int) -> GrammarState:
    run = found[group]
    cursor.growing = name = cursor.name
    cursor.slot = 0
    name[0] = decode_string(f'"{run}"') if "\\" in run else run
    return cursor.kind.in_key


def _close(cursor: Cursor, found: Match) -> GrammarState:
    cursor.top, _, kind = cursor.stack.pop()
    cursor.kind = kind
    return kind.after


def _comma(cursor: Cursor, found: Match) -> GrammarState:
    return cursor.kind.comma


# Lists and the root.


def _item_text(cursor: Cursor, found: Match) -> GrammarState:
    cursor.growing = top = cursor.top
    cursor.slot = -1
    top.append(_text_of(found, Item.TEXT))
    return cursor.kind.string


def _item_text_end(cursor: Cursor, found: Match) -> GrammarState:
    cursor.top.append(_text_of(found, Item.TEXT))
    return cursor.kind.after


def _item_number(cursor: Cursor, found: Match) -> GrammarState:
    cursor.top.append(_number_of(cursor, found, Item.NUMBER))
    return cursor.kind.after


def _item_literal(cursor: Cursor, found: Match) -> GrammarState:
    cursor.top.append(LITERALS[found[Item.LITERAL]])
    return cursor.kind.after


def _item_open_list(cursor: Cursor, found: Match) -> GrammarState:
    return _open(cursor, len(cursor.top), LIST, found.start(Item.OPEN_LIST) - 1)


def _item_open_object(cursor: Cursor, found: Match) -> GrammarState:
    return _open(cursor, len(cursor.top), LISTED_OBJECT if cursor.stack else OBJECT, found.start(Item.OPEN_OBJECT) - 1)


def _item_first_key(cursor: Cursor, found: Match) -> GrammarState:
    _item_open_object(cursor, found)
    return _begin_key(cursor, found, Item.FIRST_KEY)


# Objects. The key that a value belongs to is that of its match, or the parser's when it ended before.


def _take_name(cursor: Cursor, found: Match) -> str:
    name: str | None = found[Member.KEY]
    if name is None:
        return cursor.name[0]
    if "\\" in name:
        name = decode_string(f'"{name}"')
    cursor.name[0] = name
    return name


def _key(cursor: Cursor, found: Match) -> GrammarState:
    return _begin_key(cursor, found, Member.KEY)


def _key_end(cursor: Cursor, found: Match) -> GrammarState:
    _take_name(cursor, found)
    return cursor.kind.after_key


def _colon(cursor: Cursor, found: Match) -> GrammarState:
    _take_name(cursor, found)
    return cursor.kind.value


def _member_text(cursor: Cursor, found: Match) -> GrammarState:
    cursor.slot = name = _take_name(cursor, found)
    cursor.growing = top = cursor.top
    run = found[Member.TEXT]
    top[name] = decode_string(f'"{run}"') if "\\" in run else run
    return cursor.kind.string


def _member_scalar(cursor: Cursor, found: Match) -> GrammarState:
    """A whole string, number or literal."""
    name = _take_name(cursor, found)
    run = found[Member.TEXT]
    if run is not None:
        cursor.top[name] = decode_string(f'"{run}"') if "\\" in run else run
    elif found[Member.NUMBER] is not None:
        cursor.top[name] = _number_of(cursor, found, Member.NUMBER)
    else:
        cursor.top[name] = LITERALS[found[Member.LITERAL]]
    return cursor.kind.after


def _next_close(cursor: Cursor, found: Match) -> GrammarState:
    _member_scalar(cursor, found)
    return _close(cursor, found)


def _next_comma(cursor: Cursor, found: Match) -> GrammarState:
    _member_scalar(cursor, found)
    return cursor.kind.comma


def _next_key(cursor: Cursor, found: Match) -> GrammarState:
    _member_scalar(cursor, found)
    return _begin_key(cursor, found, Member.NEXT_KEY)


def _member_open_list(cursor: Cursor, found: Match) -> GrammarState:
    return _open(cursor, _take_name(cursor, found), LIST, found.start(Member.OPEN_LIST) - 1)


def _member_open_object(cursor: Cursor, found: Match) -> GrammarState:
    return _open(cursor, _take_name(cursor, found), OBJECT, found.start(Member.OPEN_OBJECT) - 1)


def _member_first_key(cursor: Cursor, found: Match) -> GrammarState:
    _member_open_object(cursor, found)
    return _begin_key(cursor, found, Member.FIRST_KEY)


def _sibling(cursor: Cursor, found: Match) -> GrammarState:
    return _begin_sibling(cursor, found, Member.SIBLING)


def _next_sibling(cursor: Cursor, found: Match) -> GrammarState:
    _member_scalar(cursor, found)
    return _begin_sibling(cursor, found, Member.NEXT_SIBLING)


def _begin_sibling(cursor: Cursor, found: Match, group: int) -> GrammarState:
    """Go from one object of a list to the next."""
    stack = cursor.stack
    siblings, slot, kind = stack[-1]
    stack[-1] = (siblings, slot + 1, kind)
    container: dict[str, Any] = {}
    cursor.top = container
    siblings.append(container)
    return _begin_key(cursor, found, group)


def _unused(cursor: Cursor, found: Match) -> GrammarState:
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
