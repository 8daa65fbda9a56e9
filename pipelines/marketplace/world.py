"""Who lives in the simulated marketplace: users, items, and the values of their fields, before anybody clicks.

Categorical fields are codes into `values`; `users["user"]` and `items["item"]` are the codes of the ids themselves.
Numeric columns also have a code: their quantile out of LEVELS, through which they act on the click probability.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from contracts.config.simulation import Simulation
from contracts.errors import ConfigError

LEVELS = 32
MAX_TAGS = 4
SLATE = 8
USER_CATEGORICAL = ("age_band", "gender", "city", "region", "occupation", "income_band", "avatar", "market")
ITEM_CATEGORICAL = ("category", "brand", "brand_tier", "advertiser_id", "format")
HOUR_WEIGHTS = np.array([4, 3, 2, 1, 1, 2, 4, 7, 9, 9, 9, 10, 12, 11, 10, 10, 10, 11, 13, 15, 17, 16, 12, 8.0])
FIXED_VALUES: dict[str, tuple[str, ...]] = {
    "age_band": ("13-17", "18-24", "25-34", "35-44", "45-54", "55+"),
    "gender": ("female", "male", "undisclosed"),
    "income_band": ("lowest", "low", "middle", "high", "highest"),
    "market": ("home",),
    "brand_tier": ("budget", "standard", "premium", "luxury"),
    "format": ("banner", "native", "video", "carousel"),
    "device": ("phone", "tablet", "desktop"),
    "placement": ("feed_top", "feed", "sidebar", "footer"),
    "hour": tuple(str(h) for h in range(24)),
}

Codes = dict[str, np.ndarray]


@dataclass(frozen=True)
class Population:
    """Codes are int32 [users] or [items]; `tags` is int32 [items, MAX_TAGS], -1 where an item has fewer."""

    values: Mapping[str, tuple[str, ...]]
    users: Codes
    items: Codes
    activity: np.ndarray
    device_habit: np.ndarray
    tenure_days: np.ndarray
    price: np.ndarray
    bid: np.ndarray
    tags: np.ndarray


def zipf(n: int, exponent: float, flat: float) -> np.ndarray:
    """Weights (rank + n * flat) ^ -exponent that add up to 1: a heavy tail whose head is bounded by `flat`."""
    weights = (np.arange(1, n + 1) + n * flat) ** -exponent
    return weights / weights.sum()


def quantile_codes(column: np.ndarray) -> np.ndarray:
    """int32 [N]: each value's quantile out of LEVELS, ties in their order."""
    ranks = np.argsort(np.argsort(column, kind="stable"), kind="stable")
    return (ranks * LEVELS // len(column)).astype(np.int32)


def _each_once(rng: np.random.Generator, weights: np.ndarray, n: int) -> np.ndarray:
    """n codes drawn by weight, every code at least once."""
    codes = np.concatenate([np.arange(len(weights)), rng.choice(len(weights), n - len(weights), p=weights)])
    return rng.permutation(codes).astype(np.int32)


def _names(prefix: str, n: int) -> tuple[str, ...]:
    return tuple(f"{prefix}_{i:0{len(str(n - 1))}d}" for i in range(n))


def _vocabularies(users: int, items: int) -> dict[str, tuple[str, ...]]:
    """Large worlds have 200 cities and 500 brands; small ones keep ten users a city and five items a brand."""
    brands = min(500, items // 5)
    return FIXED_VALUES | {
        "city": _names("city", min(200, users // 10)), "region": _names("region", 10),
        "occupation": _names("occupation", 12), "avatar": _names("avatar", 16),
        "category": _names("category", min(40, brands)), "brand": _names("brand", brands),
        "advertiser_id": _names("advertiser", max(brands // 4, 1)), "tag": _names("tag", 60),
        "user": _names("u", users), "item": _names("i", items),
    }  # fmt: skip


def _users(rng: np.random.Generator, values: Mapping[str, tuple[str, ...]], n: int) -> tuple[Codes, np.ndarray]:
    """City is skewed and decides the region; tenure in days is roughly exponential."""
    cities = len(values["city"])
    tenure = np.floor(rng.exponential(400.0, n))
    city = _each_once(rng, zipf(cities, 0.9, 0.05), n)
    codes = {
        "user": np.arange(n, dtype=np.int32),
        "age_band": rng.choice(6, n, p=[0.05, 0.2, 0.28, 0.2, 0.15, 0.12]),
        "gender": rng.choice(3, n, p=[0.47, 0.46, 0.07]),
        "city": city,
        "region": (np.arange(cities) % 10)[city],
        "occupation": rng.choice(12, n, p=zipf(12, 0.6, 0.1)),
        "income_band": rng.choice(5, n, p=[0.18, 0.24, 0.28, 0.19, 0.11]),
        "avatar": rng.integers(0, 16, n),
        "market": np.zeros(n),
        "tenure_days": quantile_codes(tenure),
    }
    return {name: code.astype(np.int32) for name, code in codes.items()}, tenure


def _items(rng: np.random.Generator, values: Mapping[str, tuple[str, ...]], n: int) -> tuple[Codes, np.ndarray]:
    """A brand has one tier, one advertiser and a home category that 70% of its items are in."""
    brands, categories, advertisers = (len(values[f]) for f in ("brand", "category", "advertiser_id"))
    brand = _each_once(rng, zipf(brands, 0.8, 0.1), n)
    category_weights = zipf(categories, 0.5, 0.1)
    home = _each_once(rng, category_weights, brands)
    category = np.where(rng.random(n) < 0.7, home[brand], rng.choice(categories, n, p=category_weights))
    tier = rng.choice(4, brands, p=[0.3, 0.35, 0.23, 0.12])
    log_price = 3.0 + 0.6 * tier[brand] + rng.normal(0, 0.5, categories)[category] + rng.normal(0, 0.6, n)
    price = np.round(np.exp(log_price), 2)
    codes = {
        "item": np.arange(n, dtype=np.int32), "brand": brand, "category": category, "brand_tier": tier[brand],
        "advertiser_id": _each_once(rng, np.full(advertisers, 1 / advertisers), brands)[brand],
        "format": rng.choice(4, n, p=[0.35, 0.3, 0.2, 0.15]), "price": quantile_codes(price),
    }  # fmt: skip
    return {name: code.astype(np.int32) for name, code in codes.items()}, price


def _tags(rng: np.random.Generator, category: np.ndarray, n_tags: int) -> np.ndarray:
    """One to four different tags an item; the first is one of three that its category favours."""
    n = len(category)
    start = (category * 7 + rng.integers(0, 3, n)) % n_tags
    steps = np.cumsum(rng.integers(1, n_tags // MAX_TAGS, (n, MAX_TAGS - 1)), axis=1)
    tags = np.column_stack([start, (start[:, None] + steps) % n_tags])
    kept = np.arange(MAX_TAGS) < rng.integers(1, MAX_TAGS + 1, n)[:, None]
    return np.where(kept, tags, -1).astype(np.int32)


def populate(settings: Simulation, rng: np.random.Generator) -> Population:
    """Raises ConfigError where the world is too small for its fields."""
    for name, value, least in (("users", settings.users, 200), ("items", settings.items, 100)):
        if value < least:
            raise ConfigError(f"simulation.{name} is {value}; the marketplace needs at least {least}")
    values = _vocabularies(settings.users, settings.items)
    users, tenure = _users(rng, values, settings.users)
    items, price = _items(rng, values, settings.items)
    category_bid = rng.normal(-0.7, 0.4, len(values["category"]))[items["category"]]
    return Population(
        values=values,
        users=users,
        items=items,
        activity=rng.permutation(zipf(settings.users, 0.9, 0.01)),
        device_habit=rng.choice(3, settings.users, p=[0.62, 0.1, 0.28]).astype(np.int32),
        tenure_days=tenure,
        price=price,
        bid=np.round(np.exp(category_bid + rng.normal(0, 0.4, settings.items)), 3),
        tags=_tags(rng, items["category"], len(values["tag"])),
    )


def strings(values: tuple[str, ...], codes: np.ndarray) -> pa.Array:
    """Codes as the strings of the log."""
    return pa.array(values).take(pa.array(codes))


def user_table(world: Population) -> pa.Table:
    columns = {"user_id": strings(world.values["user"], world.users["user"])}
    columns |= {name: strings(world.values[name], world.users[name]) for name in USER_CATEGORICAL}
    return pa.table(columns | {"tenure_days": pa.array(world.tenure_days)})


def item_table(world: Population) -> pa.Table:
    columns = {"item_id": strings(world.values["item"], world.items["item"])}
    columns |= {name: strings(world.values[name], world.items[name]) for name in ITEM_CATEGORICAL}
    present = world.tags >= 0
    offsets = np.concatenate([[0], np.cumsum(present.sum(axis=1))]).astype(np.int32)
    tags = pa.ListArray.from_arrays(pa.array(offsets), strings(world.values["tag"], world.tags[present]))
    return pa.table(columns | {"tags": tags, "price": pa.array(world.price), "bid": pa.array(world.bid)})
