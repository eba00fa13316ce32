"""A value that does not fit: what is wrong with it, and where."""

from __future__ import annotations

from typing import TypeAlias

from agui_core._text import place
from agui_core.errors import ProtocolError

__all__ = ["Malformed", "Path"]

Path: TypeAlias = tuple[str | int, ...]
"""Member names and indexes, from the outside in."""


class Malformed(Exception):
    """A known place, at `path`, holds a value that the protocol refuses (PROC-7)."""

    def __init__(self, reason: str, *, rule: str = "PROC-7", path: Path = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.rule = rule
        self.path = path

    def about(self, whole: str) -> str:
        """The problem as a sentence; `whole` is what to call the value itself."""
        return f"`{place(self.path)}` {self.reason}" if self.path else f"{whole} {self.reason}"

    def error(self, whole: str, *, type: str | None = None, index: int | None = None) -> ProtocolError:
        """The error to raise for it, of the event at `index` or of a value of this `type`."""
        return ProtocolError(self.about(whole), rule=self.rule, type=type, index=index)

    def inside(self, path: Path) -> Malformed:
        """The same problem of a value that stands at `path` of a larger one."""
        return Malformed(self.reason, rule=self.rule, path=(*path, *self.path))

    def __str__(self) -> str:
        return self.about("the event")
