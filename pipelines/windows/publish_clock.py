"""When a row becomes visible, and as of when a query looks: all in whole microseconds since the Unix epoch, UTC.

Two clocks decide about an impression shown at `event_time` and known at `known_time`:

    ENTER    it counts as shown
    CLOSE    it counts as decided: the denominator of a rate
    LEARNED  clicks only: the click is known: sequences
    CLICK    clicks only: the click counts in a rate
    CLICKED_AT  clicks only: the click's own time, the order of a sequence; event_time where the log does not tell

as contracts/features/event_clock.py defines them, for this side and the server's.

With a publish grid of `period`, a query at t reads the tables published at the last grid point P <= t. Since P is a
grid point, `x <= P` holds exactly when `visible(x) <= P`: snapping entries and exits up to the grid changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import CLICK_TIME, FRESH, KNOWN, LABEL, LABEL_TIME, TIME
from contracts.config.windows import Features
from contracts.features import event_clock
from contracts.features.event_clock import SECOND

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
AT, ENTER, CLOSE, LEARNED, CLICK = "_at", "_enter", "_close", "_learned", "_click"
CLICKED_AT = "_clicked_at"


@dataclass(frozen=True)
class PublishClock:
    """Tables are published every `period` microseconds, 1: event-fresh; `suffix` ends the names of its features."""

    period: int
    suffix: str = ""

    def last_publish(self, micros: Column) -> Column:
        """At or before: what a query of that time reads."""
        return micros - F.pmod(micros, F.lit(self.period))

    def visible(self, micros: Column) -> Column:
        """The first publish at or after."""
        return micros + F.pmod(-micros, F.lit(self.period))


def published(features: Features) -> PublishClock:
    """The clock of the served tables."""
    return PublishClock(max(features.publish_every * SECOND, 1))


def clocks(features: Features) -> list[PublishClock]:
    """The clock of the features, and that of their event-fresh twins where they are asked for."""
    return [published(features), PublishClock(1, FRESH)] if features.also_fresh else [published(features)]


def with_times(events: DataFrame, label_window: int) -> DataFrame:
    """Adds the columns AT, ENTER, CLOSE, LEARNED, CLICKED_AT and CLICK (bigint microseconds) as defined above.

    A log without times is one instant: all its rows happen, and their labels are known, at the epoch.
    """
    timed = TIME in events.columns
    at, known, learned = (
        F.unix_micros(name) if timed else F.lit(0).cast("bigint") for name in (TIME, KNOWN, LABEL_TIME)
    )
    clicked = F.col(LABEL) == 1
    clicked_at = F.coalesce(F.unix_micros(CLICK_TIME), F.col(AT)) if CLICK_TIME in events.columns else F.col(AT)
    return (
        events.withColumn(AT, at)
        .withColumn(ENTER, event_clock.entered(F.col(AT), known, F.greatest))
        .withColumn(CLOSE, event_clock.closed(F.col(AT), F.col(ENTER), label_window, F.greatest))
        .withColumn(LEARNED, F.when(clicked, event_clock.learned(F.col(ENTER), learned, F.greatest)))
        .withColumn(CLICKED_AT, F.when(clicked, clicked_at))
        .withColumn(CLICK, F.when(clicked, event_clock.counted(F.col(CLOSE), F.col(LEARNED), F.greatest)))
    )


def to_micros(at: datetime) -> int:
    """Whole microseconds since the epoch; a time without zone is read as UTC."""
    aware = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(microseconds=1)


def from_micros(micros: int) -> datetime:
    """A UTC time from whole microseconds since the epoch."""
    return EPOCH + timedelta(microseconds=micros)
