"""FedLaAvg, FedAvg and FedProx where availability follows the data: one-class clients of scikit-learn's digits.

    sluice bench fedlaavg [--rounds 1000] [--seeds 5] [--json]

N = 100 clients of one class each, K = 10 a round, C = 10 local steps of batch 5, multinomial logistic regression. The
clients of D of the ten classes can be reached in the first half of each period of E = 100 rounds only; D = 0 with each
client there at random is the case without correlation. Test accuracy, mean and minimum over the last fifth of the
rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from federated.averaging.fedlaavg import Gradient, GradientMemory, LatestAverage
from federated.clients.availability import Availability, alternating, at_random

CLIENTS, A_ROUND, STEPS, BATCH, PERIOD, RATE, PULL = 100, 10, 10, 5, 100, 0.05, 0.1
CLASSES, CLIP = 10, 16.0
Accuracy = list[float]


class Digits:
    """Standardised pixels and a constant; a fifth is kept for the test; each client has rows of one class."""

    def __init__(self, seed: int) -> None:
        from sklearn.datasets import load_digits

        generator = np.random.default_rng(seed)
        pixels, labels = load_digits(return_X_y=True)
        order = generator.permutation(len(labels))
        inputs = np.column_stack([pixels / CLIP, np.ones(len(labels))])[order]
        labels, cut = labels[order], len(labels) // 5
        self.test, self.test_labels = inputs[:cut], labels[:cut]
        self.rows = []
        for client in range(CLIENTS):
            of_class = np.flatnonzero(labels[cut:] == client % CLASSES) + cut
            self.rows.append(np.array_split(of_class, CLIENTS // CLASSES)[client // CLASSES])
        self.inputs, self.labels = inputs, labels
        self.sizes = np.array([len(rows) for rows in self.rows])
        self.places = np.array([np.resize(rows, self.sizes.max()) for rows in self.rows])

    @property
    def size(self) -> int:
        return self.inputs.shape[1] * CLASSES

    def accuracy(self, weights: np.ndarray) -> float:
        scores = self.test @ weights.reshape(-1, CLASSES)
        return float((scores.argmax(axis=1) == self.test_labels).mean())

    def descend(
        self, clients: list[int], weights: np.ndarray, scales: np.ndarray, generator: np.random.Generator,
        pull: float = 0.0,
    ) -> np.ndarray:
        """Weights [K, size] after the local steps of each client on its loss times its scale."""
        local = np.repeat(weights.reshape(1, -1, CLASSES), len(clients), axis=0)
        start, sizes = local.copy(), self.sizes[clients][:, None]
        for _ in range(STEPS):
            drawn = (generator.random((len(clients), BATCH)) * sizes).astype(np.int64)
            rows = np.take_along_axis(self.places[clients], drawn, axis=1)
            inputs, labels = self.inputs[rows], self.labels[rows]
            scores = inputs @ local
            share = np.exp(scores - scores.max(axis=2, keepdims=True))
            share /= share.sum(axis=2, keepdims=True)
            share -= labels[:, :, None] == np.arange(CLASSES)
            slope = np.swapaxes(inputs, 1, 2) @ share / BATCH
            local = local - RATE * (scales[:, None, None] * slope + pull * (local - start))
        return local.reshape(len(clients), -1)


def latest(digits: Digits, available: Availability, rounds: int, seed: int) -> Accuracy:
    generator = np.random.default_rng(seed)
    server = LatestAverage.of_dense(np.zeros(digits.size), CLIENTS, RATE)
    memories = [GradientMemory.empty(digits.size) for _ in range(CLIENTS)]
    scales = CLIENTS * digits.sizes / digits.sizes.sum()
    found = []
    for number in range(1, rounds + 1):
        chosen, total = server.choose(available(number), A_ROUND), np.zeros(digits.size)
        locals_ = digits.descend(chosen, server.dense, scales[chosen], generator)
        for client, local in zip(chosen, locals_, strict=True):
            memories[client].settle(int(server.accepted[client]))
            gradient = Gradient.of_dense((server.dense - local) / RATE)
            total += memories[client].difference(number, gradient).dense
        server.apply(number, chosen, total)
        found.append(digits.accuracy(server.dense))
    return found


def averaged(digits: Digits, available: Availability, rounds: int, seed: int, pull: float) -> Accuracy:
    """FedAvg, and FedProx where `pull` is not 0."""
    generator, weights, found = np.random.default_rng(seed), np.zeros(digits.size), []
    for number in range(1, rounds + 1):
        there = available(number)
        chosen = generator.choice(there, min(A_ROUND, len(there)), replace=False).tolist() if there else []
        if chosen:
            locals_ = digits.descend(chosen, weights, np.ones(len(chosen)), generator, pull)
            weights = np.average(locals_, axis=0, weights=digits.sizes[chosen])
        found.append(digits.accuracy(weights))
    return found


METHODS: dict[str, Callable[[Digits, Availability, int, int], Accuracy]] = {
    "fedlaavg": latest,
    "fedavg": partial(averaged, pull=0.0),
    "fedprox": partial(averaged, pull=PULL),
}


def pattern(classes: int, seed: int) -> Availability:
    if classes == 0:
        return at_random([0.5] * CLIENTS, seed)
    return alternating([0 if client % CLASSES < classes else -1 for client in range(CLIENTS)], PERIOD)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args(argv)
    figures: dict[str, dict[str, dict[str, float]]] = {}
    print("| classes alternating | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
    for classes in (0, 1, 3, 5):
        row = figures[str(classes)] = {}
        for name, method in METHODS.items():
            runs = [method(Digits(seed), pattern(classes, seed), arguments.rounds, seed)[-arguments.rounds // 5 :]
                    for seed in range(arguments.seeds)]
            row[name] = {"mean": statistics.fmean(statistics.fmean(run) for run in runs),
                         "minimum": statistics.fmean(min(run) for run in runs)}
        print(f"| {classes or 'none'} | " + " | ".join(f"{f['mean']:.3f} / {f['minimum']:.3f}" for f in row.values())
              + " |", flush=True)
    if arguments.json:
        print(json.dumps({"fedlaavg": figures}))


if __name__ == "__main__":
    main()
