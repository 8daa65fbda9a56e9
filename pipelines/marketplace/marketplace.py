"""The simulated marketplace: users, ads and a logged click stream whose true click probabilities are known.

    raw/impressions/part-DDD.parquet   the shown items of day DDD: request_id, event_time, known_time, user_id, item_id,
                                       position, device, placement, bid, dwell_seconds (a leak: known after the click)
    raw/clicks/part-DDD.parquet        request_id, user_id, item_id, event_time, known_time
    raw/users, raw/items               one row per id
    truth/                             what pipelines/marketplace/truth.py reads; no part of raw/
    truth/day-DDD/                     the same of each day, where tastes drift

One seed and one `Simulation` give byte-identical files. Memory holds the world and one day.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.config.simulation import Simulation
from contracts.errors import ConfigError
from contracts.progress import report
from contracts.summaries.marketplace import SimulatedLog
from pipelines.marketplace.click_stream import DAY_US, Policy, Shown, click, click_table, impression_table, show
from pipelines.marketplace.drifting_tastes import Drift
from pipelines.marketplace.logit_terms import Draft, declared, draft, make_truth
from pipelines.marketplace.truth import Truth, day_folder
from pipelines.marketplace.world import SLATE, Codes, Population, item_table, populate, user_table

SAMPLED = 200_000
WEEKDAY_TRAFFIC = np.array([1.0, 0.97, 0.96, 1.0, 1.06, 1.12, 1.08])


def build_world(settings: Simulation, seed: int) -> tuple[Population, Policy, Truth]:
    """The world before its log. Raises ConfigError for a world too small or shares that do not add up."""
    population, drawn, policy = _inhabited(settings, seed)
    return population, policy, _truth(settings, seed, population, drawn, policy)


def build_drift(settings: Simulation, seed: int) -> Drift:
    """How the tastes of the same world change."""
    population, drawn, policy = _inhabited(settings, seed)
    other = draft(population, np.random.default_rng([seed, 4]))
    first, second = (_truth(settings, seed, population, tastes, policy) for tastes in (drawn, other))
    return Drift(first, second, settings.drift, settings.user_drift)


def _inhabited(settings: Simulation, seed: int) -> tuple[Population, Draft, Policy]:
    population = populate(settings, np.random.default_rng([seed, 0]))
    drawn = draft(population, np.random.default_rng([seed, 1]))
    return population, drawn, Policy.of(population, drawn)


def _truth(settings: Simulation, seed: int, population: Population, drawn: Draft, policy: Policy) -> Truth:
    shares = declared(settings.shares)

    def sample() -> tuple[np.ndarray, np.ndarray, Codes, np.ndarray]:
        shown = show(np.random.default_rng([seed, 2]), population, policy, 0, SAMPLED, 0)
        return shown.users, shown.items, shown.context, shown.position

    return make_truth(population, drawn, sample, shares, settings.click_rate)


def _events_per_day(settings: Simulation) -> np.ndarray:
    """Whole events a day that add up to `settings.events`, following the traffic of the week."""
    traffic = WEEKDAY_TRAFFIC[(settings.start.weekday() + np.arange(settings.days)) % 7]
    ends = np.round(np.cumsum(traffic) / traffic.sum() * settings.events).astype(np.int64)
    return np.diff(ends, prepend=0)


def _write(table: pa.Table, folder: Path, name: str) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / f"{name}.parquet", coerce_timestamps="us")
    return len(table)


def simulate(settings: Simulation, seed: int, raw: Path, truth: Path) -> SimulatedLog:
    """Writes the log below `raw` and the truth below `truth`. Raises ConfigError for a world too small."""
    started = time.perf_counter()
    least = settings.days * SLATE * 2
    if settings.events < least:
        raise ConfigError(f"simulation.events is {settings.events}; {settings.days} days need at least {least}")
    report("world")
    population, policy, world_truth = build_world(settings, seed)
    drift = build_drift(settings, seed) if settings.drift or settings.user_drift else None
    world_truth.save(truth)
    rows = {
        "users": _write(user_table(population), raw / "users", "users"),
        "items": _write(item_table(population), raw / "items", "items"),
        "impressions": 0,
        "clicks": 0,
    }
    start, first, written = int(settings.start.timestamp()) * 1_000_000, 0, 0
    report("events", 0, settings.events)
    for day, events in enumerate(_events_per_day(settings)):
        rng = np.random.default_rng([seed, 3, day])
        shown = show(rng, population, policy, first, int(events), start + day * DAY_US)
        first += -(-int(events) // SLATE)
        today = drift.on(day) if drift else world_truth
        if drift:
            today.save(day_folder(truth, day))
        impressions, clicks = _write_day(rng, population, today, shown, raw, day)
        written += int(events)
        report("events", written, settings.events)
        rows["impressions"] += impressions
        rows["clicks"] += clicks
    return _summary(settings, seed, rows, world_truth, time.perf_counter() - started)


def _write_day(
    rng: np.random.Generator, population: Population, truth: Truth, shown: Shown, raw: Path, day: int
) -> tuple[int, int]:
    clicked = click(rng, truth, shown)
    name = f"part-{day:03d}"
    impressions = _write(impression_table(rng, population, shown, clicked), raw / "impressions", name)
    return impressions, _write(click_table(rng, population, shown, clicked), raw / "clicks", name)


def _summary(settings: Simulation, seed: int, rows: dict[str, int], truth: Truth, seconds: float) -> SimulatedLog:
    return SimulatedLog(
        seed=seed, rows=rows, events=settings.events, duplicate_rows=rows["impressions"] - settings.events,
        click_rate=rows["clicks"] / settings.events, shares=declared(settings.shares), planted=tuple(truth.planted),
        incidental=tuple(truth.incidental), seconds=seconds, events_per_minute=settings.events / seconds * 60,
    )
