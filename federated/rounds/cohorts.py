"""Groups of clients that come together in every round: sums and unions of sets that differ by few tell them apart
(federated/privacy/leak_curve.py), and sets that never differ do not."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from federated.privacy import privacy_cost
from federated.privacy.index_policy import IndexPolicy


def whole_groups(population: int, least: int, most: int) -> int:
    """How many groups, each of at least `least` clients and fewer than twice as many, where the population has so many;
    more where a group would exceed `most`."""
    return max(1, population // least, -(-population // most))


def of_rounds(
    population: int, clients: int, policy: IndexPolicy, seed: int, most: int, min_clients: int = 1
) -> Cohorts:
    """Those of a run whose rounds have `clients`: of so many at least, and of no more than `most`, for whom its words
    have room. Where some are missing, half of a round's clients come alone, if they are so many that a row's only
    holder is hardly ever the only one to name it."""
    enough = min(clients, privacy_cost.clients_that_hide(policy) or 0)
    least = max(min_clients, -(-clients // 2), enough)
    return Cohorts(population, whole_groups(population, clients, most), seed, least, most)


@dataclass(frozen=True)
class Cohorts:
    """`population` clients in `count` groups of nearly equal sizes, drawn once by `seed`. Groups of which fewer than
    `least` are there come together with the next ones; none has more than `most`."""

    population: int
    count: int
    seed: int
    least: int
    most: int

    @cached_property
    def whole(self) -> list[list[int]]:
        """Sorted numbers of each."""
        order = random.Random(self.seed).sample(range(self.population), self.population)
        return [sorted(order[at :: self.count]) for at in range(self.count)]

    def there(self, clients: Collection[int]) -> list[list[int]]:
        """Those of each who are among the clients, in an order that stays the same, so that groups differ only as those
        who are there do."""
        present, groups, left = set(clients), [], list[int]()
        for cohort in self.whole:
            left += [client for client in cohort if client in present]
            if len(left) >= self.least:
                groups.append(left)
                left = []
        if left:
            groups = [*groups[:-1], [*groups[-1], *left]] if groups else [left]
        return [
            sorted(part.tolist())
            for group in groups
            for part in np.array_split(np.asarray(group), -(-len(group) // self.most))
        ]
