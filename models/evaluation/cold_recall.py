"""What finds more of the clicks of those of whom nothing is known: popularity, or the tower of their context first.

Clicks of a window are asked for without their users: of users whom training has not seen where there are LEAST of them,
else of all. A click is found when its item is among `k` candidates,

    popularity   the k items of the highest click rate
    two_tower    the q = k quota / candidates nearest to the context's vector, then the most popular others

with k a tenth of the catalogue, `candidates` at most, since all of a small catalogue are found by anything. The tower
is better where it finds more by one standard error of the paired difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contracts.artifacts import LABEL, USER
from contracts.summaries.train import ColdRecall
from models.evaluation.popularity_order import popularity_order
from models.evaluation.retrieval_recall import BATCH, Catalogue
from models.examples.batches import ExampleSet, FeatureBlock
from models.examples.nobody import Nobody
from models.networks.two_tower import TwoTower

LEAST, CLICKS, BLOCK, SMALLER = 100, 1000, 64, 10


class Asked(NamedTuple):
    """users [C, d]; place [C] of the clicked item in the catalogue."""

    users: Tensor
    place: Tensor
    new_users: bool


def cold_recall(
    two_tower: TwoTower, items: Catalogue, train: ExampleSet, window: ExampleSet, nobody: Nobody, candidates: int,
    quota: int,
) -> ColdRecall | None:
    """None where the window has no clicks on known items."""
    asked = _asked(two_tower, items, train, window, nobody)
    if not len(asked.place):
        return None
    k = min(candidates, max(len(items.ids) // SMALLER, 1))
    popular = _popular_places(two_tower, items, train)
    by_popularity = popular[asked.place] < k
    by_tower = _with_tower(items, asked, popular, k, max(k * quota // candidates, 1))
    more = float((by_tower.double() - by_popularity.double()).sum())
    error = float((by_tower != by_popularity).sum()) ** 0.5
    return ColdRecall(clicks=len(asked.place), new_users=asked.new_users, k=k,
                      two_tower=float(by_tower.double().mean()), popularity=float(by_popularity.double().mean()),
                      better="two_tower" if more > error else "popularity")


def _asked(
    two_tower: TwoTower, items: Catalogue, train: ExampleSet, window: ExampleSet, nobody: Nobody
) -> Asked:
    clicked = window.column(LABEL) > 0
    trained = np.unique(np.concatenate([np.unique(users) for (users,) in train.parts(USER)]))
    new = clicked & ~np.isin(window.column(USER), trained)
    of_new = int(new.sum()) >= LEAST
    chosen, users, places, start = new if of_new else clicked, [], [], 0
    for batch in window.batches(BATCH):
        rows = torch.from_numpy(chosen[start:start + len(batch.label)])
        start += len(batch.label)
        batch = batch.take(torch.nonzero(rows).squeeze(1))
        item = two_tower.item_ids(batch.candidate)
        place = torch.searchsorted(items.ids, item).clamp(max=len(items.ids) - 1)
        known = items.ids[place] == item
        request = nobody.without_users(batch.request, torch.ones(len(known), dtype=torch.bool))
        users.append(two_tower.user_vector(FeatureBlock(*(part[known] for part in request))))
        places.append(place[known])
    return Asked(torch.cat(users)[:CLICKS], torch.cat(places)[:CLICKS], of_new)


def _popular_places(two_tower: TwoTower, items: Catalogue, train: ExampleSet) -> Tensor:
    """int64 [N]: the place of each item in the order of popularity, 0 for the first; of a log of positives alone every
    item counts as shown with every take."""
    shown, clicks = (torch.zeros(int(items.ids.max()) + 1, dtype=torch.float64) for _ in range(2))
    for batch in train.batches(BATCH):
        item = two_tower.item_ids(batch.candidate)
        within = item < len(shown)
        shown += torch.bincount(item[within], minlength=len(shown))
        clicks += torch.bincount(item[within], weights=batch.label[within].double(), minlength=len(shown))
    if train.drawn:
        shown = clicks.sum().expand_as(shown).clone()
    order = torch.from_numpy(popularity_order(shown[items.ids].numpy(), clicks[items.ids].numpy()).astype(np.int64))
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order))
    return places


def _with_tower(items: Catalogue, asked: Asked, popular: Tensor, k: int, quota: int) -> Tensor:
    """bool [C]."""
    found = []
    for users, place in zip(asked.users.split(BLOCK), asked.place.split(BLOCK), strict=True):
        near = (users @ items.vectors.T).topk(min(quota, len(items.vectors))).indices
        own = popular[place][:, None]
        left = own[:, 0] - (popular[near] < own).sum(1)  # of those whom the tower has not brought
        found.append((near == place[:, None]).any(1) | (left < k - near.shape[1]))
    return torch.cat(found)
