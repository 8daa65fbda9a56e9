"""The queries, as SQLite reads them, over random rows; the whole script: test_duckdb_features.py."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import numpy as np
import pytest

from benchmarks.pipelines.duckdb_counts import DAY, MEASURES, counts_as_of, counts_by_day, rates

WINDOWS, KEYS, DAYS = {"1d": 1, "3d": 3}, 5, 12
NAMES = [f"{measure}_{window}" for window in WINDOWS for measure in MEASURES]


def as_sqlite(query: str) -> str:
    """Whole numbers are divided by / there, and casts are calls: of these queries' numbers none changes by its cast."""
    return query.replace("//", "/").replace("::bigint", "").replace("::double", "")


@pytest.fixture(scope="module")
def events() -> Iterator[sqlite3.Connection]:
    """400 rows of five keys, some without one; every third is clicked, some later than the longest window."""
    draw = np.random.default_rng(0)
    with sqlite3.connect(":memory:") as base:
        base.execute("create table events (item integer, shown_at integer, enter integer, closes integer, counts)")
        for row in range(400):
            shown = int(draw.integers(0, DAYS * DAY))
            closes = shown + int(draw.integers(1, DAY))
            counts = closes + int(draw.integers(0, 4 * DAY)) if row % 3 == 0 else None
            item = None if row % 50 == 0 else int(draw.integers(0, KEYS))
            base.execute("insert into events values (?, ?, ?, ?, ?)", (item, shown, shown + 1, closes, counts))
        yield base


def of_day(base: sqlite3.Connection, p: int) -> dict[int, tuple[int, ...]]:
    """Counts by key, from single rows."""
    columns = ", ".join(MEASURES.values())
    found: dict[int, list[int]] = {}
    for item, shown, *moments in base.execute(f"select item, shown_at, {columns} from events where item is not null"):
        inside = [at is not None and at <= p * DAY and max(at, p * DAY) < shown + days * DAY
                  for days in WINDOWS.values() for at in moments]
        found[item] = [a + b for a, b in zip(found.get(item, [0] * len(NAMES)), inside, strict=True)]
    return {item: tuple(counts) for item, counts in found.items()}


@pytest.mark.parametrize("p", [0, 2, 7, DAYS, DAYS + 9])
def test_counts_of_a_day_are_those_of_its_rows(events: sqlite3.Connection, p: int) -> None:
    found = events.execute(as_sqlite(counts_as_of(WINDOWS, "item", p))).fetchall()
    assert {key: tuple(counts) for key, *counts in found} == of_day(events, p)


@pytest.mark.parametrize("p", [0, 2, 7, DAYS, DAYS + 9])
def test_the_last_change_until_a_day_has_its_counts(events: sqlite3.Connection, p: int) -> None:
    query = f"select key, day, {', '.join(NAMES)} from ({as_sqlite(counts_by_day(WINDOWS, 'item'))}) order by day"
    last = {key: tuple(counts) for key, day, *counts in events.execute(query) if day <= p}
    nothing = (0,) * len(NAMES)
    assert {key: last.get(key, nothing) for key in range(KEYS)} == of_day(events, p)


def test_a_rate_is_smoothed_towards_the_prior_and_a_key_without_counts_has_it() -> None:
    of = "(select 8 shown_1d, 2 clicked_1d, 6 closed_1d union all select null, null, null)"
    with sqlite3.connect(":memory:") as base:
        found = base.execute(as_sqlite(f"select {rates({'1d': 1}, 'c', 't', 0.25, 4.0)} from {of} t")).fetchall()
    assert found == [(8, (2 + 1) / (6 + 4)), (0, 0.25)]
