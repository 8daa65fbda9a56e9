"""The chosen pre-ranker against the simulated marketplace's truth: what it dropped, and what its slates are worth."""

from __future__ import annotations

from collections.abc import Iterable

from contracts.artifacts import Artifacts
from contracts.progress import counted
from contracts.summaries.demo import PreRankSlates
from serving.bundle.scoring_bundle import load_calibration
from serving.replay import funnel_timing
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from serving.stages.prerank_scorers import DotProductScorer
from sluice.demo import slates
from sluice.demo.evaluate_slates import ServedVisits

# What the marketplace plants for a pre-ranker to drop: noise, and a dear cross that says what a cheap field says.
DECOYS = frozenset({"avatar", "market_category"})


def decoys_kept(fields: Iterable[str]) -> int:
    """How many of the planted decoys are among the chosen fields."""
    return len(DECOYS & set(fields))


def evaluate_prerank(visits: ServedVisits, out: Artifacts) -> PreRankSlates:
    """Slates behind the served pre-ranker, the dot product of the towers, and the ranker on everything."""
    bundle, dot = visits.bundle, load_calibration(out.model("two_tower"))
    funnels = {"fscd": Funnel(bundle), "dot_product": Funnel(bundle, DotProductScorer(bundle, dot)),
               "full_ranker": funnel_timing.without_prerank(bundle)}
    asked = list(zip(visits.visits, visits.markets, strict=True))
    chosen = {
        name: [bundle.items.rows([item.item for item in funnel.rank(
            RankQuery(user=visit.user, limit=market.length, context=visit.context, rerank=False, explain=False),
            Deadline(None)).items]) for visit, market in counted(f"slates of {name}", asked)]
        for name, funnel in funnels.items()
    }
    worth = slates.shares(visits.markets, chosen, "clicks")
    return PreRankSlates(**worth, lost=1.0 - worth["fscd"] / worth["full_ranker"])
