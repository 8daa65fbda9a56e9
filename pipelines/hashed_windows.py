"""Windows of a log without times: rows fall into them by the hash of their id, in the configured shares.

    share(row) = xxhash64(row id, seed) as a number in [0, 1)

The same on any cluster and in any order of the rows; another seed is another split. With `windows.test_where` the rows
for which that expression holds are the test window, and the others share the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import accumulate
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import ROW, TEST
from contracts.config import Config
from contracts.errors import ConfigError, WindowError
from pipelines.failures import explained
from pipelines.windows import WINDOW

Shares = dict[str, tuple[float, float]]
BITS = 53


def add_test_flag(frame: DataFrame, config: Config) -> DataFrame:
    """Adds `_test` where the configuration says which rows are the test window."""
    expression = config.windows.test_where
    if expression is None:
        return frame
    with explained("windows.test_where", expression):
        flagged = frame.withColumn(TEST, F.coalesce(F.expr(f"({expression})").cast("boolean"), F.lit(False)))
        _ = flagged.schema
    return flagged


def resolve(events: DataFrame, config: Config) -> Shares:
    """[start, end) of the hash of each window; the test window of `test_where` has none.

    Raises ConfigError on windows given as dates, WindowError when a window has no rows.
    """
    named = config.windows.named()
    dated = [name for name, window in named.items() if isinstance(window, tuple)]
    if dated:
        raise ConfigError(f"windows.{dated[0]} is given in dates and the log has no event_time; give shares of rows")
    shares = {name: float(share) for name, share in named.items() if share and not isinstance(share, tuple)}
    if TEST in events.columns:
        del shares["test"]
    total = sum(shares.values())
    ends = list(accumulate(share / total for share in shares.values()))
    spans = {name: (start, end) for name, start, end in zip(shares, [0.0, *ends[:-1]], ends, strict=True)}
    last = list(spans)[-1]
    spans[last] = (spans[last][0], 1.0)
    _check(events, spans, config)
    return spans


def assign(events: DataFrame, spans: Mapping[str, tuple[float, float]], seed: int) -> DataFrame:
    """Adds `_window`."""
    share = _share(seed)
    chosen = F.lit(None).cast("string")
    for name, (start, end) in spans.items():
        chosen = F.when((share >= start) & (share < end), F.lit(name)).otherwise(chosen)
    if TEST in events.columns:
        chosen = F.when(F.col(TEST), F.lit("test")).otherwise(chosen)
    return events.withColumn(WINDOW, chosen)


def _share(seed: int) -> Column:
    positive = F.shiftrightunsigned(F.xxhash64(F.col(ROW), F.lit(seed)), 64 - BITS)
    return positive.cast("double") / F.lit(float(2**BITS))


def _check(events: DataFrame, spans: Shares, config: Config) -> None:
    found = {row[WINDOW] for row in assign(events, spans, config.seed).groupBy(WINDOW).count().collect()}
    for name in [*spans, *(["test"] if TEST in events.columns else [])]:
        if name not in found:
            cure = "check windows.test_where" if name not in spans else "give it a larger share, or bring more rows"
            raise WindowError(f"window {name!r} has no rows; {cure}")


def write(path: Path, spans: Mapping[str, tuple[float, float]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}")
    aside.write_text(json.dumps({"hashed": {name: list(span) for name, span in spans.items()}}, indent=1) + "\n")
    aside.replace(path)


def read(path: Path) -> Shares | None:
    """None where the windows are in time."""
    raw = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: (start, end) for name, (start, end) in raw["hashed"].items()} if "hashed" in raw else None
