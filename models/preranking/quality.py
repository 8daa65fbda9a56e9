"""How well a score cuts candidates to `keep`, request by request (a pre-ranker returns a set: ASMOL, arXiv 2305.13647).

    recall     share of the ranker's top m that is among the score's top `keep`, mean over requests
    hit rate   share of the clicked candidates that are among the score's top `keep`

With an auction both orders are by ln(sigmoid(logit)) + ln(bid), as the funnel's; ties in the order of item rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.bundle.candidate_lists import CandidateItems, CandidateLists


class Quality(NamedTuple):
    """`recalls` [requests drawn uniformly], `hits` [clicked candidates] 0 or 1; `recall_error` its standard error."""

    recall: float
    recall_error: float
    hit_rate: float | None
    recalls: np.ndarray
    hits: np.ndarray


def objective(logits: np.ndarray, bids: np.ndarray | None) -> np.ndarray:
    """ln(sigmoid(logit)) + ln(bid) [R, K], or the logit where no auction follows."""
    if bids is None:
        return logits
    with np.errstate(divide="ignore"):
        return np.log(bids) - np.logaddexp(0.0, -logits.astype(np.float64))


def evaluate(
    scores: np.ndarray, items: CandidateItems, lists: CandidateLists, *, recall_at: int, keep: int, auction: bool,
) -> Quality:
    """`scores` [R, K] logits of the pre-ranker (any increasing function of its order without an auction); `recall_at`
    is m, the number of the ranker's best that should be among the `keep`."""
    bids = items.bid[lists.rows] if auction else None
    wanted = ranks(objective(lists.teacher, bids), lists)
    return evaluate_order(ranks(objective(scores, bids), lists), wanted, lists, recall_at=recall_at, keep=keep)


def evaluate_order(
    ranked: np.ndarray, wanted: np.ndarray, lists: CandidateLists, *, recall_at: int, keep: int
) -> Quality:
    """`ranked` and `wanted` are ranks [R, K] from 0, of the pre-ranker and of the ranker."""
    best, kept = (wanted < recall_at) & lists.valid, (ranked < keep) & lists.valid
    counts = best.sum(axis=1)
    counted = lists.uniform & (counts > 0)
    recalls = (best & kept).sum(axis=1)[counted] / counts[counted]
    hits = kept[lists.clicked]
    error = float(recalls.std(ddof=1) / np.sqrt(len(recalls))) if len(recalls) > 1 else 0.0
    return Quality(float(recalls.mean()), error, float(hits.mean()) if len(hits) else None, recalls, hits)


def ranks(values: np.ndarray, lists: CandidateLists) -> np.ndarray:
    """0 for the largest of each row; padding comes last."""
    order = np.lexsort((lists.rows, np.where(lists.valid, -values, np.inf)), axis=1)
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.arange(order.shape[1])[None], axis=1)
    return places
