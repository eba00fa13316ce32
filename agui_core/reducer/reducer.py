"""`Reducer`: events in, messages and state out.

Costs. A content event of conforming traffic is one dictionary look-up and one list append on top of its decoding; every
other event goes through the gate (expansion, verification) and two tables. Nothing costs more because much came before.
A read costs what changed since the last read, plus one pointer per message held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

from msgspec.structs import replace

from agui_core.errors import AGUIError
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import Message, ToolMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.reducer import checkpoint
from agui_core.reducer.apply import Intake
from agui_core.reducer.builders import Builder, CallBuilder, MessageBuilder
from agui_core.reducer.handlers import HANDLERS
from agui_core.reducer.items import Noted, OpenItem
from agui_core.reducer.state import Middleware, Policy, Status
from agui_core.reducer.views import Changes, Run, ToolCalls
from agui_core.warnings import ProtocolWarning

__all__ = ["Reducer", "reduce"]


class Reducer(Intake):
    """Folds one thread's event stream into messages and state.

    `messages` and `state`: what the thread has already (structs or wire dicts; a state of None or nothing means `{}`).
    `policy`: `"strict"` refuses what the protocol forbids, `"lenient"` repairs or skips it. `on_event(event)` is called
    with each accepted, expanded event after it was applied; what it raises is reported in `warnings` and stops nothing.
    `on_warning(warning)` is called with each single deviation as it occurs.

    For one thread at a time; reading counts, as it joins what has arrived. `pickle` takes it as its checkpoint, without
    `on_event`, `on_warning` and middleware.
    """

    @classmethod
    def from_input(cls, run_input: RunAgentInput | Mapping[str, Any] | bytes | str | object, **options: Any) -> Self:
        """A reducer that starts from a run input: a struct, a wire dict, JSON, or the official package's object."""
        reducer = cls(**options)
        parsed: RunAgentInput = reducer._decoder.to_shape(run_input, RunAgentInput, own=True)
        reducer._hold(parsed.messages)
        if parsed.state is not UNSET:
            reducer._state.replace(parsed.state)
        reducer._gate.assumed = (parsed.thread_id, parsed.run_id)
        return reducer

    def add(self, message: Message | Mapping[str, Any]) -> None:
        """Add the application's own message: a tool's answer behind its call (TOOL-7), which is no longer pending then,
        anything else at the end. Not while a run is going on.
        """
        if self._status == "running":
            raise AGUIError("a message can be added before or after a run, not while one is going on")
        made = self._decoder.to_shape(message, Message, own=True, said=True)
        self._settle()
        self._changes += 1
        if isinstance(made, ToolMessage):
            self._conversation.place_result(made)
            self._answered.add(made.tool_call_id)
            self._run_version = self._now
        else:
            self._conversation.append(made)

    def supersede(self, ids: Iterable[str], *, text_of: Iterable[str] = ()) -> None:
        """The next run takes the place of these messages: they are taken out when its first event comes, before it is
        applied, as a snapshot without them would (`changes.removed`). Assistant messages in `text_of` lose their text
        and keep their calls. Tool messages stay. Without ids: forget what was said before. Not kept in checkpoints.
        """
        if self._status == "running":
            raise AGUIError("messages can be superseded before or after a run, not while one is going on")
        gone, textless = frozenset(ids), frozenset(text_of)
        self._superseded = (gone, textless) if gone or textless else None

    def renew(self) -> Self:
        """An idle reducer with the same messages, state and version: the thread goes on, say after a refusal."""
        twin = self.copy()
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)  # what a subclass keeps
        Reducer.__init__(
            fresh,
            limits=self._limits,
            on_event=self._on_event,
            middleware=self._middleware,
            policy=self.policy,
            on_warning=self._log.listener,
        )
        fresh._conversation, fresh._state = twin._conversation, twin._state
        fresh._rewarm()
        fresh._others = -fresh._conversation.pieces
        fresh._changes, fresh._state_version, fresh._run_version = self.version, self._state_version, self._run_version
        fresh._other, fresh._since, fresh._allowed = self._other, self._since, self._allowed
        return fresh

    # --- messages and state out -----------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy chosen when the reducer was made."""
        return "lenient" if self._gate.lenient else "strict"

    @property
    def limits(self) -> Limits:
        """The limits chosen when the reducer was made."""
        return self._limits

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, frozen. An unchanged message keeps its identity between reads."""
        return self._conversation.messages()

    @property
    def state(self) -> Any:
        """The state, a plain JSON value, never changed in place after it was handed out; nor may you change it."""
        return self._state.value

    @property
    def status(self) -> Status:
        """Where the latest run stands; `"rejected"` when the stream was refused (`error` says why)."""
        return self._status

    @property
    def error(self) -> AGUIError | None:
        """Why the stream was refused, None if it was not. A producer's own failure is `run.error` (RUN-21)."""
        return self._error

    @property
    def run(self) -> Run:
        """The latest run."""
        sequence = self._gate.sequence
        seen = (len(sequence.started_calls), len(sequence.answered), len(self._answered), self._named_pending)
        if seen == self._pending_seen:
            return self._run
        self._pending_seen = seen
        left = sequence.pending
        pending = self._named_pending or left
        if self._answered:
            pending = tuple(id for id in pending if id not in self._answered)
        if pending != self._run.pending_tool_calls or left != self._run.calls_without_result:
            self._run = replace(self._run, pending_tool_calls=pending, calls_without_result=left)
        return self._run

    @property
    def tool_calls(self) -> ToolCalls:
        """All tool calls by id, live."""
        return ToolCalls(self)

    @property
    def warnings(self) -> tuple[ProtocolWarning, ...]:
        """What was stripped, dropped, skipped or repaired, in the order of first occurrence."""
        return tuple(self._log)

    @property
    def version(self) -> int:
        """An integer that grows with every event and every other change."""
        return self._stamp()

    def changes(self, since: int) -> Changes:
        """What changed after version `since`, as `version` gave it. Costs what changed."""
        version = self.version
        conversation = self._conversation
        changed: list[str] = []
        added: list[str] = []
        calls: list[str] = []
        for entry in conversation.changed_since(since):
            if isinstance(entry, CallBuilder):
                calls.append(entry.id)
            else:
                (added if entry.added > since else changed).append(entry.id)
        removed: list[str] = []
        for id in reversed(conversation.removed):
            if conversation.removed[id] <= since:
                break
            removed.append(id)
        return Changes(
            version=version,
            changed=tuple(reversed(changed)),
            added=tuple(reversed(added)),
            removed=tuple(reversed(removed)),
            reordered=conversation.reordered > since,
            reset=conversation.forgotten > since,
            calls=tuple(reversed(calls)),
            state=self._state_version > since,
            run=self._run_version > since,
        )

    def copy(self) -> Self:
        """An independent reducer at the same event, of the same class. O(messages held); shares what is frozen."""
        self._stamp()
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin._log = self._log.copy(self._log.listener)
        twin._decoder = self._decoder.copy(twin._log)
        twin._gate = self._gate.copy(Noted(twin))
        twin._conversation, new_of = self._conversation.copy()
        twin._state = self._state.copy()
        twin._sse, twin._lines = self._sse.copy(), self._lines.copy()
        twin._answered = set(self._answered)
        twin._marks = dict(self._marks)
        twin._warmable = ({}, {}, {})
        twin._bind_items(self, new_of)
        twin._rewarm()
        if self._skew:
            twin._finish_event(self, new_of)
        return twin

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).restore, (self.checkpoint(self._extra),)

    # --- checkpoints ----------------------------------------------------------------------------------------------

    def checkpoint(self, extra: bytes = b"", since: int | None = None) -> bytes:
        """All that this reducer is, as bytes, at any event and also in the middle of one that is half received.

        `extra` rides along and is handed back as `Reducer.extra`. `since`: the version at an earlier checkpoint made
        here (or the one this was restored from; the latest 1,024 are remembered): then the result is an increment,
        which costs what changed since. Else time and bytes are in proportion to all that is held.

        Raises `AGUIError` for another `since`, from within `on_event`, and for what is no JSON (built by hand).
        """
        return checkpoint.make(self, extra, since)

    @classmethod
    def restore(
        cls,
        data: bytes,
        *increments: bytes,
        on_event: Callable[[e.Event], object] | None = None,
        limits: Limits | None = None,
        middleware: Iterable[Middleware] = (),
        on_warning: Callable[[ProtocolWarning], object] | None = None,
    ) -> Self:
        """The reducer of a whole checkpoint and the increments made after it, in order. It goes on at that very event.

        `limits`: instead of those that the checkpoint was made with. Raises `AGUIError` for what is no checkpoint, cut,
        damaged, of a newer format, or not the next increment; never runs anything it holds.
        """
        whole = checkpoint.read(data, increments)
        settings = whole.settings
        reducer = cls(
            policy=settings.policy,
            limits=limits or settings.limits,
            on_event=on_event,
            middleware=middleware,
            on_warning=on_warning,
        )
        checkpoint.fill(reducer, whole)
        last = (data, *increments)[-1]
        reducer._marks[reducer.version] = checkpoint.mark(reducer, last)
        return reducer

    @property
    def extra(self) -> bytes:
        """What the checkpoint that this was restored from had as `extra`; empty for any other reducer."""
        return self._extra

    def _bind_items(self, other: Reducer, new_of: Mapping[Builder, Builder]) -> None:
        """Give our open items the entries that correspond to those of the reducer we are a copy of."""
        ours, theirs = self._gate.sequence, other._gate.sequence
        for table, model in (
            (ours.texts, theirs.texts),
            (ours.reasonings, theirs.reasonings),
            (ours.calls, theirs.calls),
        ):
            for id, item in table.items():
                entry = model[id].entry
                item.entry = None if entry is None else new_of.get(entry)
        for warm, model_warm in zip(self._warmable, other._warmable, strict=True):
            warm.update({id: new_of[entry] for id, entry in model_warm.items()})

    def _finish_event(self, other: Reducer, new_of: Mapping[Builder, Builder]) -> None:
        """Apply what is left of the event in whose middle the reducer was copied, by its own observer."""

        def ours(entry: Any) -> Any:
            return new_of.get(entry) or (entry.copy() if isinstance(entry, MessageBuilder) else None)

        match other._prepared:
            case MessageBuilder() as entry:
                self._prepared = ours(entry)
            case list() as entries:
                self._prepared = [ours(entry) for entry in entries]
            case (entries, warnings):
                self._prepared = [ours(entry) for entry in entries], warnings
        sequence = self._gate.sequence
        for event, item in other._steps_left:
            if item is not None:
                tables = (sequence.texts, sequence.calls, sequence.reasonings)
                open_one = next((table[item.id] for table in tables if _same(table.get(item.id), item)), None)
                item = open_one or replace(item, entry=ours(item.entry))
            self._changes += 1
            _, apply = HANDLERS[type(event)]
            if apply is not None:
                apply(self, event, item)
        self._skew, self._steps_left = 0, []
        self._rewarm()

    # --- for handlers and views -------------------------------------------------------------------------------------

    def _settled_call(self, id: str) -> CallBuilder | None:
        call = self._conversation.calls.get(id)
        if call is not None and call.pieces:
            self._conversation.fold_call(call)
        return call

    def _call_ids(self) -> Mapping[str, CallBuilder]:
        return self._conversation.calls

    def _result_of(self, id: str) -> ToolMessage | None:
        entry = self._conversation.results.get(id)
        if entry is None:
            return None
        self._conversation.messages()
        message = entry.message
        return message if isinstance(message, ToolMessage) else None


def _same(one: OpenItem | None, other: OpenItem) -> bool:
    """Whether two open items are the same one, in two reducers."""
    return one is not None and type(one.start) is type(other.start)


def reduce(events: Iterable[object], **options: Any) -> Reducer:
    """The whole fold in one call: every event of an iterable, then the end. Options as for `Reducer`."""
    reducer = Reducer(**options)
    for event in events:
        reducer.apply(event)
    reducer.end()
    return reducer
