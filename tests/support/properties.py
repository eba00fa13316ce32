"""How many examples Hypothesis draws, in a quick run and with `--thorough`. How long one takes does not matter."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, settings

__all__ = ["examples", "load", "steady"]

_OF_A_HUNDRED = {"quick": 50, "thorough": 400}
for _name, _count in _OF_A_HUNDRED.items():
    settings.register_profile(_name, max_examples=_count, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def load(*, thorough: bool) -> None:
    """Before the tests are imported. One that says nothing of its examples draws as many as `examples(100)`."""
    settings.load_profile("thorough" if thorough else "quick")


def examples(count: int, **options: Any) -> settings:
    """Half as many examples in a quick run, four times as many with `--thorough`."""
    return settings(max_examples=count * settings().max_examples // 100, **options)


def steady(count: int, **options: Any) -> settings:
    """As `examples`, but the same ones in every run; streams that are drawn may be large."""
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    return examples(count, derandomize=True, database=None, suppress_health_check=checks, **options)
