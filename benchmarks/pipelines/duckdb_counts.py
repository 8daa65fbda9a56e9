"""SQL of windowed counts by key, for the script for DuckDB: day by day, or as of one day.

`events` has shown_at, enter, closes and counts in microseconds (counts null without a click). Days are whole numbers
since 1970. A row shown on day t and visible from day v on counts in a window of w days at the publish of day p when
v <= p < exit, where exit is its event time + w days, up to the next midnight. `windows`: name -> days.
"""

from __future__ import annotations

from collections.abc import Mapping

DAY = 86_400_000_000
MEASURES = {"shown": "enter", "closed": "closes", "clicked": "counts"}  # -> the moment from which a row counts


def counts_by_day(windows: Mapping[str, int], key: str) -> str:
    """(key, day, one column per measure and window): the counts of each day on which a count of the key changes."""
    moves = " union all ".join(_moves(windows, key))
    daily = _sums(windows, "sum(d) filter (where m = '{0}')")
    running = _sums(windows, "sum({0}) over (partition by key order by day)")
    return f"""with moves as ({moves}), days as (select key, day, {daily} from moves group by key, day)
        select key, day, {running} from days"""


def counts_as_of(windows: Mapping[str, int], key: str, p: int) -> str:
    """(key, one column per measure and window) of every key at the publish of day `p`."""
    now = p * DAY
    columns = ", ".join(
        f"count(*) filter (where {moment} <= {now} and {moment} < shown_at + {days * DAY} "
        f"and shown_at + {days * DAY} > {now}) {measure}_{window}"
        for window, days in windows.items() for measure, moment in MEASURES.items())
    return f"select {key} as key, {columns} from events where {key} is not null group by {key}"


def rates(windows: Mapping[str, int], counter: str, of: str, prior: float, strength: float) -> str:
    """Columns COUNTER_count_WINDOW and COUNTER_rate_WINDOW from those of the table `of`, nulls counted as 0; rates are
    (clicked + prior * strength) / (closed + strength).
    """
    clicks = f"{prior * strength!r}::double"
    return ", ".join(
        f"coalesce({of}.shown_{w}, 0)::double {counter}_count_{w}, (coalesce({of}.clicked_{w}, 0) + {clicks}) "
        f"/ (coalesce({of}.closed_{w}, 0) + {strength}::double) {counter}_rate_{w}" for w in windows)


def _sums(windows: Mapping[str, int], template: str) -> str:
    names = [f"{measure}_{window}" for window in windows for measure in MEASURES]
    return ", ".join(f"coalesce({template.format(name)}, 0)::bigint {name}" for name in names)


def _moves(windows: Mapping[str, int], key: str) -> list[str]:
    """+1 on the day from which a row counts, -1 on the day from which it no longer does."""
    moves = []
    for window, days in windows.items():
        for measure, moment in MEASURES.items():
            name, inside = f"{measure}_{window}", f"{key} is not null and {moment} < shown_at + {days * DAY}"
            for when, delta in ((moment, 1), (f"shown_at + {days * DAY}", -1)):
                moves.append(f"select {key} as key, (({when}) + {DAY - 1}) // {DAY} as day, '{name}' m, {delta} d "
                             f"from events where {inside}")
    return moves
