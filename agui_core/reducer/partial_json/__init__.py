"""Partial JSON: a value that is read while its text still arrives."""

from agui_core.reducer.partial_json.parser import JsonFault, PartialJson

__all__ = ["JsonFault", "PartialJson"]
