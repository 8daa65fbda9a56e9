"""Pre-ranking: a cheap score (serving/stages/prerank_scorers.py) orders the retrieved candidates; `prerank.keep` stay.

Where time is short it scores in chunks of CHUNK, and stops between two.
The objective is the slate's: bid x calibrated probability, the expected revenue, where an auction follows; the logit
otherwise.
"""

from __future__ import annotations

import numpy as np

from serving.bundle.best_first import best_first
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.request_features import Requester
from serving.stages.auction import expected_revenue
from serving.stages.prerank_scorers import Scorer, configured_scorer
from serving.stages.scoring_stage import Stage, cut_status, score_in_chunks

CHUNK = 250
NAME = "prerank"
SMALLEST_BID = 1e-9  # an item that pays nothing comes last


class PrerankStage:
    """`chosen` scores instead of what the bundle's settings name."""

    def __init__(self, bundle: LoadedBundle, chosen: Scorer | None = None) -> None:
        self._scorer = configured_scorer(bundle) if chosen is None else chosen
        self._temperature = bundle.settings.train.temperature
        self._bids = None if bundle.bids is None else np.asarray(bundle.bids)
        self._keep = bundle.settings.prerank.keep

    @property
    def reads_towers(self) -> bool:
        """Whether `run` makes use of the user's vector."""
        return self._scorer.reads_towers

    def run(
        self, candidates: Candidates, requester: Requester, user_vector: np.ndarray, by_value: bool, limit: int,
        deadline: Deadline,
    ) -> Stage:
        """The best `prerank.keep` candidates, best first, with their logits under "prerank". `user_vector` [d]."""
        part = self._scorer.prepare(candidates, requester, user_vector)
        logits = score_in_chunks(len(candidates), max(CHUNK, limit), deadline, part)
        scored = candidates.first(len(logits)).scored(NAME, logits)
        objective = self.objective(logits, scored, by_value)
        kept = scored.take(best_first(scored.weighed(objective), scored.rows, self._keep))
        return Stage(kept, *cut_status(len(scored), len(candidates)), scored=len(scored))

    def logits(self, candidates: Candidates, requester: Requester, user_vector: np.ndarray) -> np.ndarray:
        """[K] of all the candidates, in their order."""
        return self._scorer.prepare(candidates, requester, user_vector)(slice(len(candidates)))

    def by_towers(self, candidates: Candidates, by_value: bool) -> Candidates:
        """The best `prerank.keep` by the inner product that retrieval has left, plus the temperature's share of
        ln(bid) where value counts, as in the search; without one the first that came."""
        if "retrieve" not in candidates.scores:
            return candidates.first(self._keep)
        scores = candidates.scores["retrieve"]
        if by_value and self._bids is not None:
            scores = scores + self._temperature * np.log(np.maximum(candidates.bids_of(self._bids), SMALLEST_BID))
        weighed = candidates.weighed_log(scores, self._temperature)
        return candidates.take(best_first(weighed, candidates.rows, self._keep))

    def objective(self, logits: np.ndarray, scored: Candidates, by_value: bool) -> np.ndarray:
        """What `run` orders by, before rules have weighed it."""
        if not by_value or self._bids is None:
            return logits if scored.boosts is None else self._scorer.calibration.apply(logits)
        return expected_revenue(scored.bids_of(self._bids), self._scorer.calibration.apply(logits))
