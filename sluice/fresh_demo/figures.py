"""Figures of the hour: shares of the best slates' worth, by user for their standard errors, by ten minutes for plots.

A share is R = sum of worth / sum of best over visits. Its standard error is that of a ratio over n users u, linearised:

    SE^2 = n / (n - 1) * sum over u of e_u^2,   e_u = (worth_u - R best_u) / sum of best

and that of the difference of two runs of the same visits has e_u of the later less e_u of the earlier.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from contracts.summaries.demo import HourRun, HourSlice, Share
from pipelines.marketplace.moods import HOUR
from sluice.fresh_demo.hour import Hour
from sluice.fresh_demo.lived_hour import LivedVisit
from sluice.fresh_demo.told_server import ToldServer

SLICE = 10  # minutes


class Columns(NamedTuple):
    """A run, one element a visit."""

    user: np.ndarray
    minute: np.ndarray
    auction: np.ndarray
    worth: np.ndarray
    best: np.ndarray
    best_value: np.ndarray
    lost: np.ndarray

    @classmethod
    def of(cls, hour: Hour, lived: Sequence[LivedVisit]) -> Columns:
        visits = [np.array([getattr(visit, name) for visit in hour.visits]) for name in ("user", "minute", "auction")]
        worths = ("worth", "best", "best_value", "lost")
        return cls(*visits, *(np.array([getattr(visit, name) for visit in lived]) for name in worths))

    def where(self, chosen: np.ndarray) -> Columns:
        """`chosen` bool [visits]."""
        return Columns(*(column[chosen] for column in self))

    @property
    def share(self) -> float | None:
        """None where there are no visits."""
        return float(self.worth.sum() / self.best.sum()) if len(self.best) else None

    def deviations(self, users: np.ndarray) -> np.ndarray:
        """e of each of `users`, which are sorted and hold those of the visits."""
        share = self.worth.sum() / self.best.sum()
        return np.bincount(
            np.searchsorted(users, self.user), (self.worth - share * self.best) / self.best.sum(), len(users))


def share(run: Columns) -> Share:
    users = np.unique(run.user)
    return Share(share=float(run.worth.sum() / run.best.sum()), standard_error=_error(run.deviations(users)))


def gained(earlier: Columns, later: Columns) -> Share:
    """Of two runs of the same visits."""
    users = np.unique(earlier.user)
    difference = later.worth.sum() / later.best.sum() - earlier.worth.sum() / earlier.best.sum()
    return Share(share=float(difference), standard_error=_error(later.deviations(users) - earlier.deviations(users)))


def gains(runs: Mapping[str, Columns], auction: bool) -> dict[str, Share]:
    """Of each run over the one before it, and of the last over the first."""
    of_kind = {name: run.where(run.auction == auction) for name, run in runs.items()}
    names = list(of_kind)
    pairs = dict.fromkeys([*pairwise(names), (names[0], names[-1])])
    return {f"{later} over {earlier}": gained(of_kind[earlier], of_kind[later]) for earlier, later in pairs}


def _error(deviations: np.ndarray) -> float:
    count = len(deviations)
    return float(np.sqrt(count / max(count - 1, 1) * (deviations**2).sum()))


def hour_run(run: Columns, lived: Sequence[LivedVisit], server: ToldServer) -> HourRun:
    """All of one run."""
    clicks, value = run.where(~run.auction), run.where(run.auction)
    return HourRun(
        clicks=share(clicks), value=share(value), clicks_a_visit=float(clicks.worth.mean()),
        best_clicks_a_visit=float(clicks.best.mean()), lost=float(run.lost.sum()),
        lost_share=float(run.lost.sum() / run.best_value.sum()), slices=tuple(_slices(run)),
        mood=float(np.mean([visit.mood for visit in lived])),
        best_mood=float(np.mean([visit.best_mood for visit in lived])),
        **{name: sum(getattr(visit, name) for visit in lived)
           for name in ("unavailable", "repeated", "places", "clicked")},
        changes=server.changes, events=server.events, slowest_seconds=round(server.slowest, 3))


def _slices(run: Columns) -> list[HourSlice]:
    found = []
    for minute in range(0, int(HOUR), SLICE):
        part = run.where((minute <= run.minute) & (run.minute < minute + SLICE))
        found.append(HourSlice(minute=minute, clicks=part.where(~part.auction).share,
                               value=part.where(part.auction).share, lost=float(part.lost.sum())))
    return found
