"""Structs to JSON bytes or plain dicts. Absent fields are left out; null inside open data stays (EVT-8..10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from agui_core.errors import LimitExceeded, ProtocolError
from agui_core.wire.json_values import DEEPEST, Copier
from agui_core.wire.malformed import Malformed
from agui_core.wire.pydantic_models import encode_hook

__all__ = ["encode", "to_wire"]


_encoder = msgspec.json.Encoder(enc_hook=encode_hook)


def encode(value: msgspec.Struct | Sequence[msgspec.Struct]) -> bytes:
    """The JSON of a struct, or of a list of them, on one line.

    A lone surrogate, which UTF-8 cannot carry, is written as U+FFFD.

    Raises: `ProtocolError` when a struct built by hand holds a value that is no JSON, `LimitExceeded` when it is nested
    too deeply to be written.
    """
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(to_wire(value))
    except RecursionError:
        raise _too_deep() from None
    except (Malformed, TypeError, ValueError, OverflowError) as error:
        raise _no_json(error) from None


def to_wire(value: msgspec.Struct | Sequence[msgspec.Struct]) -> Any:
    """A struct, or a list of them, as plain dicts, lists and scalars with camelCase names; shares nothing with it.

    Raises: as `encode` does.
    """
    try:
        return Copier(DEEPEST).copy(msgspec.to_builtins(value, enc_hook=encode_hook))
    except RecursionError:
        raise _too_deep() from None
    except (Malformed, TypeError, ValueError, OverflowError) as error:
        raise _no_json(error) from None


def _too_deep() -> LimitExceeded:
    return LimitExceeded("the value is nested too deeply to be written as JSON", limit="nesting")


def _no_json(error: Exception) -> ProtocolError:
    if isinstance(error, Malformed):
        return error.error("the value")
    return ProtocolError(f"the value cannot be written as JSON: {error}", rule="PROC-7")
