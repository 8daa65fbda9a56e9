"""What `sluice quality` found about a day: OUT/quality/day=D/summary.json."""

from __future__ import annotations

from contracts.summaries.summary import Record, Summary


class Finding(Record):
    """One figure of a day, named "FIGURE" or "FIGURE.COLUMN", and its limits.

    `low` and `high` are None where the figure is not bounded, both where there is too little history.
    """

    figure: str
    value: float
    low: float | None = None
    high: float | None = None

    @property
    def refused(self) -> bool:
        """Whether the value lies beyond a limit; on it, it does not."""
        return (self.high is not None and self.value > self.high) or (self.low is not None and self.value < self.low)

    @property
    def column(self) -> str:
        """"" for a figure of the whole day."""
        return self.figure.partition(".")[2]


class QualitySummary(Summary):
    """`history`: the days that the limits were learned from; `judged`: figures that had a limit; `refused`: a sentence
    for each figure beyond its limit, and `columns` whose they are. A day passes when none is. `seconds`: to profile
    what is new, and to judge."""

    day: str
    history: tuple[str, ...]
    judged: int
    refused: tuple[str, ...]
    columns: tuple[str, ...]
    figures: tuple[Finding, ...]
    seconds: float | None = None
