"""An incremental JSON parser for text that is still being written: the arguments of a tool call, above all.

Promises:

- `feed` takes the text cut anywhere and never raises because of it. The outcome does not depend on the cuts.
- `value` is that of the longest certain prefix with open containers closed. Strings and lists only grow, keys only
  appear, and nothing shown is taken back; a repeated key replaces its value, as in JSON.
- Unfinished numbers, literals, escapes and surrogate pairs are held back, and so is a key without a value.
- A whole document gives what `msgspec.json.decode` gives, and what one refuses the other refuses. The error sits at the
  first character that no document could have there; the last good value stays readable.

Costs: each character is looked at a bounded number of times, in bulk; a delta inside a string is searched, encoded
and appended, whatever the length of the string. Memory is that of the value. `value` costs nothing, `path` the depth.
Only a string that the reader still refers to when it grows is copied, because strings never change.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import msgspec
from msgspec import UNSET
from msgspec.json import encode

from agui_core.reducer.partial_json.grammar import LIST, ROOT, RUN, RUN_END, GrammarState, Kind, escape_end
from agui_core.reducer.partial_json.number import PartialNumber
from agui_core.reducer.partial_json.steps import LITERALS, RefusedError, decode, decode_string

__all__ = ["JsonFault", "PartialJson"]

_LITERAL_BY_INITIAL: Final = {word[0]: word for word in LITERALS}
_NUMBER_INITIALS: Final = frozenset("-0123456789")


class JsonFault(msgspec.Struct, frozen=True):
    """Why a text is no JSON document."""

    position: int
    """Characters before the first one that no document could have there; the text's length when it ends too early."""
    reason: str
    """What is wrong there, in words. Never holds more than one character of the text, and that one escaped."""

    def __str__(self) -> str:
        return f"character {self.position}: {self.reason}"


