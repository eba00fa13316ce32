"""One JSON text becomes plain Python values; each way that can fail has its own error."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec

from agui_core.errors import DecodeError, LimitExceeded
from agui_core.limits import Limits
from agui_core.wire.framing import Bytes
from agui_core.wire.json_values import nesting_exceeded, stack_exceeded, too_deep
from agui_core.wire.malformed import Malformed

__all__ = ["check_size", "parse"]

_decode = msgspec.json.Decoder().decode


def parse(payload: Bytes, limits: Limits) -> tuple[dict[str, Any], bool]:
    """The object of a JSON text, and whether it may hold lone surrogates, or numbers that no double can hold.

    Raises: `DecodeError` for text that is not a JSON object (SSE-8), `LimitExceeded` for text that is too long or
    nested too deeply, `Malformed` for numbers out of range.
    """
    check_size(payload, limits)
    suspect = False
    try:
        value = _decode(payload)
    except msgspec.ValidationError as error:
        raise Malformed(f"holds a number out of range ({error})") from None
    except RecursionError:
        raise stack_exceeded(limits.nesting) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        # msgspec refuses escapes of lone surrogates, which are JSON; the standard library tells them from the rest.
        value, suspect = _parse_slowly(payload, error, limits), True
    if type(value) is not dict:
        raise _no_object("is JSON, but no object")
    if len(payload) >= 2 * limits.nesting and too_deep(value, limits.nesting + 1):
        raise nesting_exceeded(limits.nesting)
    return value, suspect


def _parse_slowly(payload: Bytes, error: Exception, limits: Limits) -> Any:
    try:
        text = payload if isinstance(payload, str) else bytes(payload).decode()
        return json.loads(text, parse_constant=_refuse_constant)
    except UnicodeDecodeError as broken:
        raise _no_object(f"is not UTF-8 ({broken.reason} at byte {broken.start})") from None
    except json.JSONDecodeError as broken:
        reason = str(error if isinstance(error, msgspec.DecodeError) else broken)
        raise _no_object(f"is not JSON ({reason.removeprefix('JSON is malformed: ')}){_hint(text)}") from None
    except RecursionError:
        raise stack_exceeded(limits.nesting) from None
    except ValueError:
        raise Malformed("holds an integer of more than 4,300 digits") from None


def check_size(payload: Bytes, limits: Limits) -> None:
    """Raise `LimitExceeded` when the text has more bytes than one event may have."""
    limit = limits.event_bytes
    size = len(payload)
    if isinstance(payload, str) and size <= limit < 4 * size:
        size = len(payload.encode("utf-8", "surrogatepass"))
    if size > limit:
        raise LimitExceeded(
            f"a payload of {size} bytes, where {limit} are allowed; raise Limits.event_bytes if the source is trusted",
            limit="event_bytes",
        )


def _hint(text: str) -> str:
    """What else the text may be."""
    if text.strip() == "[DONE]":
        return ", but the end mark of another protocol, [DONE], which AG-UI does not have"
    if text.lstrip().startswith(("data:", "event:", "id:", "retry:")):
        return ", but looks like server-sent events, which apply_sse reads"
    return ""


def _no_object(problem: str) -> DecodeError:
    return DecodeError(f"the payload {problem}; it has to be one JSON object", rule="SSE-8")


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is no JSON", name, 0)
