"""What the watch over the served champion found."""

from __future__ import annotations

from contracts.config.days import Watch
from contracts.release.registration import RollbackResult
from contracts.summaries.summary import Record, Summary

FOLDER = "watch"


class WatchFigure(Record):
    """A figure with its 95% interval. `value` and `high` None: infinite; `limit`: the largest value allowed;
    `against`: it speaks against the bundle; `sentence` says all of it."""

    name: str
    value: float | None = None
    low: float
    high: float | None = None
    limit: float
    against: bool
    sentence: str


class WatchSummary(Summary):
    """OUT/watch: the bundle's `answers` in [since, until), ISO 8601; `previous`: the bundle served before it.

    not_judged   why figures are missing
    reasons      sentences of the figures that speak against the bundle; not empty: it should be rolled back
    roll_back    what became of the registry's champion, or the folder's bundle, where the watch was allowed to act
    """

    bundle: str
    previous: str | None = None
    since: str
    until: str
    answers: int
    figures: tuple[WatchFigure, ...]
    not_judged: tuple[str, ...]
    reasons: tuple[str, ...]
    settings: Watch
    roll_back: RollbackResult | None = None
