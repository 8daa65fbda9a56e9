"""An hour of a small world, and a server that knows nothing but what it is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from contracts.config.simulation import Simulation
from pipelines.marketplace.marketplace import build_world
from sluice.demo.live_requests import Visit
from sluice.fresh_demo.hour import Hour, HourSettings, TimedVisit
from sluice.fresh_demo.shelf import Change, ShelfShares

ITEMS, LIMIT = 120, 6
SHARES = ShelfShares(withdrawn=0.2, sold_out=0.2, repriced=0.2, new=0.2)
STILL = ShelfShares(0.0, 0.0, 0.0, 0.0)
POPULATION, _, TRUTH = build_world(Simulation(events=2_000, users=300, items=ITEMS, days=2), 5)


def small_hour(**settings: Any) -> Hour:
    """Of a dozen guests; changed in `settings`."""
    given = {"visits": 240, "users": 12, "shares": SHARES, "seed": 3, **settings}
    guests = [Visit(f"u_{number:03d}", {"device": "phone", "placement": "feed", "hour": 9, "weekday": 2})
              for number in range(int(given["users"]))]
    return Hour.drawn(TRUTH, POPULATION.bid, guests, HourSettings(**given))


class Told:
    """Shows what it holds to be there in one fixed order, the highest bid first, without what the user has clicked."""

    def __init__(self, hour: Hour) -> None:
        self.items = hour.truth.values["item"]
        self.there = np.arange(len(self.items)) < ITEMS
        self.bids = hour.shelf.bid_before.copy()
        self.clicked: dict[str, set[str]] = {}
        self.changes = self.events = 0
        self.slowest = 0.0

    def tell(self, changes: Sequence[Change]) -> None:
        for change in changes:
            self.changes += 1
            if change.kind == "set_bids":
                self.bids[change.item] = change.number
            else:
                self.there[change.item] = change.kind == "upsert" or change.number > 0

    def ask(self, visit: TimedVisit, limit: int) -> list[str]:
        taken = self.clicked.get(visit.who.user, set())
        order = np.argsort(-np.where(self.there, self.bids, -1.0), kind="stable")
        return [self.items[row] for row in order if self.there[row] and self.items[row] not in taken][:limit]

    def record(self, visit: TimedVisit, shown: Sequence[str], bids: Sequence[float], clicked: Sequence[bool]) -> None:
        self.events += len(shown) + sum(clicked)
        self.clicked.setdefault(visit.who.user, set()).update(
            item for item, hit in zip(shown, clicked, strict=True) if hit)


class Best(Told):
    """Knows the truth."""

    def __init__(self, hour: Hour) -> None:
        super().__init__(hour)
        self._hour = hour

    def ask(self, visit: TimedVisit, limit: int) -> list[str]:
        taken = self.clicked.get(visit.who.user, set())
        there, bids = self._hour.shelf.on(visit.minute), self._hour.shelf.bids(visit.minute)
        worth = self._hour.probability(visit) * (bids if visit.auction else 1.0)
        free = there & np.array([item not in taken for item in self.items])
        return [self.items[row] for row in np.argsort(-np.where(free, worth, -1.0), kind="stable")[:limit]]
