"""Click probabilities of candidates that no scorer has seen, for when pre-ranking had no time or failed.

    log-odds = a (u . v) / temperature + b

The line through what the pre-ranker, calibrated, says of the candidates of some users of the bundle; it never falls.
Without a user's vector all candidates have the mean of those log-odds, and stay in the order in which they came.
"""

from __future__ import annotations

import numpy as np
import torch

from models.evaluation.calibration import Calibration
from models.inference.tower_vectors import UserTower
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures
from serving.stages.prerank_scorers import Scorer
from serving.stages.retrieval import RetrievalStage

USERS = 8
SMALLEST_SLOPE = 1e-6


class TowerProbability:
    """`line` maps inner products to probabilities; `mean` is for candidates without one."""

    def __init__(self, line: Calibration, mean: float) -> None:
        self._line, self._mean = line, mean

    def of(self, candidates: Candidates) -> np.ndarray:
        """[K] float64."""
        if "retrieve" not in candidates.scores:
            return np.full(len(candidates), self._mean)
        return self._line.apply(candidates.scores["retrieve"])


@torch.inference_mode()
def fitted(
    bundle: LoadedBundle, features: RequestFeatures, retrieval: RetrievalStage, scorer: Scorer
) -> TowerProbability:
    """To the first users of the bundle, or to somebody unknown where it has none."""
    users = [bundle.users.key(row) for row in range(min(USERS, len(bundle.users)))] or ["nobody"]
    tower, products, log_odds = UserTower(bundle.towers), [], []
    for user in users:
        query = RankQuery(user=user, limit=1)
        requester = features.requester(query)
        vector = tower(requester.inputs)
        found = retrieval.run(query, requester, vector, by_value=False).candidates
        score = scorer.prepare(found, requester, vector)
        chances = scorer.calibration.apply(score(slice(0, len(found))))
        products.append(found.scores["retrieve"])
        log_odds.append(np.log(chances) - np.log1p(-chances))
    x, y = np.concatenate(products).astype(np.float64), np.concatenate(log_odds)
    if not len(x):
        return TowerProbability(Calibration(np.zeros(1), np.zeros(1), 1.0), 0.5)
    spread, middle = float(x.var()), float(y.mean())
    slope = max(float(((x - x.mean()) * (y - middle)).mean()) / spread if spread > 0 else 0.0, SMALLEST_SLOPE)
    return TowerProbability(Calibration(np.array([x.mean()]), np.array([middle]), slope),
                            float(1 / (1 + np.exp(-middle))))
