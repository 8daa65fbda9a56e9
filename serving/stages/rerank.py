"""Re-ranking: from ranked candidates to the slate.

    auction   generalised second price on eCPM; also when time is short, because an ad without a price cannot be shown;
              an item without a bid is not sold, and the stage's report says how many there were
    mmr       diversity; relevance is the probability over the largest one, so that it lies on the scale of a cosine
    none      by probability: as configured, as the request asks, or the organic order of a stage without time

Business rules hold in all of them (serving/rules/slate_order.py): boosts in what is compared, caps slot by slot, and
pinned items at their positions. An auction's slot is priced against who would have it instead; nobody competes for a
pinned one, which is sold at the reserve, or given away where there is no bid.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from models.evaluation.calibration import Calibration
from serving.bundle.best_first import best_first
from serving.bundle.feature_store import FeatureStore
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import BOOST, CHANNELS, PIN, Candidates
from serving.request.deadline import Deadline
from serving.request.query import Fallback, RankedItem, Reason, Sold, StageStatus
from serving.rules.rules import NO_RULES, ActiveRules
from serving.rules.slate_order import NOBODY, Room, caps_of, fill, pinned_places, with_pinned
from serving.stages.auction import expected_revenue, may_win, prices, second_price
from serving.stages.diversity import mmr
from serving.stages.tower_probability import TowerProbability

NO_TIME = "the deadline left no time for it"
Kind = Literal["auction", "mmr", "none"]


@dataclass(frozen=True)
class Sale:
    """Of n items: `bid` and `price` per click, and the eCPM `to_beat`, each [n]; `behind` holds the candidate after the
    last one, where there is one. `runners` by name, "" for the reserve, where rules make them others than the next."""

    bid: np.ndarray
    price: np.ndarray
    to_beat: np.ndarray
    behind: Candidates
    runners: Sequence[str] | None = None


@dataclass(frozen=True)
class Slate:
    """What a request is answered with. `probability`, `score` (what it is ordered by): [n] each; `sale` where there was
    an auction."""

    candidates: Candidates
    probability: np.ndarray
    score: np.ndarray
    sale: Sale | None = None
    status: StageStatus = StageStatus.COMPLETE
    cause: str = ""
    fallback: Fallback = Fallback.NONE


def probabilities(candidates: Candidates, pre_ranking: Calibration, towers: TowerProbability) -> np.ndarray:
    """The ranker's; where it did not run the pre-ranker's, else the towers'; all calibrated, as prices rest on them."""
    if "rank" in candidates.scores:
        return candidates.scores["rank"]
    if "prerank" in candidates.scores:
        return pre_ranking.apply(candidates.scores["prerank"])
    return towers.of(candidates)


def ties(candidates: Candidates) -> np.ndarray:
    """Equal candidates go by their item rows; those of which nothing is known stay in their order."""
    return candidates.rows if candidates.scores.keys() - {BOOST, PIN} else np.arange(len(candidates))


