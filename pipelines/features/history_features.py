"""Counters and sequences of a set of rows, each as of the row's own time: offline for events, online for table rows.

    count    impressions shown in the window
    rate     (clicks + prior * strength) / (closed impressions + strength), in the window

Counters over the same columns share one pass, and what was counted, which is less than the rows, is the side of a join
that is kept in memory. A row whose key is missing has counts 0, the prior rate and no history.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import DAY, USER
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.config.section import Side
from contracts.features.event_clock import SECOND, Measure, measures, statistic_of
from pipelines.engine.session import is_local
from pipelines.features.ingested_tables import Impressions
from pipelines.features.key_types import SPARK_TYPES
from pipelines.features.measures import MOMENT
from pipelines.features.running_counters import count_at, counts_at, running_counts
from pipelines.features.sequences import HISTORY, clickers, last_clicked
from pipelines.features.source_columns import Located, SourceColumns, typed
from pipelines.windows.publish_clock import AT, PublishClock, from_micros, to_micros

EARLIEST = to_micros(datetime.min.replace(tzinfo=UTC))
HELD = 20_000_000  # numbers that local mode holds of one group's answers, beside the rows
OF_ROW = 8  # as many numbers are an answer's keys, its moment and what a row of them takes
_JOINED = "_joined"  # before a measure's name, once it is joined to the rows


class CounterGroup(NamedTuple):
    """Counters that go by the same columns."""

    keys: tuple[str, ...]
    located: tuple[Located, ...]
    fields: tuple[FieldConfig, ...]

    @property
    def measures(self) -> list[Measure]:
        return measures_of(self.fields)

    def first_day(self, moment: int) -> str:
        """The earliest one whose events may count at `moment` (microseconds)."""
        longest = max(window for field in self.fields for window in field.windows)
        return from_micros(max(moment - longest * SECOND, EARLIEST)).date().isoformat()


@dataclass(frozen=True)
class HistoryFeatures:
    """The configured counters and sequences of `sides`.

    prior    the rate they are smoothed towards
    events   how many impressions there are at most
    """

    config: Config
    columns: SourceColumns
    prior: float = 0.0
    sides: tuple[Side, ...] = ("user", "item")
    events: int = 0

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
        return [*keys, *self.listed()]

    def listed(self) -> list[Located]:
        """The columns that sequences list."""
        return [self.columns.of_field(target) for _, target in self.sequences]

    def add(
        self, rows: DataFrame, impressions: Impressions, clock: PublishClock, chosen: Column | None = None,
        counted: Callable[[CounterGroup], DataFrame] | None = None,
    ) -> DataFrame:
        """`rows` with one column per counter and sequence, each as of the row's AT; `rows` hold AT and the sources.

        chosen    where the rows are impressions, which of them they are
        counted   what `running_counts` gives for a group, where that is known; of `impressions` clicks are enough
        """
        asked = rows.withColumn(MOMENT, clock.last_publish(F.col(AT)))
        for group in self.groups():
            counts = counted(group) if counted else running_counts(
                impressions.of(group.located), rows if chosen is None else chosen, group.keys, group.measures, clock,
                self.most)
            found = self._held(_marked(counts, group.measures), len(group.measures), clock)
            asked = found.join(asked, [*group.keys, MOMENT], "right")
            asked = self._with_counters(asked, group, clock.suffix)
        return self._with_sequences(asked, rows, impressions, clock).drop(MOMENT)

    def add_at(
        self, rows: DataFrame, impressions: Impressions, clock: PublishClock, moment: int, key: str
    ) -> DataFrame:
        """As `add`, of rows that all ask at `moment` (microseconds, on the clock's grid): one aggregate a key; `rows`
        hold that of `key`, `counts_of`.
        """
        asked = rows.withColumn(MOMENT, F.lit(moment).cast("bigint"))
        for group in self.groups():
            if group.keys != (key,):
                reached = impressions.where(F.col(DAY) >= group.first_day(moment))
                counts = counts_at(reached.of(group.located), group.keys, group.measures, moment)
                asked = _marked(counts, group.measures).join(asked, list(group.keys), "right")
            asked = self._with_counters(asked, group, clock.suffix)
        return self._with_sequences(asked, clickers(impressions.frame, moment), impressions, clock).drop(MOMENT)

    def counts_of(self, key: str, moment: int) -> list[Column]:
        """Aggregates over the impressions of a value of `key` as of `moment`, from which its counters are made."""
        groups = [group for group in self.groups() if group.keys == (key,)]
        return [count_at(measure, moment).alias(_JOINED + measure.column) for group in groups
                for measure in group.measures]

    @property
    def most(self) -> int | None:
        """Impressions of one key that a task should hold; None where no key can have more."""
        most = self.config.features.max_key_rows
        return most if self.events > most else None

    def _held(self, answers: DataFrame, numbers: int, clock: PublishClock) -> DataFrame:
        """Answers of `numbers` each, to be joined to the rows: of a short log local mode holds them all, so that it
        neither sends nor sorts a row. Event-fresh they are about as many as the rows.
        """
        few = clock.period > 1 and self.events * (numbers + OF_ROW) <= HELD
        return F.broadcast(answers) if few and is_local(answers.sparkSession) else answers

    def _with_counters(self, asked: DataFrame, group: CounterGroup, suffix: str) -> DataFrame:
        features = {
            name + suffix: _statistic(field, statistic, window, self.prior)
            for field in group.fields for name, statistic, window in field.counters()
        }
        return asked.withColumns(features).drop(*(_JOINED + m.column for m in group.measures))

    def _with_sequences(
        self, asked: DataFrame, rows: DataFrame, impressions: Impressions, clock: PublishClock
    ) -> DataFrame:
        for field, target in self.sequences:
            located = self.columns.of_field(target)
            value = typed(target, located)
            found = last_clicked(impressions.of([located]), rows, value, field.length, clock, self.most)
            name, empty = field.name + clock.suffix, F.array().cast(f"array<{SPARK_TYPES[target.key_type]}>")
            lists = self._held(found.withColumnRenamed(HISTORY, name), field.length, clock)
            asked = lists.join(asked, [USER, MOMENT], "right")
            asked = asked.withColumn(name, F.coalesce(F.col(name), empty))
        return asked

    def names(self, clock: PublishClock) -> list[str]:
        """Of the columns that `add` makes for the clock, in the order of the configuration."""
        counters = [name for field in self.counters for name, _, _ in field.counters()]
        return [name + clock.suffix for name in [*counters, *(field.name for field, _ in self.sequences)]]

    def groups(self) -> list[CounterGroup]:
        """Counters over the same columns together."""
        located: dict[tuple[str, ...], tuple[Located, ...]] = {}
        fields: dict[tuple[str, ...], list[FieldConfig]] = {}
        for field in self.counters:
            by_name = {column.name: column for column in self.columns.keys_of(field)}
            keys = tuple(sorted(by_name))
            located[keys] = tuple(by_name.values())
            fields.setdefault(keys, []).append(field)
        return [CounterGroup(keys, located[keys], tuple(found)) for keys, found in fields.items()]


def measures_of(fields: Sequence[FieldConfig]) -> list[Measure]:
    """What the counters of these fields are made of."""
    wanted = [(statistic, window) for field in fields for _, statistic, window in field.counters()]
    return list(dict.fromkeys(measure for pair in wanted for measure in measures(*pair)))


def _marked(counts: DataFrame, measures: Sequence[Measure]) -> DataFrame:
    return counts.withColumnsRenamed({measure.column: _JOINED + measure.column for measure in measures})


def _statistic(field: FieldConfig, statistic: str, window: int, prior: float) -> Column:
    """Of the joined measures; null measures (a missing key) count as 0."""
    joined = [F.col(_JOINED + measure.column) for measure in measures(statistic, window)]
    counts = tuple(F.coalesce(column, F.lit(0).cast("bigint")).cast("double") for column in joined)
    found: Column = statistic_of(statistic, counts, prior, field.prior_strength)
    return found
