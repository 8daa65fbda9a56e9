"""Ranking: the full network over user, context, item and cross inputs, then the calibration.

The requester's block goes in once (batch 1); the candidates' block is one `take` from the item table and the crosses.
What items add to the first layer is read from the bundle's table where it has one (models/inference/item_part.py), and
put right where their inputs are live ones.
"""

from __future__ import annotations

import numpy as np

from contracts.features.encoding import Encoded
from models.inference import split_ranker
from models.inference.item_part import ChangedColumns
from models.inference.split_din import SplitDin
from models.inference.split_ranker import Begun, SplitDnn
from serving.bundle.best_first import best_first
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline
from serving.request.given_items import GivenItems
from serving.request.request_features import Requester, RequestFeatures
from serving.stages.auction import expected_revenue
from serving.stages.scoring_stage import Stage, cut_status, score_in_chunks

CHUNK = 50
NAME = "rank"


class RankStage:
    """The bundle's ranker, in the form in which it serves, and its calibration; `features` are of the same bundle."""

    def __init__(self, bundle: LoadedBundle, features: RequestFeatures) -> None:
        self._calibration = bundle.calibration
        self.ranker = split_ranker.of(bundle.ranker, bundle.spec.id_width("item"))
        known = bundle.rank_table if bundle.rank_table and bundle.rank_table.ranker is bundle.ranker else None
        self._table = None if known is None else np.asarray(known.rows)
        self._features = features
        self._moved = self._changed_columns(bundle)
        self._bids = None if bundle.bids is None else np.asarray(bundle.bids)
        self._reads_numbers = self._table is None or self._moved is not None or self.ranker.reads_numbers
        self._last: tuple[Requester, Begun] | None = None

    def begun(self, requester: Requester) -> Begun:
        """The requester's half, which whoever explains a ranking takes over from it: that of the last one is kept."""
        last = self._last
        if last is None or last[0] is not requester:
            self._last = last = requester, self.ranker.begin(requester.inputs)
        return last[1]

    def item_part(self, rows: np.ndarray, given: GivenItems | None, candidate: Encoded) -> np.ndarray | None:
        """What the items of `candidate` add to the first layer, [K, H]; None where the bundle does not know it of all
        of them."""
        if self._table is None or given is not None:
            return None
        found = self._table.take(rows, axis=0)
        if self._moved is not None:
            self._moved.add(found, self._features.stored_items(rows), candidate)
        return found

    def _changed_columns(self, bundle: LoadedBundle) -> ChangedColumns | None:
        """None where no input is live, and of a network that reads no table."""
        ranker = self.ranker
        if self._table is None or not bundle.live or not isinstance(ranker, SplitDnn | SplitDin):
            return None
        ids, dense = (np.concatenate([getattr(live, part) for live in bundle.live]) for part in ("ids", "dense"))
        return ChangedColumns(ranker.inputs, ranker.mlp, ids, dense)

    def run(
        self, candidates: Candidates, requester: Requester, by_value: bool, limit: int, deadline: Deadline
    ) -> Stage:
        """Adds calibrated probabilities under "rank"; best first by bid x probability where `by_value`, by probability
        otherwise."""
        candidate = self._features.candidate_inputs(
            candidates.rows, requester.inputs.ids, candidates.given,
            numbers=self._reads_numbers or candidates.given is not None)
        begun = self.begun(requester)

        def score(part: slice) -> np.ndarray:
            block = Encoded(candidate.ids[part], candidate.dense[part])
            return self.ranker.logits(begun, block, self.item_part(candidates.rows[part], candidates.given, block))

        logits = score_in_chunks(len(candidates), max(CHUNK, limit), deadline, score)
        probabilities = self._calibration.apply(logits)
        scored = candidates.first(len(logits)).scored(NAME, probabilities)
        bids = scored.bids_of(self._bids) if by_value and self._bids is not None else None
        objective = probabilities if bids is None else expected_revenue(bids, probabilities)
        ordered = scored.take(best_first(scored.weighed(objective), scored.rows, len(scored)))
        return Stage(ordered, *cut_status(len(scored), len(candidates)), scored=len(scored))
