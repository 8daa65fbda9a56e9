"""Items of one request that its bundle does not know, as the request describes them: encoded, with a tower's vector.

    rows  0 ... I - 1    the bundle's items
          I, I + 1, ...  the given ones, in the order in which they are first named
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from contracts.errors import DataError, RequestError
from contracts.features.encoding import Encoded
from contracts.shown import short
from models.examples.batches import FeatureBlock
from serving.bundle.feature_store import UNKNOWN_ROW, OwnKeys
from serving.bundle.filter_column import as_text
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import ContextValue, RankQuery, as_column

Described = Mapping[str, ContextValue]


@dataclass(frozen=True, eq=False, kw_only=True)
class GivenItems:
    """G items from row `first` on: `inputs` [G, ...] of the item side, `vectors` [G, d] of the item tower, `bids` [G],
    0 where none is given."""

    first: int
    keys: tuple[str, ...]
    described: tuple[Described, ...]
    inputs: Encoded
    vectors: np.ndarray
    bids: np.ndarray

    def stored(self, rows: np.ndarray) -> np.ndarray:
        """Rows of the bundle's tables; a given item has none and finds the unknown one's."""
        return np.where(rows < self.first, rows, UNKNOWN_ROW)

    def places(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(where in `rows` given items are, which ones)."""
        where = np.flatnonzero(rows >= self.first)
        return where, rows[where] - self.first

    def read(self, take: Callable[[np.ndarray], np.ndarray], rows: np.ndarray, own: np.ndarray) -> np.ndarray:
        """[K, ...] of a table of the bundle's items, and `own` [G, ...] for the given ones."""
        found = take(self.stored(rows))
        where, which = self.places(rows)
        found[where] = own[which]
        return found

    def admitted(self, query: RankQuery) -> np.ndarray:
        """bool [G]: for every column filtered by, the description's value is one of those asked for, none of those
        excluded, within the range."""
        def passes(described: Described, bid: float) -> bool:
            known = {"bid": bid, **described}
            return (all(_text(described.get(name)) in values for name, values in query.filters.items())
                    and not any(_text(described.get(name)) in values for name, values in query.excluded.items())
                    and all(_within(known.get(name), bounds) for name, bounds in query.ranges.items()))

        return np.array([passes(*one) for one in zip(self.described, self.bids.tolist(), strict=True)], dtype=bool)


def _within(value: ContextValue | None, bounds: tuple[float, float]) -> bool:
    return isinstance(value, int | float) and bounds[0] <= value <= bounds[1]


def _text(value: ContextValue | None) -> str | None:
    """None of what no column of filters holds."""
    if isinstance(value, float) and value.is_integer():
        return as_text(int(value))
    return None if value is None or isinstance(value, tuple | float) else as_text(value)


class ItemDescriber:
    """Finds items by key, and makes items of what a request says of those that the bundle lacks."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._items, self._encoder, self._towers = bundle.items, bundle.encoder, bundle.towers
        self._fields, self._named = bundle.spec.of_side("item"), OwnKeys(bundle.items, bundle.spec, bundle.encoder)

    def rows(
        self, keys: Sequence[str], features: Mapping[str, Described], bids: Mapping[str, float] | None = None
    ) -> tuple[np.ndarray, GivenItems | None]:
        """int64 [K], -1 for what nobody knows; and the given items, where there are any. Raises RequestError."""
        rows = self._items.rows(keys).astype(np.int64)
        lacking = (keys[place] for place in np.flatnonzero(rows < 0).tolist()) if features else ()
        given = tuple(dict.fromkeys(key for key in lacking if key in features))
        if not given:
            return rows, None
        numbers = {key: len(self._items) + number for number, key in enumerate(given)}
        for place in np.flatnonzero(rows < 0).tolist():
            rows[place] = numbers.get(keys[place], UNKNOWN_ROW)
        return rows, self._made(given, tuple(self._named(key, features[key]) for key in given), bids or {})

    def _made(self, keys: tuple[str, ...], described: tuple[Described, ...], bids: Mapping[str, float]) -> GivenItems:
        columns = {field.name: [as_column(field, one.get(field.name)) for one in described] for field in self._fields}
        try:
            inputs = self._encoder.encode(columns, "item")
        except (DataError, TypeError, ValueError) as error:
            raise RequestError("features", f"cannot be encoded: {short(str(error))}") from None
        with torch.inference_mode():
            read = FeatureBlock(torch.from_numpy(inputs.ids), torch.from_numpy(inputs.dense))
            vectors = self._towers.item_vector(read).numpy()
        return GivenItems(first=len(self._items), keys=keys, described=described, inputs=inputs, vectors=vectors,
                          bids=np.array([bids.get(key, 0.0) for key in keys]))
