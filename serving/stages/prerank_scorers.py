"""The scores that may cut the retrieved candidates, by `prerank.kind`; each returns logits in chunks.

    fscd          per request: one user part, one look-up per candidate in the items' part, the kept crosses
                  (serving/request/request_crosses.py); then the rest of the MLP (models/preranking/fscd_scorer.py)
    towers        an MLP over the two towers' vectors
    dot_product   their inner product over the temperature, which retrieval has computed
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import torch

from models.evaluation.calibration import Calibration
from models.inference.tower_vectors import FoldedPreRanker
from models.preranking.fscd_scorer import FscdSplit
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.vector_rows import VectorRows
from serving.request.candidates import Candidates
from serving.request.request_crosses import RequestCrosses, narrowed
from serving.request.request_features import Requester, RequestFeatures, block

ScorePart = Callable[[slice], np.ndarray]


class Scorer(Protocol):
    """`calibration` turns its logits into click probabilities; `reads_towers` says whether it needs their vectors."""

    calibration: Calibration
    reads_towers: bool

    def prepare(self, candidates: Candidates, requester: Requester, user_vector: np.ndarray) -> ScorePart:
        """What scores a slice of the candidates: [k] logits. `user_vector` [d]."""
        ...


class DotProductScorer:
    """The inner product that retrieval has left under "retrieve", over the towers' temperature."""

    reads_towers = True

    def __init__(self, bundle: LoadedBundle, calibration: Calibration) -> None:
        self._temperature, self.calibration = bundle.settings.train.temperature, calibration

    def prepare(self, candidates: Candidates, requester: Requester, user_vector: np.ndarray) -> ScorePart:
        logits = candidates.scores["retrieve"] / self._temperature
        return lambda part: logits[part]


class TowersScorer:
    """An MLP over the requester's and each candidate's tower vector (models/networks/tower_pre_ranker.py)."""

    reads_towers = True

    def __init__(self, bundle: LoadedBundle) -> None:
        assert bundle.pre_ranker is not None
        self._item_vectors, self.calibration = VectorRows(bundle.item_vectors), bundle.prerank_calibration
        self._network = FoldedPreRanker(bundle.pre_ranker)

    def prepare(self, candidates: Candidates, requester: Requester, user_vector: np.ndarray) -> ScorePart:
        vectors = candidates.vectors
        if vectors is None:
            vectors = candidates.vectors_of(self._item_vectors.take)
        folded = self._network.matrix(user_vector)
        return lambda part: self._network.logits(folded, vectors[part])


class FscdScorer:
    """`item_part` [I, H] as computed at bundle time; None computes it for the candidates from their fields, as is done
    for a request that brings items of its own."""

    reads_towers = False

    def __init__(
        self, bundle: LoadedBundle, split: FscdSplit, item_part: np.ndarray | None, calibration: Calibration
    ) -> None:
        self.calibration, self._split = calibration, split
        self._item_part = None if item_part is None else np.asarray(item_part)
        self._items = RequestFeatures(narrowed(bundle, split.spec))
        self._crosses = RequestCrosses(bundle, split, grouped=item_part is not None)
        self._all_crosses, self._changed = RequestCrosses(bundle, split, grouped=False), bundle.changed

    def prepare(self, candidates: Candidates, requester: Requester, user_vector: np.ndarray) -> ScorePart:
        request, given = block(requester.inputs), candidates.given
        as_grouped = given is None and (self._changed is None or not self._changed.take(candidates.rows).any())
        known = self._crosses if as_grouped else self._all_crosses
        crosses = known.of(requester.inputs, self._split.user_part(request), given)

        def score(part: slice) -> np.ndarray:
            rows = candidates.rows[part]
            if self._item_part is not None and given is None:
                item = torch.from_numpy(self._item_part.take(rows, axis=0))
            else:
                read = self._items.candidate_inputs(rows, requester.inputs.ids, given)
                item = self._split.item_part(block(read))
            return self._split.logits(item.add_(crosses(rows))).numpy()

        return score


def configured_scorer(bundle: LoadedBundle) -> Scorer:
    """The scorer that `prerank.kind` of the bundle's settings names."""
    kind = bundle.settings.prerank.kind
    if kind == "fscd":
        assert bundle.fscd is not None
        return FscdScorer(bundle, bundle.fscd, bundle.item_part, bundle.prerank_calibration)
    return TowersScorer(bundle) if kind == "towers" else DotProductScorer(bundle, bundle.prerank_calibration)
