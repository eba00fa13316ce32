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

from typing import Any, Final

from msgspec import UNSET
from msgspec.json import encode

from agui_core.reducer.partial_json.cursor import Cursor, RefusedError
from agui_core.reducer.partial_json.fault import JsonFault
from agui_core.reducer.partial_json.grammar import LIST, ROOT, RUN, RUN_END, escape_end
from agui_core.reducer.partial_json.number import PartialNumber
from agui_core.reducer.partial_json.steps import LITERALS, decode, decode_string

__all__ = ["PartialJson"]

_LITERAL_BY_INITIAL: Final = {word[0]: word for word in LITERALS}
_NUMBER_INITIALS: Final = frozenset("-0123456789")


class PartialJson:
    """An incremental JSON parser: the value of a text of which only the beginning is known.

    `value` is what is certain so far, `msgspec.UNSET` while there is nothing. It is a live view: later feeds change it
    in place. `copy` gives one that stays as it is. `error` is the first fault of the text, or None. Both are to be
    read only.

    `depth_limit` bounds the containers inside containers; what is deeper is an error at its bracket. One thread at a
    time may feed. Nothing ends the text but `close`: that it could end here says nothing about what will come.
    """

    __slots__ = ("_cursor", "_held", "_plain", "_root", "_seen", "error", "value")

    def __init__(self, *, depth_limit: int = 200) -> None:
        self.value: Any = UNSET
        self.error: JsonFault | None = None
        self._cursor = cursor = Cursor(depth_limit)
        self._root = cursor.top
        # What grows while nothing is held back: what a delta without anything special in it is appended to.
        self._plain: Any = None
        self._held = ""
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
                        slot = self._cursor.slot
                        grown = plain[slot]
                        plain[slot] = None  # CPython extends a string in place only while nobody else refers to it
                        grown += text
                        plain[slot] = grown
                        return
                except UnicodeEncodeError:  # half of a surrogate pair
                    pass
        if self._cursor.stack:
            self._scan(text)
        else:
            self._scan_root(text)

    @property
    def complete(self) -> bool:
        """Whether the text so far is one whole document. A number at the root is ended by white space or `close`."""
        return self._cursor.state is ROOT.after and self.error is None

    @property
    def path(self) -> tuple[str | int, ...]:
        """Keys and indices from the root to the value now growing; its last item is the open key or list element.

        A value counts from where it must come: after its key, or after the comma of a list. Where none is open, the
        path is that of the innermost open container; `()` is the root. O(depth).
        """
        cursor = self._cursor
        path = [slot for _, slot, _ in cursor.stack[1:]]
        if cursor.state.has_slot and cursor.stack:
            path.append(cursor.open_slot())
        return tuple(path)

    def copy(self) -> Any:
        """The value now, never changed by later feeds. Costs the open containers; what is closed is shared."""
        cursor = self._cursor
        if not cursor.stack:
            return self.value
        copied = inner = cursor.top.copy()
        for container, slot, _ in reversed(cursor.stack[1:]):
            copied = container.copy()
            copied[slot] = inner
            inner = copied
        return copied

    def close(self) -> None:
        """The text ends here. Ends a number at the root; sets `error` when the document is not whole. Idempotent.

        An empty text has no value, and its error says so: what it stands for is the caller's affair.
        """
        cursor = self._cursor
        if self.error is not None or cursor.state is ROOT.after:
            return
        end = self._seen + (len(self._plain[cursor.slot]) if self._plain is not None else 0)
        self._plain = None
        try:
            self._end_text()
        except RefusedError as refused:
            self.error = JsonFault(end, refused.reason)
        else:
            self.value = self._root[0]

    # The loop: one step per match, chosen by how far the match went.

    def _scan_root(self, text: str) -> None:
        """As `_scan`, outside of containers: puts a scalar where `value` is, with nothing else to refer to it."""
        if self.error is not None or (not self._seen and text[-1:] in ("}", "]") and self._take_document(text)):
            return
        self.value = UNSET
        self._scan(text)
        if self._root:
            self.value = self._root[0]

    def _take_document(self, text: str) -> bool:
        """Decode the text at one go if it is a whole document: what was read late is often complete."""
        cursor = self._cursor
        try:
            value = decode(text)
        except (ValueError, RecursionError):
            return False
        if text.count("[") + text.count("{") > cursor.depth_limit and _depth(value) > cursor.depth_limit:
            return False
        cursor.top.append(value)
        self.value = value
        cursor.state = ROOT.after
        self._seen = len(text)
        return True

    def _scan(self, text: str) -> None:
        """Take what plain appending cannot."""
        cursor = self._cursor
        position = 0
        try:
            if self._plain is not None:
                self._seen += len(self._plain[cursor.slot])
                self._plain = None
            elif self.error is not None:
                return
            elif self._held or cursor.number is not None:
                text, position = self._take_up(text)
            state = cursor.state
            size = len(text)
            while True:
                found = state.match(text, position)
                step: int = found.lastindex  # type: ignore[assignment]  # the first group always matches
                if state.in_string:
                    run = found[RUN]
                    if run:
                        growing = cursor.growing
                        slot = cursor.slot
                        grown = growing[slot]
                        growing[slot] = None  # as in feed
                        grown += decode_string(f'"{run}"') if "\\" in run else run
                        growing[slot] = grown
                if step > RUN_END:
                    state = state.steps[step](cursor, found)
                elif step == RUN_END:
                    state = state.ended
                end = found.end()
                if end == size:
                    break
                if end == position:
                    cursor.state = state
                    end = self._take_unusual(text, position)
                    state = cursor.state
                    if end == size:
                        break
                position = end
        except RefusedError as refused:
            self.error = JsonFault(self._seen + refused.offset, refused.reason)
            return
        cursor.state = state
        if state.plain and not self._held:
            self._plain = growing = cursor.growing
            size -= len(growing[cursor.slot])
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
        slot = self._cursor.slot
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
        cursor = self._cursor
        number = cursor.number
        if number is not None:
            return text, cursor.go_on_number(number, text, 0)
        held = self._held
        self._held = ""
        self._seen -= len(held)
        return held + text, 0

    # What patterns cannot decide: the next character is fatal, or begins a token that this delta does not end.

    def _take_unusual(self, text: str, position: int) -> int:
        """Take or hold back what begins at `position`; the position after it."""
        cursor = self._cursor
        character = text[position]
        if cursor.state.in_string:
            return self._take_in_string(text, position, character)
        if cursor.state is cursor.kind.value or (cursor.state is LIST.first):
            if character in _NUMBER_INITIALS:
                cursor.state = cursor.kind.value
                cursor.number = PartialNumber()
                return cursor.go_on_number(cursor.number, text, position)
            if character in _LITERAL_BY_INITIAL:
                cursor.state = cursor.kind.value
                return self._hold_literal(text, position, _LITERAL_BY_INITIAL[character])
        return cursor.refuse(text, position, cursor.state.expects)

    def _take_in_string(self, text: str, position: int, character: str) -> int:
        if character == "\\":
            end = position + 1
            if end != len(text):
                end = escape_end(text, position)
            if end == len(text):
                self._held = text[position:]
                return end
            self._cursor.refuse(text, end, "the rest of an escape")
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
            self._cursor.refuse(text, end, "the other half of a surrogate pair")
        self._cursor.grow(text[position : end + 1].encode("utf-16", "surrogatepass").decode("utf-16"))
        return end + 1

    def _hold_literal(self, text: str, position: int, word: str) -> int:
        for offset, expected in enumerate(word):
            if position + offset == len(text):
                break
            if text[position + offset] != expected:
                self._cursor.refuse(text, position + offset, f"the rest of {word!r}")
        self._held = text[position:]
        return len(text)

    def _end_text(self) -> None:
        cursor = self._cursor
        number = cursor.number
        if number is not None and number.whole and cursor.kind is ROOT:
            cursor.end_number(number, 0)
            return
        if number is not None:
            missing = "the end of a number"
        elif self._held and not cursor.state.in_string:
            missing = "the end of a literal"
        else:
            missing = cursor.state.expects
        kinds = [cursor.kind, *(kind for _, _, kind in reversed(cursor.stack))]
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
