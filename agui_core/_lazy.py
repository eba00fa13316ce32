"""Names of a package that are imported when they are first touched, so that nobody pays for what is not used."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["later"]


def later(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` for names that other modules of the package have: a name and where it is at home."""

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home}")
        value = getattr(module, name, module)
        setattr(sys.modules[package], name, value)
        return value

    return load
