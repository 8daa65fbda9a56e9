"""The bundle's business rules at work: which of them a request is under, and what they make of its candidates.

    never    such items pass no filter: no channel brings them, no fallback, no list of the request's own
    pin      the item is retrieved whatever the channels bring, kept by every stage, and put at its position
    boost    what the stages order by counts `factor` times, from the pre-ranker on; probabilities stay as they are
    cap      serving/rules/slate_order.py
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from contracts.config.condition import Condition, comparisons
from contracts.config.rules import Rule
from contracts.config.stages import AGE
from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import BOOST, CHANNELS, PIN, Candidates
from serving.request.given_items import GivenItems
from serving.request.query import RankQuery
from serving.rules.conditions import given_where, holds, items_where

RULE = CHANNELS.index("rule")


@dataclass(frozen=True)
class ActiveRule:
    """One that a request is under. `items` of never and boost."""

    number: int
    rule: Rule
    items: Condition | None


@dataclass(frozen=True)
class ActiveRules:
    """All that a request is under, by what they do, in the order of the configuration."""

    never: tuple[ActiveRule, ...] = ()
    pins: tuple[ActiveRule, ...] = ()
    boosts: tuple[ActiveRule, ...] = ()
    caps: tuple[ActiveRule, ...] = ()

    @property
    def shapes_slate(self) -> bool:
        """Some are about places in it."""
        return bool(self.pins or self.caps)


NO_RULES = ActiveRules()


class Rules:
    """Of one bundle, whose items may change."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._bundle = bundle
        self._rules = [(rule.request, ActiveRule(number, rule, rule.items))
                       for number, rule in enumerate(bundle.settings.rules)]
        self._kept: dict[int, ItemSet] = {}

    def active(self, query: RankQuery) -> ActiveRules:
        """Those whose `when` holds."""
        if not self._rules:
            return NO_RULES
        found = [active for when, active in self._rules if holds(when, query)]

        def doing(action: str) -> tuple[ActiveRule, ...]:
            return tuple(one for one in found if getattr(one.rule, action) is not None)

        return ActiveRules(doing("never"), doing("pin"), doing("boost"), doing("cap"))

    def forbidding(self, active: ActiveRules) -> Iterator[tuple[Rule, ItemSet]]:
        """What each rule admits: all but the items that are never shown."""
        for one in active.never:
            yield one.rule, self._items(one).complement()

    def given_admitted(self, active: ActiveRules, given: GivenItems) -> np.ndarray:
        """bool [G]: those that no rule forbids."""
        admitted = np.ones(len(given.keys), dtype=bool)
        for one in active.never:
            assert one.items is not None
            admitted &= ~given_where(one.items, given)
        return admitted

    def pinned(self, active: ActiveRules, query: RankQuery, allowed: ItemSet | None) -> np.ndarray:
        """Rows of the pinned items that may be shown and that no other slate of the request shows, each once."""
        names = dict.fromkeys(str(one.rule.pin) for one in active.pins if one.rule.pin not in query.shown)
        rows = self._bundle.items.rows([*names]).astype(np.int64)
        rows = rows[rows >= 0]
        return rows if allowed is None else rows[allowed.contains(rows)]

    def with_pinned(self, candidates: Candidates, pinned: np.ndarray) -> Candidates:
        """The pinned ones first, and the others behind them: who is cut short loses the tail."""
        if not len(pinned):
            return candidates
        rest = candidates.take(~np.isin(candidates.rows, pinned))
        codes = np.full(len(pinned), RULE, dtype=candidates.channels.dtype)
        return replace(rest, rows=np.concatenate([pinned, rest.rows]), channels=np.concatenate([codes, rest.channels]))

    def marked(self, active: ActiveRules, candidates: Candidates) -> Candidates:
        """With what rules say of each, beside its scores."""
        if active.boosts:
            candidates = candidates.scored(BOOST, self.factors(active, candidates))
        if active.pins:
            candidates = candidates.scored(PIN, self._positions(active, candidates))
        return candidates

    def leading(self, active: ActiveRules, candidates: Candidates) -> Candidates:
        """Marked, and pinned ones before the others, also those of the request's own list."""
        found = self.marked(active, candidates)
        if found.pins is None or not found.pins.any():
            return found
        order = np.argsort(found.pins == 0, kind="stable")
        return found if (order[1:] > order[:-1]).all() else found.take(order)

    def factors(self, active: ActiveRules, candidates: Candidates) -> np.ndarray:
        """[K] how many times each one's score counts."""
        found = np.ones(len(candidates))
        for one in active.boosts:
            found[self._among(one, candidates)] *= one.rule.factor
        return found

    def _among(self, one: ActiveRule, candidates: Candidates) -> np.ndarray:
        """bool [K]: those that the rule is about."""
        members, given = self._items(one), candidates.given
        if given is None:
            return members.contains(candidates.rows)
        assert one.items is not None
        return given.read(members.contains, candidates.rows, given_where(one.items, given))

    def _positions(self, active: ActiveRules, candidates: Candidates) -> np.ndarray:
        """[K], 0 where none is pinned; of an item pinned twice the first rule's."""
        keys: Sequence[str] = candidates.keys_of(self._bundle.items)
        places = {str(one.rule.pin): one.rule.position or 1 for one in reversed(active.pins)}
        return np.array([places.get(key, 0) for key in keys], dtype=np.float64)

    def _items(self, one: ActiveRule) -> ItemSet:
        """Kept where neither items nor the clock change it."""
        assert one.items is not None
        if one.number in self._kept:
            return self._kept[one.number]
        found = items_where(one.items, self._bundle)
        if self._bundle.shown is None and all(part.name != AGE for part in comparisons(one.items)):
            self._kept[one.number] = found
        return found
