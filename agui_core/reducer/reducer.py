"""`Reducer`: events in, messages and state out.

Costs. A content event of conforming traffic is one dictionary look-up and one list append on top of its decoding; every
other event is expanded, looked up in a table of rules and in one of handlers (see `apply`). Nothing costs more because
much came before. A read costs what changed since the last read, plus one pointer per message held.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Self

from msgspec.structs import replace

from agui_core._text import plain
from agui_core.errors import AGUIError
from agui_core.limits import Limits
from agui_core.protocol import events as e
from agui_core.protocol.base import UNSET
from agui_core.protocol.messages import Message, ToolMessage
from agui_core.protocol.run import RunAgentInput
from agui_core.reducer import checkpoint
from agui_core.reducer.apply import (
    UNDECODED,
    apply_any,
    apply_bytes,
    apply_decoded,
    apply_each,
    apply_judged,
    decode_event,
    end,
)
from agui_core.reducer.builders import CallBuilder
from agui_core.reducer.copying import copy_state, renewed
from agui_core.reducer.state import Middleware, Policy, ReducerState
from agui_core.reducer.views import Changes, Run, ToolCalls
from agui_core.status import Status
from agui_core.warnings import ProtocolWarning
from agui_core.wire.fast_events import FastArgs, FastText
from agui_core.wire.framing import Bytes

__all__ = ["Reducer", "reduce"]


class Reducer:
    """Folds one thread's event stream into messages and state.

    `messages` and `state`: what the thread has already (structs or wire dicts; a state of None or nothing means `{}`).
    `policy`: `"strict"` refuses what the protocol forbids, `"lenient"` repairs or skips it. `on_event(event)` is called
    with each accepted, expanded event after it was applied; what it raises is reported in `warnings` and stops nothing.
    `on_warning(warning)` is called with each single deviation as it occurs.

    For one thread at a time; reading counts, as it joins what has arrived. `pickle` takes it as its checkpoint, without
    `on_event`, `on_warning` and middleware.
    """

    def __init__(
        self,
        messages: Iterable[Message | Mapping[str, Any]] = (),
        state: Any = UNSET,
        policy: Policy = "strict",
        limits: Limits | None = None,
        on_event: Callable[[e.Event], object] | None = None,
        *,
        middleware: Iterable[Middleware] = (),
        on_warning: Callable[[ProtocolWarning], object] | None = None,
    ) -> None:
        self._held = ReducerState(
            messages, state, policy, limits, on_event, middleware=middleware, on_warning=on_warning
        )

    @classmethod
    def from_input(
        cls,
        run_input: RunAgentInput | Mapping[str, Any] | bytes | str | object,
        *,
        policy: Policy = "strict",
        limits: Limits | None = None,
        on_event: Callable[[e.Event], object] | None = None,
        middleware: Iterable[Middleware] = (),
        on_warning: Callable[[ProtocolWarning], object] | None = None,
    ) -> Self:
        """A reducer that starts from a run input: a struct, a wire dict, JSON, or the official package's object."""
        reducer = cls(policy=policy, limits=limits, on_event=on_event, middleware=middleware, on_warning=on_warning)
        held = reducer._held
        parsed: RunAgentInput = held.decoder.to_shape(run_input, RunAgentInput, own=True)
        held.hold(parsed.messages)
        if parsed.state is not UNSET:
            held.document.replace(parsed.state)
        held.verifier.assumed = (parsed.thread_id, parsed.run_id)
        return reducer

    def __repr__(self) -> str:
        held = self._held
        run = "" if held.run.run_id is None else f" run {plain(held.run.run_id)}"
        return (
            f"<{type(self).__name__}{run} {held.status}: {held.store.count} messages, "
            f"{held.store.call_count} tool calls, {held.index} events>"
        )

    # --- events in ------------------------------------------------------------------------------------------------

    def apply(self, event: object) -> None:
        """Apply one event: a struct, a decoded dict, its JSON as bytes or str, or an object of `ag_ui.core`.

        Raises `DecodeError`, `ProtocolError` or `LimitExceeded`; then nothing of the event was applied, `status` is
        `"rejected"`, and every later call raises the same error. In the lenient policy only `LimitExceeded` is raised.
        """
        held = self._held
        if type(event) is bytes:
            budget = held.char_budget = held.char_budget - len(event)
            if budget >= 0:
                try:
                    decoded: Any = decode_event(event)
                    if type(decoded) is FastArgs:
                        entry: Any = held.fast[0][decoded.tool_call_id]
                    elif type(decoded) is FastText:
                        entry = held.fast[1][decoded.message_id]
                    else:
                        entry = None
                except KeyError:
                    entry = None
                except UNDECODED:
                    apply_judged(held, event)
                    return
                if entry is None:
                    apply_decoded(held, decoded)
                    return
                entry.pieces.append(decoded.delta)
                if not entry.touched:
                    entry.touched = True
                    held.store.touched.append(entry)
                return
        apply_any(held, event)

    def apply_sse(self, data: Bytes) -> None:
        """Apply a piece of a server-sent event stream, cut anywhere. Raises as `apply`, after the events before."""
        held = self._held
        apply_bytes(held, held.sse, data)

    def apply_lines(self, data: Bytes) -> None:
        """Apply a piece of a JSON Lines stream, cut anywhere. Raises as `apply`, after the events before."""
        held = self._held
        apply_bytes(held, held.lines, data)

    def apply_each(self, data: Bytes, *, lines: bool = False) -> Iterator[None]:
        """As `apply_sse`, or `apply_lines`, but yields after each event, for callers that look at every one. What is
        not asked for is not applied.
        """
        held = self._held
        return apply_each(held, held.lines if lines else held.sse, data, self.apply)

    def end(self) -> None:
        """The source has ended: a run still open is truncated (RUN-17). A last JSON line without its newline is applied
        when it is whole; a last server-sent block without its blank line is discarded (SSE-12).
        """
        end(self._held, self.apply)

    def add(self, message: Message | Mapping[str, Any]) -> None:
        """Add the application's own message: a tool's answer after its call (TOOL-7), which is no longer pending then,
        anything else at the end. Not while a run is going on.
        """
        held = self._held
        if held.status == "running":
            raise AGUIError("a message can be added before or after a run, not while one is going on")
        made = held.decoder.to_shape(message, Message, own=True, said=True)
        held.fold()
        held.other_changes += 1
        if isinstance(made, ToolMessage):
            held.store.place_result(made)
            held.answered.add(made.tool_call_id)
            held.run_version = held.now
        else:
            held.store.append(made)

    def supersede(self, ids: Iterable[str], *, text_of: Iterable[str] = ()) -> None:
        """The next run takes the place of these messages: they are taken out when its first event comes, before it is
        applied, as a snapshot without them would (`changes.removed`). Assistant messages in `text_of` lose their text
        and keep their calls. Tool messages stay. Without ids: forget what was said before. Not kept in checkpoints.
        """
        held = self._held
        if held.status == "running":
            raise AGUIError("messages can be superseded before or after a run, not while one is going on")
        gone, textless = frozenset(ids), frozenset(text_of)
        held.superseded = (gone, textless) if gone or textless else None

    def renew(self) -> Self:
        """An idle reducer with the same messages, state and version: the thread goes on, say after a refusal."""
        return self._with(renewed(self._held))

    # --- messages and state out -----------------------------------------------------------------------------------

    @property
    def policy(self) -> Policy:
        """The policy chosen when the reducer was made."""
        return self._held.policy

    @property
    def limits(self) -> Limits:
        """The limits chosen when the reducer was made."""
        return self._held.limits

    @property
    def messages(self) -> tuple[Message, ...]:
        """All messages, frozen. An unchanged message keeps its identity between reads."""
        return self._held.store.messages()

    @property
    def state(self) -> Any:
        """The state, a plain JSON value, never changed in place after it was handed out; nor may you change it."""
        return self._held.document.value

    @property
    def status(self) -> Status:
        """Where the latest run stands; `"rejected"` when the stream was refused (`error` says why)."""
        return self._held.status

    @property
    def error(self) -> AGUIError | None:
        """Why the stream was refused, None if it was not. A producer's own failure is `run.error` (RUN-21)."""
        return self._held.error

    @property
    def run(self) -> Run:
        """The latest run."""
        held = self._held
        stream = held.verifier.stream
        seen = (len(stream.started_calls), len(stream.answered), len(held.answered), held.named_pending)
        if seen == held.pending_seen:
            return held.run
        held.pending_seen = seen
        left = stream.pending
        pending = held.named_pending or left
        if held.answered:
            pending = tuple(id for id in pending if id not in held.answered)
        if pending != held.run.pending_tool_calls or left != held.run.calls_without_result:
            held.run = replace(held.run, pending_tool_calls=pending, calls_without_result=left)
        return held.run

    @property
    def tool_calls(self) -> ToolCalls:
        """All tool calls by id, live."""
        return ToolCalls(self._held.store)

    @property
    def warnings(self) -> tuple[ProtocolWarning, ...]:
        """What was stripped, dropped, skipped or repaired, in the order of first occurrence."""
        return tuple(self._held.log)

    @property
    def version(self) -> int:
        """An integer that grows with every event and every other change."""
        return self._held.stamp()

    def changes(self, since: int) -> Changes:
        """What changed after version `since`, as `version` gave it. Costs what changed."""
        held = self._held
        version = held.stamp()
        store = held.store
        changed: list[str] = []
        added: list[str] = []
        calls: list[str] = []
        for entry in store.changed_since(since):
            if isinstance(entry, CallBuilder):
                calls.append(entry.id)
            else:
                (added if entry.added > since else changed).append(entry.id)
        removed: list[str] = []
        for id in reversed(store.removed):
            if store.removed[id] <= since:
                break
            removed.append(id)
        return Changes(
            version=version,
            changed=tuple(reversed(changed)),
            added=tuple(reversed(added)),
            removed=tuple(reversed(removed)),
            reordered=store.reordered > since,
            reset=store.forgotten > since,
            calls=tuple(reversed(calls)),
            state=held.state_version > since,
            run=held.run_version > since,
        )

    def copy(self) -> Self:
        """An independent reducer at the same event, of the same class. O(messages held); shares what is frozen."""
        return self._with(copy_state(self._held))

    def _with(self, held: ReducerState) -> Self:
        """A reducer of the same class, with whatever a subclass keeps, that holds something else."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, _held=held)
        return twin

    def __copy__(self) -> Self:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).restore, (self.checkpoint(self.extra),)

    # --- checkpoints ----------------------------------------------------------------------------------------------

    def checkpoint(self, extra: bytes = b"", since: int | None = None) -> bytes:
        """All that this reducer is, as bytes, at any event and also in the middle of one that is half received.

        `extra` rides along and is handed back as `Reducer.extra`. `since`: the version at an earlier checkpoint made
        here (or the one this was restored from; the latest 1,024 are remembered): then the result is an increment,
        which costs what changed since. Else time and bytes are in proportion to all that is held.

        Raises `AGUIError` for another `since`, from within `on_event`, and for what is no JSON (built by hand).
        """
        return checkpoint.make(self._held, extra, since)

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
        checkpoint.fill(reducer._held, whole)
        last = (data, *increments)[-1]
        reducer._held.checkpoint_marks[reducer.version] = checkpoint.mark(reducer._held, last)
        return reducer

    @property
    def extra(self) -> bytes:
        """What the checkpoint that this was restored from had as `extra`; empty for any other reducer."""
        return self._held.extra


def reduce(
    events: Iterable[object],
    messages: Iterable[Message | Mapping[str, Any]] = (),
    state: Any = UNSET,
    policy: Policy = "strict",
    limits: Limits | None = None,
    on_event: Callable[[e.Event], object] | None = None,
    *,
    middleware: Iterable[Middleware] = (),
    on_warning: Callable[[ProtocolWarning], object] | None = None,
) -> Reducer:
    """The whole fold in one call: every event of an iterable, then the end. Options as for `Reducer`."""
    reducer = Reducer(messages, state, policy, limits, on_event, middleware=middleware, on_warning=on_warning)
    for event in events:
        reducer.apply(event)
    reducer.end()
    return reducer
