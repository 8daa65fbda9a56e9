"""Durations as people write them: "30m", "6h", "7d". Kept as whole seconds."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator

UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def seconds(value: object) -> int:
    """ "90s" -> 90. Raises ValueError on anything but a whole number and one of the units s, m, h, d."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"(\d+)\s*([smhd])", value.strip()) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f"{value!r} is no duration; write a whole number and a unit, such as '30m', '6h' or '7d'")
    return int(match[1]) * UNITS[match[2]]


def label(duration: int) -> str:
    """86400 -> "1d": the shortest exact name, used in field names."""
    for unit in ("d", "h", "m"):
        if duration and duration % UNITS[unit] == 0:
            return f"{duration // UNITS[unit]}{unit}"
    return f"{duration}s"


Duration = Annotated[int, BeforeValidator(seconds)]
