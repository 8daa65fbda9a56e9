"""What is counted of the impressions of a key: those that were shown, decided or clicked, of a window's age."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

from contracts.errors import ConfigError
from contracts.features.event_clock import Event, Measure
from pipelines.engine.by_pairs import by_pairs
from pipelines.windows.publish_clock import AT, CLICK, CLOSE, ENTER

ENTERS: dict[Event, str] = {"shown": ENTER, "closed": CLOSE, "clicked": CLICK}
MOMENT, QUERY, ROWS, ENTERED = "_moment", "_query", "_rows", "_entered"
MOST = 62  # measures that one bigint tells of


def enters(measure: Measure) -> Column:
    """Whether the impression ever counts; false also where the event never happened: its time is null."""
    entry = F.col(ENTERS[measure.event])
    return entry.isNotNull() if measure.window is None else F.coalesce(measure.ever(F.col(AT), entry), F.lit(False))


def counts_by(measure: Measure, moment: int) -> Column:
    """Whether the impression counts at `moment` (microseconds)."""
    return F.coalesce(measure.counts(F.col(AT), F.col(ENTERS[measure.event]), moment), F.lit(False))


def entered_measures(measures: Sequence[Measure]) -> Column:
    """A bigint whose bit k says whether the impression ever counts in measure k. Raises ConfigError beyond MOST."""
    if len(measures) > MOST:
        raise ConfigError(
            f"counters of one key make {len(measures)} measures, {MOST} at most; take fewer windows or statistics"
        )
    bits = [F.when(enters(m), F.lit(1 << place).cast("bigint")).otherwise(F.lit(0).cast("bigint"))
            for place, m in enumerate(measures)]
    return by_pairs(Column.__add__, bits)


def has_entered(entered: np.ndarray, place: int) -> np.ndarray:
    """bool per row: bit `place` of `entered_measures`."""
    return (entered >> place) & 1 == 1


def changes_at(measures: Sequence[Measure]) -> dict[str, dict[Measure, int]]:
    """Column of a time -> measures that grow (1) or shrink (-1) then."""
    found: dict[str, dict[Measure, int]] = {}
    for measure in measures:
        found.setdefault(ENTERS[measure.event], {})[measure] = 1
        if measure.window is not None:
            found.setdefault(measure.exit, {})[measure] = -1
    return found
