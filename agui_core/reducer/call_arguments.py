"""Reading a call's arguments while they stream: lazily, and only what came since the last read.

The text is the truth, and this is a view of it (TOOL-3): a closed call is complete, not valid, and broken text is never
repaired. A closed call that nobody read before is decoded in one go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from agui_core.protocol.base import UNSET
from agui_core.reducer.partial_json.fault import JsonFault

if TYPE_CHECKING:
    from agui_core.reducer.partial_json.parser import PartialJson

__all__ = ["CallArguments"]

_decode = msgspec.json.decode


class CallArguments:
    """The value of one argument text, and what is wrong with it."""

    __slots__ = ("_fed", "_parser", "_seen", "fault", "value")

    def __init__(self) -> None:
        self._parser: PartialJson | None = None
        self._fed = 0
        self._seen = (0, False)
        self.value: Any = UNSET
        self.fault: JsonFault | None = None

    def read(self, text: str, *, complete: bool, broken: bool, nesting: int = 200) -> None:
        """Bring `value` and `fault` up to date. `broken`: half a surrogate pair was lost in the text."""
        if (len(text), complete) == self._seen:
            return
        self._seen = (len(text), complete)
        if complete and not text:
            self.value, self.fault = {}, None
        elif not (complete and self._parser is None and self._read_whole(text, nesting)):
            self._read_on(text, nesting)
            if complete and self.fault is None:
                self._end(text, nesting)
        if complete and broken and self.fault is None:
            self.fault = JsonFault(
                text.find("\N{REPLACEMENT CHARACTER}"), "half a surrogate pair without the other half"
            )

    def _read_whole(self, text: str, nesting: int) -> bool:
        """Decode a text that nobody read while it grew; False when it is no JSON, or too deep."""
        if text.count("[") + text.count("{") > nesting:
            return False
        try:
            self.value, self.fault = _decode(text), None
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return False
        return True

    def _read_on(self, text: str, nesting: int) -> None:
        if self._parser is None:
            self._parser = _parser(nesting)
        # The parser is never closed, as a closed call may be reopened and go on (TOOL-6).
        self._parser.feed(text[self._fed :])
        self._fed = len(text)
        self.value, self.fault = self._parser.value, self._parser.error

    def _end(self, text: str, nesting: int) -> None:
        """Judge a text that has ended: is it whole?"""
        if self._parser is not None and self._parser.complete:
            return
        if self.value is UNSET and self._read_whole(text, 0):
            return  # only its end tells that a number is whole
        ended = _parser(nesting)
        if self.value is UNSET:
            ended.feed(text)  # a number, which only its end shows to be too large
            ended.close()
        self.fault = ended.error or JsonFault(len(text), "the document ends too early")


def _parser(nesting: int) -> PartialJson:
    from agui_core.reducer.partial_json.parser import PartialJson  # 20 ms that only readers of open calls pay

    return PartialJson(depth_limit=nesting)
