"""The objects of the official `ag_ui.core` package as plain dicts, without importing it and without a JSON round trip.

They are known by what they have: a class attribute `model_fields`. `None` in an optional field means absent there (the
package has no other way to say it); `None` in a required field, and inside open data, is `null`.
"""

from __future__ import annotations

from typing import Any

__all__ = ["is_model", "plain"]

_Field = tuple[str, str, bool]
_fields_by_class: dict[type, list[_Field]] = {}


def is_model(value: object) -> bool:
    """Whether `value` is a pydantic model."""
    return hasattr(type(value), "model_fields")


def plain(value: Any) -> Any:
    """`value` with every model in it as a dict under its wire names. Costs about 0.3 µs a field.

    The dicts, lists and tuples of open data are rebuilt as well, so nothing mutable is shared with the model.
    """
    if is_model(value):
        return _members(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def _members(model: Any) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, wire_name, required in _fields(type(model)):
        value = getattr(model, name)
        if value is not None or required:
            members[wire_name] = plain(value)
    for name, value in (getattr(model, "model_extra", None) or {}).items():
        members[name] = plain(value)
    return members


def _fields(kind: Any) -> list[_Field]:
    fields = _fields_by_class.get(kind)
    if fields is None:
        fields = _fields_by_class[kind] = [
            (name, field.serialization_alias or field.alias or name, field.is_required())
            for name, field in kind.model_fields.items()
        ]
    return fields
