"""Which items can be had at a minute of the hour, and what a click on them pays: the truth, and its changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from pipelines.marketplace.moods import HOUR

ChangeKind = Literal["upsert", "withdraw", "set_bids", "set_stock"]
NEVER = np.inf


class Change(NamedTuple):
    """What the server is to be told: `number` is a bid, or how many are left."""

    minute: float
    kind: ChangeKind
    item: int
    number: float = 0.0


@dataclass(frozen=True)
class ShelfShares:
    """How many items change, each at a minute drawn uniformly, as shares of those that the log knows."""

    withdrawn: float = 0.05
    sold_out: float = 0.05  # half of them come back
    repriced: float = 0.10  # by a factor exp(N(0, 0.7^2))
    new: float = 0.05


@dataclass(frozen=True)
class Shelf:
    """Minutes [I] from which on something holds, NEVER where it does not come to it; bids [I] before and after."""

    appears: np.ndarray
    withdrawn: np.ndarray
    sold_out: np.ndarray
    restocked: np.ndarray
    repriced: np.ndarray
    bid_before: np.ndarray
    bid_after: np.ndarray

    @classmethod
    def drawn(cls, bids: np.ndarray, known: int, shares: ShelfShares, rng: np.random.Generator) -> Shelf:
        """`bids` [I] as the hour begins, of `known` items and newcomers behind them. No item changes in two ways."""
        counts = [round(share * known) for share in (shares.withdrawn, shares.sold_out, shares.repriced)]
        gone, out, priced, _ = np.split(rng.permutation(known), np.cumsum(counts))
        minutes = {name: np.full(len(bids), NEVER) for name in ("withdrawn", "sold_out", "restocked", "repriced")}
        for name, items in (("withdrawn", gone), ("sold_out", out), ("repriced", priced)):
            minutes[name][items] = rng.uniform(0, HOUR, len(items))
        back = out[: len(out) // 2]
        minutes["restocked"][back] = rng.uniform(minutes["sold_out"][back], HOUR)
        appears = np.append(np.full(known, -NEVER), rng.uniform(0, HOUR, len(bids) - known))
        after = bids.copy()
        after[priced] = np.round(after[priced] * np.exp(rng.normal(0, 0.7, len(priced))), 3)
        return cls(appears=appears, bid_before=bids, bid_after=after, **minutes)

    def on(self, minute: float) -> np.ndarray:
        """Bool [I]: there, not withdrawn, and not sold out."""
        sold_out = (self.sold_out <= minute) & (minute < self.restocked)
        return (self.appears <= minute) & (minute < self.withdrawn) & ~sold_out

    def bids(self, minute: float) -> np.ndarray:
        """[I]: what a click pays."""
        return np.where(self.repriced <= minute, self.bid_after, self.bid_before)

    def changes(self) -> list[Change]:
        """In the order of their minutes."""
        found = [Change(at, "upsert", item, self.bid_before[item]) for item, at in _within(self.appears)]
        found += [Change(at, "withdraw", item) for item, at in _within(self.withdrawn)]
        found += [Change(at, "set_stock", item, 0.0) for item, at in _within(self.sold_out)]
        found += [Change(at, "set_stock", item, 1.0) for item, at in _within(self.restocked)]
        found += [Change(at, "set_bids", item, self.bid_after[item]) for item, at in _within(self.repriced)]
        return sorted(found)


def _within(minutes: np.ndarray) -> list[tuple[int, float]]:
    return [(int(item), float(minutes[item])) for item in np.flatnonzero(np.isfinite(minutes))]
