"""Counters and sequences of a set of rows, each as of the row's own time: offline for events, online for table rows.

    count    impressions shown in the window
    rate     (clicks + prior * strength) / (closed impressions + strength), in the window

Counters over the same columns share one pass. A row whose key is missing has counts 0, the prior rate and no history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import USER
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.config.section import Side
from pipelines.engine.key_lookup import SPARK_TYPES
from pipelines.features.running_counters import Measure, running_counts
from pipelines.features.sequences import HISTORY, last_clicked
from pipelines.features.source_columns import Located, SourceColumns, typed
from pipelines.windows.publish_clock import PublishClock


@dataclass(frozen=True)
class HistoryFeatures:
    """The configured counters and sequences of `sides`; `prior` is the rate they are smoothed towards."""

    config: Config
    columns: SourceColumns
    prior: float = 0.0
    sides: tuple[Side, ...] = ("user", "item")

    @cached_property
    def counters(self) -> list[FieldConfig]:
        return [f for f in self.config.fields if f.kind == "counter" and f.side in self.sides]

    @cached_property
    def sequences(self) -> list[tuple[FieldConfig, FieldConfig]]:
        """(sequence, the categorical field of the item it lists)."""
        by_name = {f.name: f for f in self.config.fields}
        found = [f for f in self.config.fields if f.kind == "sequence" and f.side in self.sides]
        return [(f, by_name[f.of or ""]) for f in found]

    def sources(self) -> list[Located]:
        """Every column the counters and sequences read."""
        keys = [located for field in self.counters for located in self.columns.keys_of(field)]
        return [*keys, *(self.columns.of_field(target) for _, target in self.sequences)]

    def query_columns(self) -> list[str]:
        """What `queries` of `add` must hold besides identity and AT."""
        users = [USER] if self.sequences else []
        return [
            *users,
            *dict.fromkeys(located.name for field in self.counters for located in self.columns.keys_of(field)),
        ]

    def add(
        self, rows: DataFrame, queries: DataFrame, impressions: DataFrame, clock: PublishClock, identity: str
    ) -> DataFrame:
        """`rows` with one column per counter and sequence, joined on `identity` (unique in `rows` and `queries`)."""
        for keys, fields in self._groups().items():
            rows = _with_counters(rows, queries, impressions, keys, fields, clock, identity, self.prior)
        for field, target in self.sequences:
            value = typed(target, self.columns.of_field(target))
            found = last_clicked(impressions, queries, value, field.length, clock, identity)
            empty = F.array().cast(f"array<{SPARK_TYPES[target.key_type]}>")
            rows = _with(rows, found, identity, {field.name + clock.suffix: F.coalesce(F.col(HISTORY), empty)})
        return rows

    def names(self, clock: PublishClock) -> list[str]:
        """Of the columns that `add` makes for the clock, in the order of the configuration."""
        counters = [name for field in self.counters for name, _, _ in field.counters()]
        return [name + clock.suffix for name in [*counters, *(field.name for field, _ in self.sequences)]]

    def _groups(self) -> dict[tuple[str, ...], list[FieldConfig]]:
        groups: dict[tuple[str, ...], list[FieldConfig]] = {}
        for field in self.counters:
            names = tuple(sorted({located.name for located in self.columns.keys_of(field)}))
            groups.setdefault(names, []).append(field)
        return groups


def _with_counters(
    rows: DataFrame,
    queries: DataFrame,
    impressions: DataFrame,
    keys: Sequence[str],
    fields: Sequence[FieldConfig],
    clock: PublishClock,
    identity: str,
    prior: float,
) -> DataFrame:
    wanted = [(field, *counter) for field in fields for counter in field.counters()]
    measures = dict.fromkeys(m for _, _, statistic, window in wanted for m in _measures(statistic, window))
    counts = running_counts(impressions, queries, keys, list(measures), clock, identity)
    features = {
        name + clock.suffix: _statistic(field, statistic, window, prior) for field, name, statistic, window in wanted
    }
    return _with(rows, counts, identity, features)


def _measures(statistic: str, window: int) -> list[Measure]:
    return (
        [Measure("shown", window)] if statistic == "count" else [Measure("closed", window), Measure("clicked", window)]
    )


def _statistic(field: FieldConfig, statistic: str, window: int, prior: float) -> Column:
    """Of the joined measures; null measures (a missing key) count as 0."""
    counts = [F.coalesce(F.col(m.column), F.lit(0)).cast("double") for m in _measures(statistic, window)]
    if statistic == "count":
        return counts[0]
    closed, clicked = counts
    return (clicked + F.lit(prior * field.prior_strength)) / (closed + F.lit(field.prior_strength))


def _with(rows: DataFrame, found: DataFrame, identity: str, features: dict[str, Column]) -> DataFrame:
    wide = rows.join(found, identity, "left")
    return wide.select(*rows.columns, *[column.alias(name) for name, column in features.items()])
