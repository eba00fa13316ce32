"""SSE and JSON Lines readers: what a payload is, wherever the bytes are cut, in linear time and bounded memory."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from agui_core.errors import LimitExceeded
from agui_core.protocol.events import StateSnapshotEvent, TextMessageContentEvent
from agui_core.wire import JSONLinesReader, SSEReader, cut, encode_sse

BLOCKS = [
    ("SSE-3", b"data: {}\n\n", [b"{}"]),
    ("SSE-3", b"data: {}\n\ndata: []\n\n", [b"{}", b"[]"]),
    ("SSE-4", b'data: {"a":\ndata: 1}\n\n', [b'{"a":\n1}']),
    ("SSE-4", b"data:{}\n\ndata:  {}\n\n", [b"{}", b" {}"]),
    ("SSE-5", b"event: message\nid: 7\nretry: 9\nfoo: bar\nfoo\ndata: {}\n\n", [b"{}"]),
    ("SSE-5", b": ping\n\ndata: 1\n\n: ping\n\ndata: 2\n: pong\n\n:\n\n", [b"1", b"2"]),
    ("SSE-5", b"data: 1\n\n: a\n: b\n\ndata: 2\n\n: a\nid: 3\n\ndata: 3\n\n", [b"1", b"2", b"3"]),
    ("SSE-6", b"data: 1\r\n\r\ndata: 2\r\rdata: 3\n\r\ndata: 4\r\n\n", [b"1", b"2", b"3", b"4"]),
    ("SSE-6", b"data: 1\rdata: 2\r\ndata: 3\n\n", [b"1\n2\n3"]),
    ("SSE-8", b": only a comment\n\nevent: x\n\n", []),
    ("SSE-8", b"data\n\ndata:\n\ndata: \n\n", [b"", b"", b""]),
    ("SSE-9", b"\xef\xbb\xbfdata: {}\n\n", [b"{}"]),
    ("SSE-9", "data: é😀\u2028\u0085x\n\n".encode(), ["é😀\u2028\u0085x".encode()]),
    ("SSE-12", b"data: 1\n\ndata: 2\n", [b"1"]),
    ("standard", b"\n\n\ndata: 1\n\n\n\ndata: 2\n\n\n", [b"1", b"2"]),
    ("standard", b"Data: 0\n data: 0\ndatax: 0\ndata : 0\ndata: 1\n\n", [b"1"]),
]


def pieces(data: bytes, seed: int) -> list[bytes]:
    rng = random.Random(seed)
    found, at = [], 0
    while at < len(data):
        size = rng.choice((1, 1, 2, 3, 7, 30))
        found.append(data[at : at + size])
        at += size
    return found


@pytest.mark.parametrize(("rule", "data", "payloads"), BLOCKS)
def test_sse_blocks_are_read_however_they_are_cut(rule: str, data: bytes, payloads: list[bytes]) -> None:
    assert SSEReader().feed(data) == payloads
    for seed in range(40):
        decoder = SSEReader()
        assert [payload for piece in pieces(data, seed) for payload in decoder.feed(piece)] == payloads
        assert decoder.close() == []


def test_sse_everything_in_one_stream_cut_anywhere() -> None:
    data = b"\xef\xbb\xbf" + b"".join(block.removeprefix(b"\xef\xbb\xbf") + b"\n\n" for _, block, _ in BLOCKS)
    whole = SSEReader().feed(data)
    assert len(whole) > 25
    for seed in range(200):
        decoder = SSEReader()
        assert [payload for piece in pieces(data, seed) for payload in decoder.feed(piece)] == whole


LINES = [
    ("plain", b"{}\n[]\n", [b"{}", b"[]"]),
    ("blank lines", b"\n{}\n \n\t\r\n\n[]\n", [b"{}", b"[]"]),
    ("CRLF", b"{}\r\n[]\r\n", [b"{}", b"[]"]),
    ("BOM", b"\xef\xbb\xbf{}\n", [b"{}"]),
    ("U+2028", '"\u2028"\n'.encode(), ['"\u2028"'.encode()]),
    ("no last line end", b"{}\n[]", [b"{}", b"[]"]),
    ("blank last line", b"{}\n  ", [b"{}"]),
    ("nothing", b"", []),
    ("a BOM and nothing", b"\xef\xbb\xbf", []),
]


@pytest.mark.parametrize(("name", "data", "payloads"), LINES)
def test_json_lines_are_read_however_they_are_cut(name: str, data: bytes, payloads: list[bytes]) -> None:
    for seed in range(30):
        decoder = JSONLinesReader()
        found = [payload for piece in pieces(data, seed) for payload in decoder.feed(piece)]
        assert found + decoder.close() == payloads


@pytest.mark.parametrize("convert", [bytes, bytearray, memoryview, bytes.decode])
def test_what_may_be_fed(convert: Callable[[bytes], bytes]) -> None:
    assert SSEReader().feed(convert("data: é\n\n".encode())) == ["é".encode()]
    assert JSONLinesReader().feed(convert("é\n".encode())) == ["é".encode()]


def test_a_text_with_half_a_pair_is_fed_as_its_escape() -> None:
    assert SSEReader().feed('data: "\ud83d"\n\n') == [b'"\\ud83d"']


def test_cut_covers_everything_once() -> None:
    data = bytes(range(256)) * 10
    assert b"".join(bytes(piece) for piece in cut(memoryview(data), 100)) == data
    assert list(cut(data, 2560)) == [data]
    assert "".join(str(piece) for piece in cut("abcdefg", 3)) == "abcdefg"


def feed_all(reader: SSEReader | JSONLinesReader, data: bytes, size: int) -> list[bytes]:
    found = [payload for piece in cut(data, size) for payload in reader.feed(piece)]
    reader.check()
    return found


@pytest.mark.parametrize(
    ("decoder", "data"),
    [
        (SSEReader, b"data: " + b"x" * 200),
        (SSEReader, b": " + b"x" * 200),
        (SSEReader, b"data: x\n" * 30),
        (JSONLinesReader, b"x" * 200),
    ],
)
def test_a_record_without_end_is_bounded(decoder: type[SSEReader | JSONLinesReader], data: bytes) -> None:
    for size in (1, 7, 1000):
        reader = decoder(100)
        with pytest.raises(LimitExceeded) as caught:
            feed_all(reader, data, size)
        assert caught.value.limit == "event_bytes"
        with pytest.raises(LimitExceeded):
            reader.feed(b"\n\n")
        with pytest.raises(LimitExceeded):
            reader.close()


@pytest.mark.parametrize(
    ("decoder", "good", "long"),
    [
        (SSEReader, b"data: 1\n\n", b"data: " + b"x" * 200 + b"\n\n"),
        (JSONLinesReader, b"1\n", b"x" * 200 + b"\n"),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_records_before_a_long_one_are_handed_out(
    decoder: type[SSEReader | JSONLinesReader], good: bytes, long: bytes, whole: bool
) -> None:
    reader = decoder(100)
    assert reader.feed(good + (long + good if whole else long[:-2])) == [b"1"]
    with pytest.raises(LimitExceeded):
        reader.check()
    with pytest.raises(LimitExceeded):
        reader.feed(good)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("surplus", [0, 1, 2, 3])
def test_a_record_of_just_the_limit_passes_however_it_is_cut(end: bytes, surplus: int) -> None:
    block = b"data: " + b"x" * 93 + end * (2 + surplus)  # 100 bytes and its blank line
    for size in (1, 2, 3, 99, 200):
        reader = SSEReader(100)
        found = [payload for piece in cut(2 * block, size) for payload in reader.feed(piece)]
        assert found == 2 * [b"x" * 93]
        with pytest.raises(LimitExceeded):
            feed_all(reader, block + b"data: x" + block[6:], size)


def test_a_paused_reader_resumes_anywhere() -> None:
    data = b"\xef\xbb\xbf" + b"data: 1\r\n\r\n: c\rdata: 2\r\n\r\ndata: 3\n\n"
    whole = SSEReader().feed(data)
    for at in range(len(data)):
        first = SSEReader()
        found = first.feed(data[:at])
        twin = first.copy()
        resumed = SSEReader()
        resumed.resume(first.pause())
        assert found + twin.feed(data[at:]) == found + resumed.feed(data[at:]) == whole
    lines = b"\xef\xbb\xbf{1}\n{2}\r\n{3}"
    for at in range(len(lines)):
        reader = JSONLinesReader()
        found = reader.feed(lines[:at])
        twin_lines = reader.copy()
        found += twin_lines.feed(lines[at:]) + twin_lines.close()
        assert found == [b"{1}", b"{2}", b"{3}"]


def test_an_event_is_encoded_as_one_sse_block() -> None:
    event = TextMessageContentEvent(message_id="m", delta="a\nb\u2028")
    assert encode_sse(event) == (b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"a\\nb\\u2028"}\n\n')
    assert encode_sse(StateSnapshotEvent(snapshot={"a": None})) == (
        b'data: {"type":"STATE_SNAPSHOT","snapshot":{"a":null}}\n\n'
    )
