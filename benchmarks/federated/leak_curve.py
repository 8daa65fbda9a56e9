"""What a server proves of who holds what after so many rounds, by elimination (federated/privacy/leak_curve.py), in
rounds that are drawn and not computed: no training, no masks, answers as the policies give them.

    sluice bench leak_curve [--rounds 150] [--json]

600 clients, 2,000 rows by a power law, some 40 rows a client; of a round's clients `lost` are gone before the union, as
many before the update. `there` is the share of all clients, drawn anew each round, that can be reached in it: cohorts
of which too few are there come together with the next ones, as in a run. A second or two a line.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from federated.privacy.index_policy import POLICIES, IndexPolicy
from federated.privacy.leak_curve import LeakWatch
from federated.privacy.privacy_cost import single_holder_seen
from federated.rounds.cohorts import of_rounds

POPULATION, ROWS, TYPICAL = 600, 2000, 40


@dataclass(frozen=True)
class Case:
    """Rounds of `clients` at a level; in `cohorts` or drawn anew; `lost`: share that is gone at each of two points;
    `there`: share of all clients that can be reached in a round."""

    level: str
    clients: int
    cohorts: bool
    lost: float = 0.0
    there: float = 1.0


CASES = (
    Case("cpp2", 20, False), Case("cpp2", 48, False), Case("cpp2", 48, True), Case("cpp2", 48, True, 0.05),
    Case("cpp2", 48, True, there=0.9), Case("cpp2", 48, True, there=0.5),
    Case("cpp4", 48, False), Case("cpp4", 48, True),
    Case("cpp5", 20, False), Case("cpp5", 48, False), Case("cpp5", 48, True), Case("cpp5", 48, True, 0.05),
    Case("cpp5", 48, True, there=0.9), Case("cpp5", 48, True, there=0.5),
)


def holdings(drawn: np.random.Generator) -> np.ndarray:
    """bool [clients, rows]."""
    popularity = 1 / np.arange(1, ROWS + 1) ** 0.9
    held = np.zeros((POPULATION, ROWS), dtype=bool)
    for client in range(POPULATION):
        count = max(3, int(drawn.lognormal(np.log(TYPICAL) - 0.3, 0.8)))
        held[client, drawn.choice(ROWS, min(count, ROWS), replace=False, p=popularity / popularity.sum())] = True
    return held


def watched(case: Case, rounds: int, seed: int = 1) -> LeakWatch:
    """After all rounds."""
    drawn, policy = np.random.default_rng(seed), POLICIES[case.level]
    held = holdings(drawn)
    permanent = drawn.random(held.shape) < np.where(held, policy.p1, policy.p2)
    watch = LeakWatch(held, rounds)
    cohorts = of_rounds(POPULATION, case.clients, policy, seed, 2 * case.clients)
    for _ in range(rounds):
        there = np.flatnonzero(drawn.random(POPULATION) < case.there)
        groups = cohorts.there(there.tolist()) if case.cohorts else [drawn.choice(there, case.clients, replace=False)]
        who = np.asarray(groups[drawn.integers(len(groups))])
        in_union = who[drawn.random(len(who)) >= case.lost]
        finished = in_union[drawn.random(len(in_union)) >= case.lost]
        union = np.flatnonzero(held[in_union].any(axis=0))
        named = {int(client): union[_answers(drawn, policy, permanent[client])[union]] for client in finished}
        counts = np.zeros(ROWS, dtype=np.int64)
        for client, mine in named.items():
            counts[mine] += held[client, mine]
        watch.observe(in_union.tolist(), union, named, np.flatnonzero(counts))
    return watch


def _answers(drawn: np.random.Generator, policy: IndexPolicy, permanent: np.ndarray) -> np.ndarray:
    return drawn.random(len(permanent)) < np.where(permanent, policy.p3, policy.p4)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a line a case, and JSON when asked."""
    parser = argparse.ArgumentParser(prog="sluice bench leak_curve", description=__doc__)
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    found = []
    print("level  clients  cohorts  lost  there   single holder seen   proven by unions   sums   both, round by round")
    for case in CASES:
        curve = watched(case, options.rounds).curve()
        seen = single_holder_seen(POLICIES[case.level], 1, case.clients - 1)
        found.append({**asdict(case), "single_holder_seen": seen, **curve.model_dump()})
        print(f"{case.level}   {case.clients:7d}  {case.cohorts!s:7s}  {case.lost:4.2f}  {case.there:5.2f}   "
              f"{seen:18.4f}   {curve.unions[-1]:17.3f}  {curve.sums[-1]:5.3f}  "
              + " ".join(f"{number}:{share:.3f}" for number, share in zip(curve.rounds, curve.both, strict=True)))
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
