"""Text from the wire is shown, never obeyed."""

from __future__ import annotations

import json
import sys
import unicodedata

from agui_core.cli.escape import escape_block, escape_json, escape_line, pretty

# Format characters that have a shape of their own: signs of Arabic, Syriac and Kaithi.
SEEN = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD}


def test_every_control_and_format_character_is_escaped() -> None:
    for code in range(sys.maxunicode + 1):
        if code in SEEN or chr(code) in "\n\t":
            continue
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            shown = escape_block(chr(code))
            assert shown.isascii(), hex(code)
            assert shown.startswith("\\"), hex(code)


def test_ordinary_text_stays() -> None:
    text = "Zürich naïve 日本語 العربية हिन्दी \U0001f333 \ufffd \\n \\x1b\n\ttab"
    assert escape_block(text) == text
    assert escape_line(text) == text.replace("\n", "\\n").replace("\t", "\\t")


def test_escapes_say_which_character_it_was() -> None:
    assert escape_line("\x00\x1b\x7f\x9b\u202e\u200d\ufeff\U000e0041\r") == (
        r"\x00\x1b\x7f\x9b\u202e\u200d\ufeff\U000e0041\r"
    )


def test_json_still_reads_as_the_same_value() -> None:
    value = {"\u202e\U000e0041": ["\x9b\x7f", "\U0001f333 ü", 1.5, None]}
    for ascii in (False, True):
        shown = escape_json(value, ascii=ascii)
        assert json.loads(shown) == value
        assert shown.isascii() is ascii
        assert not set(shown) & set("\u202e\U000e0041\x9b\x7f")


def test_short_values_stand_on_one_line() -> None:
    assert pretty({"a": [1, 2]}) == '{"a": [1, 2]}'
    assert pretty(["x" * 60, "y" * 60]) == f'[\n  "{"x" * 60}",\n  "{"y" * 60}"\n]'
