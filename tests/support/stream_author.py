"""Writes valid streams of events: the grammar behind the strategies.

An `Author` knows what is open and who owns what. It draws the next thing that may happen from the table `ACTIONS` and
writes the events. Every choice is a draw, so that a failing stream shrinks to a short one. What a valid stream may do
although consumers are free to judge it (an id used by two families, say) is drawn rarely.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from support.stream_ledger import (
    DELTAS,
    METADATA,
    OPENERS,
    OPERATIONS,
    PARTS,
    POOLS,
    ROLES,
    SHARED,
    STATES,
    TAGS,
    VALUES,
    Ledger,
    Owners,
    Wire,
)

__all__ = ["ACTIONS", "Author"]


class Author(Ledger):
    """Writes one valid stream, event by event."""

    # Items

    def _explicit(self, open_items: Owners) -> list[str]:
        """The ids that were opened by a start, not by a chunk."""
        return [name for name in open_items if not self._is_chunk(open_items, name)]

    def _is_chunk(self, open_items: Owners, name: str) -> bool:
        return any(stream["open"] is open_items and stream["id"] == name for stream in self.lanes.values())

    def start_text(self) -> None:
        name = self.id("text")
        if name in self.text:
            return
        tag = self.tag_for("text", name)
        self.close_lane(tag)
        role = self.pick([None, *ROLES])
        self.write("TEXT_MESSAGE_START", tag, messageId=name, role=role, name=self.pick([None, None, "ann"]))
        self.text[name] = self.owners["text"].setdefault(name, tag)
        self.hold(name, role or "assistant", tag)

    def start_reasoning(self) -> None:
        name = self.id("reasoning")
        if name in self.reasoning:
            return
        tag = self.tag_for("reasoning", name)
        self.close_lane(tag)
        self.write("REASONING_MESSAGE_START", tag, messageId=name, role="reasoning")
        self.reasoning[name] = self.owners["reasoning"].setdefault(name, tag)
        self.hold(name, "reasoning", tag)

    def start_span(self) -> None:
        name = self.id("span")
        if name in self.spans:
            return
        tag = self.tag_for("reasoning", name)
        self.close_lane(tag)
        self.write("REASONING_START", tag, messageId=name)
        self.spans[name] = self.owners["reasoning"].setdefault(name, tag)

    def end_span(self) -> None:
        if self.spans:
            name = self.pick(list(self.spans))
            tag = self.pick([None, self.spans.pop(name)])
            self.close_lane(tag)
            self.write("REASONING_END", tag, messageId=name)

    def _parent_for(self, name: str) -> str | None:
        """A parent to name at a call's start; a call that has an owner keeps to parents of its owner (SUB-12)."""
        owners = self.owners["call"]
        parents = ["u0", ""] if self.chance(12) else POOLS["parent"]
        if name in owners:
            known = {**self.owners["minted"], **self.owners["text"]}
            parents = [parent for parent in parents if known.get(parent, owners[name]) == owners[name]]
        return self.pick([None, *parents])

    def _tag_for_call(self, name: str, parent: str | None) -> str | None:
        """A tag for a call's start that agrees with the owner of the call, or else of its parent."""
        if name in SHARED or parent in SHARED:
            return None
        if name in self.owners["call"]:
            return self.pick([None, self.owners["call"][name]])
        if parent in self.owners["text"]:
            return self.pick([None, self.owners["text"][parent]])
        return self.owners["minted"][parent] if parent in self.owners["minted"] else self.tag()

    def _place_call(self, name: str, parent: str | None, tag: str | None) -> str | None:
        """Notes a started call and gives its owner: an untagged one inherits its parent's (SUB-12)."""
        if name not in self.home:
            home = parent or name
            if self.roles.get(home, "assistant") != "assistant":
                home = name
            self.hold(home, "assistant", tag)
            self.home[name] = home
        if tag is not None:
            # TOOL-14: whose call it is, is whose message it is in.
            for claimed in {parent or name, self.home[name]}:
                self.owners["minted"].setdefault(claimed, tag)
        inherited = tag if tag is not None else self.owners["text"].get(parent or "")
        return self.owners["call"].setdefault(name, inherited)

    def start_call(self) -> None:
        name = self.id("call")
        if name in self.calls:
            return
        parent = self._parent_for(name)
        tag = self._tag_for_call(name, parent)
        self.close_lane(tag)
        tool = "other" if self.chance(30) else f"f-{name}"
        self.write("TOOL_CALL_START", tag, toolCallId=name, toolCallName=tool, parentMessageId=parent)
        self.calls[name] = self._place_call(name, parent, tag)

    def _go_on(self, type: str, key: str, open_items: Owners, **members: Any) -> None:
        """The next event of an item that was opened explicitly, if there is one."""
        names = self._explicit(open_items)
        if names:
            name = self.pick(names)
            tag = self.pick([None, open_items[name]])
            if type.endswith("_END"):
                del open_items[name]
            self.close_lane(tag)
            self.write(type, tag, **{key: name}, **members)

    def add_text(self) -> None:
        self._go_on("TEXT_MESSAGE_CONTENT", "messageId", self.text, delta=self.pick(DELTAS))

    def add_args(self) -> None:
        self._go_on("TOOL_CALL_ARGS", "toolCallId", self.calls, delta=self.pick(DELTAS))

    def add_reasoning(self) -> None:
        self._go_on("REASONING_MESSAGE_CONTENT", "messageId", self.reasoning, delta=self.pick(DELTAS))

    def add_emoji_in_halves(self) -> None:
        names = self._explicit(self.text)
        if names:
            name = self.pick(names)
            self.close_lane(None)
            for half in ("\ud83d", "\ude00"):
                self.events.append({"type": "TEXT_MESSAGE_CONTENT", "messageId": name, "delta": half})

    def end_text(self) -> None:
        self._go_on("TEXT_MESSAGE_END", "messageId", self.text)

    def end_call(self) -> None:
        self._go_on("TOOL_CALL_END", "toolCallId", self.calls)

    def end_reasoning(self) -> None:
        self._go_on("REASONING_MESSAGE_END", "messageId", self.reasoning)

    def result(self) -> None:
        call = self.id("call")
        name = self.id("result") if self.chance(16) else f"r{call[1:]}"
        if name in self.roles and not self.chance(6):
            return
        tag = self.tag(name)
        self.close_lane(tag)
        content: Any = self.pick([PARTS, PARTS[:1], []]) if self.chance(6) else self.pick(DELTAS)
        role = self.pick([None, "tool"])
        self.write("TOOL_CALL_RESULT", tag, messageId=name, toolCallId=call, content=content, role=role)
        self.owners["text"][name] = tag
        self.hold(name, "tool", tag)

    # Chunks (protocol section 11)

    def chunk(self) -> None:
        kind = self.pick(["text", "tool", "reasoning"])
        lanes = [lane for lane, stream in self.lanes.items() if stream["kind"] == kind]
        if lanes and not self.chance(3):
            self._continue_chunk(kind, self.pick(lanes))
        else:
            self._open_chunk(kind)

    def _delta(self) -> str | None:
        return None if self.chance(5) else self.pick(DELTAS)

    def _continue_chunk(self, kind: str, lane: str | None) -> None:
        """With or without tag, with or without id, wherever the lane stays the only reading (CHUNK-10..12)."""
        stream = self.lanes[lane]
        candidates = [other for other, item in self.lanes.items() if item["kind"] == kind]
        forms: list[tuple[str | None, bool]] = [(lane, True), (None, True)]
        if lane is not None or None in candidates:
            forms.append((lane, False))
        if candidates == [lane]:
            forms.append((None, False))
        tag, named = self.pick(forms)
        members: Wire = {"delta": self._delta()}
        if named:
            members[stream["key"]] = stream["id"]
        if self.chance(4):
            members |= stream["fields"]
        self.write(f"{OPENERS[kind]}_CHUNK", tag, **members)

    def _open_chunk(self, kind: str) -> None:
        open_items, family, key = {
            "text": (self.text, "text", "messageId"),
            "tool": (self.calls, "call", "toolCallId"),
            "reasoning": (self.reasoning, "reasoning", "messageId"),
        }[kind]
        name = self.id(family)
        if name in open_items:
            return
        fields: Wire = {}
        if kind == "tool":
            fields = {"toolCallName": f"f-{name}", "parentMessageId": self._parent_for(name)}
            tag = self._tag_for_call(name, fields["parentMessageId"])
        else:
            tag = self.tag_for(family, name)
        if kind == "text":
            fields = {"role": self.pick([None, *ROLES]), "name": self.pick([None, None, "ann"])}
        self.close_lane(tag)
        self.write(f"{OPENERS[kind]}_CHUNK", tag, **{key: name}, **fields, delta=self._delta())
        if kind == "tool":
            open_items[name] = self._place_call(name, fields["parentMessageId"], tag)
        else:
            open_items[name] = self.owners[family].setdefault(name, tag)
            self.hold(name, "reasoning" if kind == "reasoning" else fields["role"] or "assistant", tag)
        self.lanes[tag] = {"kind": kind, "id": name, "key": key, "fields": fields, "open": open_items}

    # Everything that stands alone

    def step(self) -> None:
        if self.steps and self.chance(2):
            tag, name = self.pick(self.steps)
            self.steps.remove((tag, name))
            self.close_lane(tag)
            self.write("STEP_FINISHED", tag, stepName=name)
            return
        tag, name = self.tag(), self.pick(["plan", "act"])
        if (tag, name) not in self.steps:
            self.close_lane(tag)
            self.steps.append((tag, name))
            self.write("STEP_STARTED", tag, stepName=name)

    def subagent(self) -> None:
        if self.active and self.chance(2):
            self._end_subagent(self.pick(self.active))
            return
        name = self.pick(TAGS)
        if name not in self.active and name not in self.ended:
            parents = {
                "parentSubagentRunId": self.pick([None, *self.active, *self.ended]),
                "parentToolCallId": self.pick([None, "c0"]),
            }
            self.write("SUBAGENT_STARTED", subagentRunId=name, name="worker", **parents)
            self.active.append(name)

    def _end_subagent(self, name: str) -> None:
        self.active.remove(name)
        self.ended.append(name)
        self.close_lane(name)
        outcome = self.pick([None, {"type": "success"}, {"type": "suspended", "interruptIds": ["i0"]}, "error"])
        if outcome == "error":
            self.write("SUBAGENT_ERROR", subagentRunId=name, message="lost")
        else:
            result = self.pick([None, 0, {"r": 1}])
            self.write("SUBAGENT_FINISHED", subagentRunId=name, outcome=outcome, result=result)

    def state(self) -> None:
        tag = self.tag()
        self.close_lane(tag)
        if self.chance(3):
            self.write("STATE_SNAPSHOT", tag, nullable={"snapshot": self.pick(STATES)})
        else:
            self.write("STATE_DELTA", tag, delta=self._patch())

    def _patch(self) -> list[Wire]:
        return [self.pick(OPERATIONS) for _ in range(self.below(4))]

    def activity(self) -> None:
        name, owners = self.id("activity"), self.owners["activity"]
        known = name in self.roles
        if known and not self.chance(3):
            tag = self.pick([None, owners[name]]) if name in owners else self.tag(name)
            self.write("ACTIVITY_DELTA", tag, messageId=name, activityType=self.pick(["a", "b"]), patch=self._patch())
            return
        tag, replace = self.tag(name), self.pick([None, True, False])
        self.write(
            "ACTIVITY_SNAPSHOT",
            tag,
            messageId=name,
            activityType=self.pick(["a", "b"]),
            content=self.pick([{"a": 1, "b": [1], "c": {"d": None}}, {}]),
            replace=replace,
        )
        if replace is not False or (not known and name not in owners):
            owners[name] = tag
        else:
            # Declined. Whose it is now, when it was made in an earlier run, is nobody's rule: only untagged deltas.
            owners.setdefault(name, None)
        self.hold(name, "activity", tag)

    def encrypted_value(self) -> None:
        subtype, ids, families = self.pick(
            [
                ("tool-call", "call", ("call",)),
                ("message", "text", ("text", "minted", "reasoning")),
                ("message", "reasoning", ("text", "minted", "reasoning")),
            ]
        )
        name = self.id(ids)
        owners = [self.owners[family][name] for family in families if name in self.owners[family]]
        tag = self.pick([None, *owners[:1]])
        value = self.pick(["AA", "B"])
        self.write("REASONING_ENCRYPTED_VALUE", tag, subtype=subtype, entityId=name, encryptedValue=value)

    def custom(self) -> None:
        tag = self.tag()
        self.close_lane(tag)
        self.write("CUSTOM", tag, name="x.tick", nullable={"value": self.pick(VALUES)})

    def raw(self) -> None:
        self.write("RAW", self.tag(), source=self.pick([None, "up"]), nullable={"event": self.pick(VALUES)})

    # Messages whole: the history, an input's echo, a snapshot

    def message(self, name: str, role: str, tag: str | None) -> Wire:
        message: Wire = {"id": name, "role": role, "content": self.pick(["held", ""])}
        if role == "assistant":
            calls = [call for call, home in self.home.items() if home == name]
            if calls:
                arguments = self.pick(['{"a":1}', "", '{"a'])
                message["toolCalls"] = [
                    {"id": call, "type": "function", "function": {"name": f"f-{call}", "arguments": arguments}}
                    for call in calls
                ]
            if self.chance(3):
                del message["content"]
        elif role == "tool":
            message["toolCallId"] = self.pick(POOLS["call"]) if self.chance(8) else f"c{name[1:]}"
        elif role == "activity":
            message |= {"activityType": "a", "content": {"a": 1}}
        elif role == "user" and self.chance(12):
            message["content"] = PARTS
        if self.chance(10):
            message["metadata"] = self.pick(METADATA)
        if role != "activity" and self.chance(10):
            message["encryptedValue"] = "CC"
        if tag is not None:
            message["subagentRunId"] = tag
        return message

    def history(self) -> list[Wire]:
        """Messages that were there before the stream."""
        messages = []
        for name, role in (("u0", "user"), ("t0", "assistant"), ("a0", "activity"), ("k0", "reasoning")):
            if self.chance(3):
                tag = self.pick([None, None, None, "s1"]) if role != "user" else None
                if role == "assistant" and self.chance(3):
                    self.home["c0"] = name
                messages.append(self.message(name, role, tag))
                self.hold(name, role, tag)
        return messages

    def _restate(self, name: str, message: Wire) -> None:
        """A snapshot or an input says who owns a message, and its calls (MSGS-5, OPEN-2)."""
        tag = message.get("subagentRunId")
        for family in ("text", "activity", "reasoning"):
            self.owners[family][name] = tag
        self.owners["minted"].pop(name, None)
        for call in message.get("toolCalls", ()):
            self.owners["call"][call["id"]] = tag

    def _busy(self) -> dict[str, set[str | None]]:
        """The messages that something open writes to, with the owners that have to stay."""
        busy: dict[str, set[str | None]] = {}
        for open_items in (self.text, self.reasoning, self.spans):
            for name, owner in open_items.items():
                busy.setdefault(name, set()).add(owner)
        for call, owner in self.calls.items():
            busy.setdefault(self.home.get(call, call), set()).add(owner)
        return busy

    def snapshot(self) -> None:
        busy = self._busy()
        if any(len(owners) > 1 for owners in busy.values()):
            return
        self.close_lanes()
        messages: list[Wire] = []
        names = list(self.roles)
        if self.chance(2):
            names.append(self.pick(["n0", "n1", "t2"]))
        for name in names:
            if self.chance(12 if name in busy else 3):
                continue
            tag = min(busy[name], key=str) if name in busy else self.pick([self.stored.get(name), self.tag(name)])
            role = self.roles.get(name) or self.pick(["assistant", "user"])
            messages.append(self.message(name, role, tag))
        if messages and self.chance(20):
            messages.append({"id": "y0", "role": "critic", "content": "?"})
        self.write("MESSAGES_SNAPSHOT", messages=messages)
        held = {message["id"] for message in messages}
        for role in ("activity", "reasoning"):
            if not any(message["role"] == role for message in messages):
                held |= {name for name, kind in self.roles.items() if kind == role}
        self.roles = {name: role for name, role in self.roles.items() if name in held}
        self.home = {call: home for call, home in self.home.items() if home in held}
        for message in messages:
            if message["role"] == "critic":
                continue
            name = message["id"]
            self._restate(name, message)
            self.roles[name] = message["role"]
            self.stored[name] = message.get("subagentRunId")

    # Runs

    def begin(self) -> None:
        self.forget()
        echo: Wire | None = None
        if self.chance(6):
            names = [*self.roles, self.pick(["e0", "e1"])]
            chosen = [name for name in names if not self.chance(2)]
            messages = [self.message(name, self.roles.get(name, "user"), self.stored.get(name)) for name in chosen]
            echo = {"threadId": "thread", "runId": f"run-{self.runs}", "messages": messages}
            for message in messages:
                self._restate(message["id"], message)
                self.hold(message["id"], message["role"], message.get("subagentRunId"))
        self.write(
            "RUN_STARTED",
            threadId="thread",
            runId=f"run-{self.runs}",
            protocolVersion=self.pick([None, "1.0"]),
            input=echo,
        )

    def finish(self) -> None:
        """Closes what is open, in any order, and ends the run well."""
        closers: list[Callable[[], None]] = []
        closers += [self.end_text] * len(self._explicit(self.text))
        closers += [self.end_call] * len(self._explicit(self.calls))
        closers += [self.end_reasoning] * len(self._explicit(self.reasoning))
        closers += [self.end_span] * len(self.spans)
        while closers:
            closers.pop(self.below(len(closers)))()
        for tag, name in self.steps:
            self.write("STEP_FINISHED", tag, stepName=name)
        for name in list(self.active):
            self._end_subagent(name)
        interrupts = [{"id": "i0", "reason": "approve", "toolCallId": "c0"}, {"id": "i1", "reason": "x"}]
        outcome = self.pick(
            [
                None,
                {"type": "success"},
                {"type": "cancelled"},
                {"type": "interrupt", "interrupts": interrupts[: 1 + self.below(2)]},
            ]
        )
        self.write(
            "RUN_FINISHED",
            threadId="thread",
            runId=f"run-{self.runs}",
            outcome=outcome,
            result=self.pick([None, None, {"done": [None]}]),
            usage=self.pick([None, [{"inputTokens": 3, "outputTokens": 4, "totalTokens": 7, "model": "m"}]]),
        )

    def error(self) -> None:
        self.write("RUN_ERROR", message="upstream reset", code=self.pick([None, "E"]))

    def run(self, actions: Sequence[Callable[[Author], None]], length: int) -> None:
        if self.chance(30) and not (self.events and self.events[-1]["type"] == "RUN_ERROR"):
            self.error()
        else:
            self.begin()
            while self.below(length):
                self.pick(actions)(self)
            end = self.below(12)
            if end == 11:
                self.error()
            else:
                self.finish()
                if end == 10:
                    self.error()
        self.runs += 1


ACTIONS: tuple[Callable[[Author], None], ...] = (
    Author.start_text,
    Author.add_text,
    Author.end_text,
    Author.start_call,
    Author.add_args,
    Author.end_call,
    Author.chunk,
    Author.chunk,
    Author.chunk,
    Author.result,
    Author.start_reasoning,
    Author.add_reasoning,
    Author.end_reasoning,
    Author.start_span,
    Author.end_span,
    Author.step,
    Author.subagent,
    Author.state,
    Author.activity,
    Author.encrypted_value,
    Author.custom,
    Author.raw,
    Author.snapshot,
    Author.add_text,
    Author.add_args,
    Author.add_emoji_in_halves,
)
