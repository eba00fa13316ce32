"""What goes wrong with tools: a bad declaration, bad arguments, and a failure that a tool words itself."""

from __future__ import annotations

from agui_core.errors import AGUIError

__all__ = ["DeclarationError", "InvalidArguments", "ToolError"]


class DeclarationError(AGUIError, TypeError):
    """A function or a schema that cannot become a tool; the text says why and what to write instead."""


class InvalidArguments(AGUIError):
    """The arguments of a call do not fit its tool (FT-10, TOOL-5).

    The text is made for the model: it names the argument, what was expected and the offending value, and holds nothing
    internal. `path` is the argument as `name.member[0]`, `""` for all of them; `expected` says what would have fitted;
    `value` is the offending value as JSON, cut to 100 characters, `""` where there is none.
    """

    def __init__(self, message: str, *, path: str = "", expected: str = "", value: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.expected = expected
        self.value = value


class ToolError(Exception):
    """Raised by a tool to word its own failure: one text for the model, one for people (by default the same).

    Any other exception of a tool is answered without its text, which may hold paths and secrets.
    """

    def __init__(self, model_text: str, human_text: str | None = None) -> None:
        super().__init__(model_text)
        # Whoever passes an exception on means its text.
        self.model_text = str(model_text)
        self.human_text = self.model_text if human_text is None else str(human_text)
