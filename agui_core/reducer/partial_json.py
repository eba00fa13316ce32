"""An incremental JSON parser for text that is still being written: the arguments of a tool call, above all.

Promises:

- `feed` takes the text cut anywhere and never raises because of it. The outcome does not depend on the cuts.
- `value` is that of the longest certain prefix with open containers closed. Strings and lists only grow, keys only
  appear, and nothing shown is taken back; a repeated key replaces its value, as in JSON.
- Unfinished numbers, literals, escapes and surrogate pairs are held back, and so is a key without a value.
- A whole document gives what `msgspec.json.decode` gives, and what one refuses the other refuses. The error sits at the
  first character that no document could have there; the last good value stays readable.

Costs: each character is looked at a bounded number of times, in bulk; a delta inside a string costs three searches and
an append, whatever the length of the string. Memory is that of the value. `value` costs nothing, `path` the depth.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

import msgspec
from msgspec import UNSET

from agui_core.reducer._partial_json_grammar import (
    AFTER_KEY,
    CLOSE,
    COLON,
    COMMA,
    IN_KEY,
    IN_STRING,
    KEY,
    KEY_END,
    LIST,
    LITERAL,
    NUMBER,
    OBJECT,
    OPEN,
    ROOT,
    TEXT,
    TEXT_END,
    Kind,
    Match,
    State,
    escape_end,
)
from agui_core.reducer._partial_json_number import PartialNumber

__all__ = ["JsonFault", "PartialJson"]

_LITERALS: Final[dict[str, bool | None]] = {"true": True, "false": False, "null": None}
_LITERAL_BY_INITIAL: Final = {word[0]: word for word in _LITERALS}
_NUMBER_INITIALS: Final = frozenset("-0123456789")

_decode = msgspec.json.decode
_decode_string = msgspec.json.Decoder(str).decode


class JsonFault(msgspec.Struct, frozen=True):
    """Why a text is no JSON document."""

    position: int
    """Characters before the first one that no document could have there; the text's length when it ends too early."""
    reason: str
    """What is wrong there, in words. Never holds more than one character of the text, and that one escaped."""

    def __str__(self) -> str:
        return f"character {self.position}: {self.reason}"


class _RefusedError(Exception):
    """Leaves the parser's loop: the text, as cut for this feed, is broken at `offset`."""

    def __init__(self, offset: int, reason: str) -> None:
        self.offset = offset
        self.reason = reason


