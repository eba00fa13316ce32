"""Finds the corpora and the reference client: what is not there is not collected, unless CI demands it. Options."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agui_core.tools.concurrency import abandoned_threads
from support import properties
from support.corpora import reference_root, shared_root

SHARED = shared_root()
_NEEDS_SHARED = [
    "corpora/test_cases.py",
    "corpora/test_conformance.py",
    "corpora/test_interop_streams.py",
    "corpora/test_recordings.py",
]

if SHARED is None and os.environ.get("AGUI_REQUIRE_SHARED") == "1":
    raise pytest.UsageError("AGUI_REQUIRE_SHARED=1, but no corpora: set AGUI_SHARED to the folder that holds them")

if reference_root() is None and os.environ.get("AGUI_REQUIRE_REFERENCE") == "1":
    raise pytest.UsageError("AGUI_REQUIRE_REFERENCE=1, but no reference client: see tests/corpora/test_reference.py")

collect_ignore = [
    *([] if SHARED else _NEEDS_SHARED),
    *([] if reference_root() else ["corpora/test_reference.py"]),
]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--thorough", action="store_true", help="eight times as many examples of each property")


def pytest_configure(config: pytest.Config) -> None:
    properties.load(thorough=config.getoption("--thorough"))


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of the public corpora."""
    assert SHARED is not None
    return SHARED


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What hanging threads wait for. It is set at the end, and then no abandoned thread of the test is left: other
    tests count them.
    """
    before = abandoned_threads()
    event = threading.Event()
    yield event
    event.set()
    while abandoned_threads() > before:
        time.sleep(0.001)
