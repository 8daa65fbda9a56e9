"""Click probabilities of given items for one requester: the ranker and its calibration alone, nothing cut or sold.

Items that the bundle does not know are scored from the raw features that the request gives for them, and are left
without a probability where it gives none. All or nothing: a request that runs out of time, fails.
"""

from __future__ import annotations

import numpy as np
import torch

from contracts.errors import DataError, RequestError
from contracts.features.encoding import Encoded
from models.inference.split_ranker import ServedRanker
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.query import RankQuery, ScoreAnswer, ScoreQuery
from serving.request.request_features import RequestFeatures, as_column

CHUNK = 256


class ScoreRun:
    """`complete` is called once; there is nothing to answer with before it is done."""

    partial_ok = False

    def __init__(
        self, bundle: LoadedBundle, features: RequestFeatures, ranker: ServedRanker, query: ScoreQuery,
        deadline: Deadline,
    ) -> None:
        self._bundle, self._features, self._ranker = bundle, features, ranker
        self._query, self.deadline = query, deadline

    @torch.inference_mode()
    def complete(self) -> ScoreAnswer:
        """Raises RequestError, DeadlineExpired, Cancelled."""
        query, bundle = self._query, self._bundle
        asker = RankQuery(query.user, 1, query.context, recent_items=query.recent_items)
        requester = self._features.requester(asker)
        rows = bundle.items.rows(query.items)
        items = self._features.candidate_inputs(rows, requester.inputs.ids)
        described = [place for place, item in enumerate(query.items) if rows[place] < 0 and item in query.features]
        self._describe(items, described, requester.inputs.ids)
        found = bundle.calibration.apply(self._logits(requester.inputs, items))
        nothing = [place for place in np.flatnonzero(rows < 0).tolist() if place not in set(described)]
        found[nothing] = np.nan
        unknown = [query.items[place] for place in nothing]
        return ScoreAnswer(found.tolist(), unknown, bundle.version, requester.known)

    def salvage(self) -> ScoreAnswer:
        """There is none; the engine does not ask where `partial_ok` is false."""
        raise DeadlineExpired("the items are not scored yet")

    def _describe(self, items: Encoded, places: list[int], request_ids: np.ndarray) -> None:
        """Writes the encoded features of unknown items over what stands for them."""
        if not places:
            return
        given = [self._query.features[self._query.items[place]] for place in places]
        columns = {field.name: [as_column(field, one.get(field.name)) for one in given]
                   for field in self._bundle.spec.of_side("item")}
        try:
            encoded = self._bundle.encoder.encode(columns, "item")
        except (DataError, TypeError, ValueError) as error:
            raise RequestError("features", f"cannot be encoded: {error}") from None
        items.ids[places, : encoded.ids.shape[1]], items.dense[places] = encoded.ids, encoded.dense
        self._features.write_crosses(items.ids, request_ids)

    def _logits(self, request: Encoded, items: Encoded) -> np.ndarray:
        """The deadline is asked between chunks."""
        begun, parts = self._ranker.begin(request), []
        for start in range(0, len(items.ids), CHUNK):
            self.deadline.checkpoint()
            if start and self.deadline.expired:
                raise DeadlineExpired(f"the deadline passed after {start} of {len(items.ids)} items; send fewer, or "
                                      "more time")
            span = slice(start, start + CHUNK)
            parts.append(self._ranker.logits(begun, Encoded(items.ids[span], items.dense[span])))
        return np.concatenate(parts)
