"""Items that come to the simulated marketplace after its log: each is put together of items that are there.

    category, brand, brand_tier, advertiser_id, tags     of one item: another ad of its brand
    format                                               of a second
    price, personal taste, the item's own quality        of a third

So every value of a newcomer is known and its combination is not; newcomers are worth as much as other items.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pipelines.marketplace.truth import Term, Truth

OF_FORMAT, OF_PRICE = ("format",), ("price",)


@dataclass(frozen=True)
class Donors:
    """Codes of the items that each newcomer's values are of: int64 [N]."""

    brand: np.ndarray
    format: np.ndarray
    price: np.ndarray

    @classmethod
    def drawn(cls, items: int, count: int, rng: np.random.Generator) -> Donors:
        """Uniformly from `items` items, with replacement."""
        return cls(*(rng.integers(0, items, count) for _ in range(3)))

    def of(self, field: str) -> np.ndarray:
        """[N]: of a field of the item's table."""
        return self.format if field in OF_FORMAT else self.price if field in OF_PRICE else self.brand


def with_newcomers(truth: Truth, donors: Donors) -> Truth:
    """The truth of the same items in their order, and of the newcomers behind them, i_new_0 and so on."""
    known, count = len(truth.values["item"]), len(donors.brand)
    items = {name: np.append(codes, codes[donors.of(name)]) for name, codes in truth.items.items()}
    items["item"] = np.arange(known + count, dtype=np.int32)
    names = tuple(f"i_new_{number}" for number in range(count))
    return replace(
        truth, items=items, values={**truth.values, "item": (*truth.values["item"], *names)},
        terms=tuple(_extended(term, donors) for term in truth.terms),
        item_taste=np.concatenate([truth.item_taste, truth.item_taste[donors.price]]),
    )


def _extended(term: Term, donors: Donors) -> Term:
    """A table by item gets the newcomers' rows: what tags add is the brand donor's, quality the price donor's."""
    if term.fields != ("item",):
        return term
    rows = donors.price if term.component == "item_quality" else donors.brand
    return replace(term, table=np.append(term.table, term.table[rows]))
