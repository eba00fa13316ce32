"""JSON payloads, dicts and models become event structs (PROC-1: boundary, then enforcement).

Conforming events cost one decoding: bytes become structs of the union, many at a time. Unknown fields are forbidden
there, so a success leaves nothing to strip and nothing malformed. An event that fails takes the slow way: parsed into a
dict, translated by the boundary, stripped of unknown top-level members by one comparison of key sets, converted. If
that fails too, `shapes` sanitizes it in full.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, Literal, TypeAlias

import msgspec

from agui_core._text import place, pointer
from agui_core.errors import DecodeError, LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol.events import EVENT_TYPES, Event
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire.batch import Batch, decode_joined, join
from agui_core.wire.compat import TRANSLATED, Boundary, concerns, translate, upgrade_input
from agui_core.wire.fast_events import FastEvent
from agui_core.wire.framing import Bytes
from agui_core.wire.json_values import Copier, check_nesting, holds_foreign, nesting_exceeded, too_deep
from agui_core.wire.malformed import Malformed, Path
from agui_core.wire.parse import check_size
from agui_core.wire.sanitize import converted, log_notes, own_object, read_shape
from agui_core.wire.shapes import Findings, Shape, Union, Unrecognised, node_of
from agui_core.wire.surplus import Surplus

__all__ = ["Decoder", "Policy", "decode"]

Policy: TypeAlias = Literal["strict", "lenient"]
"""What becomes of an event that the protocol forbids: it is refused, or repaired or skipped."""

_one = msgspec.json.Decoder(Event).decode
_many = msgspec.json.Decoder[Any](Event | None)
_many_fast = msgspec.json.Decoder[Any](FastEvent | None)
_many_objects = msgspec.json.Decoder[Any](dict[str, Any] | None)
_FAST_PAUSE = 15
"""Batches that are not tried as fast events after one in which some content had other members."""
_UNFIT = (msgspec.MsgspecError, RecursionError, UnicodeError)

_EVENT_CLASSES = frozenset(EVENT_TYPES.values())


@cache
def _union() -> Union:
    """The node of all events; made when the first event does not simply fit."""
    union = node_of(Event)
    assert isinstance(union, Union)
    return union


_STREAMED = frozenset(
    {
        "REASONING_MESSAGE_CHUNK",
        "REASONING_MESSAGE_CONTENT",
        "TEXT_MESSAGE_CHUNK",
        "TEXT_MESSAGE_CONTENT",
        "THINKING_TEXT_MESSAGE_CONTENT",
        "TOOL_CALL_ARGS",
        "TOOL_CALL_CHUNK",
    }
)
"""Types whose `delta` may begin or end inside a surrogate pair; the reducer joins the halves."""

_REMEMBERED = 256
"""Key sets with surplus members that are remembered per type, and characters of each."""


def decode(json: Bytes, on_warning: Callable[[ProtocolWarning], object] | None = None) -> Event | None:
    """One event from one JSON text; None when its type is unknown, as it is dropped then (PROC-4). Strict.

    `on_warning` is called for each member that is stripped, and for a dropped event. Half a surrogate pair at the
    beginning or end of a `delta` stays in it.

    Raises: `DecodeError` (SSE-8), `ProtocolError` (PROC-7) or `LimitExceeded`.
    """
    return Decoder(WarningLog(listener=on_warning)).decode_one(json)


class Decoder:
    """Decodes the events of one stream.

    `warnings`: the log that warnings go to.
    `policy`: under `"strict"` a malformed event raises. Under `"lenient"` it is skipped with a warning, nulls in
    optional fields count as absent, and a malformed patch operation empties its patch.
    `limits`: exceeding one raises `LimitExceeded` under both policies.
    `boundary`: the compatibility boundary; the caller sets its `run_id` with every `RUN_STARTED`.

    Each method takes `index`, the event's place in the stream; the caller counts from 0, dropped events included.
    """

    __slots__ = (
        "_fast_pause",
        "_limits",
        "_met",
        "_mostly_unfit",
        "_watch",
        "boundary",
        "policy",
        "warnings",
    )

    def __init__(
        self,
        warnings: WarningLog | None = None,
        *,
        policy: Policy = "strict",
        limits: Limits | None = None,
        boundary: Boundary | None = None,
    ) -> None:
        if policy not in ("strict", "lenient"):
            raise ValueError(f'policy must be "strict" or "lenient", not {policy!r}')
        self.warnings = WarningLog() if warnings is None else warnings
        self.policy: Policy = policy
        self.boundary = Boundary() if boundary is None else boundary
        self._limits = limits = limits or Limits()
        # A shorter text keeps both limits: to be nested too deeply, it would need more brackets than it has characters.
        self._watch = min(2 * (limits.nesting + 2), limits.event_bytes // 4 + 1)
        self._mostly_unfit = False
        self._fast_pause = 0
        self._met: dict[str, dict[tuple[str, ...], Surplus]] = {}

    def copy(self, warnings: WarningLog) -> Decoder:
        """An independent decoder at the same point of the stream, with another log."""
        boundary = msgspec.structs.replace(self.boundary)
        return Decoder(warnings, policy=self.policy, limits=self._limits, boundary=boundary)

    # One event at a time

    def decode_one(self, payload: Bytes, index: int | None = None) -> Event | None:
        """The event of one JSON text; None when it is dropped, or under `"lenient"` skipped."""
        try:
            event: Event = _one(payload)
        except _UNFIT:
            return self._decode_slowly(payload, index)
        if len(payload) >= self._watch:
            try:
                check_size(payload, self._limits)
                check_nesting(event, self._limits.nesting)
            except LimitExceeded as error:
                raise _placed(error, index) from None
        return event

    def to_event(self, event: object, index: int | None = None) -> Event | None:
        """The same from any form: a JSON text, a dict, an event of `ag_ui.core`, or one of our structs, trusted
        unless its open data hold a value that is no JSON, such as a model.
        """
        if type(event) in _EVENT_CLASSES:
            try:
                has_open = check_nesting(event, self._limits.nesting)  # type: ignore[arg-type]
            except LimitExceeded as error:
                raise _placed(error, index) from None
            if not (has_open and holds_foreign(event)):
                return event  # type: ignore[return-value]
        if isinstance(event, Bytes):
            return self.decode_one(event, index)
        obj = self.to_dict(event, index)
        return None if obj is None else self._enforce(obj, index)

    def to_dict(self, event: object, index: int | None = None) -> dict[str, Any] | None:
        """The same up to the boundary, before enforcement: what middleware sees (PROC-3). The dict is the caller's own.

        None when a malformed text or object was skipped, which only `"lenient"` does.
        """
        obj = self._read(event, index)
        return None if obj is None else self._translated(obj, index)

    def enforce(self, event: dict[str, Any], index: int | None = None) -> Event | None:
        """The event of a dict that has passed the boundary, as middleware returned it (PROC-5..18). It stays."""
        obj = self._read(event, index)
        return None if obj is None else self._enforce(obj, index)

    def to_shape(self, value: object, shape: Any, *, own: bool = False, said: bool = False) -> Any:
        """A struct of `shape` (a struct type, or a union such as `Message`) from a value in any form. A struct is
        trusted and given back. Unknown members are stripped with a warning, legacy parts are upgraded.

        `own`: a document of the application, so that upgrades are not warned about.
        `said`: the application has just said it; a part or message of no known kind is refused then.

        Raises: `ProtocolError`, `DecodeError` or `LimitExceeded` under both policies, also for an unknown kind.
        """
        if isinstance(value, msgspec.Struct):
            return value
        name = getattr(shape, "__name__", None)
        findings = Findings()

        def upgrade(obj: dict[str, Any]) -> None:
            upgrade_input(obj) if own else upgrade_input(obj, findings.note)

        try:
            kept = read_shape(value, shape, self._limits, findings, upgrade)
        except Malformed as problem:
            raise problem.error("the value", type=name) from None
        if isinstance(kept, Unrecognised):
            raise ProtocolError(f"{kept}; nothing that requires it can stay", rule="PROC-9", type=name)
        log_notes(findings, self.warnings, name, said=said)
        return kept

    def to_json(self, value: object, what: str) -> Any:
        """A private copy of open data that an application gives; `what` is its name in errors.

        Raises: `ProtocolError` for a value that is no JSON, `LimitExceeded` for one that is nested too deeply.
        """
        try:
            return Copier(self._limits.nesting).copy(value)
        except Malformed as problem:
            raise problem.error(f"the {what}") from None

    # Many events at a time

    def decode_batch(self, batch: Batch | list[bytes], index: int) -> Iterator[tuple[int, list[Event]]]:
        """The events of many JSON texts, as lists, each with the index of its first event; the others follow gapless.

        Lazy: a warning is logged, and an error raised, when the iterator reaches its event, so that the caller has
        applied all events before it. When the last events were dropped, the last list is empty, and its index is that
        of the next event. The fast path does not check depth: the caller calls `check_nesting` for events with open
        data. A batch that `decode_fit` refused is not decoded as a whole again.
        """
        if isinstance(batch, list):
            if not batch:
                return
            batch = join(batch)
        events = self.decode_fit(batch)
        if events is not None:
            yield index, events
            return
        end = index
        for first, events in self._decode_apart(batch, index):
            yield first, events
            end = first + len(events)
        if end < index + len(batch.payloads()):
            yield index + len(batch.payloads()), []

    def decode_fit(self, batch: Batch) -> list[Any] | None:
        """All events of a conforming batch, content as `FastContent` where the whole batch allows that; or None."""
        if batch.unfit or self._mostly_unfit or len(batch.text) > self._limits.event_bytes:
            return None
        if self._fast_pause:
            self._fast_pause -= 1
        else:
            events = decode_joined(_many_fast, batch)
            if events is not None:
                return events
            self._fast_pause = _FAST_PAUSE
        events = decode_joined(_many, batch)
        batch.unfit = events is None
        return events

    def _decode_apart(self, batch: Batch, index: int) -> Iterator[tuple[int, list[Event]]]:
        payloads = batch.payloads()
        if self._mostly_unfit and payloads:
            objects = decode_joined(_many_objects, batch if len(payloads) == batch.count else join(payloads))
            if objects is not None:
                return self._decode_objects(objects, payloads, index)
        return self._decode_each(payloads, index)

    def _decode_each(self, payloads: list[bytes], index: int) -> Iterator[tuple[int, list[Event]]]:
        """Most payloads are fit: collect events, and hand them out before the next unfit payload is looked at."""
        fit: list[Event] = []
        unfit = 0
        for position, payload in enumerate(payloads, index):
            event: Event | None
            if len(payload) < self._watch:
                try:
                    fit.append(_one(payload))
                    continue
                except _UNFIT:
                    unfit += 1
            if fit:
                yield position - len(fit), fit
                fit = []
            event = self.decode_one(payload, position)
            if event is not None:
                fit.append(event)
            if unfit > 8 and 2 * unfit > position - index:
                self._mostly_unfit = True
                if fit:
                    yield position, fit
                yield from self._decode_apart(join(payloads[position - index + 1 :]), position + 1)
                return
        if fit:
            yield index + len(payloads) - len(fit), fit
        self._mostly_unfit = 4 * unfit > len(payloads)

    def _decode_objects(
        self, objects: list[dict[str, Any]], payloads: list[bytes], index: int
    ) -> Iterator[tuple[int, list[Event]]]:
        """Most payloads are unfit (a producer that adds fields to every event): they were parsed in one go.

        Events with a surplus that was met before are collected as well; anything else is looked at alone.
        """
        events: list[Event] = []
        surpluses: list[Surplus] = []
        unfit = 0
        met = {} if max(map(len, payloads)) >= self._watch else self._met
        for position, obj in enumerate(objects, index):
            kind = obj.get("type")
            surplus = met[kind].get(tuple(obj)) if type(kind) is str and kind in met else None
            if surplus is not None:
                for name in surplus.names:
                    del obj[name]
                try:
                    events.append(msgspec.convert(obj, surplus.fast))  # type: ignore[arg-type]
                    surpluses.append(surplus)
                    unfit += surplus.unfit
                    continue
                except _UNFIT:
                    pass
            yield from self._hand_out(events, surpluses, position)
            events, surpluses = [], []
            unfit += 1
            event = self._look_at(obj, surplus, position)
            if event is not None:
                yield position, [event]
        yield from self._hand_out(events, surpluses, index + len(payloads))
        self._mostly_unfit = 4 * unfit > len(payloads)

    def _hand_out(self, events: list[Event], surpluses: list[Surplus], end: int) -> Iterator[tuple[int, list[Event]]]:
        """Events before index `end`; the warnings about their surplus come as each is applied."""
        if events:
            self.warnings.defer(end - len(events), surpluses)
            yield end - len(events), events
            self.warnings.settle()

    def _look_at(self, obj: dict[str, Any], surplus: Surplus | None, index: int) -> Event | None:
        if surplus is not None:  # which has been taken off already
            return self._sanitize(obj, surplus, index)
        if too_deep(obj, self._limits.nesting + 1):
            raise _placed(nesting_exceeded(self._limits.nesting), index)
        return self._enforce(self._translated(obj, index), index)

    def _decode_slowly(self, payload: Bytes, index: int | None) -> Event | None:
        obj = self.to_dict(payload, index)
        return None if obj is None else self._enforce(obj, index)

    # Any form to dicts of our own

    def _read(self, event: object, index: int | None) -> dict[str, Any] | None:
        """A dict of our own that is certain to be JSON; None when `"lenient"` skips it."""
        copier = Copier(self._limits.nesting)
        try:
            obj = own_object(event, Event, self._limits, partial(_copied, copier))
        except Malformed as problem:
            self._refuse(problem, _type_of(event), index)
        except DecodeError as error:
            if self.policy == "strict":
                raise _placed(error, index) from None
            self._note(error.rule, f"{error.message}: it was skipped", "", None, index, refused=True)
        except LimitExceeded as error:
            raise _placed(error, index) from None
        else:
            for path in copier.repaired:
                message = f"half a surrogate pair at `{place(path)}` became U+FFFD"
                self._note("SSE-9", message, pointer(path), _type_of(obj), index)
            return obj
        return None

    def _translated(self, obj: dict[str, Any], index: int | None) -> dict[str, Any]:
        if concerns(obj):
            kind = _type_of(obj)

            def warn(rule: str, message: str, path: Path) -> None:
                self._note(rule, message, pointer(path), kind, index)

            translate(obj, self.boundary, warn)
        return obj

    # Dicts to events

    def _enforce(self, obj: dict[str, Any], index: int | None) -> Event | None:
        """The event of a dict of our own, which may be changed."""
        kind = obj.get("type")
        shape = _union().shapes.get(kind) if type(kind) is str else None
        if shape is None:
            self._unknown(obj, index)
            return None
        if self.policy == "lenient" and kind == "TOOL_CALL_RESULT" and "messageId" not in obj:
            call = obj.get("toolCallId")
            if isinstance(call, str):
                obj["messageId"] = f"{call}:result"
                message = "`/messageId` is missing; one is made of the call's id"
                self._note("PROC-7", message, "/messageId", kind, index, refused=True)
        surplus = self._surplus(shape, tuple(obj))
        for name in surplus.names:
            del obj[name]
        try:
            event: Event = msgspec.convert(obj, shape.struct)  # type: ignore[assignment]
        except _UNFIT:
            return self._sanitize(obj, surplus, index)
        self._note_surplus(surplus, index)
        return event

    def _surplus(self, shape: Shape, names: tuple[str, ...]) -> Surplus:
        known = self._met.get(shape.tag)
        surplus = known.get(names) if known is not None else None
        if surplus is None:
            surplus = Surplus(shape, names)
            # An event that the boundary may change has to pass it each time.
            if shape.tag not in TRANSLATED and "rawEvent" not in names and sum(map(len, names)) < _REMEMBERED:
                known = self._met.setdefault(shape.tag, {})
                if len(known) < _REMEMBERED:
                    known[names] = surplus
        return surplus

    def _sanitize(self, obj: dict[str, Any], surplus: Surplus, index: int | None) -> Event | None:
        """Sanitize in full a dict that did not convert; its unknown members are off already."""
        findings = Findings(lenient=self.policy == "lenient")
        kind = surplus.kind
        try:
            kept = _union().shapes[kind].sanitize(obj, (), findings)
            for rule, message, path in findings.repairs:
                self._note(rule, message, path, kind, index, refused=True)
            if isinstance(kept, Unrecognised):
                self._note("PROC-9", f"{kept}: the event was dropped", "", kind, index)
                return None
            event: Event = converted(kept, surplus.struct)
        except Malformed as problem:
            self._refuse(problem, kind, index)
            return None
        self._note_surplus(surplus, index)
        for rule, message, path in findings.notes:
            self._note(rule, message, path, kind, index)
        return event

    def _unknown(self, obj: dict[str, Any], index: int | None) -> None:
        try:
            unknown = _union().sanitize(obj, (), Findings())
        except Malformed as problem:
            self._refuse(problem, None, index)
        else:
            self._note("PROC-4", f"{unknown}: the event was dropped", "", _type_of(obj), index)

    # Warnings and errors

    def _note(
        self, rule: str, message: str, path: str, kind: str | None, index: int | None, refused: bool = False
    ) -> None:
        self.warnings.add(rule, message, index=index, type=kind, path=path, refused=refused)

    def _note_surplus(self, surplus: Surplus, index: int | None) -> None:
        for message, path in surplus.warnings:
            self._note("PROC-5", message, path, surplus.kind, index)

    def _refuse(self, problem: Malformed, kind: str | None, index: int | None) -> None:
        """A malformed known value: fatal, or under `"lenient"` the end of this event only."""
        if self.policy == "strict":
            raise problem.error("the event", index=index, type=kind) from None
        self._note(problem.rule, f"{problem}: the event was skipped", pointer(problem.path), kind, index, refused=True)


def _placed(error: Any, index: int | None) -> Any:
    error.index = index
    return error


def _copied(copier: Copier, obj: dict[str, Any]) -> dict[str, Any]:
    """A clean copy. Half a surrogate pair stays in a `delta`, as the next one may bring the other half."""
    copy: dict[str, Any] = copier.copy(obj)
    delta = obj.get("delta")
    if isinstance(delta, str) and _type_of(copy) in _STREAMED:
        copy["delta"] = str.__str__(delta)
        copier.repaired = [path for path in copier.repaired if path != ("delta",)]
    return copy


def _type_of(obj: object) -> str | None:
    kind = obj.get("type") if isinstance(obj, dict) else None
    return str.__str__(kind) if isinstance(kind, str) else None
