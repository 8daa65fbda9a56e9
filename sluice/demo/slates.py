"""What the served slates are worth by the simulator's truth, as shares of the oracle's slate, and where value is lost.

The oracle follows the funnel's own rules (seen items out, reserve price, same length) with true probabilities in
place of predicted ones. `clicks`: expected clicks with re-ranking off; `value`: expected bid x probability with the
auction on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from contracts.summaries.demo import StageLosses

KINDS = ("clicks", "value")


@dataclass(frozen=True)
class Market:
    """True click probabilities of every item for one request, at position 1; `allowed` leaves out seen items."""

    probability: np.ndarray  # [I]
    bids: np.ndarray  # [I]
    allowed: np.ndarray  # [I] bool
    reserve: float  # smallest eCPM, bid x probability x 1000
    length: int

    def worth(self, kind: str) -> np.ndarray:
        """Of every item [I]: the probability of a click, or times the bid."""
        return self.probability if kind == "clicks" else self.probability * self.bids

    def best(self, kind: str, among: np.ndarray | None = None) -> np.ndarray:
        """Item rows of the oracle's slate, from all allowed items or from those in `among`."""
        worth = np.where(self.allowed, self.worth(kind), -np.inf)
        if kind == "value":
            worth = np.where(worth * 1000 >= self.reserve, worth, -np.inf)
        rows = np.arange(len(worth)) if among is None else np.asarray(among)
        rows = rows[np.argsort(-worth[rows], kind="stable")[: self.length]]
        return rows[np.isfinite(worth[rows])]

    def total(self, kind: str, rows: np.ndarray) -> float:
        """What a slate of these item rows is worth."""
        return float(self.worth(kind)[np.asarray(rows, dtype=np.int64)].sum())


def shares(markets: Sequence[Market], slates: Mapping[str, Sequence[np.ndarray]], kind: str) -> dict[str, float]:
    """Sum over requests of each policy's slate worth over the oracle's."""
    oracle = sum(market.total(kind, market.best(kind)) for market in markets)
    return {
        policy: sum(market.total(kind, rows) for market, rows in zip(markets, chosen, strict=True)) / oracle
        for policy, chosen in slates.items()
    }


def losses(markets: Sequence[Market], traces: Sequence[Mapping[str, np.ndarray]]) -> StageLosses:
    """Share of the oracle's value lost in each stage: the best slate still possible after it against before it.

    A trace holds the item rows after retrieve and prerank, the ranker's order, and the final slate.
    """
    after = np.zeros(5)
    for market, trace in zip(markets, traces, strict=True):
        after += [
            market.total("value", market.best("value")),
            market.total("value", market.best("value", trace["retrieve"])),
            market.total("value", market.best("value", trace["prerank"])),
            market.total("value", trace["rank"][: market.length]),
            market.total("value", trace["rerank"]),
        ]
    lost = (after[:-1] - after[1:]) / after[0]
    return StageLosses(**dict(zip(("retrieve", "prerank", "rank", "rerank"), lost.tolist(), strict=True)))


def random_slates(markets: Sequence[Market], seed: int) -> list[np.ndarray]:
    """Items drawn uniformly from those that the user has not seen."""
    rng = np.random.default_rng(seed)
    return [rng.choice(np.flatnonzero(market.allowed), market.length, replace=False) for market in markets]


def popularity_slates(markets: Sequence[Market], order: np.ndarray) -> list[np.ndarray]:
    """The most clicked items that the user has not seen."""
    return [order[market.allowed[order]][: market.length] for market in markets]
