"""The verdict on a value that does not fit, and how its place is written."""

from __future__ import annotations

from collections.abc import Iterable

from agui_core._text import place, quoted

__all__ = ["Malformed", "Path", "describe", "pointer"]

Path = tuple[str | int, ...]


class Malformed(Exception):
    """A known place holds a value that the protocol refuses (PROC-7), at `path`."""

    def __init__(self, problem: str, *, rule: str = "PROC-7", path: Path = ()) -> None:
        super().__init__(problem)
        self.problem = problem
        self.rule = rule
        self.path = path

    def about(self, whole: str) -> str:
        """The verdict as a sentence; `whole` is what to call the value itself."""
        return f"`{place(self.path)}` {self.problem}" if self.path else f"{whole} {self.problem}"

    def __str__(self) -> str:
        return self.about("the event")


def pointer(path: Iterable[str | int]) -> str:
    """The JSON Pointer (RFC 6901) of a path."""
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in path)


def describe(value: object) -> str:
    """A value for an error text: its kind, and itself when it is short."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"the string {quoted(value, 40)}"
    if isinstance(value, int | float):
        return "a number out of range" if isinstance(value, int) and value.bit_length() > 64 else f"the number {value}"
    if isinstance(value, dict):
        return "an object"
    return "an array" if isinstance(value, list | tuple) else f"a {type(value).__name__}"
