"""`PatchMerger`: many patches of one document merged to few, for compaction of the state and of activities.

What is to be said about the document waits here as a patch, or as the whole document once that is shorter. A patch
costs itself and its path. The document is measured only after patches of at least its size, so a stream costs time in
proportion to its length.
"""

from __future__ import annotations

from typing import Any

import msgspec

from agui_core.errors import PatchError
from agui_core.limits import Limits
from agui_core.protocol.base import UNSET
from agui_core.reducer.json_patch import Document

__all__ = ["PatchMerger", "size_of"]

_SHORT = 1024
"""Bytes of a patch below which nobody asks whether the whole is shorter."""
_encode = msgspec.json.encode


def size_of(value: Any) -> int | None:
    """Bytes of a value as JSON; None when it is none, as somebody built it by hand."""
    if value is UNSET:
        return 0
    try:
        return len(_encode(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None


class PatchMerger:
    """A known document and what waits to be said about it: nothing, a patch, or the whole of it."""

    __slots__ = (
        "_at_most",
        "_bound",
        "_document",
        "_last_size",
        "_limits",
        "_measured",
        "_object_only",
        "count",
        "last",
        "operations",
        "size",
        "whole",
    )

    def __init__(self, value: Any, limits: Limits, bound: int, *, object_only: bool) -> None:
        """Raises `LimitExceeded` when no reducer would take the value."""
        self._document = Document(value, limits)
        self._limits = limits
        self._bound = bound
        self._object_only = object_only
        self._measured = size_of(value)
        # Bytes of the document at most: patches add no more than their own. None after a copy, which may make it big.
        self._at_most = self._measured
        self._clear()

    def _clear(self) -> None:
        self.whole = False
        self.operations: list[dict[str, Any]] = []
        self.size = 0
        self._last_size = 0
        self.last: Any = None
        self.count = 0

    def wait(self, event: Any, size: int = 0) -> None:
        """Note an event that is part of what waits, with `size` bytes besides its patch."""
        self.last = event
        self.count += 1
        self.size += size

    def replace(self, value: Any) -> None:
        """Replace the whole of it, so that no patch before matters. Raises `LimitExceeded`, changing nothing."""
        self._document.replace(value)
        self._measured = self._at_most = size_of(value)
        self.operations = []
        self.size = self._last_size = 0

    def has_room(self, operations: list[dict[str, Any]], size: int) -> bool:
        """Whether a patch and `size` more bytes can join what waits in one event."""
        if not self.count:
            return True
        patch = size_of(operations)
        if patch is None:
            return False
        if not self.whole:
            return (
                self.size + patch + size <= self._bound
                and len(self.operations) + len(operations) <= self._limits.patch_operations
            )
        if self._at_most is None or any(operation["op"] == "copy" for operation in operations):
            return False
        if self._at_most + self.size + patch + size > self._bound:
            self._measure()
            return self._at_most is not None and self._at_most + self.size + patch + size <= self._bound // 2
        return True

    @property
    def value(self) -> Any:
        """The document as it is now."""
        return self._document.value

    def apply(self, operations: list[dict[str, Any]]) -> bool:
        """Apply a patch; whether it applies. Raises `LimitExceeded`. If it applied, `join` it or release what waits."""
        try:
            self._document.apply(operations, object_only=self._object_only)
        except PatchError:
            return False
        return True

    def join(self, operations: list[dict[str, Any]]) -> None:
        """Let the patch that was applied last wait with the others."""
        for operation in operations:
            size = size_of(operation)
            if size is None or operation["op"] == "copy":
                self._at_most = None
            if self._at_most is not None:
                self._at_most += size or 0
            if not self.whole:
                self._join(operation, size or 0)
        if not self.whole and self._at_most is not None and self.size >= max(_SHORT, self._measured or 0):
            self._measure()
            if self._at_most is not None and self._at_most < min(self.size, self._bound):
                self.whole = True
                self.size = 0
                self.operations = []

    def take(self, value: Any = UNSET) -> Any:
        """The document, as it was (`value`) if it has changed, if the whole of it waits; else the patch."""
        taken = self.operations
        if self.whole:
            taken = self.value if value is UNSET else value
        self._clear()
        return taken

    def _join(self, operation: dict[str, Any], size: int) -> None:
        """Add an operation to the patch that waits; a value that is set twice in a row is set once."""
        if self.operations and operation["op"] == "replace":
            before = self.operations[-1]
            if before["op"] in ("add", "replace") and before["path"] == operation["path"]:
                self.operations[-1] = {**operation, "op": before["op"]}
                self.size += size - self._last_size
                self._last_size = size
                return
        self.operations.append(operation)
        self.size += size + 1
        self._last_size = size

    def _measure(self) -> None:
        self._measured = self._at_most = size_of(self._document.value)
