"""Every rule of the protocol in a sentence: what a consumer does. `agui rules STR-2` prints them.

Errors, warnings, docstrings and tests cite rules by id, as in `[STR-2]`: an area and a number. The sentences are
reminders in this library's own words; the protocol's specification says exactly what holds. This module is loaded only
where it is imported.
"""

from __future__ import annotations

import difflib

from agui_core import _exchange_rules, _stream_rules

__all__ = ["AREAS", "RULES", "explain", "near", "rules_of"]

AREAS: dict[str, str] = {**_stream_rules.AREAS, **_exchange_rules.AREAS}
"""What each area of rules is about, in the order of the protocol."""

RULES: dict[str, str] = {**_stream_rules.RULES, **_exchange_rules.RULES}
"""The sentence of each rule by its id, in the order of the protocol."""

_BY_LOWER = {id.lower(): id for id in RULES}


def explain(id: str) -> str:
    """The sentence of one rule.

    id: as errors and warnings give it in `rule`; capitals and brackets do not matter.
    Raises: `KeyError`, with the ids that look alike, for one that does not exist.
    """
    found = _BY_LOWER.get(_bare(id))
    if found is None:
        raise KeyError(f"there is no rule {id!r}; near it: {', '.join(near(id))}")
    return RULES[found]


def rules_of(name: str) -> dict[str, str]:
    """The rules that `name` stands for, in order: one for an id, all of an area for its name, none for neither."""
    bare = _bare(name)
    if bare in _BY_LOWER:
        return {_BY_LOWER[bare]: RULES[_BY_LOWER[bare]]}
    area = bare.upper()
    return {id: text for id, text in RULES.items() if id.partition("-")[0] == area}


def near(name: str) -> list[str]:
    """Up to five ids and areas that look most like `name`."""
    known = {**_BY_LOWER, **{area.lower(): area for area in AREAS}}
    area, dash, _ = _bare(name).partition("-")
    if dash and area.upper() in AREAS:  # the number is wrong: the area's own ids are nearest
        known = {lower: id for lower, id in _BY_LOWER.items() if lower.startswith(f"{area}-")}
    return [known[each] for each in difflib.get_close_matches(_bare(name), known, n=5, cutoff=0)]


def _bare(name: str) -> str:
    return name.strip("[] \t,").lower()
