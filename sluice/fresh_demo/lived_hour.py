"""The hour as one server answers it: what each slate is worth by the truth of its minute, beside the best one.

The best slate knows probability, bid and shelf of the minute, and what the user has clicked in this run so far: no
slate is worth more.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from sluice.demo.slates import Market
from sluice.fresh_demo.hour import Hour, TimedVisit
from sluice.fresh_demo.shelf import Change
from sluice.fresh_demo.told_server import ToldServer


class News(NamedTuple):
    """What the server is told of the hour; `name` in the summary."""

    name: str
    items: bool
    events: bool


NEWS = (News("nothing", False, False), News("items", True, False), News("items_and_events", True, True))


class LivedVisit(NamedTuple):
    """`worth` and `best` in expected clicks, or in bid x probability where there was an auction; `best_value` in the
    latter always; `lost` is bid x probability of what could not be had; `mood` and `best_mood` what the user's mood
    adds to the logit of the slate's items and of the best ones, on average. The rest counts places and drawn clicks."""

    worth: float
    best: float
    best_value: float
    lost: float
    mood: float
    best_mood: float
    unavailable: int
    repeated: int
    places: int
    clicked: int


def live(hour: Hour, news: News, server: ToldServer, clicked: Mapping[int, np.ndarray], limit: int) -> list[LivedVisit]:
    """Asks for every visit in order, after the server shows what has changed by then; `clicked` are codes of items that
    a user has clicked before the hour."""
    waiting = deque(hour.shelf.changes() if news.items else [])
    taken: dict[int, set[int]] = defaultdict(set, {user: set(items.tolist()) for user, items in clicked.items()})
    codes = {item: code for code, item in enumerate(hour.truth.values["item"])}
    lived = []
    for visit in hour.visits:
        server.tell(_due(waiting, visit.minute))
        slate = server.ask(visit, limit)
        rows = np.array([codes[item] for item in slate], dtype=np.int64)
        found, hits = _judged(hour, visit, rows, taken[visit.user], limit)
        lived.append(found)
        taken[visit.user].update(rows[hits].tolist())
        if news.events:
            server.record(visit, slate, hour.shelf.bids(visit.minute)[rows].tolist(), hits.tolist())
    return lived


def _due(waiting: deque[Change], minute: float) -> list[Change]:
    found = []
    while waiting and waiting[0].minute <= minute:
        found.append(waiting.popleft())
    return found


def _judged(
    hour: Hour, visit: TimedVisit, rows: np.ndarray, taken: set[int], limit: int
) -> tuple[LivedVisit, np.ndarray]:
    """And which of the places are clicked, bool [places]."""
    probability, bids, there = hour.probability(visit), hour.shelf.bids(visit.minute), hour.shelf.on(visit.minute)
    again = np.zeros(len(there), dtype=bool)
    again[list(taken)] = True
    open_now = there & ~again
    market = Market(np.where(open_now, probability, 0.0), bids, open_now, 0.0, limit)
    kind = "value" if visit.auction else "clicks"
    best, gone = market.best(kind), rows[~there[rows]]
    mood = hour.moods.addend(visit.user, visit.minute)
    hits = hour.uniform(visit)[rows] < market.probability[rows]
    return LivedVisit(
        worth=market.total(kind, rows), best=market.total(kind, best),
        best_value=market.total("value", market.best("value")),
        lost=float((bids * probability * ~again)[gone].sum()), unavailable=len(gone),
        mood=_mean(mood[rows]), best_mood=_mean(mood[best]),
        repeated=int(again[rows].sum()), places=len(rows), clicked=int(hits.sum())), hits


def _mean(values: np.ndarray) -> float:
    """0 of nothing."""
    return float(values.mean()) if len(values) else 0.0
