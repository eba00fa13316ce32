"""Attacks with results: numbers that are no JSON, results that are too large, arguments that are too deep."""

from __future__ import annotations

import math
from typing import Any

import pytest

import agui_core as agui
from agui_core.protocol.content import DataSource, ImagePart, TextPart, UrlSource
from support.call_streams import answer_of, answers, call, kinds, one, run, thread

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, [math.nan], {"a": {"b": [1, math.inf]}}, (math.nan,)])
async def test_a_number_that_is_no_json_is_an_error_and_not_null(value: Any) -> None:
    answer = await answer_of(one(lambda: value))
    assert answer.metadata == {"agui_core.answer": "error"}
    by_hand = thread(agui.Toolset(), run("r", call("a", "theirs")))
    with pytest.raises(TypeError, match="cannot be written as JSON"):
        by_hand.set_output("a", value)


@pytest.mark.parametrize("value", [None, [None], {"a": None, "b": "null"}])
async def test_null_is_a_result(value: Any) -> None:
    assert (await answer_of(one(lambda: value))).metadata == {"agui_core.answer": "ok"}


async def test_a_long_text_is_cut_at_a_character_and_says_how_long_it_was() -> None:
    answer = await answer_of(one(lambda: "é" * 1_000, result_bytes=201))
    content = str(answer.content)
    assert content.endswith("\n[Cut off here: the whole text has 2,000 bytes.]")
    assert content.startswith("éé")
    assert len(content.encode()) in (200, 201)
    assert answer.metadata == {"agui_core.answer": "ok"}, "this is no failure"


@pytest.mark.parametrize("size", [1024 * 1024, 1024 * 1024 + 1])
async def test_the_bound_is_a_mebibyte_unless_said_otherwise(size: int) -> None:
    whole = size == 1024 * 1024
    assert (len(str((await answer_of(one(lambda: "a" * size))).content)) == size) == whole
    calls = one(lambda: "a" * size, result_bytes=None)
    assert len(str((await answer_of(calls)).content)) == size


async def test_the_bound_of_calls_is_for_tools_without_one() -> None:
    tools = agui.Toolset()
    tools.tool(name="own", result_bytes=100)(lambda: "a" * 1_000)
    tools.tool(name="free", result_bytes=None)(lambda: "a" * 1_000)
    tools.tool(name="plain")(lambda: "a" * 1_000)
    calls = thread(tools, run("r", call("a", "own"), call("b", "free"), call("c", "plain")), result_bytes=500)
    await calls.answer()
    assert [len(str(answer.content)) for answer in answers(calls).values()] == [100, 1_000, 500]


async def test_errors_that_a_tool_words_are_bounded_too() -> None:
    def fail() -> None:
        raise agui.ToolError("a" * 1_000)

    assert len(str((await answer_of(one(fail, result_bytes=100))).content)) == 100


async def test_texts_among_parts_are_cut_first_then_data_is_left_out() -> None:
    picture = ImagePart(source=DataSource(value="A" * 300, mime_type="image/png"))
    link = ImagePart(source=UrlSource(value="https://example.org/a.png"))
    text = TextPart(text="b" * 500)
    answer = await answer_of(one(lambda: [text, picture, link], result_bytes=500))
    first, *rest = answer.content
    assert rest == [picture, link], "what carries data is kept while there is room"
    assert first.text.endswith("bytes.]")
    assert len(first.text) == 500 - 300 - len("https://example.org/a.png")
    answer = await answer_of(one(lambda: [text, picture, link], result_bytes=200))
    assert [part.type for part in answer.content] == ["text", "text", "image"]
    assert answer.content[1].text == "[Left out: image, 300 bytes.]"


@pytest.mark.parametrize(
    "part",
    [
        TextPart(text="bb"),
        TextPart(text=""),
        TextPart(text="", id="i" * 1_000),
        TextPart(text="", metadata={"k": "m" * 1_000}),
        ImagePart(source=DataSource(value="AA==", mime_type="image/png")),
        ImagePart(source=DataSource(value="", mime_type="t" * 1_000)),
        ImagePart(source=UrlSource(value=""), metadata={"k": "m" * 1_000}),
    ],
)
async def test_many_parts_are_no_way_round_the_bound(part: Any) -> None:
    answer = await answer_of(one(lambda: [part] * 20_000, result_bytes=10_000))
    assert len(agui.encode(answer)) < 400_000
    last = answer.content[-1].text
    assert last.startswith("[Left out: ")
    assert last.endswith(" bytes.]")
    assert sum(len(each.text) for each in answer.content if isinstance(each, TextPart)) <= 10_000


def test_an_answer_by_hand_above_the_bound_is_refused() -> None:
    calls = thread(agui.Toolset(), run("r", call("a", "theirs")), result_bytes=100)
    with pytest.raises(ValueError, match=r"'a' has 101 bytes, more than result_bytes=100"):
        calls.set_output("a", "x" * 101)
    assert answers(calls) == {}
    calls.set_output("a", "x" * 100)
    assert kinds(calls) == {"a": "ok"}


@pytest.mark.parametrize("option", ["limit", "threads", "result_bytes"])
def test_options_of_no_use_are_refused(option: str) -> None:
    for value, error in ((0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(error, match=option):
            agui.Calls(agui.Reducer(), agui.Toolset(), **{option: value})
        with pytest.raises(error, match=option):
            agui.ToolLoop(lambda messages, tools: "", agui.Toolset(), **{option: value})


@pytest.mark.parametrize(("nesting", "depth", "kind"), [(10, 9, "ok"), (10, 10, "invalid"), (400, 300, "ok")])
async def test_the_limit_on_nesting_holds_for_arguments(nesting: int, depth: int, kind: str) -> None:
    tools = agui.Toolset()
    tools.add({"name": "deep", "description": "d"}, lambda arguments: "ok", effects=False)
    text = '{"value": ' + "[" * depth + "]" * depth + "}"
    reducer = agui.Reducer(limits=agui.Limits(nesting=nesting))
    calls = agui.Calls(reducer, tools)
    calls.next_input(thread_id="t", run_id="r")
    for event in run("r", call("a", "deep", text)):
        reducer.apply(event)
    await calls.answer()
    assert kinds(calls) == {"a": kind}
