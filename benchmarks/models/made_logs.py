"""Logs and tables whose true probabilities are known, each of a shape that a ranker may be wrong about.

    popular     items are liked or not, by everyone alike; nothing else holds
    new_users   every user is there for one hour; countries prefer kinds of items
    pairs       ten fields of codes, 5,400 values, whose pairs say most
    codes       nine fields of 2,000 to 8,000 codes each, most of them in a few rows, whose groups speak in pairs
    tails       most users and half of the items are shown once
    waves       numbers whose effects rise and fall, alone and together
    habits      few items of a user's own are taken again and again, in changing circumstances
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Random = np.random.Generator
BEGIN, DAYS = datetime(2026, 3, 2, tzinfo=UTC), 14
PAIR_SIZES = (1800, 1200, 900, 600, 400, 250, 120, 80, 40, 10)
CODE_SIZES, GROUPS = (8000, 7000, 6000, 5000, 4500, 4000, 3000, 2500, 2000), 12
LABEL = "clicked"


class Made(NamedTuple):
    """`columns` in the order of the rows, `logit` [N] the true one."""

    columns: dict[str, Any]
    logit: np.ndarray


def popular(random: Random, rows: int) -> Made:
    users, items = _skewed(random, rows // 20, 0.5, rows), _skewed(random, rows // 40, 0.8, rows)
    columns = {**_timed(random, rows), "user_id": _named("u", users), "item_id": _named("i", items),
               "device": random.integers(0, 3, rows), "country": random.integers(0, 20, users.max() + 1)[users]}
    return Made(columns, -1.5 + random.normal(0, 1.0, items.max() + 1)[items])


def new_users(random: Random, rows: int) -> Made:
    visits = rows // 4
    users = np.sort(random.integers(0, visits, rows))
    country, hour = random.integers(0, 20, visits), np.sort(random.uniform(0, DAYS * 24 - 1, visits))
    items = _skewed(random, 1000, 0.8, rows)
    kind = random.integers(0, 12, 1000)
    logit = -1.5 + random.normal(0, 0.6, 1000)[items] + random.normal(0, 0.9, (20, 12))[country[users], kind[items]]
    moments = [_written(h) for h in hour[users] + random.uniform(0, 1, rows)]
    return Made({"time": moments, "user_id": _named("u", users), "item_id": _named("i", items),
                 "country": country[users], "kind": kind[items]}, logit)


def pairs(random: Random, rows: int) -> Made:
    """Of every fifth pair of fields: products of hidden vectors, and an effect of each two values of their own."""
    codes = [_skewed(random, size, 0.9, rows) for size in PAIR_SIZES]
    logit = np.full(rows, -0.8)
    for left, right in [*combinations(range(len(codes)), 2)][::5]:
        sizes = PAIR_SIZES[left], PAIR_SIZES[right]
        hidden = [random.normal(0, 1, (size, 4))[code] for size, code in
                  zip(sizes, (codes[left], codes[right]), strict=True)]
        logit += 0.9 * (hidden[0] * hidden[1]).sum(axis=1) / 2
        logit += random.normal(0, 0.6, sizes)[codes[left], codes[right]]
    return Made({f"code_{number}": random.permutation(10 * size)[code] for number, (size, code) in
                 enumerate(zip(PAIR_SIZES, codes, strict=True))}, logit)


def codes(random: Random, rows: int) -> Made:
    """A code has an effect of its own and belongs to a group of its field, which no column names; of every fourth pair
    of fields the groups have an effect together."""
    drawn = [_skewed(random, size, 0.7, rows) for size in CODE_SIZES]
    groups = [random.integers(0, GROUPS, size)[code] for size, code in zip(CODE_SIZES, drawn, strict=True)]
    logit = np.full(rows, -1.5)
    for size, code in zip(CODE_SIZES, drawn, strict=True):
        logit += random.normal(0, 0.4, size)[code]
    for left, right in [*combinations(range(len(drawn)), 2)][::4]:
        logit += random.normal(0, 0.6, (GROUPS, GROUPS))[groups[left], groups[right]]
    return Made({f"code_{number}": random.permutation(10 * size)[code] for number, (size, code) in
                 enumerate(zip(CODE_SIZES, drawn, strict=True))}, logit)


def tails(random: Random, rows: int) -> Made:
    users = np.where(random.random(rows) < 0.8, np.arange(rows) + rows, random.integers(0, rows // 50, rows))
    items = _skewed(random, rows, 0.7, rows)
    group, page, segment = random.integers(0, 50, rows), random.integers(0, 30, rows), random.integers(0, 40, 2 * rows)
    logit = (-2.0 + random.normal(0, 0.6, 50)[group[items]] + random.normal(0, 0.5, 30)[page]
             + random.normal(0, 0.7, (40, 50))[segment[users], group[items]] + random.normal(0, 0.4, rows)[items])
    return Made({**_timed(random, rows), "user_id": _named("u", users), "item_id": _named("i", items),
                 "segment": segment[users], "group": group[items], "page": page}, logit)


def waves(random: Random, rows: int) -> Made:
    a, b, c, d = (random.normal(0, 1, rows) for _ in range(4))
    wealth, age, wait = random.lognormal(8, 1.5, rows), random.integers(18, 90, rows), random.exponential(30, rows)
    city = _skewed(random, 50, 0.8, rows)
    logit = (-1.0 + 1.2 * np.sin(3 * a) + 1.0 * (np.abs(b) < 0.5) - 0.8 * c * d + 0.02 * (wait % 24)
             - ((age - 45) / 20.0) ** 2 * 0.5 + 0.8 * np.cos(np.log(wealth) * 1.5) * np.sign(b)
             + random.normal(0, 0.5, 50)[city])
    missing = random.random(rows) < 0.1
    return Made({"a": a.round(4), "b": b.round(4), "c": c.round(4), "d": d.round(4), "wealth": wealth.round(2),
                 "age": age, "wait": [("" if gone else f"{value:.2f}") for gone, value in
                                      zip(missing, wait, strict=True)], "city": _named("c", city)}, logit)


def habits(random: Random, rows: int) -> Made:
    users, items = 900, 3500
    taste, kind = random.normal(0, 1, (users, 6)), random.normal(0, 1, (items, 6))
    share = 1 / np.arange(1, items + 1) ** 0.8
    liking = taste @ kind.T + np.log(share) + random.gumbel(size=(users, items))
    own = np.argsort(-liking, axis=1)[:, :20]
    of = _skewed(random, users, 0.5, rows)
    at_home, daytime = random.random(rows) < 0.6, random.integers(0, 7, rows)
    favourite = own[of, np.minimum(random.geometric(0.15, rows) - 1, 19)]
    shown = np.where(random.random(rows) < 0.4, favourite, random.choice(items, rows, p=share / share.sum()))
    usual = (own[of] == shown[:, None]).any(axis=1)
    logit = -3.5 + 6.0 * usual + random.normal(0, 1.0, (items, 7))[shown, daytime] + random.normal(0, 0.5, items)[shown]
    return Made({"user": of, "item": shown, "daytime": daytime, "at_home": at_home.astype(int),
                 "city": random.integers(0, 200, users)[of], "cost": random.integers(0, 2, items)[shown]}, logit)


LOGS: Mapping[str, tuple[Callable[[Random, int], Made], int]] = {
    "popular": (popular, 60_000), "new_users": (new_users, 60_000), "pairs": (pairs, 200_000),
    "codes": (codes, 33_000), "tails": (tails, 80_000), "waves": (waves, 40_000), "habits": (habits, 200_000)}


def write(name: str, folder: Path, rows: int | None = None, seed: int = 0) -> tuple[Path, Made, np.ndarray]:
    """FOLDER/NAME.csv, the table it holds and its labels [N]."""
    make, usual = LOGS[name]
    random = np.random.default_rng([seed, *name.encode()])
    made = make(random, rows or usual)
    label = random.random(len(made.logit)) < 1 / (1 + np.exp(-made.logit))
    path = folder / f"{name}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        written = csv.writer(file)
        written.writerow([*made.columns, LABEL])
        written.writerows(zip(*made.columns.values(), label.astype(int), strict=True))
    return path, made, label


def _skewed(random: Random, values: int, power: float, rows: int) -> np.ndarray:
    """Places of values, each as often as 1 / rank^power has it."""
    share = 1 / np.arange(1, values + 1) ** power
    return random.choice(values, size=rows, p=share / share.sum())


def _named(letter: str, places: np.ndarray) -> list[str]:
    return [f"{letter}{place:06d}" for place in places]


def _timed(random: Random, rows: int) -> dict[str, list[str]]:
    return {"time": [_written(hour) for hour in np.sort(random.uniform(0, DAYS * 24, rows))]}


def _written(hour: float) -> str:
    return f"{BEGIN + timedelta(hours=float(hour)):%Y-%m-%d %H:%M:%S}"
