"""How many clicks survive each stage before the ranker: retrieval by the two towers, then the pre-ranker.

A click survives when its item is among the best k of the whole catalogue for its user and context. The catalogue is
every known item shown in the given windows, with its features as last shown. Scores are made in blocks of items, on the
device that is named: the whole matrix of 2000 clicks x 10 million items would take 80 GB. Every score is computed, so
that devices differ by rounding alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from models.examples.batches import ExampleSet, FeatureBlock
from models.examples.shown_items import shown_items
from models.networks.tower_pre_ranker import PreRanker
from models.networks.two_tower import TwoTower

CLICKS = 2000
BATCH = 65_536
CPU = torch.device("cpu")
BLOCK = 16_384  # items whose scores are there at once
USERS = 64  # whose best candidates are searched at once


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
def catalogue(two_tower: TwoTower, windows: Sequence[ExampleSet]) -> Catalogue:
    """Windows in time order. Padding and unknown items are left out."""
    ids, columns, impressions = shown_items(windows, two_tower.slot)
    parts = zip(*(part.split(BATCH) for part in columns), strict=True)
    return Catalogue(ids, torch.cat([two_tower.item_vector(FeatureBlock(*part)) for part in parts]), impressions)


@torch.inference_mode()
def clicks(two_tower: TwoTower, items: Catalogue, window: ExampleSet, limit: int = CLICKS) -> Clicks:
    """The first `limit` clicks of the window, in file order, on items of the catalogue."""
    users, places, count = [], [], 0
    for batch in window.batches(BATCH):
        batch = batch.take(torch.nonzero(batch.label > 0).squeeze(1))
        item = two_tower.item_ids(batch.candidate)
        place, known = torch.searchsorted(items.ids, item), torch.isin(item, items.ids)
        users.append(two_tower.user_vector(FeatureBlock(*(part[known] for part in batch.request))))
        places.append(place[known])
        count += int(known.sum())
        if count >= limit:
            break
    return Clicks(torch.cat(users)[:limit], torch.cat(places)[:limit])


@torch.inference_mode()
def tower_recall(
    items: Catalogue, clicked: Clicks, ks: Iterable[int], device: torch.device = CPU,
) -> dict[int, dict[str, float]]:
    """k -> share of the clicks whose item is among the k best by inner product, and among the k most shown.

    Clicks follow what was shown, which the towers correct for (log Q) and popularity lives on. So there are also shares
    of clicks weighted by 1 / impressions of their item: as if all items had been shown equally often.
    """
    rank = _ranks(items.vectors, Clicks(*(part.to(device) for part in clicked))).cpu()
    shown = items.impressions[clicked.place]
    popular = len(items.ids) - torch.searchsorted(items.impressions.sort().values, shown, right=True)
    alike = 1 / shown.double()
    return {k: {"two_tower": _share(rank < k), "popularity": _share(popular < k),
                "two_tower_if_shown_alike": _share(rank < k, alike),
                "popularity_if_shown_alike": _share(popular < k, alike)} for k in ks}


def _ranks(vectors: Tensor, clicked: Clicks) -> Tensor:
    """int64 [C]: how many of the items [N, d] score above the clicked one, on the device of the clicks."""
    rank = torch.zeros_like(clicked.place)
    of_clicked = _scores_of_clicked(vectors, clicked)
    for start in range(0, len(vectors), BLOCK):
        scores = clicked.users @ vectors[start : start + BLOCK].to(rank.device).T
        own = torch.nonzero((clicked.place >= start) & (clicked.place < start + BLOCK)).squeeze(1)
        scores[own, clicked.place[own] - start] = -torch.inf
        rank += (scores > of_clicked).sum(dim=1)
    return rank


def _scores_of_clicked(vectors: Tensor, clicked: Clicks) -> Tensor:
    """[C, 1], by the matrix product that scores the others, so that items of one vector have one score."""
    parts = [(users @ vectors[place.to(vectors.device)].to(users.device).T).diagonal() for users, place
             in zip(clicked.users.split(USERS), clicked.place.split(USERS), strict=True)]
    return torch.cat(parts)[:, None]


@torch.inference_mode()
def pre_rank_recall(
    pre_ranker: PreRanker, items: Catalogue, clicked: Clicks, candidates: int, keep: int, device: torch.device = CPU,
) -> dict[str, float]:
    """Share of the clicks retrieved among `candidates`, and kept by the pre-ranker among its best `keep` of those."""
    size = min(candidates, len(items.ids))
    retrieved, kept = [], []
    for users, places in zip(clicked.users.split(USERS), clicked.place.split(USERS), strict=True):
        found = nearest_items(items.vectors, users.to(device), size).cpu()
        for user, place, nearest in zip(users, places, found, strict=True):
            best = nearest[pre_ranker(user[None], items.vectors[nearest]).topk(min(keep, size)).indices]
            retrieved.append(bool((nearest == place).any()))
            kept.append(bool((best == place).any()))
    return {"retrieved": float(np.mean(retrieved)), "kept": float(np.mean(kept))}


def nearest_items(vectors: Tensor, users: Tensor, size: int) -> Tensor:
    """int64 [U, size]: places of the items [N, d] of largest inner product with each user [U, d], best first; on the
    users' device."""
    best = users.new_empty(len(users), 0)
    places = torch.empty_like(best, dtype=torch.int64)
    for start in range(0, len(vectors), BLOCK):
        scores = users @ vectors[start : start + BLOCK].to(users.device).T
        found = scores.topk(min(size, scores.shape[1]))
        best, places = torch.cat([best, found.values], 1), torch.cat([places, found.indices + start], 1)
        best, kept = best.topk(min(size, best.shape[1]))
        places = places.gather(1, kept)
    return places


def _share(hits: Tensor, weight: Tensor | None = None) -> float:
    return float(hits.double().mean() if weight is None else (hits * weight).sum() / weight.sum())
