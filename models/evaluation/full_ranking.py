"""Retrieval judged by the whole catalogue, never by a sample of it (Krichene & Rendle, KDD 2020).

    Recall@k   = targets among the k best / targets
    NDCG@k     = sum over targets among the k best of 1 / log2(rank + 1), over the same sum of a perfect list
    MRR        = 1 / rank of the best target
    coverage@k = items in at least one list of k / items of the catalogue
    novelty@k  = mean of -log2((n + 1) / (A + N)) over the lists: n actions of the item, A of all, N items; in bits

Ranks count from 1, among all items, a user's other targets included; an item of equal score stands before a target, so
that a constant score earns nothing. Recall, NDCG and MRR are means over users. With one target a user, Recall@k is the
hit rate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from contracts.summaries.summary import Record

KS = (10, 20, 50, 100)


class AtK(Record):
    """Means over users at one length of the list; coverage and novelty are those of the lists themselves."""

    recall: float
    ndcg: float
    coverage: float
    novelty: float


class TargetSlice(Record):
    """Every target by itself: `targets` of the slice, the share of them among the 10 best, their mean gain."""

    targets: int
    recall_at_10: float
    ndcg_at_10: float


class RankingFigures(Record):
    """`at` by k as text; `slices`: kind -> name -> figures, the slices of one kind together being all targets."""

    users: int
    targets: int
    mrr: float
    at: dict[str, AtK]
    slices: dict[str, dict[str, TargetSlice]]


class Ranked(NamedTuple):
    """owner [T]: user of each target; rank [T] from 1; lists [U, 100] or fewer, best first; `owner` counts the rows."""

    owner: np.ndarray
    rank: np.ndarray
    lists: np.ndarray


class Slices(NamedTuple):
    """code [T]: the slice of each target, a place in `names`."""

    names: tuple[str, ...]
    code: np.ndarray


def hide(scores: Tensor, rows: np.ndarray, items: np.ndarray) -> Tensor:
    """scores [U, N] with those of (row, item) pairs at -inf, in place: never recommended."""
    scores[torch.from_numpy(rows), torch.from_numpy(items)] = -torch.inf
    return scores


def ranks(scores: Tensor, rows: np.ndarray, items: np.ndarray) -> np.ndarray:
    """Rank [T] of item t in row t of the scores [U, N]; 1 where no other item scores as much."""
    row, item = torch.from_numpy(rows), torch.from_numpy(items)
    own = scores[row, item][:, None]
    asked = scores if len(rows) == len(scores) and (rows == np.arange(len(rows))).all() else scores[row]
    return (asked >= own).sum(1, dtype=torch.int32).numpy()


def best(scores: Tensor, k: int) -> np.ndarray:
    """The k best items of each row [U, k], best first; -1 where fewer may be recommended."""
    found = scores.topk(min(k, scores.shape[1]))
    return torch.where(found.values > -torch.inf, found.indices, -1).numpy()


def figures(
    ranked: Ranked, counts: np.ndarray, catalogue: int, slices: dict[str, Slices] | None = None
) -> RankingFigures:
    """`counts` [N]: training actions of each item; `catalogue`: how many items there are; `slices` by
    kind. Users of `lists` without a target count in coverage and novelty alone."""
    users, place, number = np.unique(ranked.owner, return_inverse=True, return_counts=True)
    first = np.full(len(users), np.inf)
    np.minimum.at(first, place, ranked.rank)
    at = {}
    for k in KS:
        recall = np.bincount(place, ranked.rank <= k) / number
        ndcg = np.bincount(place, _gain(ranked.rank, k)) / _ideal(number, k)
        at[str(k)] = AtK(recall=float(recall.mean()), ndcg=float(ndcg.mean()),
                         **_of_lists(ranked.lists[:, :k], counts, catalogue))
    return RankingFigures(
        users=len(users), targets=len(ranked.rank), mrr=float((1 / first).mean()), at=at,
        slices={kind: {name: _slice(ranked.rank[of.code == code]) for code, name in enumerate(of.names)
                       if (of.code == code).any()}
                for kind, of in (slices or {}).items()})


def mean_gain(rank: np.ndarray, k: int) -> float:
    """Mean of 1 / log2(rank + 1) over the targets, 0 behind the k best: NDCG@k where every user has one target."""
    return float(_gain(rank, k).mean())


def _gain(rank: np.ndarray, k: int) -> np.ndarray:
    return np.where(rank <= k, 1 / np.log2(rank + 1.0), 0.0)


def _ideal(number: np.ndarray, k: int) -> np.ndarray:
    """What a list of k earns that begins with all `number` targets."""
    return np.cumsum(1 / np.log2(np.arange(1, k + 1) + 1.0))[np.minimum(number, k) - 1]


def _of_lists(lists: np.ndarray, counts: np.ndarray, catalogue: int) -> dict[str, float]:
    shown = lists[lists >= 0]
    share = (counts + 1) / (counts.sum() + catalogue)
    return {"coverage": len(np.unique(shown)) / catalogue, "novelty": float(-np.log2(share[shown]).mean())}


def _slice(rank: np.ndarray) -> TargetSlice:
    return TargetSlice(targets=len(rank), recall_at_10=float((rank <= 10).mean()),
                       ndcg_at_10=mean_gain(rank, 10))
