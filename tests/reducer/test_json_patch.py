"""JSON Patch by rule: the RFC's own examples, pointers, atomicity, and what is shared.

The public test suite (`npm install json-patch-test-suite`) is run as well where it is found: in a folder of `NODE_PATH`
or in `node_modules` beside `pyproject.toml`.
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest

from agui_core.errors import PatchError
from agui_core.reducer.json_patch import Document, apply_patch

Case = dict[str, Any]

RFC_EXAMPLES: list[Case] = [
    {
        "comment": "A.1 adding an object member",
        "doc": {"foo": "bar"},
        "patch": [{"op": "add", "path": "/baz", "value": "qux"}],
        "expected": {"baz": "qux", "foo": "bar"},
    },
    {
        "comment": "A.2 adding an array element",
        "doc": {"foo": ["bar", "baz"]},
        "patch": [{"op": "add", "path": "/foo/1", "value": "qux"}],
        "expected": {"foo": ["bar", "qux", "baz"]},
    },
    {
        "comment": "A.3 removing an object member",
        "doc": {"baz": "qux", "foo": "bar"},
        "patch": [{"op": "remove", "path": "/baz"}],
        "expected": {"foo": "bar"},
    },
    {
        "comment": "A.4 removing an array element",
        "doc": {"foo": ["bar", "qux", "baz"]},
        "patch": [{"op": "remove", "path": "/foo/1"}],
        "expected": {"foo": ["bar", "baz"]},
    },
    {
        "comment": "A.5 replacing a value",
        "doc": {"baz": "qux", "foo": "bar"},
        "patch": [{"op": "replace", "path": "/baz", "value": "boo"}],
        "expected": {"baz": "boo", "foo": "bar"},
    },
    {
        "comment": "A.6 moving a value",
        "doc": {"foo": {"bar": "baz", "waldo": "fred"}, "qux": {"corge": "grault"}},
        "patch": [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        "expected": {"foo": {"bar": "baz"}, "qux": {"corge": "grault", "thud": "fred"}},
    },
    {
        "comment": "A.7 moving an array element",
        "doc": {"foo": ["all", "grass", "cows", "eat"]},
        "patch": [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        "expected": {"foo": ["all", "cows", "eat", "grass"]},
    },
    {
        "comment": "A.8 testing a value: success",
        "doc": {"baz": "qux", "foo": ["a", 2, "c"]},
        "patch": [
            {"op": "test", "path": "/baz", "value": "qux"},
            {"op": "test", "path": "/foo/1", "value": 2},
        ],
        "expected": {"baz": "qux", "foo": ["a", 2, "c"]},
    },
    {
        "comment": "A.9 testing a value: error",
        "doc": {"baz": "qux"},
        "patch": [{"op": "test", "path": "/baz", "value": "bar"}],
        "error": "not equal",
    },
    {
        "comment": "A.10 adding a nested member object",
        "doc": {"foo": "bar"},
        "patch": [{"op": "add", "path": "/child", "value": {"grandchild": {}}}],
        "expected": {"foo": "bar", "child": {"grandchild": {}}},
    },
    {
        "comment": "A.11 ignoring unrecognized elements",
        "doc": {"foo": "bar"},
        "patch": [{"op": "add", "path": "/baz", "value": "qux", "xyz": 123}],
        "expected": {"foo": "bar", "baz": "qux"},
    },
    {
        "comment": "A.12 adding to a nonexistent target",
        "doc": {"foo": "bar"},
        "patch": [{"op": "add", "path": "/baz/bat", "value": "qux"}],
        "error": "no parent",
    },
    {
        "comment": "A.14 ~ escape ordering",
        "doc": {"/": 9, "~1": 10},
        "patch": [{"op": "test", "path": "/~01", "value": 10}],
        "expected": {"/": 9, "~1": 10},
    },
    {
        "comment": "A.15 comparing strings and numbers",
        "doc": {"/": 9, "~1": 10},
        "patch": [{"op": "test", "path": "/~01", "value": "10"}],
        "error": "not equal",
    },
    {
        "comment": "A.16 adding an array value",
        "doc": {"foo": ["bar"]},
        "patch": [{"op": "add", "path": "/foo/-", "value": ["abc", "def"]}],
        "expected": {"foo": ["bar", ["abc", "def"]]},
    },
]


def _public_suite() -> list[Case]:
    folders = [
        *filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep)),
        Path(__file__).parents[2] / "node_modules",
    ]
    files = [
        Path(folder, "json-patch-test-suite", name) for folder in folders for name in ("tests.json", "spec_tests.json")
    ]
    cases = [case for file in files if file.is_file() for case in json.loads(file.read_text("utf-8"))]
    # The disabled cases with an error have a member twice in the JSON text, which no decoder lets us see.
    return [case for case in cases if "doc" in case and not ("disabled" in case and "error" in case)]


@pytest.mark.parametrize("case", RFC_EXAMPLES + _public_suite(), ids=lambda case: case.get("comment", "uncommented"))
def test_rfc_6902_and_the_public_suite(case: Case) -> None:
    before = copy.deepcopy(case["doc"])
    if "error" in case:
        with pytest.raises(PatchError):
            apply_patch(case["doc"], case["patch"])
    else:
        assert apply_patch(case["doc"], case["patch"]) == case.get("expected", before)
    assert case["doc"] == before


DOCUMENT: Any = {
    "list": [0, 1, 2],
    "empty": [],
    "object": {"": {"": "x"}, "a/b": 1, "m~n": 2, "-": 3, "01": 4},
    "text": "abc",
}


@pytest.mark.parametrize(
    ("operation", "changed"),
    [
        ({"op": "add", "path": "/list/3", "value": 3}, {"list": [0, 1, 2, 3]}),
        ({"op": "add", "path": "/list/-", "value": 3}, {"list": [0, 1, 2, 3]}),
        ({"op": "add", "path": "/empty/0", "value": 3}, {"empty": [3]}),
        ({"op": "add", "path": "/text", "value": None}, {"text": None}),
        ({"op": "replace", "path": "/list/0", "value": [9]}, {"list": [[9], 1, 2]}),
        ({"op": "replace", "path": "/object//", "value": "y"}, {"object": {**DOCUMENT["object"], "": {"": "y"}}}),
        ({"op": "replace", "path": "/object/a~1b", "value": "y"}, {"object": {**DOCUMENT["object"], "a/b": "y"}}),
        ({"op": "replace", "path": "/object/m~0n", "value": "y"}, {"object": {**DOCUMENT["object"], "m~n": "y"}}),
        ({"op": "replace", "path": "/object/-", "value": "y"}, {"object": {**DOCUMENT["object"], "-": "y"}}),
        ({"op": "replace", "path": "/object/01", "value": "y"}, {"object": {**DOCUMENT["object"], "01": "y"}}),
        ({"op": "move", "from": "/list/0", "path": "/list/-"}, {"list": [1, 2, 0]}),
        ({"op": "move", "from": "/list", "path": "/list"}, {}),
        ({"op": "copy", "from": "/list", "path": "/list/1"}, {"list": [0, [0, 1, 2], 1, 2]}),
        ({"op": "copy", "from": "/list", "path": "/list"}, {}),
        ({"op": "copy", "from": "", "path": "/empty/-"}, {"empty": [DOCUMENT]}),
    ],
)
def test_an_operation_changes_its_target_only(operation: Case, changed: Case) -> None:
    assert apply_patch(DOCUMENT, [operation]) == {**DOCUMENT, **changed}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "/list/4", "value": 0},
        {"op": "add", "path": "/list/01", "value": 0},
        {"op": "add", "path": "/list/+1", "value": 0},
        {"op": "add", "path": "/list/-1", "value": 0},
        {"op": "add", "path": "/list/ 1", "value": 0},
        {"op": "add", "path": "/list/1\n", "value": 0},
        {"op": "add", "path": "/list/1_0", "value": 0},
        {"op": "add", "path": "/list/", "value": 0},
        {"op": "add", "path": "/list/\u0661", "value": 0},
        {"op": "add", "path": "/list/\u00b2", "value": 0},
        {"op": "add", "path": "/list/" + "9" * 10_000, "value": 0},
        {"op": "add", "path": "/list/-/0", "value": 0},
        {"op": "add", "path": "/text/0", "value": 0},
        {"op": "add", "path": "/nothing/x", "value": 0},
        {"op": "replace", "path": "/list/3", "value": 0},
        {"op": "replace", "path": "/list/-", "value": 0},
        {"op": "replace", "path": "/nothing", "value": 0},
        {"op": "replace", "path": "/object/1", "value": 0},
        {"op": "remove", "path": "/list/-"},
        {"op": "remove", "path": "/empty/0"},
        {"op": "remove", "path": "/text/a"},
        {"op": "remove", "path": "/nothing"},
        {"op": "move", "from": "/nothing", "path": "/text"},
        {"op": "move", "from": "/nothing", "path": "/nothing"},
        {"op": "move", "from": "/object", "path": "/object/child"},
        {"op": "move", "from": "/list", "path": "/list/0"},
        {"op": "move", "from": "", "path": "/object"},
        {"op": "move", "from": "/list/0", "path": "/list/3"},
        {"op": "move", "from": "/list", "path": "/nothing/x"},
        {"op": "copy", "from": "/nothing", "path": "/text"},
        {"op": "copy", "from": "/list/-", "path": "/text"},
        {"op": "copy", "from": "/list", "path": "/nothing/x"},
        {"op": "test", "path": "/list/3", "value": None},
        {"op": "test", "path": "/list/-", "value": None},
        {"op": "test", "path": "/nothing", "value": None},
    ],
    ids=lambda operation: "{op} {path:.20}".format_map(operation),
)
def test_patch_5_what_does_not_apply_is_refused_and_leaves_no_trace(operation: Case) -> None:
    document = Document(copy.deepcopy(DOCUMENT))
    first = {"op": "add", "path": "/list/0", "value": "first"}
    for patch in ([operation], [first, {"op": "remove", "path": "/list/0"}, operation]):
        with pytest.raises(PatchError) as caught:
            document.apply(patch)
        assert caught.value.operation == len(patch) - 1
        assert document.value == DOCUMENT
        with pytest.raises(PatchError):
            apply_patch(DOCUMENT, patch)


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        (
            [{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/a/b"}],
            ["operation 1", "`remove`", "`/a/b`", "no member `a`"],
        ),
        (
            [{"op": "move", "from": "/a", "path": "/l/7"}],
            ["operation 0", "`move`", "`/a`", "`/l/7`", "index 7", "PATCH-5"],
        ),
        ([{"op": "replace", "path": "/l/-", "value": 1}], ["`-`", "is for adding"]),
        ([{"op": "add", "path": "/a/x", "value": 1}], ["`/a`", "is 1", "holds nothing"]),
        ([{"op": "test", "path": "/l", "value": {}}], ["an array of 1", "an object of 0"]),
        ([{"op": "test", "path": "/a", "value": 10**5000}], ["is not equal to a large number"]),
        ([{"op": "test", "path": "/a", "value": "x" * 10**6}], ["is not equal to 'xxx"]),
        ([{"op": "test", "path": "/a", "value": None}], ["null"]),
    ],
)
def test_a_refusal_says_which_operation_and_why(patch: list[Case], words: list[str]) -> None:
    with pytest.raises(PatchError) as caught:
        apply_patch({"a": 1, "l": [0]}, patch)
    text = str(caught.value)
    assert all(word in text for word in words)
    assert len(text) < 500


@pytest.mark.parametrize(
    "patch",
    [
        {"op": "add", "path": "", "value": 1},
        "remove",
        None,
        ["remove"],
        [None],
        [{}],
        [{"op": "merge", "path": "/a", "value": 1}],
        [{"op": ["add"], "path": "/a", "value": 1}],
        [{"op": "add", "value": 1}],
        [{"op": "add", "path": "/a"}],
        [{"op": "add", "path": None, "value": 1}],
        [{"op": "move", "path": "/a"}],
        [{"op": "copy", "path": "/a", "from": 0}],
        [{"op": "remove", "path": "a"}],
        [{"op": "remove", "path": "/a~2"}],
        [{"op": "remove", "path": "/a~"}],
    ],
)
def test_patch_2_what_is_no_patch_is_refused(patch: Any) -> None:
    with pytest.raises(PatchError, match="PATCH-2"):
        apply_patch({"a": 1}, patch)


@pytest.mark.parametrize("document", [{"a": 1}, [1], "text", 5, None, True])
def test_patch_7_the_whole_document(document: Any) -> None:
    assert apply_patch(document, []) is document
    assert apply_patch(document, [{"op": "remove", "path": ""}]) is None
    assert apply_patch(
        document, [{"op": "add", "path": "", "value": [1]}, {"op": "add", "path": "/-", "value": 2}]
    ) == [1, 2]
    assert apply_patch(document, [{"op": "replace", "path": "", "value": False}]) is False
    assert apply_patch(document, [{"op": "test", "path": "", "value": document}]) is document
    assert apply_patch(document, [{"op": "move", "from": "", "path": ""}]) is document
    assert apply_patch(document, [{"op": "copy", "from": "", "path": ""}]) is document
    assert apply_patch({"in": document}, [{"op": "move", "from": "/in", "path": ""}]) == document
    assert apply_patch({"in": document}, [{"op": "copy", "from": "/in", "path": ""}]) == document


@pytest.mark.parametrize(
    ("held", "tested", "equal"),
    [
        (1, 1.0, True),
        (0, -0.0, True),
        (1, True, False),
        (0, False, False),
        (1.0, True, False),
        (True, True, True),
        (False, None, False),
        (None, None, True),
        (2**53 + 1, float(2**53), False),
        (2**53, float(2**53), True),
        (10**400, 1e308, False),
        (10**400, 10**400, True),
        (1, "1", False),
        ("", None, False),
        ([], {}, False),
        ([1, 2], [2, 1], False),
        ([1], [1, 1], False),
        ({"a": 1, "b": [True]}, {"b": [True], "a": 1.0}, True),
        ({"a": 1, "b": [True]}, {"b": [1], "a": 1}, False),
        ({"a": None}, {"b": None}, False),
        ({"a": None}, {}, False),
    ],
)
def test_patch_8_test_is_json_equality(held: Any, tested: Any, equal: bool) -> None:
    for one, other in ((held, tested), (tested, held)):
        patch = [{"op": "test", "path": "/x", "value": other}]
        if equal:
            assert apply_patch({"x": one}, patch) == {"x": one}
        else:
            with pytest.raises(PatchError):
                apply_patch({"x": one}, patch)


def test_what_does_not_change_is_shared() -> None:
    document = {"a": {"b": [1]}, "c": {"d": [2]}}
    patched = apply_patch(document, [{"op": "add", "path": "/a/b/-", "value": 3}])
    assert patched == {"a": {"b": [1, 3]}, "c": {"d": [2]}}
    assert patched["c"] is document["c"]
    assert document == {"a": {"b": [1]}, "c": {"d": [2]}}


def test_values_of_operations_are_never_changed() -> None:
    value: dict[str, Any] = {"in": []}
    patch: list[Case] = [
        {"op": "add", "path": "/v", "value": value},
        {"op": "add", "path": "/w", "value": value},
        {"op": "add", "path": "/v/in/-", "value": 1},
        {"op": "copy", "from": "/v", "path": "/x"},
        {"op": "add", "path": "/x/in/-", "value": 2},
    ]
    before = copy.deepcopy(patch)
    assert apply_patch({}, patch) == {"v": {"in": [1]}, "w": {"in": []}, "x": {"in": [1, 2]}}
    assert patch == before


def test_a_copied_part_is_apart_from_its_source_and_a_refused_patch_undoes_both() -> None:
    document = Document({"a": {"n": [0]}})
    document.apply([{"op": "add", "path": "/a/n/-", "value": 1}])  # from here on these containers are its own
    grow = [
        {"op": "add", "path": "/a/n/-", "value": 2},
        {"op": "copy", "from": "/a", "path": "/b"},
        {"op": "add", "path": "/a/n/-", "value": 3},
        {"op": "remove", "path": "/b/n/0"},
    ]
    with pytest.raises(PatchError):
        document.apply([*grow, {"op": "test", "path": "/a", "value": None}])
    assert document.copy().value == {"a": {"n": [0, 1]}}
    document.apply(grow)
    assert document.value == {"a": {"n": [0, 1, 2, 3]}, "b": {"n": [1, 2]}}


def test_an_interrupted_patch_leaves_no_half_of_itself() -> None:
    class Interrupting(dict[str, Any]):
        def copy(self) -> Any:
            raise KeyboardInterrupt

    document = Document({"a": 1, "b": Interrupting(c=1)})
    with pytest.raises(KeyboardInterrupt):
        document.apply([{"op": "remove", "path": "/a"}, {"op": "remove", "path": "/b/c"}])
    assert document.value == {"a": 1, "b": {"c": 1}}
    document.apply([{"op": "remove", "path": "/a"}])
    assert document.value == {"b": {"c": 1}}


def test_act_8_an_object_only_patch_must_leave_an_object() -> None:
    document = Document({"a": [1]})
    for patch in ([{"op": "remove", "path": ""}], [{"op": "move", "from": "/a", "path": ""}]):
        with pytest.raises(PatchError, match="ACT-8"):
            document.apply(patch, object_only=True)
    document.apply([{"op": "remove", "path": ""}, {"op": "add", "path": "", "value": {"b": 2}}], object_only=True)
    assert document.value == {"b": 2}