class PartialJson:
    """The value of a JSON text of which only the beginning is known.

    `value` is what is certain so far, `msgspec.UNSET` while there is nothing. It is a live view: later feeds change it
    in place. `copy` gives one that stays as it is. `error` is the first fault of the text, or None. Both are to be
    read only.

    `depth_limit` bounds the containers inside containers; what is deeper is an error at its bracket. One thread at a
    time may feed. Nothing ends the text but `close`: that it could end here says nothing about what will come.
    """

    __slots__ = (
        "_depth_limit",
        "_growing",
        "_held",
        "_kind",
        "_name",
        "_number",
        "_plain",
        "_seen",
        "_slot",
        "_stack",
        "_state",
        "_top",
        "error",
        "value",
    )

    def __init__(self, *, depth_limit: int = 200) -> None:
        self.value: Any = UNSET
        self.error: JsonFault | None = None
        self._depth_limit = depth_limit
        # The root sits in a list of its own, so that it is stored like an element. Containers are `Any` throughout:
        # a list is indexed by int and an object by str, and the grammar sees to it that the two never mix.
        self._top: Any = []
        self._kind: Kind = ROOT
        # For each container that is not innermost: itself, where its open child sits in it, and its kind.
        self._stack: list[tuple[Any, Any, Kind]] = []
        self._state: GrammarState = ROOT.value
        # The string now growing is `_growing[_slot]`. A key grows in a list of its own, and stays there for its value.
        self._growing: Any = None
        self._slot: Any = 0
        self._name = [""]
        # `_growing` while nothing is held back: what a delta without anything special in it is appended to.
        self._plain: Any = None
        self._held = ""
        self._number: PartialNumber | None = None
        # Characters fed so far; while `_plain`, less those of the growing string, so that appending need not count.
        self._seen = 0

    def feed(self, text: str) -> None:
        """Take the next piece of the text. O(its length); whatever is wrong with it shows in `error`."""
        plain = self._plain
        if plain is not None:
            if "\\" in text:
                if self._take_escapes(plain, text):
                    return
            else:
                try:
                    # A backslash (92) is what all else that is special in a string is encoded with.
                    if 92 not in encode(text):
                        slot = self._slot
                        grown = plain[slot]
                        plain[slot] = None  # CPython extends a string in place only while nobody else refers to it
                        grown += text
                        plain[slot] = grown
                        return
                except UnicodeEncodeError:  # half of a surrogate pair
                    pass
        if self._stack:
            self._scan(text)
        else:
            self._scan_root(text)

    @property
    def complete(self) -> bool:
        """Whether the text so far is one whole document. A number at the root is ended by white space or `close`."""
        return self._state is ROOT.after and self.error is None

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
        if self.error is not None or self._state is ROOT.after:
            return
        end = self._seen + (len(self._plain[self._slot]) if self._plain is not None else 0)
        self._plain = None
        try:
            self._end_text()
        except RefusedError as refused:
            self.error = JsonFault(end, refused.reason)
        else:
            self.value = self._top[0]

    # The loop: one step per match, chosen by how far the match went.

    def _scan_root(self, text: str) -> None:
        """As `_scan`, outside of containers: puts a scalar where `value` is, with nothing else to refer to it."""
        if self.error is not None or (not self._seen and text[-1:] in ("}", "]") and self._take_document(text)):
            return
        self.value = UNSET
        self._scan(text)
        if not self._stack and self._top:
            self.value = self._top[0]

    def _take_document(self, text: str) -> bool:
        """Decode the text at one go if it is a whole document: what was read late is often complete."""
        try:
            value = decode(text)
        except (ValueError, RecursionError):
            return False
        if text.count("[") + text.count("{") > self._depth_limit and _depth(value) > self._depth_limit:
            return False
        self._top.append(value)
        self.value = value
        self._state = ROOT.after
        self._seen = len(text)
        return True

    def _scan(self, text: str) -> None:
        """Take what plain appending cannot."""
        position = 0
        try:
            if self._plain is not None:
                self._seen += len(self._plain[self._slot])
                self._plain = None
            elif self.error is not None:
                return
            elif self._held or self._number is not None:
                text, position = self._take_up(text)
            state = self._state
            size = len(text)
            while True:
                found = state.match(text, position)
                step: int = found.lastindex  # type: ignore[assignment]  # the first group always matches
                if state.in_string:
                    run = found[RUN]
                    if run:
                        growing = self._growing
                        slot = self._slot
                        grown = growing[slot]
                        growing[slot] = None  # as in feed
                        grown += decode_string(f'"{run}"') if "\\" in run else run
                        growing[slot] = grown
                if step > RUN_END:
                    state = state.steps[step](self, found)
                elif step == RUN_END:
                    state = state.ended
                end = found.end()
                if end == size:
                    break
                if end == position:
                    self._state = state
                    end = self._take_unusual(text, position)
                    state = self._state
                    if end == size:
                        break
                position = end
        except RefusedError as refused:
            self.error = JsonFault(self._seen + refused.offset, refused.reason)
            return
        self._state = state
        if state.plain and not self._held:
            self._plain = growing = self._growing
            size -= len(growing[self._slot])
        self._seen += size

    def _take_escapes(self, plain: Any, text: str) -> bool:
        """Append the delta if it is string through and through; quick to give up.

        What is decoded has no escape cut, so that a backslash after it begins one.
        """
        if text.count('"') != text.count('\\"'):
            return False
        cut = text[-1] == "\\"
        if cut:
            text = text[:-1]
        try:
            run = decode_string(f'"{text}"')
        except ValueError:
            return False
        slot = self._slot
        grown = plain[slot]
        plain[slot] = None  # as in feed
        grown += run
        plain[slot] = grown
        self._seen += len(text) - len(run)
        if cut:
            self._seen += len(grown) + 1
            self._plain = None
            self._held = "\\"
        return True

    def _take_up(self, text: str) -> tuple[str, int]:
        """Go on with what was held back; the text to go on with, and from where."""
        number = self._number
        if number is not None:
            return text, self._go_on_number(number, text, 0)
        held = self._held
        self._held = ""
        self._seen -= len(held)
        return held + text, 0

    def _store(self, value: Any) -> None:
        if self._kind.is_object:
            self._top[self._name[0]] = value
        else:
            self._top.append(value)

    def _open_slot(self) -> str | int:
        """Where in the innermost container the value now growing is, or will be."""
        if self._kind.is_object:
            return self._name[0]
        return len(self._top) - self._state.in_string

    def _grow(self, text: str) -> None:
        growing = self._growing
        slot = self._slot
        grown = growing[slot]
        growing[slot] = None  # as in feed
        grown += text
        growing[slot] = grown

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
            end = position + 1
            if end != len(text):
                end = escape_end(text, position)
            if end == len(text):
                self._held = text[position:]
                return end
            self._refuse(text, end, "the rest of an escape")
        if "\ud800" <= character <= "\udbff":
            return self._take_high_half(text, position)
        if character >= " ":
            raise RefusedError(position, f"{character!a} is half of a surrogate pair, and its first half is missing")
        raise RefusedError(position, f"control character {character!a} in a string; JSON has it as an escape")

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
            raise RefusedError(end, number.range_fault)
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
            raise RefusedError(end, number.range_fault)
        self._number = None
        self._store(value)
        self._state = self._kind.after

    def _refuse(self, text: str, position: int, expected: str) -> NoReturn:
        raise RefusedError(position, f"{text[position]!a} instead of {expected}")

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
        raise RefusedError(0, f"the text ends before {missing}" + (f", then {closers!r}" if closers else ""))


def _depth(value: Any) -> int:
    """Containers inside containers."""
    depth = 0
    level = [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [
            item for container in level for item in (container.values() if isinstance(container, dict) else container)
        ]
    return depth
