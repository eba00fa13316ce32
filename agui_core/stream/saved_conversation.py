"""The checkpoint of a conversation: that of its calls, and what is known besides."""

from __future__ import annotations

import msgspec

from agui_core.errors import DecodeError
from agui_core.protocol.run import ResumeEntry
from agui_core.stream.usage import Usage

__all__ = ["FORMAT", "SavedConversation"]

FORMAT = 1


class SavedConversation(msgspec.Struct, frozen=True, kw_only=True):
    """All that a conversation is."""

    format: int
    calls: bytes
    thread_id: str
    stopped: bool
    owed: bool
    usage: Usage
    answers: bytes
    """Answers to interrupts, as JSON."""
    since: int | None = None
    """The version of the reducer before the last run that began; None when that came whole."""

    def encode(self) -> bytes:
        """As bytes, for `read`."""
        return msgspec.msgpack.encode(self)

    @classmethod
    def read(cls, data: bytes) -> SavedConversation:
        """What `encode` wrote. Raises `DecodeError` for anything else."""
        try:
            saved = msgspec.msgpack.decode(data, type=cls)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise _no_checkpoint(error) from None
        if saved.format != FORMAT:
            raise DecodeError(f"the checkpoint has format {saved.format}, which is not known here", rule="CHECKPOINT")
        return saved

    def read_answers(self) -> dict[str, list[ResumeEntry]]:
        """The answers by the interrupt they are for, in their order. Raises `DecodeError`."""
        try:
            entries = msgspec.json.decode(self.answers, type=list[ResumeEntry])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise _no_checkpoint(error) from None
        answers: dict[str, list[ResumeEntry]] = {}
        for entry in entries:
            answers.setdefault(entry.interrupt_id, []).append(entry)
        return answers


def _no_checkpoint(error: Exception) -> DecodeError:
    return DecodeError(f"this is no checkpoint of a conversation: {error}", rule="CHECKPOINT")
