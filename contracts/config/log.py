"""The log, its labels and tables, and the Spark that reads them."""

from __future__ import annotations

import re

from pydantic import Field, model_validator

from contracts.config.section import Section, Share
from contracts.duration import Duration


class SparkSettings(Section):
    """The engine of the pipelines: in the process, or Apache Spark; an empty master leaves it to spark-submit."""

    master: str = Field("embedded", description="`embedded`: in process, without Java; else as Apache Spark takes it "
                        "(`local[*]`, `spark://`, `yarn`, `k8s://`, `sc://`); empty: spark-submit decides")
    settings: dict[str, str] = Field({}, description="the engine's own settings (`spark.*`; `sail.*` when embedded)")


class Source(Section):
    """Any table Spark can read: format and options go to the reader as they are."""

    path: str = Field(description="a file or folder; `{data}` is filled in")
    format: str = Field("parquet", description="name of a Spark reader")
    options: dict[str, str] = Field({}, description="of the reader")
    schema_ddl: str | None = Field(None, description="Spark DDL; needed where the file carries no types, such as CSV")
    derive: dict[str, str] = Field({}, description="new column -> Spark SQL expression over the raw columns")


class Log(Source):
    """The impressions (or plain rows): one row per shown item. `key` are the columns that identify an event."""

    user_id: str | None = Field(None, description="column")
    item_id: str | None = Field(None, description="column")
    request_id: str | None = Field(None, description="column: what was shown together")
    event_time: str | None = Field(None, description="column: when it was shown")
    known_time: str | None = Field(None, description="column: when the log learned of it")
    position: str | None = Field(
        None, description="column: slot from 1; its effect is learned, and left out when serving"
    )
    bid: str | None = Field(None, description="column: bid per click, for the auction")
    key: tuple[str, ...] = Field((), description="columns that identify an event; repeated events count once")
    history: Duration | None = Field(
        None, description="how far back a run reads from the end of its `--until` day; none given: all of the log"
    )
    max_bad_share: Share = Field(0.01, description="rows that may go to quarantine before the step fails")

    @property
    def clock_columns(self) -> frozenset[str]:
        """Columns that `derive` makes from `event_time`: they tell when a row was, whatever it was about."""
        clock = (self.event_time or "").lower()
        return frozenset(name for name, said in self.derive.items() if clock in re.findall(r"\w+", said.lower()))


class Clicks(Source):
    """Later events that turn an impression into a positive when they come within `window` of it."""

    on: tuple[str, ...] = Field(description="columns that join a click to its impression")
    event_time: str = Field("event_time", description="column")
    known_time: str | None = Field(None, description="column")
    window: Duration = Field(86_400, description="how long after an impression a click counts")


class Negatives(Section):
    """Rows that are drawn for every positive of a log of positives alone: other items at the same moment.

    An item can be drawn from its first row in the log on, by users who have not taken it by then.
    """

    per_positive: int = Field(4, ge=1, le=1000, description="rows drawn for every positive")
    popularity: float = Field(
        0.0, ge=0, le=1, description="the power of how often an item was taken so far, by which it is drawn; 0: every "
        "item alike; 1: as often as it is taken",
    )
    candidates: float = Field(
        0.0, ge=0, le=0.9, description="share of them that is drawn from what an item-to-item retrieval, fitted before "
        "that day, has for the user's latest items at that moment; the others are drawn as `popularity` says",
    )


class Label(Section):
    """Exactly one of a Spark SQL expression over the log, a table of later clicks, or `positives_only`."""

    expression: str | None = Field(None, description="Spark SQL over the log's columns, 0 or 1")
    clicks: Clicks | None = Field(None, description="a table of later events")
    positives_only: bool = Field(False, description="every row of the log is a positive: a purchase, a play, a visit")
    repeat: bool = Field(
        False, description="of positives alone: users take the same item again (groceries, songs), so that each time "
        "counts and what was taken before can be drawn; without it the first time alone is an example",
    )
    negatives: Negatives = Negatives()

    @model_validator(mode="after")
    def _one_of(self) -> Label:
        given = [name for name in ("expression", "clicks") if getattr(self, name) is not None]
        if self.positives_only and given:
            raise ValueError(f"label.positives_only says that every row is a positive, and label.{given[0]} says which "
                             "rows are; leave one of them out")
        if not self.positives_only and len(given) != 1:
            raise ValueError("give exactly one of label.expression and label.clicks, or label.positives_only = true "
                             "for a log that holds nothing but positives")
        if not self.positives_only and (self.repeat or self.negatives != Negatives()):
            raise ValueError("label.repeat and label.negatives are about rows that are drawn for a log of positives "
                             "alone; set label.positives_only, or leave them out")
        return self


class Table(Source):
    """A table of users or items, one row per key."""

    key: str = Field(description="column that the log's user or item column refers to")