class RerankStage:
    """`kind` is what the settings name; "auto" is an auction where items have bids, else diversity."""

    def __init__(self, bundle: LoadedBundle, towers: TowerProbability) -> None:
        self._bundle, self._towers = bundle, towers
        self._settings, self._bids = bundle.settings.rerank, None if bundle.bids is None else np.asarray(bundle.bids)
        automatic: Kind = "mmr" if bundle.bids is None else "auction"
        self.kind: Kind = automatic if self._settings.kind == "auto" else self._settings.kind

    def run(
        self, candidates: Candidates, limit: int, wanted: bool, deadline: Deadline, rules: ActiveRules = NO_RULES
    ) -> Slate:
        """At most `limit` items, best first. `wanted` False orders by probability alone, as does a lack of time."""
        values = self._probabilities(candidates)
        if not wanted or self.kind == "none":
            cause = "the bundle's settings ask for none" if wanted else "the request asked for none"
            return self._plain(candidates, values, limit, cause, rules)
        if self.kind == "auction":
            if rules.shapes_slate or rules.boosts:
                return self._ruled_auction(candidates, values, limit, rules)
            return self._auction(candidates, values, limit)
        if deadline.expired:
            return self.organic(candidates, limit, NO_TIME, rules)
        return self._diverse(candidates, values, limit, rules)

    def organic(self, candidates: Candidates, limit: int, cause: str, rules: ActiveRules = NO_RULES) -> Slate:
        """By probability alone and without prices, for when nothing else can be had."""
        plain = self._plain(candidates, self._probabilities(candidates), limit, cause, rules)
        return replace(plain, status=StageStatus.DEGRADED, fallback=Fallback.ORGANIC_ORDER)

    def _probabilities(self, candidates: Candidates) -> np.ndarray:
        return probabilities(candidates, self._bundle.prerank_calibration, self._towers)

    def _plain(
        self, candidates: Candidates, values: np.ndarray, limit: int, cause: str, rules: ActiveRules
    ) -> Slate:
        scores = values if candidates.boosts is None else values * candidates.boosts
        order = best_first(scores, ties(candidates), len(candidates) if rules.shapes_slate else limit)
        if rules.shapes_slate:
            order = fill(order, candidates, self._room(candidates, rules), limit).order
        return Slate(candidates.take(order), values[order], scores[order], None, StageStatus.SKIPPED, cause)

    def _room(self, candidates: Candidates, rules: ActiveRules) -> Room:
        return Room(caps_of(rules, candidates, self._bundle))

    def _auction(self, candidates: Candidates, values: np.ndarray, limit: int) -> Slate:
        assert self._bids is not None, "an auction bundle without bids"  # `kind` is "auction" only with bids
        paid = candidates.bids_of(self._bids)
        won = second_price(paid, values, ties(candidates), limit, self._settings.reserve_price)
        sale = Sale(paid[won.order], won.price, won.to_beat, candidates.take(won.behind))
        return Slate(candidates.take(won.order), values[won.order], won.score, sale, cause=_unsold(paid))

    def _ruled_auction(self, candidates: Candidates, values: np.ndarray, limit: int, rules: ActiveRules) -> Slate:
        """Slots go by boosted eCPM; what has to be beaten is told on the scale of each winner's own."""
        assert self._bids is not None, "an auction bundle without bids"
        paid, reserve = candidates.bids_of(self._bids), self._settings.reserve_price
        revenue = expected_revenue(paid, values)
        boosts = np.ones(len(candidates)) if candidates.boosts is None else candidates.boosts
        scores, sold = revenue * boosts, may_win(revenue, paid, reserve).nonzero()[0]
        order = sold[best_first(scores[sold], ties(candidates)[sold], len(sold))]
        slots = fill(order, candidates, self._room(candidates, rules), limit)
        won, runners = slots
        beaten = np.where(runners == NOBODY, -np.inf, scores[runners] / boosts[won])
        to_beat = np.maximum(beaten, reserve)
        names = candidates.take(runners).keys_of(self._bundle.items)
        names = [name if score >= reserve else "" for name, score in zip(names, beaten.tolist(), strict=True)]
        sale = Sale(paid[won], prices(to_beat, paid[won], values[won]), to_beat, candidates.take(won[:0]), names)
        return Slate(candidates.take(won), values[won], scores[won], sale, cause=_unsold(paid))

    def _diverse(self, candidates: Candidates, values: np.ndarray, limit: int, rules: ActiveRules) -> Slate:
        scores = values if candidates.boosts is None else values * candidates.boosts
        relevance = scores / scores.max() if len(scores) else scores
        if rules.shapes_slate:
            return self._ruled_diverse(candidates, values, relevance, limit, rules)
        chosen = mmr(relevance, self._vectors(candidates), candidates.rows, limit, self._settings.diversity)
        return Slate(candidates.take(chosen.order), values[chosen.order], chosen.score)

    def _ruled_diverse(
        self, candidates: Candidates, values: np.ndarray, relevance: np.ndarray, limit: int, rules: ActiveRules
    ) -> Slate:
        """Pinned items aside, which have their relevance as score and make no other one less diverse."""
        room, pinned = self._room(candidates, rules), pinned_places(candidates, limit)
        for place in pinned:
            room.take(place)
        free = np.setdiff1d(np.arange(len(candidates)), pinned)
        free = free[~room.closed(free)]

        def closed_by(taken: int) -> np.ndarray:
            room.take(int(free[taken]))
            return room.closed(free)

        chosen = mmr(relevance[free], self._vectors(candidates.take(free)), candidates.rows[free],
                     limit - len(pinned), self._settings.diversity, closed_by)
        scores = relevance.astype(np.float64)
        scores[free[chosen.order]] = chosen.score
        order = with_pinned([(place, NOBODY) for place in free[chosen.order].tolist()], pinned, candidates).order
        return Slate(candidates.take(order), values[order], scores[order])

    def _vectors(self, candidates: Candidates) -> np.ndarray:
        return candidates.vectors_of(self._bundle.item_vectors.__getitem__)


def _unsold(paid: np.ndarray) -> str:
    """What the stage says of candidates without a bid."""
    unsold = int(np.count_nonzero(~(paid > 0)))
    return f"{unsold} of {len(paid)} candidates have no bid and are not sold" if unsold else ""


def slate_items(slate: Slate, reasons: Sequence[list[Reason]], known: FeatureStore) -> list[RankedItem]:
    """In the slate's order; `known` are the bundle's items."""
    candidates = slate.candidates
    keys = candidates.keys_of(known)
    sold = [None] * len(candidates) if slate.sale is None else _sold(slate.sale, keys, known)
    stages = [dict(zip(candidates.scores, one, strict=True))
              for one in zip(*(values.tolist() for values in candidates.scores.values()), strict=True)]
    columns = zip(keys, slate.probability.tolist(), slate.score.tolist(), sold, candidates.channels.tolist(),
                  stages or [{} for _ in keys], reasons, strict=True)
    return [
        RankedItem(item=key, probability=probability, score=score, sold=sale, channel=CHANNELS[channel],
                   stage_scores=stage_scores, reasons=why)
        for key, probability, score, sale, channel, stage_scores, why in columns
    ]


def _sold(sale: Sale, keys: list[str], known: FeatureStore) -> list[Sold]:
    next_ = sale.runners or [*keys[1:], *sale.behind.keys_of(known), ""]
    return [*map(Sold, sale.bid.tolist(), sale.price.tolist(), next_, sale.to_beat.tolist())]
