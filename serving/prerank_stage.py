"""Pre-ranking: a small network over the towers' vectors orders every retrieved candidate; the best `prerank.keep` stay.

Its first chunk is scored however late it is (about a fifth of a millisecond): every answer then rests on a prediction.
The objective is the slate's: bid x calibrated probability, the expected revenue, where an auction follows; the logit
otherwise.
"""

from __future__ import annotations

import numpy as np
import torch

from serving.auction import expected_revenue
from serving.candidates import Candidates, best_first
from serving.deadline import Deadline
from serving.loaded_bundle import LoadedBundle
from serving.scoring_stage import Stage, cut_status, score_in_chunks

CHUNK = 500
NAME = "prerank"


class PrerankStage:
    def __init__(self, bundle: LoadedBundle) -> None:
        self._bundle = bundle
        self._item_vectors = np.asarray(bundle.item_vectors)
        self._bids = None if bundle.bids is None else np.asarray(bundle.bids)
        self._keep = bundle.settings.prerank.keep

    def run(
        self, candidates: Candidates, user_vector: torch.Tensor, by_value: bool, limit: int, deadline: Deadline
    ) -> Stage:
        """`user_vector` [1, d]. The answer is best first."""
        vectors = torch.from_numpy(self._item_vectors.take(candidates.rows, axis=0))
        network = self._bundle.pre_ranker
        logits = score_in_chunks(
            len(candidates), max(CHUNK, limit), deadline, lambda part: network(user_vector, vectors[part])
        )
        scored = candidates.take(slice(len(logits))).scored(NAME, logits)
        objective = self._objective(logits, scored.rows, by_value)
        kept = scored.take(best_first(objective, scored.rows, self._keep))
        return Stage(kept, *cut_status(len(scored), len(candidates)))

    def _objective(self, logits: np.ndarray, rows: np.ndarray, by_value: bool) -> np.ndarray:
        if not by_value or self._bids is None:
            return logits
        return expected_revenue(self._bids[rows], self._bundle.prerank_calibration.apply(logits))
