"""Generalised second price auction on expected revenue per thousand impressions.

B. Edelman, M. Ostrovsky, M. Schwarz, "Internet Advertising and the Generalized Second-Price Auction", 2007, with
quality scores p (calibrated click probability): slots go by eCPM = 1000 x bid x p, and the winner of slot k pays, per
click, the smallest bid that would have kept the slot: eCPM of slot k + 1 (or the reserve) / (1000 p of slot k).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from serving.bundle.best_first import best_first

PER_THOUSAND = 1000.0


class AuctionOutcome(NamedTuple):
    """The winners of n slots: `order` [n] positions in the input, best slot first; `score` [n] eCPM; `price` [n] per
    click, in the currency of the bids; `to_beat` [n] the eCPM of the next one, or the reserve; `behind` [0 or 1] the
    position of the one after the last winner."""

    order: np.ndarray
    score: np.ndarray
    price: np.ndarray
    to_beat: np.ndarray
    behind: np.ndarray


def expected_revenue(bids: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """eCPM, in the currency of the bids."""
    revenue: np.ndarray = np.multiply(bids, PER_THOUSAND, dtype=np.float64)
    revenue *= probabilities
    return revenue


def second_price(
    bids: np.ndarray, probabilities: np.ndarray, rows: np.ndarray, slots: int, reserve: float
) -> AuctionOutcome:
    """bids, probabilities and item rows [K] -> at most `slots` winners. Below the reserve (an eCPM), and without a bid
    above 0, nothing is sold; ties go to the smaller item row. A click that never comes (p = 0) costs nothing."""
    revenue = expected_revenue(bids, probabilities)
    ranked = best_first(revenue, rows, slots + 1)
    if len(ranked) < min(slots + 1, len(rows)) or not may_win(revenue[ranked], bids[ranked], reserve).all():
        eligible = may_win(revenue, bids, reserve).nonzero()[0]
        ranked = eligible[best_first(revenue[eligible], rows[eligible], slots + 1)]
    to_beat = np.append(revenue[ranked[1:]], reserve)[: len(ranked)]
    winners, to_beat = ranked[:slots], np.maximum(to_beat[:slots], reserve)
    price = prices(to_beat, bids[winners], probabilities[winners])
    return AuctionOutcome(winners, revenue[winners], price, to_beat, ranked[slots : slots + 1])


def may_win(revenue: np.ndarray, bids: np.ndarray, reserve: float) -> np.ndarray:
    """bool [K]: below the reserve, and without a bid, nothing is sold."""
    found: np.ndarray = (revenue >= reserve) & (bids > 0)
    return found


def prices(to_beat: np.ndarray, bids: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    """[n] per click: the smallest bids whose eCPM is `to_beat`; no more than the bids."""
    per_impression = PER_THOUSAND * probabilities.astype(np.float64)
    found = np.divide(to_beat, per_impression, out=np.zeros(len(bids)), where=per_impression > 0)
    return np.minimum(found, bids)
