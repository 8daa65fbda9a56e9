"""Times written as text or as whole numbers -> the Spark SQL that reads them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

MOSTLY = 0.97
CLOCK = r"(?: (\d{1,2}):(\d\d)(:\d\d)?)?"
ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?)?(Z|[+-]\d\d:?\d\d)?$")
YEAR_FIRST = re.compile(r"(\d{4})([/.])(\d{1,2})\2(\d{1,2})" + CLOCK + "$")
YEAR_LAST = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})" + CLOCK + "$")
MONTH_NAME = re.compile(r"(\d{1,2})([ -])([A-Z][a-z]{2})\2(\d{4})" + CLOCK + "$")
TIME_NAME = re.compile(r"time|date|(^|_)ts($|_)|epoch|seconds|_at$|hour", re.I)
FIRST, LAST = datetime(1990, 1, 1, tzinfo=UTC).timestamp(), datetime(2040, 1, 1, tzinfo=UTC).timestamp()
UNNAMED = re.compile(r"c\d+$")


class Time(NamedTuple):
    """`expression` is Spark SQL that reads a timestamp; `why` says how it is written."""

    expression: str
    why: str


def time_expression(raw: str, name: str, known: Sequence[str], named: bool) -> Time | None:
    """`raw` is the column as SQL names it. None where the values are no times; `named`: the file has names."""
    if not known:
        return None
    digits = all(value.isdigit() for value in known)
    if digits:
        return _digits(raw, name, known, named)
    if _mostly(ISO.match, known):
        return Time(f"try_to_timestamp({raw})", "times in ISO 8601")
    for pattern, reading in ((YEAR_FIRST, "yyyy{0}M{0}d"), (MONTH_NAME, "d{0}MMM{0}yyyy")):
        if _mostly(pattern.match, known):
            return _formatted(raw, reading, pattern, known)
    if _mostly(YEAR_LAST.match, known):
        return _year_last(raw, known)
    return None


def _mostly(holds: Callable[[str], object], known: Sequence[str]) -> bool:
    return sum(bool(holds(value)) for value in known) >= MOSTLY * len(known)


def _formatted(raw: str, reading: str, pattern: re.Pattern[str], known: Sequence[str], remark: str = "") -> Time:
    """Separator and clock as in the first value that fits: group 2 separates, 5 to 7 are the clock."""
    groups = next(match for match in map(pattern.match, known) if match).groups()
    clock = "" if groups[4] is None else (" H:mm:ss" if groups[6] else " H:mm")
    layout = reading.format(groups[1]) + clock
    return Time(f"try_to_timestamp({raw}, '{layout}')", f"times written as {layout}{remark}")


def _year_last(raw: str, known: Sequence[str]) -> Time:
    """Day or month first: whichever of the two numbers exceeds 12; else the day."""
    parts = [match.groups() for match in map(YEAR_LAST.match, known) if match]
    month_first = any(int(part[2]) > 12 for part in parts)
    sure = month_first or any(int(part[0]) > 12 for part in parts)
    reading = "M{0}d{0}yyyy" if month_first else "d{0}M{0}yyyy"
    return _formatted(raw, reading, YEAR_LAST, known, "" if sure else " (day before month is a guess)")


def _digits(raw: str, name: str, known: Sequence[str], named: bool) -> Time | None:
    """Compact dates, or seconds or milliseconds since 1970 where the name says time or the file has no names."""
    for width, layout, strptime in ((14, "yyyyMMddHHmmss", "%Y%m%d%H%M%S"), (8, "yyyyMMdd", "%Y%m%d"),
                                    (8, "yyMMddHH", "%y%m%d%H")):
        if all(len(value) == width for value in known) and _mostly(partial(_parses, strptime), known):
            return Time(f"try_to_timestamp(CAST({raw} AS STRING), '{layout}')", f"times written as {layout}")
    hinted = bool(TIME_NAME.search(name)) or (not named and bool(UNNAMED.match(name)))
    for unit, reading in ((1, "timestamp_seconds"), (1000, "timestamp_millis")):
        if hinted and all(FIRST * unit <= int(value) <= LAST * unit for value in known) and len(set(known)) > 1:
            return Time(f"{reading}(CAST({raw} AS BIGINT))", f"{reading.split('_')[1]} since 1970")
    return None


def _parses(layout: str, value: str) -> bool:
    try:
        return FIRST <= datetime.strptime(value, layout).replace(tzinfo=UTC).timestamp() <= LAST
    except ValueError:
        return False
