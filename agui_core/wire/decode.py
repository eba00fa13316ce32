"""JSON payloads, dicts and foreign objects become event structs (PROC-1: boundary, then enforcement).

Conforming events pay for nothing but themselves: bytes decode straight into the union of structs, many at a time, and
since unknown fields are forbidden there, success means that there is nothing to strip and nothing malformed. Only what
fails takes the slow way: parsed into a dict, translated by the boundary, stripped of unknown top-level members by one
comparison of key sets and converted; and only if that fails as well is it judged in full (`schema`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Literal, TypeAlias

import msgspec

from agui_core._text import place
from agui_core.errors import DecodeError, LimitExceeded, ProtocolError
from agui_core.limits import Limits
from agui_core.protocol.events import EVENT_TYPES, Event
from agui_core.warnings import ProtocolWarning, WarningLog
from agui_core.wire.batch import Batch, decode_joined, join
from agui_core.wire.compat import TRANSLATED, Boundary, concerns, translate, upgrade_input
from agui_core.wire.encode import to_wire
from agui_core.wire.fast_events import FastEvent
from agui_core.wire.json_values import Copier, check_nesting, holds_foreign, nesting_exceeded, stack_exceeded, too_deep
from agui_core.wire.malformed import Malformed, Path, describe, pointer
from agui_core.wire.parse import Text, check_size, parse
from agui_core.wire.pydantic_models import dumped, is_model
from agui_core.wire.sanitize import converted, judge, lean, refuse_unknown_kind
from agui_core.wire.shapes import Findings, Shape, Union, Unrecognised, node_of
from agui_core.wire.surplus import Surplus

__all__ = ["Decoder", "Policy", "decode"]

Policy: TypeAlias = Literal["strict", "lenient"]
"""What becomes of an event that the protocol forbids: it is refused, or repaired or skipped."""

_one = msgspec.json.Decoder(Event).decode
_many = msgspec.json.Decoder[Any](Event | None)
_many_plain = msgspec.json.Decoder[Any](FastEvent | None)
_many_objects = msgspec.json.Decoder[Any](dict[str, Any] | None)
_TRY_PLAIN_AGAIN = 15
"""Batches that are not tried as plain content after one in which some content was more."""
_UNFIT = (msgspec.MsgspecError, RecursionError, UnicodeError)

_EVENT_CLASSES = frozenset(EVENT_TYPES.values())


@cache
def _union() -> Union:
    """What events may hold, by type; made when the first event does not simply fit."""
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
"""Types whose `delta` may end or begin inside a surrogate pair; the reducer joins the halves."""

_REMEMBERED = 256
"""Bounds what is remembered of surplus members: key sets per type, and characters per key set."""


def decode(json: Text, on_warning: Callable[[ProtocolWarning], object] | None = None) -> Event | None:
    """One event from one JSON text; None when its type is unknown and it is therefore dropped (PROC-4).

    Strict: raises `DecodeError` (SSE-8), `ProtocolError` (PROC-7) or `LimitExceeded`. What is stripped or dropped is
    told to `on_warning`. The halves of a surrogate pair that a `delta` begins or ends with are left in it.
    """
    return Decoder(WarningLog(listener=on_warning)).decode_one(json)


class Decoder:
    """Decodes the events of one stream, under one policy, into one log of warnings.

    Under `"strict"` a malformed event raises; under `"lenient"` it is skipped with a warning, nulls in optional fields
    count as absent, and a malformed patch operation empties its patch. `LimitExceeded` is raised under both. `index` is
    the event's place in the stream, counted from 0 by the caller, dropped events included.

    `boundary` is the state of the compatibility boundary; the caller sets its `run_id` with every `RUN_STARTED`.
    """

    __slots__ = (
        "_limits",
        "_met",
        "_mostly_unfit",
        "_not_plain",
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
        self._not_plain = 0
        self._met: dict[str, dict[tuple[str, ...], Surplus]] = {}

    def copy(self, warnings: WarningLog) -> Decoder:
        """An independent decoder at the same point of the stream, with another log."""
        boundary = msgspec.structs.replace(self.boundary)
        return Decoder(warnings, policy=self.policy, limits=self._limits, boundary=boundary)

    # One event at a time

    def decode_one(self, payload: Text, index: int | None = None) -> Event | None:
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
        """The same from whatever a caller has: one of our structs (trusted as it is, unless its open data hold what is
        no JSON, such as a model), a JSON text, a decoded dict, or an event of `ag_ui.core`.
        """
        if type(event) in _EVENT_CLASSES:
            try:
                has_open = check_nesting(event, self._limits.nesting)  # type: ignore[arg-type]
            except LimitExceeded as error:
                raise _placed(error, index) from None
            if not (has_open and holds_foreign(event)):
                return event  # type: ignore[return-value]
        if isinstance(event, Text):
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
        """Judge a dict that has passed the boundary, as middleware returned it (PROC-5..18). It is not changed."""
        obj = self._read(event, index)
        return None if obj is None else self._enforce(obj, index)

    def to_shape(self, value: object, shape: Any, *, own: bool = False, said: bool = False) -> Any:
        """A struct of `shape` (a struct type, or a union such as `Message`), from one of its structs, a dict, a JSON
        text or an object of `ag_ui.core`. What is unknown is stripped with a warning, legacy parts are upgraded; `own`
        documents of the application are upgraded without a warning. In what it has `said` just now a part or message of
        no known kind is refused.

        Raises `ProtocolError`, `DecodeError` or `LimitExceeded` under both policies, also for an unknown kind of value.
        """
        if isinstance(value, msgspec.Struct):
            return value
        name = getattr(shape, "__name__", None)
        court = Findings()
        try:
            obj, _ = self._plain(value, shape)
            upgrade_input(obj, _quietly if own else court.note)
            judged = judge(shape, obj, court)
        except Malformed as verdict:
            raise ProtocolError(verdict.about("the value"), rule=verdict.rule, type=name) from None
        if isinstance(judged, Unrecognised):
            raise ProtocolError(f"{judged}; nothing that requires it can stay", rule="PROC-9", type=name)
        for rule, message, path in court.notes:
            if said:
                refuse_unknown_kind(rule, message, path, name)
            self._note(rule, message, path, name, None)
        return judged

    def to_json(self, value: object, what: str) -> Any:
        """A private copy of open data that an application gives: models as what they write.

        Raises `ProtocolError` for what is no JSON, `LimitExceeded` for what is nested too deeply.
        """
        try:
            return Copier(self._limits.nesting).copy(value)
        except Malformed as verdict:
            raise ProtocolError(verdict.about(f"the {what}"), rule=verdict.rule) from None

    # Many events at a time

    def decode_batch(self, batch: Batch | list[bytes], index: int) -> Iterator[tuple[int, list[Event]]]:
        """The events of many JSON texts, as lists, each with the index of its first event; the rest follow gapless.

        Lazy: a warning is logged, and an error raised, when the iterator reaches its event, so that the caller has
        applied all events before it. When the last events were dropped, the last list is empty, and its index is that
        of the next event. Depth is not checked where events decode on the fast path: the caller calls `check_nesting`
        for events with open data, which spares those that have none.
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
        """All events of a conforming batch, content as `PlainContent` where the whole batch allows that; or None."""
        if self._mostly_unfit or len(batch.text) > self._limits.event_bytes:
            return None
        if self._not_plain:
            self._not_plain -= 1
        else:
            events = decode_joined(_many_plain, batch)
            if events is not None:
                return events
            self._not_plain = _TRY_PLAIN_AGAIN
        return decode_joined(_many, batch)

    def _decode_apart(self, batch: Batch, index: int) -> Iterator[tuple[int, list[Event]]]:
        payloads = batch.payloads()
        if self._mostly_unfit and payloads:
            objects = decode_joined(_many_objects, batch if len(payloads) == batch.count else join(payloads))
            if objects is not None:
                return self._decode_objects(objects, payloads, index)
        return self._decode_each(payloads, index)

    def _decode_each(self, payloads: list[bytes], index: int) -> Iterator[tuple[int, list[Event]]]:
        """Most payloads are fit: collect them, and hand out what was collected before an unfit one is looked at."""
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
                    events.append(msgspec.convert(obj, surplus.plain))  # type: ignore[arg-type]
                    surpluses.append(surplus)
                    continue
                except _UNFIT:
                    pass
            if events:
                unfit += sum([bool(surplus.names) for surplus in surpluses])
                self.warnings.defer(position - len(events), surpluses)
                yield position - len(events), events
                self.warnings.settle()
                events, surpluses = [], []
            unfit += 1
            event = self._look_at(obj, surplus, position)
            if event is not None:
                yield position, [event]
        if events:
            unfit += sum([bool(surplus.names) for surplus in surpluses])
            self.warnings.defer(index + len(payloads) - len(events), surpluses)
            yield index + len(payloads) - len(events), events
            self.warnings.settle()
        self._mostly_unfit = 4 * unfit > len(payloads)

    def _look_at(self, obj: dict[str, Any], surplus: Surplus | None, index: int) -> Event | None:
        if surplus is not None:  # which has been taken off already
            return self._judge(obj, surplus, index)
        if too_deep(obj, self._limits.nesting + 1):
            raise _placed(nesting_exceeded(self._limits.nesting), index)
        return self._enforce(self._translated(obj, index), index)

    def _decode_slowly(self, payload: Text, index: int | None) -> Event | None:
        obj = self.to_dict(payload, index)
        return None if obj is None else self._enforce(obj, index)

    # Whatever there is to dicts of our own

    def _read(self, event: object, index: int | None) -> dict[str, Any] | None:
        """A dict of our own that is certain to be JSON; None when `"lenient"` skips it."""
        try:
            obj, repaired = self._plain(event)
        except Malformed as verdict:
            self._refuse(verdict, _type_of(event), index)
        except DecodeError as error:
            if self.policy == "strict":
                raise _placed(error, index) from None
            self._note(error.rule, f"{error.message}: it was skipped", "", None, index, refused=True)
        except LimitExceeded as error:
            raise _placed(error, index) from None
        else:
            for path in repaired:
                where = pointer(path)
                self._note(
                    "SSE-9", f"half a surrogate pair at `{place(path)}` became U+FFFD", where, _type_of(obj), index
                )
            return obj
        return None

    def _plain(self, value: object, shape: Any = Event) -> tuple[dict[str, Any], list[Path]]:
        if isinstance(value, Text):
            obj, suspect = parse(value, self._limits)
            return self._owned(obj) if suspect else (obj, [])
        if isinstance(value, msgspec.Struct):
            try:
                value = to_wire(value)
            except ProtocolError as error:
                raise Malformed(f"holds what is no JSON: {error.message}") from None
        elif is_model(value):
            try:
                value = lean(shape, dumped(value))
            except RecursionError:
                raise stack_exceeded(self._limits.nesting) from None
        if not isinstance(value, dict):
            raise DecodeError(
                "an event is a JSON object (a struct, a dict, JSON text or an ag_ui.core object), not "
                + describe(value),
                rule="SSE-8",
            )
        return self._owned(value)

    def _owned(self, obj: dict[str, Any]) -> tuple[dict[str, Any], list[Path]]:
        """A clean copy; half surrogate pairs stay where two deltas may meet."""
        copier = Copier(self._limits.nesting)
        copy: dict[str, Any] = copier.copy(obj)
        delta = obj.get("delta")
        if isinstance(delta, str) and _type_of(copy) in _STREAMED:
            copy["delta"] = str.__str__(delta)
            return copy, [path for path in copier.repaired if path != ("delta",)]
        return copy, copier.repaired

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
            return self._judge(obj, surplus, index)
        self._note_surplus(surplus, index)
        return event

    def _surplus(self, shape: Shape, names: tuple[str, ...]) -> Surplus:
        known = self._met.get(shape.tag)
        surplus = known.get(names) if known is not None else None
        if surplus is None:
            surplus = Surplus(shape, names)
            # What the boundary has business with is never taken for routine.
            if shape.tag not in TRANSLATED and "rawEvent" not in names and sum(map(len, names)) < _REMEMBERED:
                known = self._met.setdefault(shape.tag, {})
                if len(known) < _REMEMBERED:
                    known[names] = surplus
        return surplus

    def _judge(self, obj: dict[str, Any], surplus: Surplus, index: int | None) -> Event | None:
        """The verdict in full on a dict that did not convert, its unknown members already taken off."""
        court = Findings(lenient=self.policy == "lenient")
        kind = surplus.kind
        try:
            judged = _union().shapes[kind].judge(obj, (), court)
            for rule, message, path in court.forgiven:
                self._note(rule, message, path, kind, index, refused=True)
            if isinstance(judged, Unrecognised):
                self._note("PROC-9", f"{judged}: the event was dropped", "", kind, index)
                return None
            event: Event = converted(judged, surplus.struct)
        except Malformed as verdict:
            self._refuse(verdict, kind, index)
            return None
        self._note_surplus(surplus, index)
        for rule, message, path in court.notes:
            self._note(rule, message, path, kind, index)
        return event

    def _unknown(self, obj: dict[str, Any], index: int | None) -> None:
        try:
            verdict = _union().judge(obj, (), Findings())
        except Malformed as malformed:
            self._refuse(malformed, None, index)
        else:
            self._note("PROC-4", f"{verdict}: the event was dropped", "", _type_of(obj), index)

    # Verdicts

    def _note(
        self, rule: str, message: str, path: str, kind: str | None, index: int | None, refused: bool = False
    ) -> None:
        self.warnings.add(rule, message, index=index, type=kind, path=path, refused=refused)

    def _note_surplus(self, surplus: Surplus, index: int | None) -> None:
        for message, path in surplus.warnings:
            self._note("PROC-5", message, path, surplus.kind, index)

    def _refuse(self, verdict: Malformed, kind: str | None, index: int | None) -> None:
        """A malformed known value: fatal, or under `"lenient"` the end of this event only."""
        if self.policy == "strict":
            raise ProtocolError(verdict.about("the event"), rule=verdict.rule, index=index, type=kind) from None
        self._note(verdict.rule, f"{verdict}: the event was skipped", pointer(verdict.path), kind, index, refused=True)


def _placed(error: Any, index: int | None) -> Any:
    error.index = index
    return error


def _quietly(rule: str, message: str, path: Path) -> None:
    """Takes warnings that nobody needs."""


def _type_of(obj: object) -> str | None:
    kind = obj.get("type") if isinstance(obj, dict) else None
    return str.__str__(kind) if isinstance(kind, str) else None
