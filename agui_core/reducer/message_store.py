"""The messages while they grow: found by id, kept in order, handed out frozen, and cheap to read again.

Costs. Appending a piece of text: O(1), amortised. Placing a tool message after its call: O(1). A read rebuilds the
messages that changed since the last read and copies one pointer per message (and one per sibling call of a changed
call); only a read after a message was placed in the middle, or dropped, walks all messages once.

Order is kept as *blocks*: a message that is no tool message, with the tool messages that directly follow it. So
placing a result after its call's message "and any tool messages that already follow it" (TOOL-7) is an append.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from agui_core.limits import Limits
from agui_core.protocol.messages import Message, ToolCall, ToolMessage
from agui_core.reducer.builders import Builder, CallBuilder, MessageBuilder

__all__ = ["MessageStore", "PieceTables"]

PieceTables: TypeAlias = tuple[dict[str, list[str]], dict[str, list[str]], dict[str, list[str]]]
"""Pieces of text by id: of tool calls, of text messages, of reasoning messages."""


class MessageStore:
    """All messages and calls of a thread, in order and by id."""

    __slots__ = (
        "_built",
        "_flat",
        "_heads",
        "_ordered",
        "_returned",
        "_unstamped",
        "call_count",
        "calls",
        "characters",
        "count",
        "forgotten",
        "index",
        "largest",
        "limits",
        "log",
        "open_pieces",
        "pieces",
        "removed",
        "reordered",
        "restated",
        "results",
        "serials",
        "spoken",
        "touched",
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        # The first message of each block, in order.
        self._heads: list[MessageBuilder] = []
        self.count = 0
        self.call_count = 0
        # By id; where an id occurs twice, the first in order (OPEN-13). Results: by the id of the call they answer.
        self.index: dict[str, MessageBuilder] = {}
        self.calls: dict[str, CallBuilder] = {}
        self.results: dict[str, MessageBuilder] = {}
        # Characters of all content and arguments, and at least those of the largest one, as of the last settling.
        self.characters = 0
        self.largest = 0
        self.pieces = 0
        """Pieces of text that were folded, ever."""
        self.spoken = 0
        """Characters that came for messages, and not for arguments, as of the last settling."""
        # What changed since the last folding; what was folded since the last settling; and what changed before that, in
        # order, where only the last time counts.
        self.touched: list[Builder] = []
        # The pieces of some that are touched: what the fast path appends to.
        self.open_pieces: PieceTables = ({}, {}, {})
        self._unstamped: dict[Builder, None] = {}
        self.log: list[Builder] = []
        # Ids of dropped messages by the version that dropped them, and the latest such version that was forgotten.
        self.removed: dict[str, int] = {}
        self.forgotten = 0
        self.reordered = 0
        self._returned = False
        """Whether, since the last settling, a message came that had been dropped: it stands elsewhere now."""
        self.restated = 0
        """The version of the last `restate`."""
        self.serials = 0
        """How many serials were given."""
        # The frozen messages in order, None where one is stale; valid while `_ordered`.
        self._flat: list[Message | None] = []
        self._ordered = True
        self._built: tuple[Message, ...] | None = ()

    # --- changing -------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """What is held now was there from the start, which is no change."""
        for entry in self.touched:
            entry.touched = False
            entry.added = 0
        self.touched.clear()

    def fill(self, entries: Iterable[MessageBuilder]) -> None:
        """Hold these entries, whose places are given, and nothing else."""
        for entry in entries:
            self._stand(entry)
            self.index.setdefault(entry.id, entry)
            self.count += 1
            self.call_count += len(entry.calls or ())
        self._ordered, self._built = False, None

    def append(self, message: Message) -> MessageBuilder:
        """Put a message at the end."""
        return self.append_entry(MessageBuilder.of(message, self.limits))

    def append_entry(self, entry: MessageBuilder) -> MessageBuilder:
        """Put a new entry at the end."""
        self._enter(entry)
        self._stand(entry)
        if self._ordered:
            entry.position = len(self._flat)
            self._flat.append(entry.message)
        self._find(entry)
        return entry

    def place_result(self, message: ToolMessage) -> MessageBuilder:
        """Put a tool message after the message with its call and the tool messages there, or at the end (TOOL-7)."""
        call = self.calls.get(message.tool_call_id)
        if call is None or call.holder is self._heads[-1]:
            return self.append(message)
        entry = MessageBuilder.of(message, self.limits)
        self._enter(entry)
        _follow(call.holder, entry)
        self._ordered = False
        self._find(entry)
        return entry

    def add_call(self, call: CallBuilder) -> None:
        """Add a new call to its holder, an assistant message, after the others there."""
        holder = call.holder
        if holder.calls is None or holder.frozen is None:
            holder.calls, holder.frozen = [], []
        holder.calls.append(call)
        holder.frozen.append(None)
        self.call_count += 1
        self.calls.setdefault(call.id, call)
        call.touched = True
        self.touched.append(call)

    def holds_result(self, message: ToolMessage) -> bool:
        """Whether this very tool message is held: several may share an id (OPEN-12)."""
        held = self.results.get(message.tool_call_id)
        return held is not None and held.id == message.id

    def touch(self, entry: Builder) -> None:
        """Note that an entry changes, and not only by pieces of text."""
        if type(entry) is MessageBuilder:
            entry.message = None
        if not entry.touched:
            entry.touched = True
            self.touched.append(entry)

    def restate(self, entries: list[MessageBuilder], version: int) -> None:
        """Make these the messages, in this order. `settle` first; new entries among them are touched."""
        self.restated = version
        kept = set(entries)
        before = list(self.entries())
        survivors = [entry for entry in before if entry in kept]
        if survivors != [entry for entry in entries if entry.number >= 0]:
            self.reordered = version
        dropped = [entry for entry in before if entry not in kept]
        self._heads = []
        for entry in entries:
            if entry.number < 0:
                for changed in (entry, *(entry.calls or ())):
                    self.touch(changed)
            entry.tail = None
            self._stand(entry)
        calls = self.calls
        self.index, self.calls, self.results = {}, {}, {}
        self.count, self.call_count, self.characters = len(entries), 0, 0
        for entry in entries:
            self._find(entry)
            self.call_count += len(entry.calls or ())
            self.characters += entry.characters
            for held in (entry, *(entry.calls or ())):
                held.counted = len(held.text or "")
        for entry in dropped:
            entry.number = -1
            namesake = self.index.get(entry.id)
            if namesake is None:
                self.removed.pop(entry.id, None)
                self.removed[entry.id] = version
            elif not namesake.touched:  # the id stands for less than before, which `changed` tells
                namesake.stamp = version
                self.log.append(namesake)
        for id, call in calls.items():
            other = self.calls.get(id, call)
            if other is not call and not other.touched:  # the id stands for another call than before
                for changed in (other.holder, other):
                    changed.stamp = version
                    self.log.append(changed)
        self._unstamped = {entry: None for entry in self._unstamped if _stands(entry)}
        while len(self.removed) > self.limits.messages:
            self.forgotten = self.removed.pop(next(iter(self.removed)))
        self._shorten_log()
        self._ordered = False
        self._built = None

    # --- reading --------------------------------------------------------------------------------------------------

    def entries(self) -> Iterator[MessageBuilder]:
        """All messages in order."""
        for head in self._heads:
            yield head
            if head.tail is not None:
                yield from head.tail

    def fold(self) -> None:
        """Join what arrived to the texts, and freeze what changed anew. Costs what changed, and a pointer per sibling
        of a changed call.
        """
        touched = self.touched
        flat = self._flat if self._ordered else None
        self._built = None
        came = 0
        unstamped = self._unstamped
        for entry in touched:
            entry.touched = False
            unstamped[entry] = None
            pieces = entry.pieces
            if type(entry) is CallBuilder:
                # Nothing may hold the old text while it grows.
                holder = entry.holder
                frozen: list[ToolCall | None] = holder.frozen  # type: ignore[assignment]
                holder.message = frozen[entry.place] = None
                if flat is not None:
                    flat[holder.position] = None
                if pieces:
                    came += len(pieces)
                    entry.fold()
                frozen[entry.place] = entry.build()
            elif pieces:
                entry.message = None  # type: ignore[union-attr]
                if flat is not None:
                    flat[entry.position] = None  # type: ignore[union-attr]
                came += len(pieces)
                entry.fold()
        self.pieces += came
        if flat is not None:
            for entry in touched:
                holder = entry.holder if type(entry) is CallBuilder else entry  # type: ignore[assignment]
                if holder.message is None:
                    flat[holder.position] = holder.build()
        touched.clear()
        calls, texts, reasonings = self.open_pieces
        if calls or texts or reasonings:
            calls.clear()
            texts.clear()
            reasonings.clear()

    def fold_call(self, call: CallBuilder) -> None:
        """Join what arrived to the arguments of one call, without folding the rest. Costs what arrived."""
        holder = call.holder
        holder.frozen[call.place] = holder.message = self._built = None  # type: ignore[index]
        if self._ordered:
            self._flat[holder.position] = None
        self.pieces += len(call.pieces)
        call.fold()

    def settled_call(self, id: str) -> CallBuilder | None:
        """One call with what arrived joined."""
        call = self.calls.get(id)
        if call is not None and call.pieces:
            self.fold_call(call)
        return call

    def result_of(self, id: str) -> ToolMessage | None:
        """The first tool message that answers a call, frozen."""
        entry = self.results.get(id)
        if entry is None:
            return None
        self.messages()
        message = entry.message
        return message if isinstance(message, ToolMessage) else None

    def settle(self, version: int) -> None:
        """Fold what arrived; count what came, and stamp what changed with `version`, since the last settling.

        Costs what changed.
        """
        if self.touched:
            self.fold()
        if not self._unstamped:
            return
        if self._returned:
            self.reordered, self._returned = version, False
        log = self.log
        for entry in self._unstamped:
            if entry.text is not None:
                length = len(entry.text)
                grown = length - entry.counted
                self.characters += grown
                if type(entry) is MessageBuilder:
                    self.spoken += grown
                entry.counted = length
                if length > self.largest:
                    self.largest = length
            for changed in (entry.holder, entry) if type(entry) is CallBuilder else (entry,):
                if changed.added < 0:
                    changed.added = version
                if changed.stamp != version:
                    changed.stamp = version
                    log.append(changed)
        self._unstamped.clear()
        if len(log) > 4 * (self.count + self.call_count) + 1024:
            self._shorten_log()

    def changed_since(self, version: int) -> Iterator[Builder]:
        """What changed after `version`, each once, the latest change first. Costs what changed. `settle` first."""
        seen: set[Builder] = set()
        for entry in reversed(self.log):
            if entry not in seen:
                if entry.stamp <= version:
                    return
                seen.add(entry)
                yield entry

    def messages(self) -> tuple[Message, ...]:
        """All messages, frozen."""
        if self.touched:
            self.fold()
        built = self._built
        if built is None:
            if not self._ordered:
                self._flat = []
                for position, entry in enumerate(self.entries()):
                    entry.position = position
                    self._flat.append(entry.message or entry.build())
                self._ordered = True
            built = self._built = tuple(self._flat)  # type: ignore[arg-type]
        return built

    def copy(self) -> tuple[MessageStore, dict[Builder, Builder]]:
        """An independent conversation that shares what is frozen, and its entry for each of ours. `settle` first.

        O(messages and calls).
        """
        twin = MessageStore(self.limits)
        entries = [entry.copy() for entry in self.entries()]
        for entry in entries:
            twin._stand(entry)
        twin.count, twin.call_count = self.count, self.call_count
        twin.characters, twin.largest, twin.pieces = self.characters, self.largest, self.pieces
        twin.spoken = self.spoken
        twin.removed, twin.reordered, twin.forgotten = dict(self.removed), self.reordered, self.forgotten
        twin.restated, twin.serials = self.restated, self.serials
        twin._ordered, twin._built = False, None
        new_of: dict[Builder, Builder] = {}
        for old, new in zip(self.entries(), entries, strict=True):
            new_of[old] = new
            new_of.update(zip(old.calls or (), new.calls or (), strict=True))
        twin.log = [new_of[entry] for entry in self.log]
        twin.index = {id: new_of[entry] for id, entry in self.index.items()}  # type: ignore[misc]
        twin.calls = {id: new_of[call] for id, call in self.calls.items()}  # type: ignore[misc]
        twin.results = {id: new_of[entry] for id, entry in self.results.items()}  # type: ignore[misc]
        return twin, new_of

    def _enter(self, entry: MessageBuilder) -> None:
        self.count += 1
        length = 0 if entry.text is None else len(entry.text)
        if entry.calls is None and entry.parts is None:
            self.characters += length
        else:
            self.characters += entry.characters
        entry.touched = True
        self.touched.append(entry)
        if entry.calls is not None:
            self.call_count += len(entry.calls)
            for call in entry.calls:
                length = max(length, len(call.text or ""))
                self.touch(call)
        if length > self.largest:
            self.largest = length
        self._built = None

    def _shorten_log(self) -> None:
        """Keep only the last time that each entry which is still held changed."""
        last: dict[Builder, None] = {}
        for entry in reversed(self.log):
            if _stands(entry):
                last.setdefault(entry)
        self.log = list(reversed(last))

    def _stand(self, entry: MessageBuilder) -> None:
        """Put an entry after all others."""
        heads = self._heads
        if entry.role == "tool" and heads:
            _follow(heads[-1], entry)
        else:
            entry.number = heads[-1].number + 1 if heads else 0
            entry.rank = 0
            heads.append(entry)

    def _find(self, entry: MessageBuilder) -> None:
        """Make an entry findable by its id, and what it holds by theirs."""
        first = self.index.setdefault(entry.id, entry)
        if first is not entry and entry.place < first.place:
            self.index[entry.id] = entry
        if entry.calls is not None:
            for call in entry.calls:
                self.calls.setdefault(call.id, call)
        if type(entry.base) is ToolMessage:
            self.results.setdefault(entry.base.tool_call_id, entry)
        if self.removed and self.removed.pop(entry.id, None) is not None:
            self._returned = True


def _stands(entry: Builder) -> bool:
    """Whether an entry is (still) one of the conversation's."""
    return (entry.holder if isinstance(entry, CallBuilder) else entry).number >= 0


def _follow(head: MessageBuilder, entry: MessageBuilder) -> None:
    """Put a tool message at the end of a block."""
    if head.tail is None:
        head.tail = []
    head.tail.append(entry)
    entry.number = head.number
    entry.rank = len(head.tail)
