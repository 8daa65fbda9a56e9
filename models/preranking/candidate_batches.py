"""Candidate lists (OUT/candidates) as inputs of a network: a block is put together for the rows asked for alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contracts.bundle.candidate_lists import CandidateItems, CandidateLists
from models.examples.batches import FeatureBlock
from models.preranking.fscd import Fscd
from models.preranking.fscd_scorer import FscdSplit

REQUESTS_AT_ONCE = 16


class ListBatch(NamedTuple):
    """R requests, K candidates each: request of R rows, candidate of R K rows; teacher, valid [R, K]."""

    request: FeatureBlock
    candidate: FeatureBlock
    teacher: Tensor
    valid: Tensor


def batch(items: CandidateItems, lists: CandidateLists, requests: np.ndarray, places: np.ndarray | None = None
          ) -> ListBatch:
    """The given requests [r], with all their candidates or those at `places` [r, k]."""
    each = requests[:, None]
    chosen = np.arange(lists.rows.shape[1])[None] if places is None else places
    rows = lists.rows[each, chosen]
    ids = np.concatenate([items.ids[rows], lists.pair_ids[each, chosen]], axis=2)
    dense = np.concatenate([items.dense[rows], lists.pair_dense[each, chosen]], axis=2)
    flat = FeatureBlock(*(torch.from_numpy(part.reshape(rows.size, -1)) for part in (ids, dense)))
    request = FeatureBlock(*(torch.from_numpy(part[requests]) for part in (lists.request_ids, lists.request_dense)))
    return ListBatch(request, flat, torch.from_numpy(lists.teacher[each, chosen]), torch.from_numpy(rows >= 0))


def drawn(lists: CandidateLists, requests: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Places [r, count] of candidates, without repetition as far as a request has as many; padding comes last."""
    keys = rng.random((len(requests), lists.rows.shape[1]), dtype=np.float32) + (lists.rows[requests] < 0)
    count = min(count, keys.shape[1])
    return np.argpartition(keys, count - 1, axis=1)[:, :count]


@torch.inference_mode()
def score(network: Fscd, items: CandidateItems, lists: CandidateLists) -> np.ndarray:
    """Logits float32 [R, K] by the parts of models/preranking/fscd_scorer.py, as a server scores: what an item adds is
    computed once for all lists that it is in. Those of padding have no meaning."""
    split = FscdSplit(network.eval(), network.kept_fields)
    listed, places = np.unique(lists.rows, return_inverse=True)
    table = split.item_table(torch.from_numpy(items.ids[listed]), torch.from_numpy(items.dense[listed]))
    place = torch.from_numpy(places.reshape(lists.rows.shape))
    crosses, parts = split.crosses_part(), []
    for start in range(0, len(lists), REQUESTS_AT_ONCE):
        requests = np.arange(start, min(start + REQUESTS_AT_ONCE, len(lists)))
        rows = place[start : start + REQUESTS_AT_ONCE]
        request = FeatureBlock(*(torch.from_numpy(part[requests]) for part in (lists.request_ids, lists.request_dense)))
        hidden = table[rows] + split.user_part(request)[:, None]
        if crosses is not None:
            candidate, each = batch(items, lists, requests).candidate, request.ids.repeat_interleave(rows.shape[1], 0)
            hidden += crosses(candidate, each).view(hidden.shape)
        parts.append(split.logits(hidden.flatten(0, 1)).view(rows.shape).numpy())
    return np.concatenate(parts)
