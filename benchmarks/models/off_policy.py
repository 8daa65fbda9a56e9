"""Off-policy estimates: against the marketplace's truth, and of other policies on a real uniformly random log.

    sluice bench off_policy [--data DIR] [--repeats 200]         DIR holds men.csv of the Open Bandit Dataset

On the marketplace a logging policy with known probabilities shows one of a few items; what another policy is worth is
known, so that bias, spread and coverage of the intervals are figures. On the real log the model's policy is fitted on
the first half in time and judged on the second. Prints Markdown tables; the last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv

from contracts.config.simulation import Simulation
from models.cross_search.ridge_logistic import Column, fit
from models.evaluation.off_policy import Estimate, Logged, doubly_robust, ips, snips
from pipelines.marketplace.marketplace import build_world
from pipelines.marketplace.truth import CONTEXT

ARMS, POOL, STRENGTH = 12, 20_000, 20.0
RIDGE, SHARPNESS = 4.0, 3.0
ESTIMATORS = ("IPS", "SNIPS", "DR")


@dataclass(frozen=True)
class Bandit:
    """A pool of contexts [N] with known click probabilities [N, K]; `segment` [N] is all that a model may see."""

    chance: np.ndarray
    segment: np.ndarray
    logging: np.ndarray
    target: np.ndarray

    @property
    def truth(self) -> float:
        return float((self.target * self.chance).sum(axis=1).mean())


def softmax(values: np.ndarray) -> np.ndarray:
    powers = np.exp(values - values.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def marketplace_bandit(seed: int, pool: int = POOL) -> Bandit:
    """Users as active as they are, any context, ARMS items; logging is uneven, the target follows segments."""
    population, _, truth = build_world(Simulation(events=20_000, users=3_000, items=500, click_rate=0.05), seed)
    rng = np.random.default_rng([seed, 9])
    users = rng.choice(len(population.activity), pool, p=population.activity / population.activity.sum())
    arms = rng.choice(len(population.price), ARMS, replace=False)
    context = {name: np.repeat(rng.choice(np.array(truth.values[name]), pool), ARMS) for name in CONTEXT}
    chance = truth.probability(np.repeat(truth.user_ids[users], ARMS), np.tile(truth.item_ids[arms], pool), context)
    chance, segment = chance.reshape(pool, ARMS), population.users["occupation"][users]
    liked = np.stack([chance[segment == one].mean(axis=0) if (segment == one).any() else chance.mean(axis=0)
                      for one in range(segment.max() + 1)])
    logging = softmax(0.3 * rng.normal(size=(pool, ARMS)) + 0.4 * rng.normal(size=ARMS))
    return Bandit(chance, segment, logging, softmax(SHARPNESS * np.log(liked))[segment])


def one_log(bandit: Bandit, rows: int, rng: np.random.Generator) -> dict[str, Estimate]:
    """Estimates from one log of `rows`; the model of DR is fitted on another log of the same size."""
    guess = segment_rates(bandit, *_draw(bandit, rows, rng))
    where, arm, reward = _draw(bandit, rows, rng)
    logged = Logged(reward, bandit.logging[where, arm], bandit.target[where, arm])
    known = guess[bandit.segment[where]]
    expected = (bandit.target[where] * known).sum(axis=1)
    return {"IPS": ips(logged), "SNIPS": snips(logged),
            "DR": doubly_robust(logged, known[np.arange(rows), arm], expected)}


def _draw(bandit: Bandit, rows: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    where = rng.integers(0, len(bandit.segment), rows)
    arm = (rng.random(rows)[:, None] > bandit.logging[where].cumsum(axis=1)).sum(axis=1).clip(max=ARMS - 1)
    return where, arm, (rng.random(rows) < bandit.chance[where, arm]).astype(float)


def segment_rates(bandit: Bandit, where: np.ndarray, arm: np.ndarray, reward: np.ndarray) -> np.ndarray:
    """Smoothed rate [segments, ARMS] of the rows of a log."""
    segments = int(bandit.segment.max()) + 1
    cell = bandit.segment[where] * ARMS + arm
    shown = np.bincount(cell, minlength=segments * ARMS)
    clicked = np.bincount(cell, reward, minlength=segments * ARMS)
    return ((clicked + STRENGTH * reward.mean()) / (shown + STRENGTH)).reshape(segments, ARMS)


def against_truth(repeats: int, rows: int = 4000, seed: int = 0) -> dict[str, dict[str, float]]:
    """Bias, spread and coverage of each estimator over `repeats` logs of the marketplace."""
    bandit = marketplace_bandit(seed)
    logs = [one_log(bandit, rows, np.random.default_rng([seed, repeat])) for repeat in range(repeats)]
    found = {}
    for name in ESTIMATORS:
        values = np.array([log[name].value for log in logs])
        covered = np.mean([log[name].low <= bandit.truth <= log[name].high for log in logs])
        found[name] = {"truth": bandit.truth, "mean": float(values.mean()), "deviation": float(values.std(ddof=1)),
                       "standard_error": float(np.mean([log[name].standard_error for log in logs])),
                       "covered": float(covered)}
    return found


@dataclass(frozen=True)
class RealLog:
    """Rows [N] in time order; `shape` [N, J] are small codes of the context, the slot among them."""

    item: np.ndarray
    shape: np.ndarray
    click: np.ndarray
    propensity: np.ndarray
    items: int


def read_open_bandit(path: Path) -> RealLog:
    table = csv.read_csv(path).sort_by("timestamp")
    names = ["position", *(name for name in table.column_names if name.startswith("user_feature"))]
    codes = [np.unique(table.column(name).to_numpy(zero_copy_only=False), return_inverse=True)[1] for name in names]
    item, click, propensity = (_numbers(table, name) for name in ("item_id", "click", "propensity_score"))
    return RealLog(item.astype(np.int64), np.stack(codes, axis=1), click, propensity, int(item.max()) + 1)


def _numbers(table: pa.Table, name: str) -> np.ndarray:
    return table.column(name).to_numpy().astype(np.float64)


def click_model(log: RealLog, rows: slice) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """(items [M], contexts [M, J]) -> click probability: ridge logistic regression fitted on `rows`."""
    sizes = [log.items, *(int(column.max()) + 1 for column in log.shape.T)]
    columns = [log.item[rows], *log.shape[rows].T]
    fitted = fit([Column(codes, size, RIDGE) for codes, size in zip(columns, sizes, strict=True)], log.click[rows])

    def predict(items: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return 1 / (1 + np.exp(-fitted.logits([items, *shape.T])))

    return predict


def on_the_real_log(log: RealLog) -> dict[str, dict[str, Estimate]]:
    """Policies of the first half's model on the second half: uniform (which ran), in proportion to odds, the best."""
    half = len(log.item) // 2
    predict, later = click_model(log, slice(0, half)), slice(half, None)
    item, shape = log.item[later], log.shape[later]
    rows = len(item)
    guess = predict(np.tile(np.arange(log.items), rows), np.repeat(shape, log.items, axis=0)).reshape(rows, log.items)
    policies = {
        "uniform (the log's own)": np.full_like(guess, 1 / log.items),
        "in proportion to the model's odds": guess / (1 - guess) / (guess / (1 - guess)).sum(axis=1, keepdims=True),
        "the model's best item": (guess == guess.max(axis=1, keepdims=True)).astype(float),
    }
    found = {}
    for name, chance in policies.items():
        chance = chance / chance.sum(axis=1, keepdims=True)
        chosen = np.arange(rows), item
        logged = Logged(log.click[later], log.propensity[later], chance[chosen])
        robust = doubly_robust(logged, guess[chosen], (chance * guess).sum(axis=1))
        found[name] = dict(zip(ESTIMATORS, (ips(logged), snips(logged), robust), strict=True))
    return found


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--repeats", type=int, default=200)
    arguments = parser.parse_args(argv)
    found: dict[str, Any] = {"marketplace": against_truth(arguments.repeats)}
    print("| marketplace | truth | mean | deviation | standard error | covered |\n|---|---|---|---|---|---|")
    for name, row in found["marketplace"].items():
        print(f"| {name} | {row['truth']:.4f} | {row['mean']:.4f} | {row['deviation']:.4f} | "
              f"{row['standard_error']:.4f} | {row['covered']:.3f} |")
    if arguments.data is not None:
        found["open_bandit"] = on_the_real_log(read_open_bandit(arguments.data / "men.csv"))
        print("\n| policy on men.csv, clicks in 1000 | IPS | SNIPS | DR | effective rows | rewarded |")
        print("|---|---|---|---|---|---|")
        for policy, estimates in found["open_bandit"].items():
            cells = (f"{1000 * e.value:.1f} ({1000 * e.low:.1f} to {1000 * e.high:.1f})" for e in estimates.values())
            print(f"| {policy} | {' | '.join(cells)} | {estimates['IPS'].effective_rows:.0f} | "
                  f"{estimates['IPS'].rewarded} |")
    print(json.dumps(found))


if __name__ == "__main__":
    main()
