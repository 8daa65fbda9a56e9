"""What the retrieval stage returns to past requests, with the ranker's logits: the set a pre-ranker is trained on.

Unexposed candidates are in it, as they will be in serving. Requests of the test window know nothing of its labels.
"""

from __future__ import annotations

import numpy as np
import torch

from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from models.inference import split_ranker
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.past_requests import PastRequest
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures, block
from serving.stages.retrieval import RetrievalStage

ANYBODY = RankQuery(user="", limit=1)


def items_of(bundle: LoadedBundle) -> CandidateItems:
    """The bundle's item table and bids."""
    bids = np.ones(len(bundle.items) + 1, dtype=np.float32)
    if bundle.bids is not None:
        bids[:-1] = bundle.bids
    return CandidateItems(np.asarray(bundle.items.ids), np.asarray(bundle.items.dense), bids)


@torch.inference_mode()
def retrieve(
    bundle: LoadedBundle, requests: list[PastRequest], rng: np.random.Generator, length: int | None = None
) -> CandidateLists:
    """Candidates of every request; `length` keeps so many of each, drawn uniformly."""
    features, stage, ranker = RequestFeatures(bundle), RetrievalStage(bundle), split_ranker.of(bundle.ranker)
    width = min(length or bundle.settings.retrieve.candidates, bundle.settings.retrieve.candidates)
    empty = features.candidate_inputs(np.empty(0, dtype=np.int64), features.missing_request.ids)
    items = bundle.items
    pairs = [empty.ids.shape[1] - items.ids.shape[1], empty.dense.shape[1] - items.dense.shape[1]]
    count = len(requests)
    lists = CandidateLists(
        request_ids=np.concatenate([r.requester.inputs.ids for r in requests]),
        request_dense=np.concatenate([r.requester.inputs.dense for r in requests]),
        rows=np.full((count, width), -1, dtype=np.int32), pair_ids=np.zeros((count, width, pairs[0]), dtype=np.int32),
        pair_dense=np.zeros((count, width, pairs[1]), dtype=np.float32),
        teacher=np.zeros((count, width), dtype=np.float32), tower=np.zeros((count, width), dtype=np.float32),
        clicked=np.zeros((count, width), dtype=bool), uniform=np.array([r.uniform for r in requests]),
    )
    for number, request in enumerate(requests):
        asked_by = block(request.requester.inputs)
        vector = bundle.towers.user_vector(asked_by)
        candidates = stage.run(ANYBODY, request.requester, vector[0].numpy(), bundle.settings.auction).candidates
        if width < len(candidates):
            candidates = candidates.take(np.sort(rng.permutation(len(candidates))[:width]))
        inputs = features.candidate_inputs(candidates.rows, request.requester.inputs.ids)
        k = len(candidates)
        lists.rows[number, :k] = candidates.rows
        lists.pair_ids[number, :k] = inputs.ids[:, items.ids.shape[1] :]
        lists.pair_dense[number, :k] = inputs.dense[:, items.dense.shape[1] :]
        lists.teacher[number, :k] = ranker.logits(ranker.begin(request.requester.inputs), inputs)
        lists.tower[number, :k] = candidates.scores["retrieve"]
        lists.clicked[number, :k] = candidates.rows == request.clicked
    return lists
