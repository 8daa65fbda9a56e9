"""What follows from whose row it is: a column that is an attribute of a user or an item, and the hour of few sittings.

Who rates a hundred films in an evening has one hour, one weekday and one level of liking for all of them, so that the
hour names the user. By Kish's design effect a row of such a log says as much as a fraction of one,

    deff = 1 + (b - 1) rho,     b = sum_c n_c^2 / sum_c n_c,     rho = (MSB - MSW) / (MSB + (n0 - 1) MSW)

over sittings c, the rows of a user in a day, of n_c rows each; rho: the label's correlation within a sitting, by the
analysis of variance (at least 0). Penalties of a model suppose rows that are independent, deff = 1. A sample has parts
of sittings and tells the effect too low: in doubt hour and weekday stay fields.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from sluice.init.column_types import Column

KNOWN = 0.9  # of rows: what is missing more often says something by that
REPEATS = 20  # that prove it
DAY = 86_400.0
HOURS = 24 * 7
SEVERAL = 3.0  # design effect from which rows are told apart from independent ones
ROWS_AN_HOUR = 200  # independent ones, of an hour of the week: a rate with a standard error of 0.035 at most


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


def name_users(user: Column, time: Column, truth: Sequence[bool], rows: int) -> str:
    """Why the hour and the weekday of the event would name users of a log of so many rows, "" where they do not."""
    if time.moment is None:
        return ""
    moments = (None if value is None else time.moment(value) for value in time.values)
    sittings = [(row,) if owner is None or moment is None else (owner, moment // DAY)
                for row, (owner, moment) in enumerate(zip(user.values, moments, strict=True))]
    effect = design_effect(sittings, truth)
    if effect < SEVERAL or rows / effect >= HOURS * ROWS_AN_HOUR:
        return ""
    return (f"what a user says in one day is alike, so that {rows:,} rows tell of hours what {rows / effect:,.0f} "
            f"independent ones at most (design effect {effect:.1f}), {rows / effect / HOURS:.0f} for each hour of the "
            "week: they would name the users who sat there then, and tell nothing of new ones")


def design_effect(sittings: Sequence[Hashable], labels: Sequence[bool]) -> float:
    """`sittings`: that of each row. 1 where none has several rows, or all labels are the same."""
    places: dict[Hashable, int] = {}
    which = np.array([places.setdefault(sitting, len(places)) for sitting in sittings])
    truth = np.array(labels, dtype=float)
    sizes = np.bincount(which)
    rows, groups = len(which), len(sizes)
    if groups in (1, rows) or truth.min() == truth.max():
        return 1.0
    means = np.bincount(which, weights=truth) / sizes
    between = float((sizes * (means - truth.mean()) ** 2).sum()) / (groups - 1)
    within = float((sizes * means * (1.0 - means)).sum()) / (rows - groups)
    squares = float((sizes**2).sum())
    usual = (rows - squares / rows) / (groups - 1)
    correlation = (between - within) / (between + (usual - 1.0) * within)
    return 1.0 + (squares / rows - 1.0) * max(correlation, 0.0)
