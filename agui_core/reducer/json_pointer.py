"""JSON Pointer (RFC 6901): from a pointer's tokens to the containers and keys that they name in a JSON value.

A look-up costs its path. Nothing here changes a value, and nothing recurses. Why a pointer names nothing is said in a
few words, whatever the size of the pointer and of the value.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from agui_core._text import SHOWN, cut

__all__ = [
    "CONTAINERS",
    "Container",
    "Key",
    "UnresolvedError",
    "array_index",
    "describe",
    "find",
    "find_parent",
    "quote",
    "split",
]

Container: TypeAlias = dict[str, Any] | list[Any]
CONTAINERS = (dict, list)
Key: TypeAlias = Any
"""A member's name or an element's index: what its container is subscripted with."""

_INDEX = re.compile("0|[1-9][0-9]*").fullmatch
_INDEX_DIGITS = 18
"""No array has an index of more digits; longer ones are not worth converting (`int` refuses thousands of digits)."""


class UnresolvedError(Exception):
    """A pointer names nothing, or what it names is of no use, for the reason given."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def split(pointer: str) -> list[str]:
    """The unescaped tokens of a well-formed pointer; none for the whole document."""
    tokens = pointer.split("/")[1:]
    return [token.replace("~1", "/").replace("~0", "~") for token in tokens] if "~" in pointer else tokens


def find(holder: list[Any], tokens: list[str]) -> tuple[list[Container], list[Key]]:
    """The containers from `holder`, whose one element is the document, to the one of the value, and the key in each."""
    parents: list[Container] = [holder]
    keys: list[Key] = [0]
    here = holder[0]
    for token in tokens:
        key = token if isinstance(here, dict) and token in here else _index_of(here, tokens, len(parents) - 1)
        parents.append(here)
        keys.append(key)
        here = here[key]
    return parents, keys


def find_parent(holder: list[Any], tokens: list[str]) -> tuple[list[Container], list[Key]]:
    """As `find`, but the key in the last container is left out, as it need not exist. There is at least one token."""
    parents, keys = find(holder, tokens[:-1])
    here = parents[-1][keys[-1]]
    if not isinstance(here, CONTAINERS):
        raise _holds_nothing(here, tokens, len(tokens) - 1)
    parents.append(here)
    return parents, keys


def _index_of(here: Any, tokens: list[str], depth: int) -> int:
    """The index of the element that the token at `depth` names in `here`, which has no such member."""
    if isinstance(here, list):
        return array_index(tokens, depth, len(here))
    if isinstance(here, dict):
        raise UnresolvedError(f"{_place(tokens, depth)} has no member {quote(tokens[depth])}")
    raise _holds_nothing(here, tokens, depth)


def _holds_nothing(here: Any, tokens: list[str], depth: int) -> UnresolvedError:
    return UnresolvedError(f"{_place(tokens, depth)} is {describe(here)}, which holds nothing")


def array_index(tokens: list[str], depth: int, end: int) -> int:
    """The array index, below `end`, that the token at `depth` is (PATCH-8)."""
    token = tokens[depth]
    if not _INDEX(token):
        hint = "; `-`, the place behind the last element, is for adding" if token == "-" else ""
        raise UnresolvedError(f"{_place(tokens, depth)} is an array, and {quote(token)} is no index of one{hint}")
    index = int(token) if len(token) <= _INDEX_DIGITS else end
    if index >= end:
        raise UnresolvedError(f"{_place(tokens, depth)} is an array, and index {cut(token)} is beyond its end")
    return index


def _place(tokens: list[str], depth: int) -> str:
    """The pointer that the first `depth` tokens make."""
    pointer = "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens[:depth])
    return quote(pointer) if pointer else "the document"


def describe(value: Any) -> str:
    """A few words on a JSON value, whatever its size and depth."""
    if isinstance(value, dict):
        return f"an object of {len(value)}"
    if isinstance(value, list):
        return f"an array of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int) and value.bit_length() > 64:
        return "a large number"
    return cut(repr(value[:SHOWN] if isinstance(value, str) else value))


def quote(text: str) -> str:
    return f"`{cut(text)}`"
