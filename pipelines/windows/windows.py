"""The time windows statistics, train, validation and test: resolved and assigned to rows.

Shares are resolved by exact order statistics of `_time`: rows are counted per day, then per second of the days in
question, then per microsecond of the seconds in question, so that the driver only ever sees counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import TIME
from contracts.config.config import Config
from contracts.config.section import Window
from contracts.errors import DataError, EmptyLogError, WindowError
from contracts.windows import Span
from pipelines.windows.publish_clock import from_micros

WINDOW = "_window"
_BUCKETS = (86_400_000_000, 1_000_000, 1)


def resolve(events: DataFrame, config: Config) -> dict[str, Span]:
    """Spans [start, end) in time order. The last ends where labels are closed: `embargo` before the log's last event.

    What comes after it is used by none: its impressions without a click could still get one.

    Raises EmptyLogError without rows, WindowError when a window has no rows.
    """
    named = config.windows.named()
    dates = {name: window for name, window in named.items() if isinstance(window, tuple)}
    spans = dates or _by_share(events, named)
    found = _spans_of_rows(assign(events, spans, config.embargo), WINDOW)
    log = min(first for first, _, _ in found.values()), max(end for _, end, _ in found.values())
    name, (start, end) = list(spans.items())[-1]
    spans = {**spans, name: (start, min(end, log[1] - timedelta(seconds=config.embargo)))}
    _check({name: found[name][0] for name in spans if name in found}, spans, config.embargo, log)
    return spans


def _spans_of_rows(rows: DataFrame, *by: str) -> dict[str | None, tuple[datetime, datetime, int]]:
    """(first event, one microsecond after the last event, how many there are) by the value of a column; of all rows
    under None without one. Raises EmptyLogError without rows.
    """
    micros = F.unix_micros(TIME)
    found = rows.groupBy(*by).agg(F.min(micros), F.max(micros), F.count(F.lit(1))).collect()
    spans = {(value or [None])[0]: (from_micros(first), from_micros(last + 1), count)
             for *value, first, last, count in found if count}
    if not spans:
        raise EmptyLogError("there are no events to cut into windows; run ingest on a log with rows")
    return spans


def _by_share(events: DataFrame, named: Mapping[str, Window]) -> dict[str, Span]:
    """Row k in time order starts the window whose predecessors' shares add up to k / rows; share 0 gives no window."""
    first, end, rows = _spans_of_rows(events)[None]
    shares = {name: float(share) for name, share in named.items() if not isinstance(share, tuple) and share > 0}
    cuts = list(accumulate(shares.values()))[:-1]
    inner = order_statistics(events, [min(round(cut * rows), rows - 1) for cut in cuts])
    bounds = [first, *inner, end]
    return {name: (bounds[i], bounds[i + 1]) for i, name in enumerate(shares)}


def order_statistics(events: DataFrame, ranks: Sequence[int]) -> list[datetime]:
    """The times of the rows of these ranks (0 = earliest)."""
    found: list[tuple[int, int]] = [(0, rank) for rank in ranks]  # (bucket, rank inside it)
    parent: Column = F.lit(0)
    for size in _BUCKETS:
        bucket = _bucket(size)
        inside = events.where(parent.isin(sorted({b for b, _ in found})))
        counts = inside.groupBy(parent.alias("parent"), bucket.alias("bucket")).count().collect()
        by_parent: dict[int, list[tuple[int, int]]] = {}
        for row in counts:
            by_parent.setdefault(row["parent"], []).append((row["bucket"], row["count"]))
        found = [_descend(sorted(by_parent[b]), rank) for b, rank in found]
        parent = bucket
    return [from_micros(b) for b, _ in found]


def _bucket(size: int) -> Column:
    """Start of the row's bucket of `size` microseconds; exact for times before 1970 too."""
    return F.expr(f"unix_micros({TIME}) - pmod(unix_micros({TIME}), {size}L)")


def _descend(counts: Sequence[tuple[int, int]], rank: int) -> tuple[int, int]:
    for bucket, count in counts:
        if rank < count:
            return bucket, rank
        rank -= count
    raise DataError("the log changed while its windows were being cut; run the job again on a log at rest")


def assign(events: DataFrame, windows: Mapping[str, Span], embargo: int) -> DataFrame:
    """Adds `_window`: null outside all windows and in the last `embargo` seconds of each but the last."""
    names = list(windows)
    chosen = F.lit(None).cast("string")
    for name, (start, end) in windows.items():
        end = end if name == names[-1] else end - timedelta(seconds=embargo)
        chosen = F.when((F.col(TIME) >= F.lit(start)) & (F.col(TIME) < F.lit(end)), F.lit(name)).otherwise(chosen)
    return events.withColumn(WINDOW, chosen)


def _check(first: Mapping[str, datetime], spans: Mapping[str, Span], embargo: int, log: Span) -> None:
    """`first`: the earliest row outside the embargo of each window that has one; the last one's may be in its own."""
    for name, span in spans.items():
        if name not in first or first[name] >= span[1]:
            raise WindowError(
                f"window {name!r} ({_text(span)}) has no rows outside its embargo of {embargo} s; the log spans "
                f"{_text(log)}; move the windows, shorten the embargo or bring a longer log"
            )


def _text(span: Span) -> str:
    return " to ".join(f"{t:%Y-%m-%d %H:%M:%S}" for t in span)
