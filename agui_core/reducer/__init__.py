"""Events to messages and state. Pure, synchronous, no I/O.

Start with `reducer`, then follow an event: `apply` is the way in, `verify` accepts it, `handlers` make the change.

    reducer            `Reducer`: what users hold
    state              `ReducerState`: every field it has; `copying` copies it
    accounting         the limits on messages, calls and text; search for `LimitExceeded(` for all others
    apply              bytes, dicts and structs in: the fast path and the careful way
    verify             `Verifier`: expand, judge, repair; `chunks` expands, `lenient` repairs, `surrogates` joins
    rules              when an event may come: one function per event type, a table per phase, errors with rule ids
    stream_state       what is open and who owns what; `items` are what is open, `families` the three kinds of item
    handlers           what each event does, in a table; `run_handlers` those of a run
    message_store      the messages in order; `builders` are messages and calls while they grow, `reconcile` snapshots
    views              `Run`, `Changes`, `ToolCallView`; `call_arguments` and `typed_arguments` read arguments
    partial_json       a JSON value whose text still arrives
    json_patch         JSON Patch on documents that are shared; `json_pointer` finds places
    checkpoint         all that a reducer holds, as bytes
    conformer          clean events for gateways; `compaction` shortens a stream, `patch_merger` its patches

To add an event type: its struct in `protocol.events`, its rule in `rules` (`_ACTIVE`), the chunk streams that it ends
in `chunks` (`_CLOSES`), its handler in `handlers` (`_HANDLERS`), and what is nested or held of it in `apply` (`_OPEN`,
`_RISKS`). `.github/CONTRIBUTING.md` says which of these may be left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agui_core._lazy import later

if TYPE_CHECKING:
    from agui_core.reducer.compaction import compact
    from agui_core.reducer.conformer import Conformer, conform
    from agui_core.reducer.json_patch import apply_patch
    from agui_core.reducer.partial_json import PartialJson
    from agui_core.reducer.reducer import Reducer, reduce
    from agui_core.reducer.state import Middleware, Policy
    from agui_core.reducer.typed_arguments import ArgumentsError
    from agui_core.reducer.views import Changes, Run, ToolCalls, ToolCallView

__all__ = [
    "ArgumentsError",
    "Changes",
    "Conformer",
    "Middleware",
    "PartialJson",
    "Policy",
    "Reducer",
    "Run",
    "ToolCallView",
    "ToolCalls",
    "apply_patch",
    "compact",
    "conform",
    "reduce",
]

_HOMES = {
    "ArgumentsError": "typed_arguments",
    "Changes": "views",
    "Conformer": "conformer",
    "Middleware": "state",
    "PartialJson": "partial_json",
    "Policy": "state",
    "Reducer": "reducer",
    "Run": "views",
    "ToolCallView": "views",
    "ToolCalls": "views",
    "apply_patch": "json_patch",
    "compact": "compaction",
    "conform": "conformer",
    "reduce": "reducer",
}
if not TYPE_CHECKING:  # so that type checkers know that there are no other names
    __getattr__ = later(__name__, _HOMES)
