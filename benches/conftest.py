"""Targets are ratios, each reported at the end. With `--slack 2` only one that is missed by twice fails."""

from __future__ import annotations

import pytest
from measure import Target

_FIGURES: list[tuple[str, float, str, bool]] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slack", type=float, default=1.0, help="how many times a target may be missed (default: 1)")


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Target:
    """Hold a ratio to `at_most` or `at_least`, times the slack, and report it at the end."""
    slack: float = request.config.getoption("--slack")

    def hold(ratio: float, *, at_most: float = float("inf"), at_least: float = 0.0) -> None:
        bound = f"at least {at_least:.4g}" if at_least else f"at most {at_most:.4g}"
        _FIGURES.append((request.node.name, ratio, bound, at_least <= ratio <= at_most))
        assert at_least / slack <= ratio <= at_most * slack, f"{ratio:.4g}, {bound}"

    return hold


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name, ratio, bound, kept in _FIGURES:
        terminalreporter.write_line(f"{name}: {ratio:.4g}, {bound}{'' if kept else ', MISSED'}")