class PartialJson:
    """The value of a JSON text of which only the beginning is known.

    `depth_limit` bounds the containers inside containers; what is deeper is an error at its bracket. One thread at a
    time may feed. Nothing ends the text but `close`: that it could end here says nothing about what will come.
    """

    __slots__ = (
        "_depth_limit",
        "_error",
        "_held",
        "_key",
        "_kind",
        "_name",
        "_number",
        "_plain",
        "_root",
        "_seen",
        "_slot",
        "_stack",
        "_state",
        "_target",
        "_top",
    )

    def __init__(self, *, depth_limit: int = 200) -> None:
        self._depth_limit = depth_limit
        self._error: JsonFault | None = None
        # The root sits in a list of its own, so that it is stored like an element. Containers are `Any` throughout:
        # a list is indexed by int and an object by str, and the grammar sees to it that the two never mix.
        self._root: list[Any] = []
        self._top: Any = self._root
        self._kind: Kind = ROOT
        # For each container that is not innermost: itself, where its open child sits in it, and its kind.
        self._stack: list[tuple[Any, Any, Kind]] = []
        self._state: State = ROOT.value
        self._key = ""
        # The string now growing is `_target[_slot]`; a growing key has a place of its own.
        self._target: Any = None
        self._slot: Any = 0
        self._name = [""]
        # In a string and nothing held back: the next delta is appended as it is unless something in it is special.
        self._plain = False
        self._held = ""
        self._number: PartialNumber | None = None
        # Characters fed so far; while `_plain`, less those of the growing string, so that appending need not count.
        self._seen = 0

    def feed(self, text: str) -> None:
        """Take the next piece of the text. O(its length); whatever is wrong with it shows in `error`."""
        # isprintable is false for control characters and surrogates, and for a few others that lose only time.
        if self._plain and '"' not in text and "\\" not in text and text.isprintable():
            target = self._target
            slot = self._slot
            grown = target[slot]
            target[slot] = None  # CPython extends a string in place only while nobody else refers to it
            grown += text
            target[slot] = grown
        elif self._error is None:
            self._scan(text)

    @property
    def value(self) -> Any:
        """What is certain so far; `msgspec.UNSET` while there is nothing. A live view: later feeds change it in place.

        It must not be changed by the reader. `copy` gives one that stays as it is.
        """
        return self._root[0] if self._root else UNSET

    @property
    def complete(self) -> bool:
        """Whether the text so far is one whole document. A number at the root is ended by white space or `close`."""
        return self._state is ROOT.after and self._error is None

    @property
    def error(self) -> JsonFault | None:
        """The first fault of the text, or None."""
        return self._error

    @property
    def path(self) -> tuple[str | int, ...]:
        """Keys and indices from the root to the value now growing; its last item is the open key or list element.

        A value counts from where it must come: after its key, or after the comma of a list. Where none is open, the
        path is that of the innermost open container; `()` is the root. O(depth).
        """
        path = [slot for _, slot, _ in self._stack[1:]]
        if self._state.has_slot and self._stack:
            path.append(self._open_slot())
        return tuple(path)

    def copy(self) -> Any:
        """The value now, never changed by later feeds. Costs the open containers; what is closed is shared."""
        if not self._stack:
            return self.value
        copied = inner = self._top.copy()
        for container, slot, _ in reversed(self._stack[1:]):
            copied = container.copy()
            copied[slot] = inner
            inner = copied
        return copied

    def close(self) -> None:
        """The text ends here. Ends a number at the root; sets `error` when the document is not whole. Idempotent.

        An empty text has no value, and its error says so: what it stands for is the caller's affair.
        """
        if self._error is not None or self._state is ROOT.after:
            return
        end = self._seen + (len(self._target[self._slot]) if self._plain else 0)
        self._plain = False
        try:
            self._end_text()
        except _RefusedError as refused:
            self._error = JsonFault(end, refused.reason)

    # The loop. `_scan` takes what plain appending cannot; one step per match, chosen by how far the match went.

    def _scan(self, text: str) -> None:
        if self._plain:
            self._seen += len(self._target[self._slot])
            self._plain = False
        elif self._held:
            text = self._held + text
            self._seen -= len(self._held)
            self._held = ""
        position, size = 0, len(text)
        try:
            if self._number is not None:
                position = self._go_on_number(self._number, text, 0)
            while position < size:
                found = self._state.match(text, position)
                step = found.lastindex
                if step is not None:
                    if step >= KEY_END and (name := found[KEY]) is not None:
                        self._end_key(name)
                    _STEPS[step](self, found)
                end = found.end()
                position = end if end > position else self._take_unusual(text, position)
        except _RefusedError as refused:
            self._error = JsonFault(self._seen + refused.offset, refused.reason)
            return
        self._seen += size
        if self._state.in_string and not self._held:
            self._plain = True
            self._seen -= len(self._target[self._slot])

    def _end_key(self, name: str) -> None:
        if "\\" in name:
            name = _decode_string(f'"{name}"')
        self._key = self._name[0] + name if self._state is IN_KEY else name
        self._state = AFTER_KEY

    def _store(self, value: Any) -> None:
        if self._kind is OBJECT:
            self._top[self._key] = value
        else:
            self._top.append(value)

    def _open_slot(self) -> str | int:
        """Where in the innermost container the value now growing is, or will be."""
        if self._kind is OBJECT:
            return self._key
        return len(self._top) - (self._state is IN_STRING)

    def _grow(self, text: str) -> None:
        target = self._target
        slot = self._slot
        grown = target[slot]
        target[slot] = None  # as in feed
        grown += text
        target[slot] = grown

    # What patterns cannot decide: the next character is fatal, or begins a token that this delta does not end.

    def _take_unusual(self, text: str, position: int) -> int:
        """Take or hold back what begins at `position`; the position after it."""
        character = text[position]
        if self._state.in_string:
            return self._take_in_string(text, position, character)
        if self._state is self._kind.value or (self._state is LIST.first):
            if character in _NUMBER_INITIALS:
                self._state = self._kind.value
                self._number = PartialNumber()
                return self._go_on_number(self._number, text, position)
            if character in _LITERAL_BY_INITIAL:
                self._state = self._kind.value
                return self._hold_literal(text, position, _LITERAL_BY_INITIAL[character])
        return self._refuse(text, position, self._state.expects)

    def _take_in_string(self, text: str, position: int, character: str) -> int:
        if character == "\\":
            end = escape_end(text, position)
            if end == len(text):
                self._held = text[position:]
                return end
            self._refuse(text, end, "the rest of an escape")
        if "\ud800" <= character <= "\udbff":
            return self._take_high_half(text, position)
        if character >= " ":
            raise _RefusedError(position, f"{character!a} is half of a surrogate pair, and its first half is missing")
        raise _RefusedError(position, f"control character {character!a} in a string; JSON has it as an escape")

    def _take_high_half(self, text: str, position: int) -> int:
        """The first half of a pair, as a character of its own: the rest may come with the next delta."""
        end = position + 1
        if end == len(text):
            self._held = text[position:]
            return end
        if not "\udc00" <= text[end] <= "\udfff":
            self._refuse(text, end, "the other half of a surrogate pair")
        self._grow(text[position : end + 1].encode("utf-16", "surrogatepass").decode("utf-16"))
        return end + 1

    def _hold_literal(self, text: str, position: int, word: str) -> int:
        for offset, expected in enumerate(word):
            if position + offset == len(text):
                break
            if text[position + offset] != expected:
                self._refuse(text, position + offset, f"the rest of {word!r}")
        self._held = text[position:]
        return len(text)

    def _go_on_number(self, number: PartialNumber, text: str, position: int) -> int:
        end = number.scan(text, position)
        if number.too_large:
            raise _RefusedError(end, number.range_fault)
        if end == len(text):
            return end
        if not number.whole:
            self._refuse(text, end, "a digit")
        if text[end] not in self._kind.number_ends:
            self._refuse(text, end, self._kind.after.expects)
        self._end_number(number, end)
        return end

    def _end_number(self, number: PartialNumber, end: int) -> None:
        value = number.value()
        if value is None:
            raise _RefusedError(end, number.range_fault)
        self._number = None
        self._store(value)
        self._state = self._kind.after

    def _refuse(self, text: str, position: int, expected: str) -> NoReturn:
        raise _RefusedError(position, f"{text[position]!a} instead of {expected}")

    def _end_text(self) -> None:
        number = self._number
        if number is not None and number.whole and self._kind is ROOT:
            self._end_number(number, 0)
            return
        if number is not None:
            missing = "the end of a number"
        elif self._held and not self._state.in_string:
            missing = "the end of a literal"
        else:
            missing = self._state.expects
        kinds = [self._kind, *(kind for _, _, kind in reversed(self._stack))]
        closers = "".join(kind.closer for kind in kinds)
        raise _RefusedError(0, f"the text ends before {missing}" + (f", then {closers!r}" if closers else ""))


