"""The structs of the wire as people meet them: all by name in one place, short to print, each field explained."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import Any

import msgspec
import pytest

import agui_core as agui
from agui_core import protocol
from agui_core.protocol import base, capabilities, content, events, messages, patch, run

MODULES = [base, capabilities, content, events, messages, patch, run]
STRUCTS: list[type[msgspec.Struct]] = sorted(
    (
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__
    ),
    key=lambda kind: kind.__name__,
)
PUBLIC = [kind for kind in STRUCTS if not kind.__name__.startswith("_")]


def test_the_room_exports_what_its_modules_export() -> None:
    for module in MODULES:
        assert getattr(protocol, module.__name__.rpartition(".")[2]) is module
        for name in module.__all__:
            assert getattr(protocol, name) is getattr(module, name)
    assert {kind.__name__ for kind in PUBLIC} <= {name for module in MODULES for name in module.__all__}
    with pytest.raises(AttributeError, match="no attribute 'Evnt'"):
        _ = protocol.Evnt  # type: ignore[attr-defined]


def test_events_and_messages_are_at_the_top_by_name() -> None:
    assert agui.events is events
    assert agui.messages is messages
    assert agui.Event is events.Event
    assert {"events", "messages", "Event"} <= set(agui.__all__) & set(dir(agui))


def test_capabilities_are_loaded_when_asked_for() -> None:
    program = """if True:
        import sys, agui_core.protocol
        assert "agui_core.protocol.capabilities" not in sys.modules
        agui_core.protocol.AgentCapabilities
        assert "agui_core.protocol.capabilities" in sys.modules
    """
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_help_says_what_each_field_is(kind: type[msgspec.Struct]) -> None:
    text = inspect.getdoc(kind)
    assert text is not None
    first, _, lines = text.partition("\n\n")
    told = [line.partition(": ") for line in lines.splitlines()]
    explained = {name for name, _, what in told if len(what) > 3} | set(re.findall(r"`(\w+)`", first))
    assert set(kind.__struct_fields__) <= explained
    assert [name for name, _, _ in told if name not in kind.__struct_fields__] == []
    assert len({name for name, _, _ in told}) == len(told)


@pytest.mark.parametrize("kind", PUBLIC, ids=lambda kind: kind.__name__)
def test_what_is_absent_is_not_printed(kind: type[msgspec.Struct]) -> None:
    given: dict[str, Any] = {name: [] for name in kind.__struct_fields__ if _required(kind, name)}
    if kind is run.InterruptOutcome:
        given["interrupts"] = (run.Interrupt(id="i", reason="r"),)
    shown = repr(kind(**given))
    assert "UNSET" not in shown
    assert all(f"{name}=" in shown for name in given)


def _required(kind: type[msgspec.Struct], name: str) -> bool:
    return next(field.required for field in msgspec.structs.fields(kind) if field.name == name)


def test_what_is_present_is_printed() -> None:
    assert (
        repr(messages.UserMessage(id="u", content="hi", name="Ann")) == "UserMessage(id='u', content='hi', name='Ann')"
    )
    assert repr(events.RunErrorEvent(message="m", raw_event=None)) == "RunErrorEvent(raw_event=None, message='m')"
