"""PartialJson by example: the rules of partial JSON, one by one, and what the properties do not reach."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from agui_core.reducer.partial_json.parser import JsonFault, PartialJson


def fed(*pieces: str, depth_limit: int = 200) -> PartialJson:
    parser = PartialJson(depth_limit=depth_limit)
    for piece in pieces:
        parser.feed(piece)
    return parser


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # 1: the longest certain prefix, open containers closed
        ("{", {}),
        ("[", []),
        ('{"a":[{"b":"c', {"a": [{"b": "c"}]}),
        ("[[1,2],[3,", [[1, 2], [3]]),
        # 2: strings grow, open escapes and first halves are held back
        ('"', ""),
        ('"ab', "ab"),
        ('"ab\\', "ab"),
        ('"ab\\u', "ab"),
        ('"ab\\u00e', "ab"),
        ('"ab\\u00e9', "abé"),
        ('"ab\\ud83d', "ab"),
        ('"ab\\ud83d\\', "ab"),
        ('"ab\\ud83d\\ude0', "ab"),
        ('"ab\\ud83d\\ude00', "ab\U0001f600"),
        ('"ab\ud83d', "ab"),
        # 3: unfinished numbers are held back
        ("12", UNSET),
        ("12 ", 12),
        ("[1", []),
        ("[1.5e3", []),
        ("[1.5e3,", [1500.0]),
        ('{"a":-0', {}),
        ('{"a":-0}', {"a": 0}),
        # 4: a key without a value and a piece of a literal are absent
        ('{"key', {}),
        ('{"key"', {}),
        ('{"key":', {}),
        ('{"key": ', {}),
        ('{"key":tru', {}),
        ('{"key":true', {"key": True}),
        ("[nul", []),
        ("[null", [None]),
        # 5: empty text has no value
        ("", UNSET),
        (" \n", UNSET),
        # 8: a repeated key replaces its value, when the new one shows
        ('{"a":[1],"b":2,"a":', {"a": [1], "b": 2}),
        ('{"a":[1],"b":2,"a":"', {"a": "", "b": 2}),
        ('{"a":[1],"b":2,"a":3', {"a": [1], "b": 2}),
        ('{"a":[1],"b":2,"a":3}', {"a": 3, "b": 2}),
    ],
)
def test_value_of_a_beginning(text: str, value: Any) -> None:
    for parser in (fed(text), fed(*text)):
        assert parser.value == value
        assert parser.copy() == value
        assert parser.error is None


@pytest.mark.parametrize(
    ("text", "position", "reason", "value"),
    [
        ("[1,]", 3, "']' instead of a value", [1]),
        ('{"a":1,}', 7, "'}' instead of a key", {"a": 1}),
        ("[1 2", 3, "'2' instead of ',' or ']'", [1]),
        ("[1}", 2, "'}' instead of ',' or ']'", []),
        ('{"a" 1', 5, "'1' instead of ':'", {}),
        ("{1", 1, "'1' instead of a key or '}'", {}),
        ("{} x", 3, "'x' instead of the end of the text", {}),
        ("[01", 2, "'1' instead of ',' or ']'", []),
        ("[-x", 2, "'x' instead of a digit", []),
        ("[1.]", 3, "']' instead of a digit", []),
        ("[.5", 1, "'.' instead of a value or ']'", []),
        ("[+1", 1, "'+' instead of a value or ']'", []),
        ("NaN", 0, "'N' instead of a value", UNSET),
        ("[nulx", 4, "'x' instead of the rest of 'null'", []),
        ("[truex", 5, "'x' instead of ',' or ']'", [True]),
        ('["a\\x', 4, "'x' instead of the rest of an escape", ["a"]),
        ('["a\\u00g', 7, "'g' instead of the rest of an escape", ["a"]),
        ('["a\\ud83dx', 9, "'x' instead of the rest of an escape", ["a"]),
        ('["a\\ud83d\\u0', 11, "'0' instead of the rest of an escape", ["a"]),
        ('["a\\udc', 6, "'c' instead of the rest of an escape", ["a"]),
        ('["a\ud83dx', 4, "'x' instead of the other half of a surrogate pair", ["a"]),
        ('["a\udc00', 3, "'\\udc00' is half of a surrogate pair, and its first half is missing", ["a"]),
        ('["a\n', 3, "control character '\\n' in a string; JSON has it as an escape", ["a"]),
        ('{"a":"b\n,"c":1}', 7, "control character '\\n' in a string; JSON has it as an escape", {"a": "b"}),
        ('{"a":"b\n}', 7, "control character '\\n' in a string; JSON has it as an escape", {"a": "b"}),
        ('{"a":1]', 6, "']' instead of ',' or '}'", {}),
        ('{"a":{"b":1},{"c', 13, "'{' instead of a key", {"a": {"b": 1}}),
        ('[[{"b":1}],{"c":1},"d",{"e":1}},{"f', 30, "'}' instead of ',' or ']'", [[{"b": 1}], {"c": 1}, "d", {"e": 1}]),
        ('{"b":1},{"c', 7, "',' instead of the end of the text", {"b": 1}),
        ("\ufeff{}", 0, "'\\ufeff' instead of a value", UNSET),
        ("[\u00a01", 1, "'\\xa0' instead of a value or ']'", []),
        ("[1e309", 5, "number outside the range of a double", []),
        ("[1e+0309", 7, "number outside the range of a double", []),
        ("[1.8e308", 7, "number outside the range of a double", []),
        ("[18e307", 6, "number outside the range of a double", []),
        ("[" + "1" * 400 + "e0", 402, "number outside the range of a double", []),
        ("[" + "1" * 400 + "e+", 402, "number outside the range of a double", []),
        ("[" + "1" * 400 + ".5,", 403, "number outside the range of a double", []),
        ("[" + "1" * 400 + ".5e-10,", 407, "number outside the range of a double", []),
        ("[0.002e311", 9, "number outside the range of a double", []),
        ("[0.001e312", 9, "number outside the range of a double", []),
        ("[1e" + "9" * 5000, 5, "number outside the range of a double", []),
        # msgspec and the standard library stop reading integers at 4,300 digits
        ("[" + "1" * 4301 + ",", 4302, "integer of more than 4,300 digits", []),
    ],
)
def test_rule_6_the_error_is_at_the_first_impossible_character(
    text: str, position: int, reason: str, value: Any
) -> None:
    for parser in (fed(text + '"]}'), fed(*text), fed(text[:-1], text[-1:])):
        assert parser.error == JsonFault(position, reason)
        assert str(parser.error) == f"character {position}: {reason}"
        assert parser.value == value
        assert not parser.complete


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[1e308,1.7976931348623158e308]", [1e308, 1.7976931348623157e308]),
        ("[0e99999999999999999999,0.0e+400]", [0.0, 0.0]),
        ("[1e-99999999999999999999]", [0.0]),
        ("[0.001e311,10.0e307]", [1e308, 1e308]),
        ("[" + "1" * 400 + "]", [int("1" * 400)]),
        ("[" + "1" * 400 + ".5e-399]", [1.1111111111111112]),
        ("[0." + "0" * 400 + "1e401]", [1.0]),
        ("[1e00000000000000000005,-9223372036854775809]", [1e5, -9223372036854775809]),
    ],
)
def test_numbers_at_the_edge_of_the_range(text: str, value: Any) -> None:
    assert value == msgspec.json.decode(text)
    for parser in (fed(text), fed(*text), fed(text[:-1], text[-1])):
        assert (parser.value, parser.complete, parser.error) == (value, True, None)


def test_rule_6_nothing_after_the_error_counts() -> None:
    parser = fed('{"a":"x', '",]', '"b":1}')
    assert parser.value == {"a": "x"}
    assert parser.error == JsonFault(9, "']' instead of a key")


def test_rule_6_a_document_after_the_error_is_none() -> None:
    parser = fed("}", "[]")
    assert (parser.value, parser.complete) == (UNSET, False)
    assert parser.error == JsonFault(0, "'}' instead of a value")


def test_rule_7_complete_is_one_whole_document_and_white_space() -> None:
    parser = PartialJson()
    seen = []
    for piece in ('{"a"', ":{}", "}", " \n", "x"):
        parser.feed(piece)
        seen.append(parser.complete)
    assert seen == [False, False, True, True, False]


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "the text ends before a value"),
        ("  ", 2, "the text ends before a value"),
        ('"abc', 4, "the text ends before the end of a string"),
        ('["abc\\u00', 9, "the text ends before the end of a string, then ']'"),
        ('{"a":[{"b', 9, "the text ends before the end of a key, then '}]}'"),
        ('{"a"', 4, "the text ends before ':', then '}'"),
        ('{"a":', 5, "the text ends before a value, then '}'"),
        ("[1", 2, "the text ends before the end of a number, then ']'"),
        ("[1 ", 3, "the text ends before ',' or ']', then ']'"),
        ("[tru", 4, "the text ends before the end of a literal, then ']'"),
        ("1.", 2, "the text ends before the end of a number"),
        ("1" * 400 + ".5", 402, "number outside the range of a double"),
    ],
)
def test_close_says_what_is_missing(text: str, position: int, reason: str) -> None:
    for parser in (fed(text), fed(*text)):
        value = parser.copy()
        parser.close()
        assert parser.error == JsonFault(position, reason)
        assert (parser.value, parser.complete) == (value, False)
        parser.feed('"]}')
        parser.close()
        assert parser.error == JsonFault(position, reason)


def test_close_ends_a_number_at_the_root() -> None:
    parser = fed("-1", "2.5", "e1")
    assert (parser.value, parser.complete) == (UNSET, False)
    parser.close()
    assert (parser.value, parser.complete, parser.error) == (-125.0, True, None)
    parser.feed("0")
    assert (parser.value, parser.complete) == (-125.0, False)
    assert parser.error == JsonFault(7, "'0' instead of the end of the text")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("", ()),
        ('"abc', ()),
        ("12", ()),
        ("{", ()),
        ('{"ke', ()),
        ('{"key"', ("key",)),
        ('{"key":', ("key",)),
        ('{"key":1', ("key",)),
        ('{"key":tr', ("key",)),
        ('{"key":"v', ("key",)),
        ('{"key":"v\\', ("key",)),
        ('{"key":"v"', ()),
        ('{"key":"v",', ()),
        ("[", ()),
        ("[1", (0,)),
        ("[1,", (1,)),
        ('["a', (0,)),
        ('["a","b', (1,)),
        ("[[],{", (1,)),
        ('{"edits":[{"old":"x","new":"y"},{"old":"x","new":"y', ("edits", 1, "new")),
        ('{"edits":[{"old":"x","new":"y"},{"old":"x","new":"y"}', ("edits",)),
        ('{"edits":[]}', ()),
    ],
)
def test_path_leads_to_the_value_now_growing(text: str, path: tuple[str | int, ...]) -> None:
    assert fed(text).path == fed(*text).path == path


def test_path_stays_where_the_text_broke() -> None:
    assert fed('{"a":[1,{"b":"x\n').path == ("a", 1, "b")


def test_value_is_a_live_view_and_copy_is_not() -> None:
    parser = fed('{"done":{"x":[1]},"open":[{"text":"ab')
    live, kept = parser.value, parser.copy()
    parser.feed('cd"},2')
    assert live is parser.value
    assert live["open"] == [{"text": "abcd"}]
    assert kept == {"done": {"x": [1]}, "open": [{"text": "ab"}]}
    assert kept["done"] is live["done"]


def test_copy_follows_repeated_keys_to_the_open_one() -> None:
    parser = fed('{"a":{"first":1},"b":2,"a":{"second":[1,')
    kept = parser.copy()
    parser.feed("2]}}")
    assert kept == {"a": {"second": [1]}, "b": 2}
    assert parser.value == {"a": {"second": [1, 2]}, "b": 2}


def test_depth_limit_counts_containers_in_containers() -> None:
    assert fed('[[{"a":[', depth_limit=4).error is None
    assert fed('[[{"a":[[', depth_limit=4).error == JsonFault(8, "nested deeper than 4 containers")
    whole = "[" * 250 + "]" * 250
    assert fed(whole).error == JsonFault(200, "nested deeper than 200 containers")
    assert fed(whole, depth_limit=250).value == msgspec.json.decode(whole)
    assert fed("[" * 100_000).error == JsonFault(200, "nested deeper than 200 containers")


def test_flat_documents_may_have_any_number_of_containers() -> None:
    text = "[" + ",".join(["[]"] * 1_000) + "]"
    assert fed(text).value == fed(text[:7], text[7:]).value == [[]] * 1_000


def test_raw_halves_from_two_deltas_pair_up() -> None:
    assert fed('["a\ud83d', "\ude00b", '"]').value == ["a\U0001f600b"]
    assert fed('{"a\ud83d', '\ude00b":1}').value == {"a\U0001f600b": 1}
    assert fed('["a\ud83d', "\\ude00").error == JsonFault(4, "'\\\\' instead of the other half of a surrogate pair")


def test_positions_count_characters_across_appended_deltas() -> None:
    text = '{"é":"' + "wörter " * 50 + "\x00"
    pieces = re.findall(r"(?s).{1,7}", text)
    assert fed(*pieces).error == fed(text).error
    error = fed(text).error
    assert error is not None
    assert error.position == len(text) - 1


def test_many_escapes_in_one_delta() -> None:
    text = '["' + "\\n" * 5_000 + '"]'
    assert fed(text[:-1]).value == fed(*text).value == ["\n" * 5_000]


def test_a_fault_is_frozen() -> None:
    error = fed("x").error
    assert error is not None
    with pytest.raises(AttributeError):
        error.position = 1  # type: ignore[misc]
