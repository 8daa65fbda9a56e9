"""What is counted of the impressions of a key: those that were shown, decided or clicked, of a window's age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from pipelines.windows.publish_clock import AT, CLICK, CLOSE, ENTER, SECOND

Event = Literal["shown", "closed", "clicked"]
ENTERS: dict[Event, str] = {"shown": ENTER, "closed": CLOSE, "clicked": CLICK}
MOMENT, QUERY, ROWS = "_moment", "_query", "_rows"


class Measure(NamedTuple):
    """How many impressions have had this event and are younger than `window` seconds (None: of any age)."""

    event: Event
    window: int | None

    @property
    def column(self) -> str:
        return f"_{self.event}_{'all' if self.window is None else self.window}"

    @property
    def exit(self) -> str:
        """The column of the moment at which the impression leaves."""
        return f"_exit_{self.window}"

    def enters(self) -> Column:
        """Whether the impression ever counts; false also where the event never happened: its time is null."""
        entry = F.col(ENTERS[self.event])
        if self.window is None:
            return entry.isNotNull()
        return F.coalesce(entry < F.col(AT) + self.window * SECOND, F.lit(False))

    def counts_at(self, moment: int) -> Column:
        """Whether the impression counts at `moment` (microseconds)."""
        inside = self.enters() & F.coalesce(F.col(ENTERS[self.event]) <= moment, F.lit(False))
        return inside if self.window is None else inside & (F.col(AT) + self.window * SECOND > moment)


def changes_at(measures: Sequence[Measure]) -> dict[str, dict[Measure, int]]:
    """Column of a time -> measures that grow (1) or shrink (-1) then."""
    found: dict[str, dict[Measure, int]] = {}
    for measure in measures:
        found.setdefault(ENTERS[measure.event], {})[measure] = 1
        if measure.window is not None:
            found.setdefault(measure.exit, {})[measure] = -1
    return found
