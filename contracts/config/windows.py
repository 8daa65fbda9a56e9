"""Which time is for what, and how counters are published in it."""

from __future__ import annotations

from itertools import pairwise

from pydantic import Field, model_validator

from contracts.config.section import Section, Window
from contracts.duration import Duration


class Windows(Section):
    """Statistics ▶ train ▶ validation ▶ test, as dates [start, end) or as shares of the rows in time order.

    The last `embargo` seconds of each window are left out, of the last one those before the log's last row: no label
    is used that was still open. The embargo is at least the label window (None = equal to it).
    A log without times has shares of the rows by their hash, and no embargo.
    """

    statistics: Window = 0.2
    train: Window = 0.6
    validation: Window = 0.1
    test: Window = 0.1
    embargo: Duration | None = Field(
        None, description="left out at the end of each window; none given: the label window"
    )
    test_where: str | None = Field(
        None,
        description="Spark SQL over the log's columns: the rows of the test window in a table without times; `test` is "
        "then not read, and the other shares split the rest",
    )

    def named(self) -> dict[str, Window]:
        """In the order of time."""
        return {"statistics": self.statistics, "train": self.train, "validation": self.validation, "test": self.test}

    @model_validator(mode="after")
    def _ordered(self) -> Windows:
        spans = {name: span for name, span in self.named().items() if isinstance(span, tuple)}
        if 0 < len(spans) < 4:
            raise ValueError("windows are either all dates or all shares")
        if not spans:
            total = sum(float(w) for w in self.named().values() if not isinstance(w, tuple))
            if abs(total - 1.0) > 1e-6 and self.test_where is None:
                raise ValueError(f"the shares of the windows add up to {total:g}; they must add up to 1")
            needed = ("train", "validation", *(() if self.test_where else ("test",)))
            empty = [n for n in needed if self.named()[n] == 0]
            if empty:
                raise ValueError(f"window {empty[0]!r} has share 0 and would be empty; give it at least 0.01")
        names = list(spans)
        for name, (start, end) in spans.items():
            if start >= end:
                raise ValueError(f"window {name!r} is empty: {start:%Y-%m-%d %H:%M} is not before {end:%Y-%m-%d %H:%M}")
        for left, right in pairwise(names):
            if spans[left][1] > spans[right][0]:
                raise ValueError(
                    f"windows overlap: {left!r} ends {spans[left][1]:%Y-%m-%d %H:%M}, after {right!r} starts "
                    f"{spans[right][0]:%Y-%m-%d %H:%M}; end it there or earlier"
                )
        return self


class Features(Section):
    """`publish_every` = 0 means event-fresh; `also_fresh` writes event-fresh twins next to the published features."""

    publish_every: Duration = Field(86_400, description="how often the served tables are published; 0: event-fresh")
    also_fresh: bool = Field(False, description="event-fresh twins beside the published features")
    negative_rate: float = Field(1.0, gt=0, le=1.0, description="share w of negatives kept in the training window")
    max_key_rows: int = Field(2_000_000, ge=1, description="events of one key that a task holds; the counters of a key "
                              "with more, once impressions of the same publishes are counted together, are summed "
                              "slice of time by slice, and of the clicks of a user with more the newest of each "
                              "publish alone are listed from")
