"""What heads of their own give the clients of a federated model, beside the head that all trained.

    sluice bench federated_personal CONFIG --out OUT [--data DIR] [--setting cpp2] [--rates 0.1 1] [--pulls 0.1 1 10]
        [--steps 5 20 80] [--seeds 1] [--json]

The model is that of the best round of `sluice bench federated --auc CONFIG --out OUT --unmasked`, which is trained
where it is not there. A client fits its head (federated/clients/personal_head.py) to its own rows of the training
window and scores its rows of the others. Rate, pull and steps are those with the best AUC over all clients' validation
rows with the first seed; the test is read once for each seed. Where a head only moves all scores of its client alike,
AUC over all rows rises and GAUC (each client's own AUC, weighted by its rows) does not.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console

from benchmarks.federated.federated_auc import one_seed, spread, with_data
from contracts.artifacts import Artifacts
from contracts.bundle.bundle import load_weights
from contracts.config.config import Config, load
from federated.clients import personal_head
from federated.clients.personal_head import HeadSettings
from federated.clients.prepare import SamplesByUser
from federated.rounds.personal_scores import logits
from federated.rounds.public_setup import PublicSetup, public_setup
from federated.rounds.run_folder import BEST
from models.evaluation.metrics import auc, gauc
from models.examples.batches import Batch, ExampleSet

SETTING, RATES, PULLS, STEPS = "cpp2", (0.1, 1.0), (0.1, 1.0, 10.0), (5, 20, 80)
COMMON = HeadSettings(0, 1.0, 0.0)
WINDOWS = ("validation", "test")


class Scores(NamedTuple):
    """Of all clients' rows of a window: labels, logits and whose they are."""

    labels: np.ndarray
    logits: np.ndarray
    users: np.ndarray

    def quality(self) -> tuple[float, float]:
        """AUC of all rows, and GAUC."""
        of_users = gauc(self.labels, self.logits, self.users).value
        return auc(self.labels, self.logits), float("nan") if of_users is None else of_users


@dataclass(frozen=True)
class Personal:
    """What was chosen; figures by seed: `common` head and `own` one."""

    setting: str
    clients: int
    head: HeadSettings
    common_validation: list[float]
    own_validation: list[float]
    common_test: list[float]
    own_test: list[float]
    common_gauc: list[float]
    own_gauc: list[float]


class Clients:
    """One seed's clients with rows of their own, and the model that they trained."""

    def __init__(self, config: Config, out: Artifacts, setting: str) -> None:
        federated = config.federated.model_copy(update={
            "settings": (setting,), "served": setting, "masked": False, "retrieval": False})
        one_seed(config.model_copy(update={"federated": federated}), out, lambda *_: None, False)
        folder = out.out / "federated_auc" / str(config.seed)
        self.setup: PublicSetup = public_setup(folder, setting)
        best = load_weights(folder / "runs" / setting / BEST)
        self.model = np.array(best["rows"]), np.array(best["dense"])
        windows = {window: SamplesByUser(ExampleSet(out.examples(window), self.setup.space.spec))
                   for window in ("train", *WINDOWS)}
        self.users, self._most = windows["train"].users, config.federated.max_samples
        self._windows = windows

    def scores(self, rate: float, pull: float, steps: Sequence[int], window: str) -> dict[int, Scores]:
        """After each of so many `steps` (rising), in one descent."""
        parts: dict[int, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {each: [] for each in steps}
        for user in self.users:
            later = self._windows[window].of(user)
            if len(later.label):
                for done, scored in self._descent(self._own(user), later, rate, pull, steps):
                    parts[done].append((later.label.numpy(), scored, np.full(len(scored), user)))
        return {done: Scores(*map(np.concatenate, zip(*found, strict=True))) for done, found in parts.items()}

    def _own(self, user: int) -> Batch:
        return self._windows["train"].of(user, self._most)

    def _descent(
        self, own: Batch, later: Batch, rate: float, pull: float, steps: Sequence[int]
    ) -> Iterator[tuple[int, np.ndarray]]:
        networks = self.setup.networks
        networks.write(*self.model)
        common = [each.detach().clone() for each in personal_head.head_of(networks.ranker)]
        for before, done in pairwise((0, *steps)):
            personal_head.fit(networks, own, HeadSettings(done - before, rate, pull), common)
            yield done, logits(networks, later)


def chosen(clients: Clients, rates: Sequence[float], pulls: Sequence[float], steps: Sequence[int]) -> HeadSettings:
    """By the AUC of all validation rows; the common head, steps 0, is among what is tried."""
    tried = {COMMON: clients.scores(1.0, 0.0, (0,), "validation")[0].quality()[0]}
    for rate, pull in product(rates, pulls):
        for done, scored in clients.scores(rate, pull, steps, "validation").items():
            tried[HeadSettings(done, rate, pull)] = scored.quality()[0]
            print(f"| {rate:g} | {pull:g} | {done} | {tried[HeadSettings(done, rate, pull)]:.4f} |", flush=True)
    return max(tried, key=lambda each: tried[each])


def compared(
    config: Config, out: Artifacts, setting: str, rates: Sequence[float], pulls: Sequence[float], steps: Sequence[int],
    seeds: int,
) -> Personal:
    """Chosen with the configured seed; the others fit with what was chosen."""
    of_seeds = [Clients(config.model_copy(update={"seed": config.seed + seed}), out, setting) for seed in range(seeds)]
    print("| rate | pull | steps | validation AUC |\n|---|---|---|---|")
    head = chosen(of_seeds[0], rates, pulls, steps)
    found = {(name, window): [clients.scores(each.rate, each.pull, (each.steps,), window)[each.steps].quality()
                              for clients in of_seeds]
             for name, each in (("common", COMMON), ("own", head)) for window in WINDOWS}
    aucs = {key: [quality[0] for quality in values] for key, values in found.items()}
    gaucs = {name: [quality[1] for quality in found[name, "test"]] for name in ("common", "own")}
    return Personal(
        setting, len(of_seeds[0].users), head, aucs["common", "validation"], aucs["own", "validation"],
        aucs["common", "test"], aucs["own", "test"], gaucs["common"], gaucs["own"])


def main(argv: Sequence[str] | None = None) -> None:
    """Prints what is tried as it is, the table at the end, and JSON when asked."""
    parser = argparse.ArgumentParser(
        prog="sluice bench federated_personal", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--setting", default=SETTING)
    parser.add_argument("--rates", nargs="+", type=float, default=list(RATES))
    parser.add_argument("--pulls", nargs="+", type=float, default=list(PULLS))
    parser.add_argument("--steps", nargs="+", type=int, default=list(STEPS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    config, out = load(options.config), Artifacts(options.out)
    with_data(config, options.data, out, Console(stderr=True))
    one = compared(config, out, options.setting, options.rates, options.pulls, sorted(options.steps), options.seeds)
    print(f"\n{config.name}: {one.clients} clients, {one.setting}; heads of their own after {one.head.steps} steps at "
          f"{one.head.rate:g}, pull {one.head.pull:g}\n")
    print("| head | validation AUC | test AUC | test GAUC |\n|---|---|---|---|")
    print(f"| common | {spread(one.common_validation)} | {spread(one.common_test)} | {spread(one.common_gauc)} |")
    print(f"| of each client's own | {spread(one.own_validation)} | {spread(one.own_test)} | {spread(one.own_gauc)} |")
    if options.json:
        print(json.dumps(asdict(one)))


if __name__ == "__main__":
    main()
