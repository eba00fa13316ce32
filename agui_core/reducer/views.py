"""What a reducer shows besides messages and state: the run, the tool calls, and what changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from agui_core._text import listed, plain, quoted
from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.events import RunErrorEvent
from agui_core.protocol.messages import ToolMessage
from agui_core.protocol.run import Interrupt, TokenUsage
from agui_core.reducer.builders import CallBuilder
from agui_core.reducer.call_arguments import CallArguments
from agui_core.reducer.message_store import MessageStore
from agui_core.reducer.partial_json.fault import JsonFault
from agui_core.reducer.typed_arguments import ArgumentsError, partial, whole

__all__ = ["Changes", "Run", "ToolCallView", "ToolCalls"]

T = TypeVar("T")


class Run(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """The latest run of the stream. Before the first one everything is absent.

    thread_id: the thread, as the producer named it.
    run_id: the run.
    protocol_version: what the producer declared on this run; None means a producer from before versioning (VER-1).
    result: the run's return value; UNSET when it gave none.
    error: the producer's own RUN_ERROR; a refused stream is `Reducer.error` (RUN-21).
    usage: tokens taken, one entry for each model (USE-1).
    interrupts: what the next run has to answer; empty unless the run was interrupted (INT-1, OPEN-15).
    pending_tool_calls: ids of the calls that wait for a result, in order (FT-2, FT-3).
    calls_without_result: ids of the calls that the run made and gave no result for, in order (FT-2): whatever it
      named as pending at its end (FT-3), and also if they were answered since.
    named_calls: ids that the run itself named as pending at its end (FT-3).
    last_calls: ids of the calls after which the run brought no text, no reasoning and no result, in order; known at
      its end.
    reused_calls: ids of the calls that the run began though they were answered before it (EVT-7); known at its end.
    """

    thread_id: str | None = None
    run_id: str | None = None
    protocol_version: str | None = None
    result: Any = UNSET
    error: RunErrorEvent | None = None
    usage: tuple[TokenUsage, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    pending_tool_calls: tuple[str, ...] = ()
    calls_without_result: tuple[str, ...] = ()
    named_calls: tuple[str, ...] = ()
    last_calls: tuple[str, ...] = ()
    reused_calls: tuple[str, ...] = ()


class Changes(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What differs from an earlier version; ids in the order in which they last changed. `Reducer.changes` makes it.

    version: the version these changes lead to: `since` for the next call.
    changed: ids of messages that were there and differ now.
    added: ids of messages that are new.
    removed: ids of messages that are gone.
    reordered: messages that were there stand in another order.
    calls: ids of tool calls that are new or differ.
    state: the state differs.
    reset: more was removed since than is remembered: take all messages anew.
    run: the status, or something that `Reducer.run` shows.
    """

    version: int
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    reordered: bool = False
    calls: tuple[str, ...] = ()
    state: bool = False
    reset: bool = False
    run: bool = False

    def __bool__(self) -> bool:
        return bool(
            self.changed
            or self.added
            or self.removed
            or self.reordered
            or self.reset
            or self.calls
            or self.state
            or self.run
        )


class ToolCallView:
    """One tool call, as it is at each read. Reading costs what arrived since the last read."""

    __slots__ = ("_entry", "_store", "id")

    def __init__(self, store: MessageStore, entry: CallBuilder) -> None:
        self._store = store
        self._entry = entry
        self.id = entry.id

    def __repr__(self) -> str:
        more = "" if self.complete else " ..."
        return f"<ToolCallView {quoted(self.id)} {plain(self.name)}({quoted(self.arguments)}){more}>"

    @property
    def name(self) -> str:
        """The tool's name; `""` when the call was never properly opened (lenient), and then nobody may run it."""
        return self._now().name

    @property
    def message_id(self) -> str:
        """Id of the assistant message that holds the call."""
        return self._now().holder.id

    @property
    def arguments(self) -> str:
        """The argument text so far, as it was streamed; never repaired."""
        return self._now().text or ""

    @property
    def args(self) -> Any:
        """The value of the arguments so far: what is certain of an open call (it grows in place, so copy what you
        keep), the whole of a closed one, `{}` for a closed call without text. UNSET while there is no value yet. Good
        for display; for execution `valid` has to be true as well.
        """
        return self._read().value

    def args_as(self, type: type[T]) -> T:
        """The arguments of a complete and valid call as `type`: a Struct, a dataclass, or whatever `msgspec.convert`
        makes of JSON, strictly (no string becomes a number). Costs what the arguments cost.

        Raises `ArgumentsError` that names the call, the member and what was expected; also while the call is not
        complete (TOOL-4) and when its text is no JSON (TOOL-5).
        """
        problem = None
        if not self.complete:
            problem = "they are not complete; wait for TOOL_CALL_END [TOOL-4]"
        elif self.error is not None:
            problem = f"they are no JSON document: {self.error} [TOOL-5]"
        if problem is not None:
            raise ArgumentsError(problem, call_id=self.id, tool=self.name)
        return whole(self.args, type, call_id=self.id, tool=self.name)

    def partial_as(self, type: Any) -> Any:
        """What fits `type` of the arguments so far. For a Struct, a dataclass or a TypedDict: a frozen object with its
        fields, each UNSET as long as it is absent or does not fit yet, and the same inside them. Good for display at
        any time, also of broken arguments. Costs what the value costs.
        """
        return partial(self.args, type)

    @property
    def complete(self) -> bool:
        """Whether the call has ended; only then may its arguments be used (TOOL-4)."""
        return self._now().complete

    @property
    def valid(self) -> bool:
        """Whether the call is complete and its text is empty or one JSON document."""
        return self.complete and self._read().fault is None

    @property
    def error(self) -> JsonFault | None:
        """Why the text is no JSON, as soon as that is certain; None otherwise."""
        return self._read().fault

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What the call's events carried, merged (META-2)."""
        entry = self._now()
        entry.owns_metadata = False
        return {} if entry.metadata is UNSET else entry.metadata

    @property
    def encrypted_value(self) -> str | UnsetType:
        """An opaque artefact of the producer (REAS-8)."""
        return self._now().encrypted_value

    @property
    def result(self) -> ToolMessage | None:
        """The first tool message that answers this call."""
        return self._store.result_of(self.id)

    def _now(self) -> CallBuilder:
        self._entry = self._store.settled_call(self.id) or self._entry
        return self._entry

    def _read(self) -> CallArguments:
        entry = self._now()
        if entry.reading is None:
            entry.reading = CallArguments()
        nesting = self._store.limits.nesting
        entry.reading.read(entry.text or "", complete=entry.complete, broken=entry.broken, nesting=nesting)
        return entry.reading


class ToolCalls(Mapping[str, ToolCallView]):
    """All tool calls of the conversation by id, in the order in which they were made. A live view."""

    __slots__ = ("_store",)

    def __init__(self, store: MessageStore) -> None:
        self._store = store

    def __getitem__(self, id: str) -> ToolCallView:
        entry = self._store.settled_call(id)
        if entry is None:
            raise KeyError(id)
        return ToolCallView(self._store, entry)

    def __iter__(self) -> Iterator[str]:
        return iter(self._store.calls)

    def __len__(self) -> int:
        return len(self._store.calls)

    def __contains__(self, id: object) -> bool:
        return id in self._store.calls

    def __repr__(self) -> str:
        return f"<ToolCalls {listed(self)}>"
