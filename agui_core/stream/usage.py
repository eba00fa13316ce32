"""Tokens spent over several runs. Unknown counts are not zero (USE-1..5).

Counts of runs are added per provider and model. A count that a run leaves out is unknown, not zero, so each sum says
how many counts are missing from it; parts (cached, reasoning) are summed beside the totals and never added to them.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from agui_core.protocol.base import UNSET, UnsetType
from agui_core.protocol.run import TokenUsage

__all__ = ["ModelUsage", "TokenSum", "Usage"]


class TokenSum(msgspec.Struct, frozen=True):
    """A sum of token counts, some of which may not be known.

    known: the sum of the counts that were given.
    missing: how many counts were not given (USE-2). With any missing, `known` is a lower bound.
    """

    known: int = 0
    missing: int = 0

    @property
    def exact(self) -> int | None:
        """The sum, None when it is not known."""
        return None if self.missing else self.known

    def plus(self, count: int | UnsetType) -> TokenSum:
        """With one more count."""
        return TokenSum(self.known, self.missing + 1) if count is UNSET else TokenSum(self.known + count, self.missing)

    def __str__(self) -> str:
        return f"at least {self.known:,}" if self.missing else f"{self.known:,}"


class ModelUsage(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """What one provider's model has taken. `cached_input_tokens` and `cache_write_input_tokens` are parts of the input,
    `reasoning_tokens` a part of the output.
    """

    provider: str | None = None
    model: str | None = None
    input_tokens: TokenSum = TokenSum()
    output_tokens: TokenSum = TokenSum()
    total_tokens: TokenSum = TokenSum()
    reasoning_tokens: TokenSum = TokenSum()
    cached_input_tokens: TokenSum = TokenSum()
    cache_write_input_tokens: TokenSum = TokenSum()

    def plus(self, usage: TokenUsage) -> ModelUsage:
        """With one more entry."""
        sums = {name: getattr(self, name).plus(getattr(usage, name)) for name in _COUNTS}
        return msgspec.structs.replace(self, **sums)


_COUNTS = tuple(name for name in ModelUsage.__struct_fields__ if name.endswith("_tokens"))


class Usage(msgspec.Struct, frozen=True, kw_only=True, repr_omit_defaults=True):
    """Tokens that a conversation has taken. A run that resumes another reports its own calls only, so runs simply add
    up; runs that a run spawned are not in it (USE-4).

    models: by provider and model, in the order in which they first occurred.
    runs: how many runs were counted, failed ones included (USE-5).
    silent: how many of them reported no usage at all.
    """

    models: tuple[ModelUsage, ...] = ()
    runs: int = 0
    silent: int = 0

    @property
    def total(self) -> TokenSum:
        """All tokens: the sum of `totalTokens` (USE-3). A run that reported nothing is one count missing."""
        known = sum(model.total_tokens.known for model in self.models)
        missing = sum(model.total_tokens.missing for model in self.models)
        return TokenSum(known, missing + self.silent)

    def plus(self, entries: Iterable[TokenUsage]) -> Usage:
        """With one more run, which reported these entries."""
        models = {(model.provider, model.model): model for model in self.models}
        silent = True
        for entry in entries:
            silent = False
            provider = None if entry.provider is UNSET else entry.provider
            name = None if entry.model is UNSET else entry.model
            held = models.get((provider, name)) or ModelUsage(provider=provider, model=name)
            models[provider, name] = held.plus(entry)
        return Usage(models=tuple(models.values()), runs=self.runs + 1, silent=self.silent + silent)
