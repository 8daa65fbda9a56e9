"""One hour of the marketplace after its log, drawn before anybody is asked: who comes when, what each item is worth to
them then, and on what they would click.

    probability [I] = E[sigmoid(logit at position 1 + mood + noise)]       pipelines/marketplace/truth.py, moods.py
    a user clicks on item i of a slate where uniform[i] < probability[i]

The uniform numbers belong to the visit and the item, not to who answers: runs that show the same item to the same visit
see the same click. A slate of this hour is seen whole, every place as the first. Users do not click again on what they
have clicked, in the log's histories that the bundle holds or within the hour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pipelines.marketplace.moods import HOUR, Moods
from pipelines.marketplace.newcomers import Donors, with_newcomers
from pipelines.marketplace.truth import CONTEXT, Truth, expected_sigmoid
from sluice.demo.live_requests import Visit
from sluice.fresh_demo.shelf import Shelf, ShelfShares

EVENING = 20  # the hour of the day


@dataclass(frozen=True)
class HourSettings:
    """`mood` is the strength of what users are after, in the logit (moods.py); 0: tastes stay."""

    visits: int = 1600
    users: int = 200
    mood: float = 1.5
    shares: ShelfShares = field(default_factory=ShelfShares)
    seed: int = 2026


QUICK_HOUR = HourSettings(visits=400, users=50)


class TimedVisit(NamedTuple):
    """`auction`: the slate is asked for with the auction on and its value counts, else with re-ranking off and its
    clicks count. `number` is its place in the hour."""

    number: int
    minute: float
    who: Visit
    user: int
    auction: bool


@dataclass(frozen=True)
class Hour:
    """`truth` knows the newcomers, which are the last of its items; `donors` whose values they have."""

    truth: Truth
    donors: Donors
    shelf: Shelf
    moods: Moods
    visits: tuple[TimedVisit, ...]
    seed: int

    @classmethod
    def drawn(cls, truth: Truth, bids: np.ndarray, guests: Sequence[Visit], settings: HourSettings) -> Hour:
        """`truth` of the log, `bids` [I] of its items; `guests` with the context they come in. Visits are spread evenly
        over the guests and the hour, at random."""
        rng, known = np.random.default_rng([settings.seed, 6]), len(bids)
        donors = Donors.drawn(known, round(settings.shares.new * known), rng)
        whole = with_newcomers(truth, donors)
        users = whole.user_codes(np.array([guest.user for guest in guests]))
        who = rng.integers(0, len(guests), settings.visits)
        minutes, auction = np.sort(rng.uniform(0, HOUR, settings.visits)), rng.random(settings.visits) < 0.5
        visits = tuple(
            TimedVisit(number, float(minutes[number]), _in_the_evening(guests[one]), int(users[one]),
                       bool(auction[number]))
            for number, one in enumerate(who.tolist()))
        moods = Moods.drawn(len(whole.values["user"]), whole.items["category"], settings.mood, rng)
        shelf = Shelf.drawn(np.append(bids, bids[donors.price]), known, settings.shares, rng)
        return cls(whole, donors, shelf, moods, visits, settings.seed)

    @property
    def known(self) -> int:
        """How many items the log knows: the first of them."""
        return len(self.truth.item_ids) - len(self.donors.brand)

    def probability(self, visit: TimedVisit) -> np.ndarray:
        """Of a click [I] at this minute, were the item on the shelf."""
        items = np.arange(len(self.truth.item_ids))
        context = self.truth.context_codes({name: np.array([visit.who.context[name]]) for name in CONTEXT})
        codes = self.truth.codes(np.full(len(items), visit.user), items, context, 1)
        mood = self.moods.addend(visit.user, visit.minute)
        return expected_sigmoid(self.truth.logit(codes) + mood, self.truth.noise_std)

    def uniform(self, visit: TimedVisit) -> np.ndarray:
        """[I] in [0, 1): below its probability the item is clicked where it is shown."""
        return np.random.default_rng([self.seed, 7, visit.number]).random(len(self.truth.item_ids))


def _in_the_evening(guest: Visit) -> Visit:
    return Visit(guest.user, {**guest.context, "hour": EVENING})
