"""The chosen pre-ranker against the simulated marketplace's truth: what it dropped, and what its slates are worth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from contracts.artifacts import Artifacts
from contracts.progress import counted
from contracts.summaries.demo import PreRankSlates
from serving.bundle.loaded_bundle import LoadedBundle
from serving.bundle.scoring_bundle import load_calibration
from serving.replay import funnel_timing
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.stages.funnel import Funnel
from serving.stages.prerank_scorers import DotProductScorer
from sluice.demo import slates
from sluice.demo.live_requests import Visit
from sluice.demo.slates import Market

# What the marketplace plants for a pre-ranker to drop: noise, and a dear cross that says what a cheap field says.
DECOYS = frozenset({"avatar", "market_category"})
# The served pre-ranker, the dot product of the towers, and the ranker on everything.
KINDS = ("fscd", "dot_product", "full_ranker")
DEAREST_FIRST = KINDS[::-1]


def decoys_kept(fields: Iterable[str]) -> int:
    """How many of the planted decoys are among the chosen fields."""
    return len(DECOYS & set(fields))


def slates_behind(kind: str, visits: Sequence[Visit], length: int, out: Artifacts) -> list[np.ndarray]:
    """Item rows of the slate of each visit without re-ranking, behind one of KINDS. Here or in another process."""
    bundle = LoadedBundle.load(out.bundle, check_parity=False)
    funnel = _funnel(kind, bundle, out)
    asked = [RankQuery(user=visit.user, limit=length, context=visit.context, rerank=False, explain=False)
             for visit in visits]
    return [bundle.items.rows([item.item for item in funnel.rank(query, Deadline(None)).items])
            for query in counted(f"slates of {kind}", asked)]


def _funnel(kind: str, bundle: LoadedBundle, out: Artifacts) -> Funnel:
    if kind == "full_ranker":
        return funnel_timing.without_prerank(bundle)
    if kind == "dot_product":
        return Funnel(bundle, DotProductScorer(bundle, load_calibration(out.model("two_tower"))))
    return Funnel(bundle)


def evaluate_prerank(chosen: Mapping[str, Sequence[np.ndarray]], markets: Sequence[Market]) -> PreRankSlates:
    """`chosen`: the slates behind each of KINDS, in the order of the markets."""
    worth = slates.shares(markets, chosen, "clicks")
    return PreRankSlates(**worth, lost=1.0 - worth["fscd"] / worth["full_ranker"])
