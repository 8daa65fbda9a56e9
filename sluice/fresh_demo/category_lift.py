"""Whether the bundle's ranker follows clicks: how far a category rises for a user whose latest clicks are all in it.

    lift of a user = mean over items of the category of (logit with clicks in it - logit with clicks anywhere)
                     - the same mean over items of other categories

Both histories are as long, given with the request, and hold none of the scored items. Users who are after a category
click in it, so that a ranker without a lift cannot follow them, however soon it is told.
"""

from __future__ import annotations

import math

import numpy as np

from contracts.summaries.demo import Lift
from sluice.fresh_demo.hour import Hour, TimedVisit
from sluice.fresh_demo.told_server import ToldServer

USERS, HISTORY, SCORED = 30, 10, 40


def category_lift(hour: Hour, server: ToldServer) -> Lift:
    """Of the first users of the hour, each with a category drawn by its number of items."""
    first = {visit.user: visit for visit in reversed(hour.visits)}
    lifts = [_lift(hour, visit, server) for visit in sorted(first.values())[:USERS]]
    return Lift(logit=float(np.mean(lifts)), standard_error=float(np.std(lifts, ddof=1) / math.sqrt(len(lifts))))


def _lift(hour: Hour, visit: TimedVisit, server: ToldServer) -> float:
    rng, known = np.random.default_rng([hour.seed, 8, visit.number]), hour.known
    categories = hour.truth.items["category"][:known]
    sizes = np.bincount(categories)
    chosen = rng.choice(categories[sizes[categories] > 1])
    inside, outside = (rng.permutation(np.flatnonzero(mask)) for mask in (categories == chosen, categories != chosen))
    length = min(HISTORY, len(inside) // 2)
    scored = np.concatenate([inside[length:][:SCORED], outside[length:][:SCORED]])
    rise = server.logits(visit, scored, inside[:length]) - server.logits(visit, scored, outside[:length])
    there = categories[scored] == chosen
    return float(rise[there].mean() - rise[~there].mean())
