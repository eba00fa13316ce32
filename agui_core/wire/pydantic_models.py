"""Pydantic models, those of the official `ag_ui.core` package among them, as the JSON they write.

A model decides what it leaves out (an excluded field), renames (an alias), masks (a `SecretStr`) or computes, so only
`model_dump` is asked. Models are recognised by their attributes; pydantic is never imported.
"""

from __future__ import annotations

from typing import Any

from agui_core.wire.malformed import Malformed, Path

__all__ = ["dumped", "encode_hook", "is_model"]

_MARK = "\0no JSON: "
"""Stands for a value that pydantic cannot write, until its place is found."""


def is_model(value: object) -> bool:
    """Whether `value` is a pydantic model."""
    kind = type(value)
    return hasattr(kind, "model_fields") and hasattr(kind, "model_dump")


def dumped(model: Any) -> Any:
    """A model as the JSON value it writes: `model_dump(mode="json", by_alias=True)`, nearly always a dict.

    Raises `Malformed`, with the place, for a value that pydantic cannot write; `RecursionError` for one too deep.
    """
    try:
        return model.model_dump(mode="json", by_alias=True)
    except RecursionError:
        raise
    except Exception as error:  # serializers are the application's code
        place, kind = _place(model)
        problem = f"is a {kind}, which pydantic cannot write as JSON" if kind else f"cannot be written as JSON: {error}"
        raise Malformed(problem, path=place) from None


def encode_hook(value: Any) -> Any:
    """The `enc_hook` of all our encoders: of what msgspec does not know, only models have a JSON value."""
    if is_model(value):
        return dumped(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def _place(model: Any) -> tuple[Path, str]:
    """Where the first value is that pydantic cannot write, and its type; an empty type where that is unknown."""
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
