"""Click probabilities of given items for one requester: the ranker and its calibration alone, nothing cut or sold.

Items that the bundle does not know are scored from the raw features that the request gives for them, and are left
without a probability where it gives none. All or nothing: a request that runs out of time, fails.
"""

from __future__ import annotations

import numpy as np
import torch

from contracts.features.encoding import Encoded
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.given_items import GivenItems, ItemDescriber
from serving.request.query import ScoreAnswer, ScoreQuery
from serving.request.request_features import RequestFeatures
from serving.stages.rank import RankStage

CHUNK = 256


class ScoreRun:
    """`complete` is called once; there is nothing to answer with before it is done. What a run takes depends on its
    items, so that no `least` time is told."""

    partial_ok, least = False, 0.0

    @property
    def brief(self) -> bool:
        """One chunk, of which nothing has to be encoded."""
        return len(self._query.items) <= CHUNK and not self._query.features

    def __init__(
        self, bundle: LoadedBundle, features: RequestFeatures, describer: ItemDescriber, rank: RankStage,
        query: ScoreQuery, deadline: Deadline,
    ) -> None:
        self._bundle, self._features, self._describer, self._rank = bundle, features, describer, rank
        self._query, self.deadline = query, deadline

    def simplify(self, level: int) -> None:
        """All or nothing: the engine does not ask where `partial_ok` is false."""

    @torch.inference_mode()
    def complete(self) -> ScoreAnswer:
        """Raises RequestError, DeadlineExpired, Cancelled."""
        query, bundle = self._query, self._bundle
        requester = self._features.requester(query)
        rows, given = self._describer.rows(query.items, query.features)
        items = self._features.candidate_inputs(rows, requester.inputs.ids, given)
        found = bundle.calibration.apply(self._logits(requester.inputs, items, rows, given))
        nothing = np.flatnonzero(rows < 0)
        found[nothing] = np.nan
        unknown = [query.items[place] for place in nothing.tolist()]
        return ScoreAnswer(found.tolist(), unknown, bundle.version, requester.known)

    def salvage(self) -> ScoreAnswer:
        """There is none; the engine does not ask where `partial_ok` is false."""
        raise DeadlineExpired("the items are not scored yet")

    def _logits(self, request: Encoded, items: Encoded, rows: np.ndarray, given: GivenItems | None) -> np.ndarray:
        """The deadline is asked between chunks."""
        ranker, parts = self._rank.ranker, list[np.ndarray]()
        begun = ranker.begin(request)
        for start in range(0, len(items.ids), CHUNK):
            self.deadline.checkpoint()
            if start and self.deadline.expired:
                raise DeadlineExpired(f"the deadline passed after {start} of {len(items.ids)} items; send fewer, or "
                                      "more time")
            span = slice(start, start + CHUNK)
            block = Encoded(items.ids[span], items.dense[span])
            parts.append(ranker.logits(begun, block, self._rank.item_part(rows[span], given, block)))
        return np.concatenate(parts)
