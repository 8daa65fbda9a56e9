"""Times written as text or as whole numbers -> the Spark SQL that reads them, and a reader of the sample's own."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

MOSTLY = 0.97
YEAR = 366 * 86_400
LOOKED_AT = 2000  # different values, of those whose layout is to be found
ISO = re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,9})?)?)?( ?(Z|UTC|[+-]\d\d:?\d\d))?$")
ZONE_AFTER_MINUTES = re.compile(r".{10}[ T]\d\d:\d\d ?[ZU+-]")
CLOCK = re.compile(r"(?P<gap>[ :]|, )(?P<hour>\d{1,2}):\d\d(?P<seconds>:\d\d)?(?P<millis>\.\d{3})?"
                   r"(?P<half> ?[AaPp][Mm])?(?P<zone> [+-]\d{4})?$")
MONTH = r"[A-Z][a-z]{2,8}"
SEPARATED = re.compile(r"(\d{1,4})([/.-])(\d{1,2})\2(\d{4}|\d{1,2})(?!\d)")
NAMED = (re.compile(r"(?P<day>\d{1,2})(?P<one>[ /-])(?P<month>" + MONTH
                    + r")(?P<two>[ /-]|, )(?P<year>\d{4}|\d\d)(?!\d)"),
         re.compile(r"(?P<month>" + MONTH + r")(?P<one> )(?P<day>\d{1,2})(?P<two>, ?| )(?P<year>\d{4})(?!\d)"))
TIME_NAME = re.compile(r"time|date|(^|_)ts($|_)|epoch|seconds|_at$|hour|created|updated|moment|when", re.I)
FIRST, LAST = datetime(1990, 1, 1, tzinfo=UTC).timestamp(), datetime(2040, 1, 1, tzinfo=UTC).timestamp()
UNNAMED = re.compile(r"c\d+$")
WEEK = re.compile(r"(19|20)\d\d-?W[0-5]\d(-?[1-7])?$")
WHOLE_FLOAT = re.compile(r"\d{8,16}\.0+$")
PLAIN_FRACTION = re.compile(r"\d{9,11}\.\d+$")
STRPTIME = (("yyyy", "%Y"), ("yy", "%y"), ("MMMM", "%B"), ("MMM", "%b"), ("MM", "%m"), ("M", "%m"), ("dd", "%d"),
            ("d", "%d"), ("HH", "%H"), ("H", "%H"), ("h", "%I"), ("mm", "%M"), ("ss", "%S"), ("SSS", "%f"), ("a", "%p"),
            ("Z", "%z"))
UNITS = ((1, "timestamp_seconds", "seconds"), (1_000, "timestamp_millis", "milliseconds"),
         (1_000_000, "timestamp_micros", "microseconds"))


@dataclass(frozen=True)
class Time:
    """`expression` is Spark SQL that reads a timestamp; `why` says how it is written; `read` gives seconds since 1970
    of one value of the sample, None where it is no such time."""

    expression: str
    why: str
    read: Callable[[str], float | None]
    clock: bool = True  # it tells hours, too


def time_expression(raw: str, name: str, known: Sequence[str], named: bool) -> Time | None:
    """`raw` is the column as SQL names it. None where the values are no times; `named`: the file has names."""
    if not known:
        return None
    if _mostly(str.isdigit, known):
        return _digits(_from_0(raw, known), name, [value for value in known if value.isdigit()], named)
    if _mostly(WHOLE_FLOAT.match, known):
        return _whole_floats(_from_0(raw, known), name, [value for value in known if WHOLE_FLOAT.match(value)], named)
    if _mostly(WEEK.match, known):
        return Time(_monday(raw), "weeks of ISO 8601", _iso, False)
    if _mostly(ISO.match, known):
        return Time(f"try_to_timestamp({_with_seconds(raw, known)})", "times in ISO 8601", _iso,
                    any(":" in value for value in known))
    if bool(TIME_NAME.search(name)) and _mostly(PLAIN_FRACTION.match, known):
        return Time(f"timestamp_millis(try_cast(try_cast({raw} AS DOUBLE) * 1000 AS BIGINT))",
                    "seconds since 1970 with a fraction",
                    lambda value: float(value) if PLAIN_FRACTION.match(value) else None)
    return _written(raw, name, known)


def _from_0(raw: str, known: Sequence[str]) -> str:
    """Numbers below 0 stand for no time, such as -1."""
    below = any(value.startswith("-") for value in known)
    return f"if(try_cast(try_cast({raw} AS DOUBLE) AS BIGINT) >= 0, {raw}, NULL)" if below else raw


def _monday(raw: str) -> str:
    """The day of a week date: January 4 is always in week 1, and Monday is its day 1."""
    fourth = f"make_date(try_cast(substring({raw}, 1, 4) AS INT), 1, 4)"
    week = f"try_cast(regexp_extract({raw}, 'W([0-9]{{2}})', 1) AS INT)"
    day = f"coalesce(try_cast(regexp_extract({raw}, 'W[0-9]{{2}}-?([1-7])', 1) AS INT), 1)"
    return f"CAST(date_add({fourth}, 7 * ({week} - 1) - weekday({fourth}) + {day} - 1) AS TIMESTAMP)"


def _with_seconds(raw: str, known: Sequence[str]) -> str:
    """The embedded engine reads no zone behind minutes, as Java writes times whose seconds are 0."""
    if not any(map(ZONE_AFTER_MINUTES.match, known)):
        return raw
    return f"regexp_replace({raw}, '([ T][0-9]{{2}}:[0-9]{{2}})( ?[ZU+-])', '$1:00$2')"


def _mostly(holds: Callable[[str], object], known: Sequence[str]) -> bool:
    return sum(bool(holds(value)) for value in known) >= MOSTLY * len(known)


def _iso(value: str) -> float | None:
    try:
        read = datetime.fromisoformat(value.replace(" UTC", "Z"))
    except ValueError:
        return None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def reader(layout: str) -> Callable[[str], float | None]:
    """Of Spark's letters; None for what is not written so."""
    strptime = re.sub("|".join(key for key, _ in STRPTIME), lambda found: dict(STRPTIME)[found[0]], layout)

    def read(value: str) -> float | None:
        try:
            return datetime.strptime(value.upper() if "%p" in strptime else value, strptime).replace(
                tzinfo=UTC).timestamp()
        except ValueError:
            return None
    return read


