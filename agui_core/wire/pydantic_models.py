"""Pydantic models, those of the official `ag_ui.core` package among them: they write themselves.

What a model leaves out (an excluded field), renames (an alias), masks (a `SecretStr`) or computes is its own business,
so `model_dump` is the only way in here. They are known by what they have; pydantic is never imported.
"""

from __future__ import annotations

from typing import Any

from agui_core.wire.malformed import Malformed, Path

__all__ = ["dumped", "is_model"]

_MARK = "\0no JSON: "
"""Stands for a value that pydantic cannot write, until its place is found."""


def is_model(value: object) -> bool:
    """Whether `value` is a pydantic model."""
    kind = type(value)
    return hasattr(kind, "model_fields") and hasattr(kind, "model_dump")


def dumped(model: Any) -> Any:
    """A model as the JSON value it writes: `model_dump(mode="json", by_alias=True)`; a dict, unless it says otherwise.

    Raises `Malformed`, with the place, for what pydantic cannot write; `RecursionError` for what is too deep.
    """
    try:
        return model.model_dump(mode="json", by_alias=True)
    except RecursionError:
        raise
    except Exception as error:  # serializers are code of the application's
        place, kind = _place(model)
        problem = f"is a {kind}, which pydantic cannot write as JSON" if kind else f"cannot be written as JSON: {error}"
        raise Malformed(problem, path=place) from None


def _place(model: Any) -> tuple[Path, str]:
    """Where the first value is that pydantic has no way to write, and its type; an empty type when nobody knows."""
    try:
        value = model.model_dump(mode="json", by_alias=True, fallback=lambda item: f"{_MARK}{type(item).__name__}")
    except Exception:
        return (), ""
    return _find(value, ()) or ((), "")


def _find(value: Any, path: Path) -> tuple[Path, str] | None:
    if isinstance(value, str):
        return (path, value.removeprefix(_MARK)) if value.startswith(_MARK) else None
    items: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return next((found for key, item in items if (found := _find(item, (*path, key))) is not None), None)
