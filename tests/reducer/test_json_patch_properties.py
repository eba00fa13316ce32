"""JSON Patch by property, on random documents and patches, with the `jsonpatch` package as the model."""

from __future__ import annotations

import copy
from typing import Any

import jsonpatch
import jsonpointer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_core.errors import LimitExceeded, PatchError
from agui_core.limits import Limits
from agui_core.reducer.json_patch import Document, apply_patch
from support.properties import examples

Operation = dict[str, Any]

KEYS = st.sampled_from(["a", "b", "", "0", "1", "-", "~1", "x/y", "é"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 1.0, -0.0, 2**53 + 1, float(2**53), "", "a", "1"])
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
STRAY_TOKENS = st.sampled_from(["a", "", "0", "2", "9", "-", "01", "+1", "-1", "\u0661", "1" * 20])


@st.composite
def pointers(draw: st.DrawFn, document: Any) -> str:
    """A pointer into the document, mostly: each step goes down, sometimes to where nothing is, or stops."""
    tokens: list[str] = []
    here = document
    while draw(st.integers(0, 3)):
        if not isinstance(here, dict | list) or not here or draw(st.integers(0, 4)) == 0:
            tokens.append(draw(STRAY_TOKENS))
            break
        key = draw(st.sampled_from(sorted(here) if isinstance(here, dict) else range(len(here))))
        tokens.append(str(key))
        here = here[key]
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


@st.composite
def patches(draw: st.DrawFn, document: Any) -> list[Operation]:
    """Up to five operations, each written for the document that the ones before it make."""
    patch: list[Operation] = []
    for _ in range(draw(st.integers(1, 5))):
        operation: Operation = {
            "op": draw(st.sampled_from(["add", "remove", "replace", "move", "copy", "test"])),
            "path": draw(pointers(document)),
        }
        if operation["op"] in ("move", "copy"):
            operation["from"] = draw(pointers(document))
        elif operation["op"] != "remove":
            operation["value"] = draw(DOCUMENTS)
        if operation["op"] == "test" and draw(st.booleans()):
            found = jsonpointer.resolve_pointer(document, operation["path"], None)
            operation["value"] = None if isinstance(found, jsonpointer.EndOfList) else copy.deepcopy(found)
        patch.append(operation)
        done, document = expected(document, operation)
        if not done:
            break
    return patch


def expected(document: Any, operation: Operation) -> tuple[bool, Any]:
    """Whether the model applies the operation, and what it makes of the document, which it does not change.

    One deviation of `jsonpatch` is set right: it refuses to remove the whole document, which leaves null (PATCH-7).
    """
    if operation["op"] == "remove" and not operation["path"]:
        return True, None
    try:
        return True, jsonpatch.apply_patch(document, [operation])
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException):
        return False, document


def refusal(document: Document, patch: list[Operation]) -> tuple[type[Exception] | None, int | None]:
    """How the document takes a patch: the error, and the operation that it blames, if any."""
    try:
        document.apply(patch)
    except PatchError as error:
        return PatchError, error.operation
    except LimitExceeded:
        return LimitExceeded, None
    return None, None


def same(left: Any, right: Any) -> bool:
    """Equal to the type: `==` takes True for 1, and 1 for 1.0."""
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return bool(left == right)


def nodes(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(nodes, members))


def height(value: Any) -> int:
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if members is None else 1 + max(map(height, members), default=0)


@examples(400)
@given(st.data())
def test_a_patch_does_what_the_jsonpatch_package_does_or_nothing(data: st.DataObject) -> None:
    document = data.draw(DOCUMENTS)
    patch = data.draw(patches(document))
    before, patch_before = copy.deepcopy(document), copy.deepcopy(patch)
    model, fails_at = document, None
    for index, operation in enumerate(patch):
        done, model = expected(model, operation)
        if not done:
            fails_at = index
    patched = Document(document)
    if fails_at is None:
        assert refusal(patched, patch) == (None, None)
        assert same(apply_patch(document, patch), model)
    else:
        assert refusal(patched, patch) == (PatchError, fails_at)
        with pytest.raises(PatchError):
            apply_patch(document, patch)
        model = before
    assert same(patched.value, model)
    assert same(document, before)
    assert same(patch, patch_before)


@examples(200)
@given(st.data())
def test_a_document_never_changes_what_it_handed_out_or_was_given(data: st.DataObject) -> None:
    """Patches, reads, copies and new values in any order: each document goes its own way, as deep copies would."""
    given_value = data.draw(DOCUMENTS)
    documents = [(Document(given_value), copy.deepcopy(given_value))]
    shown = [(given_value, copy.deepcopy(given_value))]
    for _ in range(data.draw(st.integers(1, 12))):
        at = data.draw(st.integers(0, len(documents) - 1))
        document, model = documents[at]
        step = data.draw(st.sampled_from(["patch", "patch", "patch", "read", "copy", "replace"]))
        if step == "patch":
            patch = data.draw(patches(model))
            shown.append((patch, copy.deepcopy(patch)))
            outcome = model
            for operation in patch:
                done, outcome = expected(outcome, operation)
                if not done:
                    outcome = model
                    break
            assert refusal(document, patch)[0] is (None if done else PatchError)
            documents[at] = (document, outcome)
        elif step == "read":
            shown.append((document.value, copy.deepcopy(model)))
        elif step == "copy":
            documents.append((document.copy(), model))
        else:
            value = data.draw(DOCUMENTS)
            shown.append((value, copy.deepcopy(value)))
            document.replace(value)
            documents[at] = (document, copy.deepcopy(value))
    assert all(same(document.value, model) for document, model in documents)
    assert all(same(value, as_it_was) for value, as_it_was in shown)


@examples(300)
@given(st.data())
def test_the_limits_hold_after_every_operation_and_no_sooner(data: st.DataObject) -> None:
    start = data.draw(st.dictionaries(KEYS, DOCUMENTS, max_size=3))
    limits = Limits(
        nodes=nodes(start) + data.draw(st.integers(0, 6)), nesting=height(start) + data.draw(st.integers(0, 2))
    )
    document = Document(start, limits)
    model: Any = start
    for _ in range(data.draw(st.integers(1, 4))):
        patch = data.draw(patches(model))
        outcome, error = model, None
        for operation in patch:
            done, outcome = expected(outcome, operation)
            if not done:
                error = PatchError
            elif nodes(outcome) > limits.nodes or height(outcome) > limits.nesting:
                error = LimitExceeded
            if error:
                break
        assert refusal(document, patch)[0] is error
        model = model if error else outcome
        assert same(document.copy().value, model)
