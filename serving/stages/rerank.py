"""Re-ranking: from ranked candidates to the slate.

    auction   generalised second price on eCPM; also when time is short, because an ad without a price cannot be shown
    mmr       diversity; relevance is the probability over the largest one, so that it lies on the scale of a cosine
    none      by probability: as configured, as the request asks, or for lack of time
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from models.evaluation.calibration import Calibration
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates, best_first
from serving.request.deadline import Deadline
from serving.request.query import StageStatus
from serving.stages.auction import second_price
from serving.stages.diversity import mmr

Kind = Literal["auction", "mmr", "none"]


@dataclass(frozen=True)
class Slate:
    """What a request is answered with. `probability`, `score` (what it is ordered by), `price` per click: [n] each."""

    candidates: Candidates
    probability: np.ndarray
    score: np.ndarray
    price: np.ndarray | None = None
    status: StageStatus = StageStatus.COMPLETE
    cause: str = ""


def probabilities(candidates: Candidates, pre_ranking: Calibration) -> np.ndarray:
    """The ranker's, or where it did not run the pre-ranker's; both calibrated, since prices rest on them."""
    if "rank" in candidates.scores:
        return candidates.scores["rank"]
    return pre_ranking.apply(candidates.scores["prerank"])


class RerankStage:
    """`kind` is what the settings name; "auto" is an auction where items have bids, else diversity."""

    def __init__(self, bundle: LoadedBundle) -> None:
        self._bundle = bundle
        self._settings = bundle.settings.rerank
        automatic: Kind = "mmr" if bundle.bids is None else "auction"
        self.kind: Kind = automatic if self._settings.kind == "auto" else self._settings.kind

    def run(self, candidates: Candidates, limit: int, wanted: bool, deadline: Deadline) -> Slate:
        """At most `limit` items, best first. `wanted` False orders by probability alone, as does a lack of time."""
        values = probabilities(candidates, self._bundle.prerank_calibration)
        if not wanted or self.kind == "none":
            cause = "the bundle's settings ask for none" if wanted else "the request asked for none"
            return self._plain(candidates, values, limit, cause)
        if self.kind == "auction":
            return self._auction(candidates, values, limit)
        if deadline.expired:
            return self._plain(candidates, values, limit, "the deadline passed before it began")
        return self._diverse(candidates, values, limit)

    def _plain(self, candidates: Candidates, values: np.ndarray, limit: int, cause: str) -> Slate:
        order = best_first(values, candidates.rows, limit)
        return Slate(candidates.take(order), values[order], values[order], None, StageStatus.SKIPPED, cause)

    def _auction(self, candidates: Candidates, values: np.ndarray, limit: int) -> Slate:
        bids = self._bundle.bids
        assert bids is not None, "an auction bundle without bids"  # `kind` is "auction" only with bids
        won = second_price(bids[candidates.rows], values, candidates.rows, limit, self._settings.reserve_price)
        return Slate(candidates.take(won.order), values[won.order], won.score, won.price)

    def _diverse(self, candidates: Candidates, values: np.ndarray, limit: int) -> Slate:
        relevance = values / values.max() if len(values) else values
        vectors = self._bundle.item_vectors[candidates.rows]
        chosen = mmr(relevance, vectors, candidates.rows, limit, self._settings.diversity)
        return Slate(candidates.take(chosen.order), values[chosen.order], chosen.score)
