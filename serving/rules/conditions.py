"""What holds: conditions of rules against the bundle's items, items that a request describes, and requests."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from contracts.config.condition import Condition, Scalar, evaluate
from contracts.config.rules import ITEM, PLACEMENT
from contracts.config.stages import BID
from serving.bundle.filter_column import as_text
from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.given_items import GivenItems
from serving.request.query import ContextValue, RankQuery


def items_where(condition: Condition, bundle: LoadedBundle) -> ItemSet:
    """Of the bundle's, as they are now."""
    nobody = ItemSet.nobody(len(bundle.items))

    def one_of(name: str, values: tuple[Scalar, ...]) -> ItemSet:
        if name == ITEM:
            rows, members = bundle.items.rows([_text(value) for value in values]), np.zeros(nobody.size, dtype=bool)
            members[rows[rows >= 0]] = True
            return ItemSet.of(members)
        if name in bundle.filters:
            return bundle.filters[name].items([_text(value) for value in values])
        found = nobody
        for value in values:
            found = found | within(name, float(value), float(value))
        return found

    def within(name: str, least: float, most: float) -> ItemSet:
        return bundle.within(name, least, most) if name in bundle.range_names else nobody

    return evaluate(condition, one_of, within)


def given_where(condition: Condition, given: GivenItems) -> np.ndarray:
    """bool [G]."""
    described = zip(given.keys, given.bids.tolist(), given.described, strict=True)
    return np.array([_holds(condition, {ITEM: key, BID: bid, **told}) for key, bid, told in described], dtype=bool)


def holds(condition: Condition | None, query: RankQuery) -> bool:
    """None always does."""
    return condition is None or _holds(condition, {**query.context, PLACEMENT: query.placement})


def _holds(condition: Condition, known: Mapping[str, ContextValue]) -> bool:
    def one_of(name: str, values: tuple[Scalar, ...]) -> np.bool:
        told = known.get(name)
        several = told if isinstance(told, tuple) else () if told is None else (told,)
        return np.bool(any(_same(one, value) for one in several for value in values))

    def within(name: str, least: float, most: float) -> np.bool:
        told = known.get(name)
        return np.bool(isinstance(told, int | float) and not isinstance(told, bool) and least <= told <= most)

    return bool(evaluate(condition, one_of, within))


def _same(one: Scalar, other: Scalar) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return one == other
    return as_text(one) == as_text(other)


def _text(value: Scalar) -> str:
    return str(value) if isinstance(value, float) else as_text(value)