# One step for each group that can be the last of a match.


def _close(parser: PartialJson, found: Match) -> None:
    parser._top, _, parser._kind = parser._stack.pop()
    parser._state = parser._kind.after


def _comma(parser: PartialJson, found: Match) -> None:
    parser._state = parser._kind.comma


def _key(parser: PartialJson, found: Match) -> None:
    """A key begins or goes on, and does not end yet."""
    run = found[KEY]
    if "\\" in run:
        run = _decode_string(f'"{run}"')
    if parser._state is not IN_KEY:
        parser._state = IN_KEY
        parser._target, parser._slot = parser._name, 0
        parser._name[0] = ""
    parser._grow(run)


def _key_end(parser: PartialJson, found: Match) -> None:
    parser._state = AFTER_KEY


def _colon(parser: PartialJson, found: Match) -> None:
    parser._state = OBJECT.value


def _text(parser: PartialJson, found: Match) -> None:
    """A string begins or goes on, and does not end yet."""
    run = found[TEXT]
    if "\\" in run:
        run = _decode_string(f'"{run}"')
    if parser._state is IN_STRING:
        parser._grow(run)
        return
    parser._store(run)
    parser._state = IN_STRING
    parser._target = parser._top
    parser._slot = parser._key if parser._kind is OBJECT else len(parser._top) - 1


def _text_end(parser: PartialJson, found: Match) -> None:
    run = found[TEXT]
    if "\\" in run:
        run = _decode_string(f'"{run}"')
    if parser._state is IN_STRING:
        parser._grow(run)
    else:
        parser._store(run)
    parser._state = parser._kind.after


def _number(parser: PartialJson, found: Match) -> None:
    try:
        value = _decode(found[NUMBER])
    except ValueError:  # out of range: reading it once more, character by character, tells where
        parser._state = parser._kind.value
        parser._number = PartialNumber()
        parser._go_on_number(parser._number, found.string, found.start(NUMBER))
        return
    parser._store(value)
    parser._state = parser._kind.after


def _literal(parser: PartialJson, found: Match) -> None:
    parser._store(_LITERALS[found[LITERAL]])
    parser._state = parser._kind.after


def _open(parser: PartialJson, found: Match) -> None:
    stack = parser._stack
    if len(stack) >= parser._depth_limit:
        raise _RefusedError(found.start(OPEN), f"nested deeper than {parser._depth_limit} containers")
    kind = OBJECT if found[OPEN] == "{" else LIST
    container: Any = {} if kind is OBJECT else []
    parser._store(container)
    stack.append((parser._top, parser._key if parser._kind is OBJECT else len(parser._top) - 1, parser._kind))
    parser._top = container
    parser._kind = kind
    parser._state = kind.first


_STEPS: dict[int, Callable[[PartialJson, Match], None]] = {
    CLOSE: _close,
    COMMA: _comma,
    KEY: _key,
    KEY_END: _key_end,
    COLON: _colon,
    TEXT: _text,
    TEXT_END: _text_end,
    NUMBER: _number,
    LITERAL: _literal,
    OPEN: _open,
}
