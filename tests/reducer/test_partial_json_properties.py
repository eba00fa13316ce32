"""PartialJson against a slow reference that starts anew at every character."""

from __future__ import annotations

import contextlib
import copy
import itertools
import json
from collections.abc import Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from agui_core.reducer.partial_json.parser import PartialJson
from support.properties import examples

fixed = examples(250, derandomize=True)

# The reference. `value_of` is rule 1 read aloud; `viable` asks msgspec whether any of many endings makes a document.


class _EndOfTextError(Exception):
    pass


class _Reference:
    """The value of a text that is the beginning of a document, by recursive descent over all of it."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.root: list[Any] = []

    def peek(self) -> str:
        while self.at < len(self.text) and self.text[self.at] in " \t\n\r":
            self.at += 1
        if self.at == len(self.text):
            raise _EndOfTextError
        return self.text[self.at]

    def string(self, show: Any) -> str:
        """Shows the longest beginning that is a string; for a key, `show` does nothing."""
        start = self.at = self.at + 1
        while self.at < len(self.text) and self.text[self.at] != '"':
            self.at += 2 if self.text[self.at] == "\\" else 1
        raw = self.text[start : self.at].encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        for end in range(len(raw), -1, -1):
            try:
                text = msgspec.json.decode(f'"{raw[:end]}"', type=str)
            except ValueError:
                continue
            show(text)
            break
        if self.at >= len(self.text):
            raise _EndOfTextError
        self.at += 1
        return text

    def value(self, show: Any) -> None:
        first = self.peek()
        if first == '"':
            self.string(show)
        elif first == "{":
            self.object(show)
        elif first == "[":
            self.list(show)
        else:
            start = self.at
            while self.at < len(self.text) and self.text[self.at] not in " \t\n\r,]}":
                self.at += 1
            word = self.text[start : self.at]
            if word not in ("true", "false", "null") and self.at == len(self.text):
                raise _EndOfTextError
            show(msgspec.json.decode(word))

    def object(self, show: Any) -> None:
        container: dict[str, Any] = {}
        show(container)
        self.at += 1
        while self.peek() != "}":
            if self.peek() == ",":
                self.at += 1
                self.peek()
            key = self.string(lambda _: None)
            self.peek()
            self.at += 1
            self.value(lambda value, key=key: container.__setitem__(key, value))
        self.at += 1

    def list(self, show: Any) -> None:
        container: list[Any] = []
        show(container)
        self.at += 1
        while self.peek() != "]":
            if self.peek() == ",":
                self.at += 1
            here = len(container)
            self.value(lambda value, here=here: container.__setitem__(slice(here, None), [value]))
        self.at += 1


def value_of(text: str) -> Any:
    reference = _Reference(text)
    with contextlib.suppress(_EndOfTextError):
        reference.value(lambda value: reference.root.__setitem__(slice(None), [value]))
    return reference.root[0] if reference.root else UNSET


_TOKEN_ENDINGS = [
    *(
        "",
        "0",
        '"',
        '0"',
        '00"',
        '000"',
        '0000"',
        'u0000"',
        '\\"',
        '0\\udc00"',
        '00\\udc00"',
        '\\udc00"',
        'udc00"',
        'dc00"',
        'c00"',
        '\udc00"',
    ),
    *("true"[n:] for n in range(1, 4)),
    *("false"[n:] for n in range(1, 5)),
    *("null"[n:] for n in range(1, 4)),
    *("e-9999", "0e-9999", "-9999", "9999", '""'),
]


def _closers(text: str) -> str:
    closers = []
    at = 0
    in_string = False
    while at < len(text):
        character = text[at]
        if in_string:
            at += character == "\\"
            in_string = character != '"'
        elif character == '"':
            in_string = True
        elif character in "[{":
            closers.append("]" if character == "[" else "}")
        elif character in "]}" and closers:
            closers.pop()
        at += 1
    return "".join(reversed(closers))


def _decodes(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode("utf-16", "surrogatepass").decode("utf-16"))
    except ValueError:
        return False
    return True


def viable(text: str) -> bool:
    """Whether some document begins with this text."""
    closers = _closers(text)
    return any(_decodes(f"{text}{end}{more}{closers}") for more in ("", ":0") for end in _TOKEN_ENDINGS)


def first_fault(text: str) -> int | None:
    """The index of the first character that no document could have there."""
    return next((n for n in range(len(text)) if not viable(text[: n + 1])), None)


# What is generated.

texts = st.text(max_size=12) | st.sampled_from(
    ["\U0001f600", 'a"b\\c/\n', "é\u2028\x7f\xa0", "\\u00e9", "plain words and more"]
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
documents = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
rendered = st.builds(
    lambda document, escaped, indent, tight, around: (
        around
        + json.dumps(document, ensure_ascii=escaped, indent=indent, separators=(",", ":") if tight else None)
        + around
    ),
    documents,
    st.booleans(),
    st.sampled_from([None, None, 0, 1, "\t", "\r\n"]),
    st.booleans(),
    st.sampled_from(["", "", " ", "\n\t\r "]),
)
cuts = st.lists(st.integers(0, 200), max_size=12) | st.just(range(10_000))
fragments = st.sampled_from(
    [
        *'{}[]",:\\ \n\t\x01-+.eE019é\x7f\ud83d\ude00xu',
        *('"a":', '{"a":', "true", "fals", "null", "NaN", "Infinity", "\\n", "\\u00", "\\ud83d", "\\ude00", "\\uD83D"),
        *(
            '"key"',
            '""',
            "1e30",
            "1e308",
            "1e309",
            "17976931348623159e292",
            "17976931348623158e292",
            "e-",
            "0.0",
            "-0",
            "e+",
        ),
        *("1" * 309, "1" * 400 + ".5", "0." + "0" * 330 + "1", "e600", "e00", "'", "/", "/*", "\ufeff", "\u00a0"),
    ]
)
soup = st.lists(fragments, max_size=14).map("".join)


@st.composite
def damaged(draw: st.DrawFn) -> str:
    text: str = draw(rendered)
    at = draw(st.integers(0, len(text)))
    fragment: str = draw(fragments)
    return text[:at] + fragment + text[at + draw(st.integers(0, 2)) :]


def pieces(text: str, cuts: Sequence[int]) -> list[str]:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    return [text[start:end] for start, end in itertools.pairwise(places)]


def grew(before: Any, after: Any) -> bool:
    """Rule 8, for documents without repeated keys."""
    if before is UNSET:
        return True
    if type(before) is not type(after):
        return False
    if isinstance(before, str):
        return bool(after.startswith(before))
    if isinstance(before, list):
        return len(before) <= len(after) and all(map(grew, before, after)) and before[:-1] == after[: len(before)][:-1]
    if isinstance(before, dict):
        return all(key in after and grew(value, after[key]) for key, value in before.items())
    return bool(before == after)


def same(left: Any, right: Any) -> bool:
    """Equal, and of equal types, order of keys and sign of zero."""
    return repr(left) == repr(right)


@fixed
@given(rendered, cuts)
def test_final_value_is_that_of_the_standard_library(text: str, cuts: Sequence[int]) -> None:
    parser = PartialJson()
    for piece in pieces(text, cuts):
        parser.feed(piece)
    parser.close()
    assert (parser.complete, parser.error) == (True, None)
    assert same(parser.value, json.loads(text))
    assert same(parser.value, msgspec.json.decode(text))


@fixed
@given(rendered, cuts)
def test_rule_8_nothing_shown_is_taken_back_and_copies_stay(text: str, cuts: Sequence[int]) -> None:
    parser = PartialJson()
    shown: list[tuple[Any, Any]] = []
    for piece in pieces(text, cuts):
        parser.feed(piece)
        kept = parser.copy()
        assert kept == parser.value
        assert not shown or grew(shown[-1][0], parser.value)
        shown.append((copy.deepcopy(kept), kept))
    for then, kept in shown:
        assert same(then, kept)


@fixed
@given(rendered | damaged() | soup, cuts)
def test_value_and_error_are_those_of_the_reference_wherever_the_cuts_are(text: str, cuts: Sequence[int]) -> None:
    fault = first_fault(text)
    parser = PartialJson()
    fed = ""
    for piece in pieces(text, cuts):
        parser.feed(piece)
        fed += piece
        broken = fault is not None and fault < len(fed)
        assert (parser.error is not None) == broken, ascii(fed)
        assert same(parser.value, value_of(fed[:fault]))
        if parser.error is not None:
            assert parser.error.position == fault
    parser.close()
    assert parser.complete == _decodes(text)
    assert (parser.error is None) == parser.complete
    if parser.error is not None:
        assert parser.error.position == (len(text) if fault is None else fault)
        str(parser.error).encode()


@fixed
@given(damaged() | soup, cuts)
def test_cuts_do_not_matter(text: str, cuts: Sequence[int]) -> None:
    whole, cut = PartialJson(), PartialJson()
    whole.feed(text)
    for piece in pieces(text, cuts):
        cut.feed(piece)
    assert same(whole.value, cut.value)
    assert (whole.path, whole.complete, whole.error) == (cut.path, cut.complete, cut.error)
    whole.close()
    cut.close()
    assert same(whole.value, cut.value)
    assert (whole.path, whole.complete, whole.error) == (cut.path, cut.complete, cut.error)


@fixed
@given(rendered, cuts)
def test_path_leads_into_the_value_or_to_what_must_come(text: str, cuts: Sequence[int]) -> None:
    parser = PartialJson()
    for piece in pieces(text, cuts):
        parser.feed(piece)
        value = parser.value
        for step in parser.path[:-1]:
            value = value[step]
        if parser.path:
            last = parser.path[-1]
            assert isinstance(last, str) if isinstance(value, dict) else last in (len(value), len(value) - 1)
    assert parser.path == ()


@fixed
@given(st.integers(1, 12), st.integers(1, 12), st.lists(st.booleans(), min_size=12, max_size=12), cuts)
def test_depth_limit_is_exact(limit: int, depth: int, objects: list[bool], cuts: Sequence[int]) -> None:
    opening = ['{"a":' if is_object else "[" for is_object in objects[:depth]]
    text = "".join(opening)
    parser = PartialJson(depth_limit=limit)
    for piece in pieces(text, cuts):
        parser.feed(piece)
    assert (parser.error is not None) == (depth > limit)
    if parser.error is not None:
        assert parser.error.position == len("".join(opening[:limit]))
