"""The shape of a JSON Patch operation (protocol section 3.6). Applying one is the reducer's business.

Operations are open objects, so they stay plain dicts: whatever else they carry is kept (PATCH-4).
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["OPERATIONS", "check_patch", "is_pointer"]

OPERATIONS: dict[str, tuple[str, ...]] = {
    "add": ("path", "value"),
    "remove": ("path",),
    "replace": ("path", "value"),
    "move": ("from", "path"),
    "copy": ("from", "path"),
    "test": ("path", "value"),
}
"""The members that each operation must have besides `op`."""

_BAD_ESCAPE = re.compile(r"~(?![01])")


def is_pointer(text: object) -> bool:
    """Whether `text` is a JSON Pointer: empty, or tokens each behind a slash, where `~0` and `~1` are all escapes."""
    return isinstance(text, str) and (
        not text or (text[0] == "/" and ("~" not in text or _BAD_ESCAPE.search(text) is None))
    )


def check_patch(operations: list[dict[str, Any]]) -> None:
    """Raise `ValueError` unless every operation is one of the six and has well-formed members (PATCH-2)."""
    for index, operation in enumerate(operations):
        required = OPERATIONS.get(operation.get("op", None) or "") if isinstance(operation.get("op"), str) else None
        if required is None:
            raise ValueError(f"operation {index} has no known `op`")
        for member in required:
            if member not in operation:
                raise ValueError(f"operation {index} (`{operation['op']}`) lacks `{member}`")
            if member != "value" and not is_pointer(operation[member]):
                raise ValueError(f"operation {index}: `{member}` is not a JSON Pointer")
