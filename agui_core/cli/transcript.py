"""A conversation for people to read: messages in order, results after their calls, the state, the end of the run.

Everything from the wire is escaped; text of several lines is indented under its heading, so that no message can
pretend to be another. Lines are made as they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agui_core.cli.escape import escape_block, escape_line, pretty
from agui_core.cli.terminal import Style, plural
from agui_core.protocol import content as c
from agui_core.protocol import messages as m
from agui_core.protocol.base import UNSET
from agui_core.protocol.run import Interrupt, TokenUsage
from agui_core.reducer.reducer import Reducer
from agui_core.reducer.views import ToolCallView

__all__ = ["Writer", "content_text", "transcript"]

_STATUS = {
    "idle": ("red", "no run: the input holds no event"),
    "running": ("yellow", "the run is going on"),
    "finished": ("green", "the run finished"),
    "interrupted": ("yellow", "the run was interrupted: it waits for answers"),
    "cancelled": ("yellow", "the run was cancelled"),
    "failed": ("red", "the run failed"),
    "truncated": ("red", "truncated: the input ends inside the run"),
    "rejected": ("red", "rejected: the stream breaks the protocol"),
}
_COUNTS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "total_tokens": "total",
    "reasoning_tokens": "reasoning",
    "cached_input_tokens": "cached input",
    "cache_write_input_tokens": "cache write",
}


def transcript(reducer: Reducer, style: Style) -> Iterator[str]:
    """The lines of the transcript, without their line ends."""
    writer = Writer(reducer, style)
    for message in reducer.messages:
        yield from writer.message(message)
    if reducer.state not in ({}, None):
        yield style("bold", "state")
        yield from _indented(pretty(reducer.state))
        yield ""
    yield from writer.run()


class Writer:
    """Makes the lines.

    `room`, for a view that is drawn again and again: characters of a text that are shown, its last ones. An open call
    then shows the value of its arguments so far.
    """

    def __init__(self, reducer: Reducer, style: Style, room: int | None = None) -> None:
        self._reducer = reducer
        self._style = style
        self._room = room
        self._results: dict[str, list[m.ToolMessage]] = {}
        self._shown: set[str] = set()
        for message in reducer.messages:
            if isinstance(message, m.ToolMessage):
                self._results.setdefault(message.tool_call_id, []).append(message)

    def message(self, message: m.Message) -> Iterator[str]:
        """One message with what belongs to it, and an empty line."""
        if isinstance(message, m.ToolMessage) and message.tool_call_id in self._reducer.tool_calls:
            return  # shown with its call
        yield self._heading(message)
        match message:
            case m.AssistantMessage():
                yield from self._text(message.content)
                for call in message.tool_calls or ():
                    yield from self._call(call)
            case m.ReasoningMessage():
                yield from (self._style("dim", line) for line in self._text(message.content))
            case m.ToolMessage():
                yield from self._result(message, "  ")
            case m.ActivityMessage():
                yield from _indented(pretty(message.content))
            case _:
                yield from self._text(message.content)
        yield ""

    def run(self) -> Iterator[str]:
        """The end of the latest run, and the answers that it waits for."""
        reducer, style = self._reducer, self._style
        run = reducer.run
        look, text = _STATUS[reducer.status]
        ids = (
            "" if run.run_id is None else f" (thread {escape_line(run.thread_id or '')}, run {escape_line(run.run_id)})"
        )
        yield style(look, text) + style("dim", ids)
        if reducer.error is not None:
            yield from _indented(escape_line(str(reducer.error)))
        if run.error is not None:
            code = "" if run.error.code is UNSET else f" (code {escape_line(run.error.code)})"
            yield from _indented(escape_block(run.error.message) + code)
        if run.result is not UNSET:
            yield from _indented(f"result: {pretty(run.result)}")
        for usage in run.usage:
            yield from _indented(_usage(usage))
        for interrupt in run.interrupts:
            yield from self._interrupt(interrupt)
        if run.pending_tool_calls and reducer.status != "running":
            yield style("yellow", f"{plural(len(run.pending_tool_calls), 'tool call')} without a result:")
            for id in run.pending_tool_calls:
                call = reducer.tool_calls.get(id)
                yield f"  {escape_line(call.name) if call else '?'} ({escape_line(id)})"

    def _heading(self, message: m.Message) -> str:
        words = [self._style("bold", message.role)]
        if isinstance(message, m.ActivityMessage):
            words.append(escape_line(message.activity_type))
        if isinstance(message, m.ToolMessage):
            words.append(f"result for {escape_line(message.tool_call_id)}, a call that is not here")
        name = getattr(message, "name", UNSET)
        if name is not UNSET:
            words.append(escape_line(name))
        if message.subagent_run_id is not UNSET:
            words.append(f"of subagent {escape_line(message.subagent_run_id)}")
        words.append(self._style("dim", f"({escape_line(message.id)})"))
        if getattr(message, "encrypted_value", UNSET) is not UNSET:
            words.append(self._style("dim", "[holds an encrypted value]"))
        return " ".join(words)

    def _text(self, content: Any, indent: str = "  ") -> Iterator[str]:
        text = content_text(content)
        if self._room is not None and len(text) > self._room:
            text = "… " + text[-self._room :]
        if text:
            yield from _indented(escape_block(text), indent)

    def _call(self, call: m.ToolCall) -> Iterator[str]:
        style = self._style
        view = self._reducer.tool_calls[call.id]
        mark, lines = self._arguments(view, call.function.arguments)
        heading = f"  call {style('cyan', escape_line(call.function.name) or '(no name)')}"
        yield f"{heading} {style('dim', f'({escape_line(call.id)})')}{mark}"
        yield from _indented(lines, "      ")
        if call.id in self._shown:
            return
        self._shown.add(call.id)
        for result in self._results.get(call.id, ()):
            yield from self._result(result, "    ")

    def _arguments(self, view: ToolCallView, text: str) -> tuple[str, str]:
        """A mark for the heading, and the arguments: whole arguments as JSON, others as received."""
        if text != view.arguments:  # the same id once more, in another message
            return "", escape_block(text)
        if self._room is not None and not view.complete and view.error is None:
            return self._style("yellow", " …"), "" if view.args is UNSET else pretty(view.args)
        if not view.complete:
            return self._style("yellow", " incomplete: the call has not ended"), escape_block(text)
        if not view.valid:
            return self._style("red", f" broken arguments: {escape_line(str(view.error))}"), escape_block(text)
        return "", pretty(view.args)

    def _result(self, message: m.ToolMessage, indent: str) -> Iterator[str]:
        style = self._style
        owner = "" if message.subagent_run_id is UNSET else f" of subagent {escape_line(message.subagent_run_id)}"
        if message.error is UNSET:
            heading, lines = f"{indent}result{owner}:", list(self._text(message.content, ""))
        else:
            heading, lines = (
                f"{indent}{style('red', 'failed')}{owner}:",
                list(_indented(escape_block(message.error), "")),
            )
            if message.content != message.error:
                lines += self._text(message.content, "")
        if len(lines) == 1:
            yield f"{heading} {lines[0]}"
            return
        yield heading
        yield from (f"{indent}  {line}" if line else "" for line in lines)

    def _interrupt(self, interrupt: Interrupt) -> Iterator[str]:
        about = "" if interrupt.tool_call_id is UNSET else f", about call {escape_line(interrupt.tool_call_id)}"
        owner = "" if interrupt.subagent_run_id is UNSET else f", of subagent {escape_line(interrupt.subagent_run_id)}"
        expires = "" if interrupt.expires_at is UNSET else f", expires {escape_line(interrupt.expires_at)}"
        heading = f"interrupt {escape_line(interrupt.id)}: {escape_line(interrupt.reason)}{about}{owner}{expires}"
        yield self._style("yellow", heading)
        if interrupt.message is not UNSET:
            yield from _indented(escape_block(interrupt.message))
        if interrupt.response_schema is not UNSET:
            yield from _indented(f"answer as: {pretty(interrupt.response_schema)}")


def content_text(content: Any) -> str:
    """The text of a message, not yet escaped: its parts one under the other, in place of media what they are."""
    if content is UNSET:
        return ""
    if isinstance(content, str):
        return content
    return "\n".join(part.text if isinstance(part, c.TextPart) else _media(part) for part in content)


def _indented(text: str, indent: str = "  ") -> Iterator[str]:
    for line in text.split("\n"):
        yield f"{indent}{line}" if line else ""


def _media(part: Any) -> str:
    source = part.source
    kind = "" if source.mime_type is UNSET else f" {escape_line(source.mime_type)}"
    match source:
        case c.DataSource():
            where = f"{plural(len(source.value), 'character')} of base64"
        case c.FileSource():
            where = f"file {escape_line(source.value)}"
        case _:
            where = escape_line(source.value)
    return f"[{part.type}{kind}: {where}]"


def _usage(usage: TokenUsage) -> str:
    model = " ".join(escape_line(word) for word in (usage.provider, usage.model) if word is not UNSET) or "tokens"
    counts = [f"{value:,} {noun}" for name, noun in _COUNTS.items() if (value := getattr(usage, name)) is not UNSET]
    return f"{model}: {', '.join(counts) or 'no counts'}"
