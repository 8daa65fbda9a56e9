"""The logged stream of the simulated marketplace: who comes when, what the policy shows, who clicks, who knows when.

The policy fills a slot by popularity, by the taste of the user's segment, or at random; later slots explore more.
A click comes seconds to hours after its impression and is known after a heavy-tailed delay: some only days later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipelines.marketplace.logit_terms import Draft
from pipelines.marketplace.truth import Truth
from pipelines.marketplace.world import HOUR_WEIGHTS, SLATE, Codes, Population, strings, zipf

EXPLORE = np.linspace(0.1, 0.3, SLATE)
PERSONAL = 0.4
DUPLICATES = 0.001
HOUR_US, DAY_US = 3_600_000_000, 86_400_000_000
TIME = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True)
class Policy:
    """Cumulative weights: of users, of items by popularity, of categories per segment, of items within a category."""

    users: np.ndarray
    popular: np.ndarray
    segment_category: np.ndarray
    by_category: np.ndarray
    category_end: np.ndarray

    @classmethod
    def of(cls, population: Population, drawn: Draft) -> Policy:
        """Item exposure is Zipf-like. A segment is an occupation; it sees categories in proportion to exp(taste)."""
        popularity = zipf(len(population.price), 0.9, 0.004)[drawn.popularity_rank]
        category = population.items["category"]
        order = np.argsort(category, kind="stable")
        mass = np.bincount(category, weights=popularity, minlength=len(population.values["category"]))
        taste = drawn.table("segment_taste")
        wish = mass * np.exp(taste / taste.std() * 0.7)
        return cls(
            users=np.cumsum(population.activity),
            popular=np.cumsum(popularity),
            segment_category=np.cumsum(wish, axis=1) / wish.sum(axis=1, keepdims=True),
            by_category=np.stack([order, np.cumsum(popularity[order])]),
            category_end=np.cumsum(mass),
        )

    def draw_users(self, rng: np.random.Generator, n: int) -> np.ndarray:
        return _inverse(self.users, rng.random(n))

    def draw_slates(self, rng: np.random.Generator, segment: np.ndarray) -> np.ndarray:
        """Items [requests, SLATE], all different within a request."""
        shape = (len(segment), SLATE)
        explored = rng.integers(0, len(self.popular), shape)
        popular = _inverse(self.popular, rng.random(shape))
        source = rng.random(shape)
        personal = self._personal(rng, segment, shape)
        slates = np.where(source < EXPLORE, explored, np.where(source < EXPLORE + PERSONAL, personal, popular))
        while (repeated := _repeated(slates)).any():
            slates[repeated] = rng.integers(0, len(self.popular), int(repeated.sum()))
        return slates

    def _personal(self, rng: np.random.Generator, segment: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
        wish = self.segment_category[segment]
        category = (rng.random(shape)[:, :, None] > wish[:, None, :]).sum(axis=2).clip(max=wish.shape[1] - 1)
        start = np.concatenate([[0.0], self.category_end])[category]
        place = start + rng.random(shape) * (self.category_end[category] - start)
        items, cumulative = self.by_category
        return items[_inverse(cumulative, place)].astype(np.int64)


def _inverse(cumulative: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    return np.minimum(np.searchsorted(cumulative, uniform, side="right"), len(cumulative) - 1)


def _repeated(slates: np.ndarray) -> np.ndarray:
    """True where an item stands earlier in the same row."""
    order = np.argsort(slates, axis=1, kind="stable")
    ordered = np.take_along_axis(slates, order, axis=1)
    mask = np.zeros(slates.shape, dtype=bool)
    np.put_along_axis(mask, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return mask


@dataclass(frozen=True)
class Shown:
    """Impressions of one stretch of time, one element each; times are microseconds since 1970, UTC."""

    request: np.ndarray
    time: np.ndarray
    users: np.ndarray
    items: np.ndarray
    context: Codes
    position: np.ndarray


def show(
    rng: np.random.Generator, population: Population, policy: Policy, first: int, events: int, day_start: int
) -> Shown:
    """`events` impressions of one day in requests of SLATE, numbered from `first`; the last request may be shorter."""
    requests = -(-events // SLATE)
    users = policy.draw_users(rng, requests)
    hour = rng.choice(24, requests, p=HOUR_WEIGHTS / HOUR_WEIGHTS.sum())
    time = np.sort(hour * HOUR_US + rng.integers(0, HOUR_US, requests))
    habit = population.device_habit[users]
    context = {
        "device": np.where(rng.random(requests) < 0.8, habit, rng.integers(0, 3, requests)),
        "placement": rng.choice(4, requests, p=[0.3, 0.4, 0.2, 0.1]),
        "hour": time // HOUR_US,
    }
    slates = policy.draw_slates(rng, population.users["occupation"][users])

    def each(column: np.ndarray) -> np.ndarray:
        return np.repeat(column, SLATE)[:events]

    return Shown(
        request=each(first + np.arange(requests)),
        time=each(day_start + time),
        users=each(users),
        items=slates.ravel()[:events],
        context={name: each(codes) for name, codes in context.items()},
        position=np.tile(np.arange(1, SLATE + 1), requests)[:events],
    )


def click(rng: np.random.Generator, truth: Truth, shown: Shown) -> np.ndarray:
    """Who clicks [N], bool: the logit with its noise, drawn afresh for every impression."""
    logit = truth.logit(truth.codes(shown.users, shown.items, shown.context, shown.position))
    noisy = logit + truth.noise_std * rng.normal(0, 1, len(logit))
    return rng.random(len(logit)) < 1 / (1 + np.exp(-noisy))


def _seconds(rng: np.random.Generator, median: float, spread: float, n: int, most: float) -> np.ndarray:
    """Log-normal delays as whole microseconds, at most `most` seconds."""
    return (np.minimum(median * np.exp(spread * rng.normal(0, 1, n)), most) * 1e6).astype(np.int64)


def _keys(population: Population, shown: Shown, rows: np.ndarray) -> dict[str, pa.Array]:
    digits = pa.array([f"r{request:010d}" for request in np.unique(shown.request[rows])])
    _, inverse = np.unique(shown.request[rows], return_inverse=True)
    return {
        "request_id": digits.take(pa.array(inverse)),
        "user_id": strings(population.values["user"], shown.users[rows]),
        "item_id": strings(population.values["item"], shown.items[rows]),
    }


def impression_table(rng: np.random.Generator, population: Population, shown: Shown, clicked: np.ndarray) -> pa.Table:
    """One row per shown item, plus DUPLICATES of the rows delivered a second time: same event, known later.

    `dwell_seconds` is what the page reported after the fact: always there after a click, hardly ever without one.
    """
    n = len(clicked)
    dwelt = clicked | (rng.random(n) < 0.01)
    dwell = np.round(np.where(clicked, 20.0, 3.0) * np.exp(0.8 * rng.normal(0, 1, n)), 1)
    rows = np.concatenate([np.arange(n), np.flatnonzero(rng.random(n) < DUPLICATES)])
    known = shown.time[rows] + _seconds(rng, 2.0, 0.7, len(rows), 600.0)
    known[n:] += 60_000_000
    context = {f: strings(population.values[f], shown.context[f][rows]) for f in ("device", "placement")}
    columns = _keys(population, shown, rows) | context | {
        "event_time": pa.array(shown.time[rows], TIME), "known_time": pa.array(known, TIME),
        "position": pa.array(shown.position[rows].astype(np.int32)), "bid": pa.array(population.bid[shown.items[rows]]),
        "dwell_seconds": pa.array(dwell[rows], mask=~dwelt[rows]),
    }  # fmt: skip
    return pa.table(columns)


def click_table(rng: np.random.Generator, population: Population, shown: Shown, clicked: np.ndarray) -> pa.Table:
    """One row per click; the knowledge of about one in thirty comes after the label window of a day."""
    rows = np.flatnonzero(clicked)
    time = shown.time[rows] + _seconds(rng, 40.0, 1.6, len(rows), 12 * 3600.0)
    known = time + _seconds(rng, 300.0, 3.0, len(rows), 6 * 86_400.0)
    return pa.table(
        _keys(population, shown, rows) | {"event_time": pa.array(time, TIME), "known_time": pa.array(known, TIME)}
    )