def _written(raw: str, name: str, known: Sequence[str]) -> Time | None:
    """The layout that reads most of the values, of which some are looked at, taken evenly over all of them. Where day
    and month may change places in each: the likelier order."""
    distinct = list(dict.fromkeys(known))
    shown = distinct[:: -(-len(distinct) // LOOKED_AT)]
    found = Counter(layout for value in shown[:50] for layout in _layouts(value, bool(TIME_NAME.search(name))))
    best, most = None, MOSTLY * len(shown)
    fits = {layout: sum(reader(layout)(value) is not None for value in shown) for layout in found}
    for layout, count in fits.items():
        if count >= most and (best is None or count > fits[best]):
            best = layout
    if best is None:
        return None
    other, remark = _swapped(best), ""
    if other in fits and fits[other] == fits[best]:
        best = min((best, other), key=lambda layout: _oddity(layout, shown))
        remark = f" ({'day before month' if best.startswith('d') else 'month before day'} is a guess)"
    return Time(f"try_to_timestamp({raw}, '{best}')", f"times written as {best}{remark}", reader(best), ":mm" in best)


def _oddity(layout: str, shown: Sequence[str]) -> tuple[bool, bool, bool, float]:
    """Less is likelier: a month does not come first before a stop; logs are mostly in order of time, forward or back;
    what is of the first of months, over years, is not of January alone; and else the reading of the shorter time."""
    moments = [moment for moment in map(reader(layout), shown) if moment is not None]
    later = sum(one <= other for one, other in pairwise(moments))
    disorder = min(later, len(moments) - 1 - later)
    span, dates = max(moments) - min(moments), [datetime.fromtimestamp(moment, UTC) for moment in moments]
    january = span > YEAR and all(date.month == 1 for date in dates)
    return layout.startswith("M."), disorder > (1 - MOSTLY) * len(moments), january, span


def _swapped(layout: str) -> str:
    return layout.translate(str.maketrans("dM", "Md")) if "MMM" not in layout else ""


def _layouts(value: str, says_time: bool) -> Iterator[str]:
    """Every way in which one value may be meant; the first of equals wins."""
    for date, length in _dates(value, says_time):
        rest = value[length:]
        clock = CLOCK.match(rest)
        if not rest:
            yield date
        elif clock is not None:
            yield date + _clock(clock)


def _dates(value: str, says_time: bool) -> Iterator[tuple[str, int]]:
    """(layout, length) of the date at the value's start. A year of two digits needs a name that speaks of time, or
    strokes, for versions and lists of numbers look alike."""
    plain = SEPARATED.match(value)
    if plain is not None:
        first, by, _, last = plain.groups()
        if len(first) == 4 and len(last) < 4:
            yield f"yyyy{by}M{by}d", plain.end()
        elif len(first) <= 2 and (len(last) == 4 or (len(last) == 2 and (says_time or by == "/"))):
            year = "yyyy" if len(last) == 4 else "yy"
            yield from ((f"{a}{by}{b}{by}{year}", plain.end()) for a, b in (("d", "M"), ("M", "d")))
    for pattern in NAMED:
        named = pattern.match(value)
        if named is not None:
            month = "MMM" if len(named["month"]) == 3 else "MMMM"
            year = "yyyy" if len(named["year"]) == 4 else "yy"
            parts = ("d", month) if pattern is NAMED[0] else (month, "d")
            yield f"{parts[0]}{named['one']}{parts[1]}{named['two']}{year}", named.end()


def _clock(found: re.Match[str]) -> str:
    hour = "h" if found["half"] else "H"
    half = "" if not found["half"] else " a" if found["half"].startswith(" ") else "a"
    return (f"{found['gap']}{hour}:mm{':ss' if found['seconds'] else ''}{'.SSS' if found['millis'] else ''}{half}"
            f"{' Z' if found['zone'] else ''}")


def _digits(raw: str, name: str, known: Sequence[str], named: bool) -> Time | None:
    """Compact dates; or seconds, milliseconds or microseconds since 1970 where the name says time or there is none."""
    for width, layout, strptime in ((14, "yyyyMMddHHmmss", "%Y%m%d%H%M%S"), (12, "yyyyMMddHHmm", "%Y%m%d%H%M"),
                                    (8, "yyyyMMdd", "%Y%m%d"), (8, "yyMMddHH", "%y%m%d%H")):
        read = _compact(strptime)
        if all(len(value) == width for value in known) and _mostly(read, known):
            return Time(f"try_to_timestamp(CAST({raw} AS STRING), '{layout}')", f"times written as {layout}", read,
                        "HH" in layout)
    hinted = bool(TIME_NAME.search(name)) or (not named and bool(UNNAMED.match(name)))
    for unit, reading, what in UNITS:
        if hinted and all(FIRST * unit <= int(value) <= LAST * unit for value in known) and len(set(known)) > 1:
            return Time(f"{reading}(try_cast({raw} AS BIGINT))", f"{what} since 1970", _since_1970(unit))
    return None


def _whole_floats(raw: str, name: str, known: Sequence[str], named: bool) -> Time | None:
    """Whole numbers with .0 behind them, as data frames write those of a column with holes."""
    whole = [value.split(".")[0] for value in known]
    found = _digits(f"try_cast(try_cast({raw} AS DOUBLE) AS BIGINT)", name, whole, named)
    if found is None:
        return None
    read = found.read
    return dataclasses.replace(found, read=lambda value: read(value.split(".")[0]))


def _since_1970(unit: int) -> Callable[[str], float | None]:
    return lambda value: int(value) / unit if value.isdigit() else None


def _compact(layout: str) -> Callable[[str], float | None]:
    def read(value: str) -> float | None:
        try:
            seconds = datetime.strptime(value, layout).replace(tzinfo=UTC).timestamp()
        except ValueError:
            return None
        return seconds if FIRST <= seconds <= LAST else None
    return read
