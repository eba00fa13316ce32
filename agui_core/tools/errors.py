"""Errors of tools: a bad declaration, bad arguments, and a failure in the tool's own words."""

from __future__ import annotations

from typing import Any

from agui_core._text import shown
from agui_core.errors import AGUIError

__all__ = ["DeclarationError", "InvalidArguments", "ToolError", "invalid_whole"]


class DeclarationError(AGUIError, TypeError):
    """A function or a schema that cannot become a tool. The text says why, and what to write instead."""


class InvalidArguments(AGUIError):
    """The arguments of a call do not fit its tool (FT-10, TOOL-5).

    The text is for the model and holds nothing internal.

    `path`: the argument as `name.member[0]`, `""` for all of them.
    `expected`: a description of values that fit.
    `value`: the offending value as JSON, cut to 100 characters, `""` where there is none.
    """

    def __init__(self, message: str, *, path: str = "", expected: str = "", value: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.expected = expected
        self.value = value


def invalid_whole(problem: str, value: Any, expected: str) -> InvalidArguments:
    """The error of a value as a whole, which is shown after the problem."""
    return InvalidArguments(f"{problem}: {shown(value)}", expected=expected, value=shown(value))


class ToolError(Exception):
    """Raised by a tool to put its failure in its own words.

    `model_text`: for the model.
    `human_text`: for people; the same unless given.

    The answer to any other exception leaves out its text, which may hold paths and secrets.
    """

    def __init__(self, model_text: str, human_text: str | None = None) -> None:
        super().__init__(model_text)
        # `raise ToolError(error)` means the text of that error.
        self.model_text = str(model_text)
        self.human_text = self.model_text if human_text is None else str(human_text)
