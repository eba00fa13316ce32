"""What the wire says: events, messages, content, run input, outcomes, capabilities. Data only, no behaviour.

Start with `events`: its structs are what a stream is made of, and `Event` is their union.

    base           how all structs are configured, and the types that recur; UNSET is an absent field
    events         the 31 events
    messages       the seven kinds of message, tool calls
    content        the parts that a message may hold besides text, and where their bytes are
    run            the run input, outcomes, interrupts and their answers, token usage
    patch          the shape of JSON Patch operations
    capabilities   what an agent may say about itself; loaded when it is first asked for

`agui_core.events` and `agui_core.messages` are these modules. A class that the wire tells apart by `type` or `role` has
it as a literal, so `event.type == "RUN_ERROR"` and `message.role == "assistant"` narrow a union for type checkers.
"""

# ruff: noqa: F403 - each module lists in `__all__` what it exports

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from agui_core.protocol import base, content, events, messages, patch, run
from agui_core.protocol.base import *
from agui_core.protocol.content import *
from agui_core.protocol.events import *
from agui_core.protocol.messages import *
from agui_core.protocol.patch import *
from agui_core.protocol.run import *

if TYPE_CHECKING:
    from agui_core.protocol import capabilities
    from agui_core.protocol.capabilities import *

__all__ = ["base", "capabilities", "content", "events", "messages", "patch", "run"]
__all__ += base.__all__ + content.__all__ + events.__all__ + messages.__all__ + patch.__all__ + run.__all__


def __getattr__(name: str) -> Any:
    if not name.startswith("_"):
        module = importlib.import_module(f"{__name__}.capabilities")
        if name == "capabilities":
            return module
        if name in module.__all__:
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
