"""Days with drifting tastes: a platform that updates itself every day against one trained once."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class PlatformDay(Record):
    """Expected clicks of each platform's slates on the day's visits, as shares of the best slates', with standard
    errors over visits. `refused`: the gate's reason, empty where it let the day's bundle pass."""

    day: int
    share_of_oracle: dict[str, float]
    standard_error: dict[str, float]
    champion: str
    refused: str
    seconds: float


class DaysSummary(Summary):
    """`marketplace_version`: of the marketplace's configuration."""

    name: str
    marketplace_version: str
    days: tuple[PlatformDay, ...]
    seconds: float
