"""Is a column an attribute of a user or an item, or does it change from event to event?"""

from __future__ import annotations

from typing import Any

from sluice.init.column_types import Column

KNOWN = 0.9  # of rows: what is missing more often says something by that
REPEATS = 20  # that prove it


def follows(column: Column, key: Column) -> bool:
    """Whether repeated keys always show the same value; keys that hardly ever repeat prove nothing, and neither does a
    value that is missing now and then."""
    seen: dict[Any, Any] = {}
    repeats, holes = 0, len(column.known) >= KNOWN * len(column.values)
    for owner, value in zip(key.values, column.values, strict=True):
        if owner is None or (value is None and holes):
            continue
        if owner in seen:
            repeats += 1
            if seen[owner] != value:
                return False
        seen[owner] = value
    return repeats >= REPEATS
