"""How many clicks survive each stage before the ranker: retrieval by the two towers, then the pre-ranker.

A click survives when its item is among the best k of the whole catalogue for its user and context. The catalogue is
every known item shown in the given windows, with its features as last shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contracts.features.feature_spec import UNKNOWN
from models.examples.batches import ExampleSet, FeatureBlock
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower

CLICKS = 2000
BATCH = 65_536


class Catalogue(NamedTuple):
    """ids [N] ascending; vectors [N, d]; impressions [N]."""

    ids: Tensor
    vectors: Tensor
    impressions: Tensor


class Clicks(NamedTuple):
    """users [C, d]; place [C]: index of the clicked item in the catalogue."""

    users: Tensor
    place: Tensor


@torch.inference_mode()
def catalogue(two_tower: TwoTower, windows: Iterable[ExampleSet]) -> Catalogue:
    """Windows in time order. Padding and unknown items are left out."""
    rows = two_tower.slot.size if two_tower.slot else 0
    ids = torch.zeros(rows, two_tower.item_id_columns, dtype=torch.int32)
    dense = torch.zeros(rows, two_tower.item_dense_columns)
    impressions = torch.zeros(rows, dtype=torch.int64)
    for window in windows:
        for batch in window.batches(BATCH):
            item = two_tower.item_ids(batch.candidate)
            ids[item] = batch.candidate.ids[:, : ids.shape[1]]
            dense[item] = batch.candidate.dense[:, : dense.shape[1]]
            impressions += torch.bincount(item, minlength=rows)
    known = torch.arange(rows)[(impressions > 0) & (torch.arange(rows) > UNKNOWN)]
    return Catalogue(known, two_tower.item_vector(FeatureBlock(ids[known], dense[known])), impressions[known])


@torch.inference_mode()
def clicks(two_tower: TwoTower, items: Catalogue, window: ExampleSet, limit: int = CLICKS) -> Clicks:
    """The first `limit` clicks of the window, in file order, on items of the catalogue."""
    users, places, count = [], [], 0
    for batch in window.batches(BATCH):
        batch = batch.take(torch.nonzero(batch.label > 0).squeeze(1))
        item = two_tower.item_ids(batch.candidate)
        place = torch.searchsorted(items.ids, item).clamp(max=len(items.ids) - 1)
        known = items.ids[place] == item
        users.append(two_tower.user_vector(FeatureBlock(*(part[known] for part in batch.request))))
        places.append(place[known])
        count += int(known.sum())
        if count >= limit:
            break
    return Clicks(torch.cat(users)[:limit], torch.cat(places)[:limit])


@torch.inference_mode()
def tower_recall(items: Catalogue, clicked: Clicks, ks: Iterable[int]) -> dict[int, dict[str, float]]:
    """k -> share of the clicks whose item is among the k best by inner product, and among the k most shown."""
    scores = clicked.users @ items.vectors.T
    of_clicked = scores.gather(1, clicked.place[:, None])
    rank = (scores > of_clicked).sum(dim=1)
    popular = (items.impressions[None] > items.impressions[clicked.place][:, None]).sum(dim=1)
    return {k: {"two_tower": _share(rank < k), "popularity": _share(popular < k)} for k in ks}


@torch.inference_mode()
def pre_rank_recall(
    pre_ranker: PreRanker, items: Catalogue, clicked: Clicks, candidates: int, keep: int
) -> dict[str, float]:
    """Share of the clicks retrieved among `candidates`, and kept by the pre-ranker among its best `keep` of those."""
    size = min(candidates, len(items.ids))
    retrieved, kept = [], []
    for user, place in zip(clicked.users, clicked.place, strict=True):
        nearest = (items.vectors @ user).topk(size).indices
        best = nearest[pre_ranker(user[None], items.vectors[nearest]).topk(min(keep, size)).indices]
        retrieved.append(bool((nearest == place).any()))
        kept.append(bool((best == place).any()))
    return {"retrieved": float(np.mean(retrieved)), "kept": float(np.mean(kept))}


def _share(hits: Tensor) -> float:
    return float(hits.double().mean())
