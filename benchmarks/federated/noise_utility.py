"""What noise costs: AUC against epsilon, by how many clients a round has.

    sluice bench noise_utility [--clients 20000] [--rounds 60] [--seeds 1] [--json]

Clients are users of the simulated marketplace with some 30 impressions each, the last fifth of which is the test. They
train a logistic model of item and context in which every client names every row (`all-union-plain`): one step of
descent on its own rows, scaled to `noise_norm` and cut to integers as the product's clients do
(federated/protocol/local_update.py). The noise of a round is drawn for its sum: Skellam noise of n clients is Skellam
noise of n times the variance. No masks: the sum is the same. Epsilon (delta 1e-5) is of a client that was in as many
rounds as its cohort was drawn, and of one that was in every round, as `sluice federate` states it. A seed draws log,
cohorts and noise anew; of several, the largest epsilon and the mean AUC with its standard deviation are shown.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.federated.federated_auc import spread
from contracts.config.simulation import Simulation
from federated.privacy import skellam
from federated.protocol.local_update import shortened
from federated.secure_aggregation.fixed_point import FixedPoint, as_words, signed
from models.evaluation.metrics import auc
from pipelines.marketplace.click_stream import click, show
from pipelines.marketplace.marketplace import build_world

ITEMS, EVENTS_EACH, TEST_SHARE, DELTA = 500, 30, 0.2, 1e-5
SHARES = {
    "fields": 0.1, "crosses_order_2": 0.03, "crosses_order_3": 0.005, "segment_taste": 0.02, "personal_taste": 0.015,
    "item_quality": 0.68, "pair_low_rank": 0.005, "pair_attributes": 0.005, "pair_idiosyncratic": 0.005,
    "position": 0.035, "noise": 0.1,
}
FIXED, NORM, RATE = FixedPoint(clip=2.0), 0.5, 10.0
NOISES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)  # standard deviation of a sum's noise, in norms of one client's update


@dataclass(frozen=True)
class Log:
    """Features [N, 2 + positions] as places of the model, labels [N], and whose they are, sorted by user."""

    places: np.ndarray
    labels: np.ndarray
    users: np.ndarray
    words: int

    def take(self, rows: np.ndarray) -> Log:
        return Log(self.places[rows], self.labels[rows], self.users[rows], self.words)


@dataclass(frozen=True)
class Utility:
    """`epsilon` of a client in as many rounds as it was asked for, `epsilon_every` of one in all, None without noise;
    `auc` of each seed."""

    clients: int
    round: int
    noise: float
    epsilon: float | None
    epsilon_every: float | None
    auc: tuple[float, ...]


def log_of(clients: int, seed: int) -> Log:
    settings = Simulation(users=clients, items=ITEMS, events=clients * EVENTS_EACH, days=1, click_rate=0.2,
                          shares=SHARES)
    population, policy, truth = build_world(settings, seed)
    drawn = np.random.default_rng(seed)
    shown = show(drawn, population, policy, 0, settings.events, 0)
    labels = click(drawn, truth, shown)
    placement = shown.context["placement"]
    columns = [shown.items, ITEMS + placement, ITEMS + 4 + shown.position, np.full(len(labels), ITEMS + 40)]
    order = np.argsort(shown.users, kind="stable")  # within a user by time
    return Log(np.stack(columns, axis=1)[order], labels[order].astype(float), shown.users[order], ITEMS + 41)


def parted(log: Log) -> tuple[Log, Log]:
    """Each user's rows before its last fifth, and those."""
    start = np.searchsorted(log.users, log.users)
    count = np.bincount(log.users)[log.users]
    test = np.arange(len(log.users)) - start >= (1 - TEST_SHARE) * count
    return log.take(np.flatnonzero(~test)), log.take(np.flatnonzero(test))


def update(weights: np.ndarray, mine: Log) -> np.ndarray:
    """A client's words: one step of descent, an L2 norm of at most NORM."""
    error = mine.labels - 1 / (1 + np.exp(-weights[mine.places].sum(axis=1)))
    step = np.zeros(mine.words)
    np.add.at(step, mine.places.ravel(), np.repeat(error, mine.places.shape[1]) / len(error))
    return shortened(FIXED.encode(step), NORM / FIXED.step)


def trained(train: Log, test: Log, of_round: int, rounds: int, noise: float, seed: int = 1) -> Utility:
    """`noise`: standard deviation of a round's sum in norms."""
    users, starts = np.unique(train.users, return_index=True)
    ends = np.append(starts[1:], len(train.users))
    drawn, clients = np.random.default_rng(seed), len(users)
    cohorts = np.array_split(drawn.permutation(clients), max(clients // of_round, 1))
    weights, variance, norm = np.zeros(train.words), (noise * NORM / FIXED.step) ** 2, NORM / FIXED.step
    for number in range(rounds):
        total = np.zeros(train.words, dtype=np.uint32)
        for client in cohorts[number % len(cohorts)]:
            total += update(weights, train.take(np.arange(starts[client], ends[client])))
        total += as_words(drawn.poisson(variance / 2, train.words) - drawn.poisson(variance / 2, train.words))
        weights += RATE * signed(total) * FIXED.step / len(cohorts[number % len(cohorts)])
    score = auc(test.labels, weights[test.places].sum(axis=1))
    fewest = min(map(len, cohorts))
    others = variance * (1.0 - 1.0 / fewest)  # what hides a client from the rest is their noise
    own, every = (_epsilon(others, norm, train.words, times) for times in (-(-rounds // len(cohorts)), rounds))
    return Utility(clients, fewest, noise, own, every, (score,))


def over_seeds(found: Sequence[Utility]) -> Utility:
    """The same case of several logs: the fewest clients, the largest epsilons, all AUCs."""
    first = found[0]
    own, every = (None if first.epsilon is None else max(getattr(one, name) for one in found)
                  for name in ("epsilon", "epsilon_every"))
    return Utility(min(one.clients for one in found), min(one.round for one in found), first.noise, own, every,
                   tuple(score for one in found for score in one.auc))


def _epsilon(variance: float, norm: float, words: int, rounds: int) -> float | None:
    if not variance:
        return None
    return skellam.epsilon(variance, *skellam.sensitivities(norm, words), rounds, DELTA)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line for each size of a round and noise, and JSON when asked."""
    parser = argparse.ArgumentParser(
        prog="sluice bench noise_utility", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--of-round", type=int, nargs="+", default=[20, 200, 2_000])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    logs = {seed: parted(log_of(options.clients, seed)) for seed in range(1, options.seeds + 1)}
    found = []
    print("| clients a round | noise of a sum, in norms | epsilon, as asked | epsilon, every round | test AUC |")
    print("|---|---|---|---|---|")
    for of_round in options.of_round:
        for noise in NOISES:
            one = over_seeds([trained(*log, of_round, options.rounds, noise, seed) for seed, log in logs.items()])
            found.append(one)
            own, every = ("-" if each is None else f"{each:.2f}" for each in (one.epsilon, one.epsilon_every))
            print(f"| {of_round} | {noise:g} | {own} | {every} | {spread(list(one.auc))} |", flush=True)
    if options.json:
        print(json.dumps([asdict(each) for each in found]))


if __name__ == "__main__":
    main()
