"""Re-ranking: from ranked candidates to the slate.

    auction   generalised second price on eCPM; also when time is short, because an ad without a price cannot be shown;
              an item without a bid is not sold, and the stage's report says how many there were
    mmr       diversity; relevance is the probability over the largest one, so that it lies on the scale of a cosine
    none      by probability: as configured, as the request asks, or the organic order of a stage without time
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from models.evaluation.calibration import Calibration
from serving.bundle.best_first import best_first
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.query import Fallback, StageStatus
from serving.stages.auction import second_price
from serving.stages.diversity import mmr
from serving.stages.tower_probability import TowerProbability

NO_TIME = "the deadline left no time for it"
Kind = Literal["auction", "mmr", "none"]


@dataclass(frozen=True)
class Sale:
    """Of n items: `bid` and `price` per click, and the eCPM `to_beat`, each [n]; `behind` holds the candidate after the
    last one, where there is one."""

    bid: np.ndarray
    price: np.ndarray
    to_beat: np.ndarray
    behind: Candidates


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
    return candidates.rows if candidates.scores else np.arange(len(candidates))


class RerankStage:
    """`kind` is what the settings name; "auto" is an auction where items have bids, else diversity."""

    def __init__(self, bundle: LoadedBundle, towers: TowerProbability) -> None:
        self._bundle, self._towers = bundle, towers
        self._settings, self._bids = bundle.settings.rerank, None if bundle.bids is None else np.asarray(bundle.bids)
        automatic: Kind = "mmr" if bundle.bids is None else "auction"
        self.kind: Kind = automatic if self._settings.kind == "auto" else self._settings.kind

    def run(self, candidates: Candidates, limit: int, wanted: bool, deadline: Deadline) -> Slate:
        """At most `limit` items, best first. `wanted` False orders by probability alone, as does a lack of time."""
        values = self._probabilities(candidates)
        if not wanted or self.kind == "none":
            cause = "the bundle's settings ask for none" if wanted else "the request asked for none"
            return self._plain(candidates, values, limit, cause)
        if self.kind == "auction":
            return self._auction(candidates, values, limit)
        if deadline.expired:
            return self.organic(candidates, limit, NO_TIME)
        return self._diverse(candidates, values, limit)

    def organic(self, candidates: Candidates, limit: int, cause: str) -> Slate:
        """By probability alone and without prices, for when nothing else can be had."""
        plain = self._plain(candidates, self._probabilities(candidates), limit, cause)
        return replace(plain, status=StageStatus.DEGRADED, fallback=Fallback.ORGANIC_ORDER)

    def _probabilities(self, candidates: Candidates) -> np.ndarray:
        return probabilities(candidates, self._bundle.prerank_calibration, self._towers)

    def _plain(self, candidates: Candidates, values: np.ndarray, limit: int, cause: str) -> Slate:
        order = best_first(values, ties(candidates), limit)
        return Slate(candidates.take(order), values[order], values[order], None, StageStatus.SKIPPED, cause)

    def _auction(self, candidates: Candidates, values: np.ndarray, limit: int) -> Slate:
        assert self._bids is not None, "an auction bundle without bids"  # `kind` is "auction" only with bids
        paid = candidates.bids_of(self._bids)
        won = second_price(paid, values, ties(candidates), limit, self._settings.reserve_price)
        sale = Sale(paid[won.order], won.price, won.to_beat, candidates.take(won.behind))
        unsold = int(np.count_nonzero(~(paid > 0)))
        cause = f"{unsold} of {len(candidates)} candidates have no bid and are not sold" if unsold else ""
        return Slate(candidates.take(won.order), values[won.order], won.score, sale, cause=cause)

    def _diverse(self, candidates: Candidates, values: np.ndarray, limit: int) -> Slate:
        relevance = values / values.max() if len(values) else values
        vectors = candidates.vectors_of(self._bundle.item_vectors.__getitem__)
        chosen = mmr(relevance, vectors, candidates.rows, limit, self._settings.diversity)
        return Slate(candidates.take(chosen.order), values[chosen.order], chosen.score)
