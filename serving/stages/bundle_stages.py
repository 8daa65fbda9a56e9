"""The stages of one bundle, which all its requests share, and the clock that knows what they take."""

from __future__ import annotations

from dataclasses import dataclass

from models.inference.tower_vectors import UserTower
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures
from serving.request.stage_clock import StageClock
from serving.stages.prerank import PrerankStage
from serving.stages.rank import RankStage
from serving.stages.reasons import Reasons
from serving.stages.rerank import RerankStage
from serving.stages.retrieval import RetrievalStage

SEARCH, LIST = "retrieve", "list"  # where candidates come from: the second are the request's own
ANSWER, CHUNK = "answer", "/chunk"
CLOCKED = (SEARCH, LIST, "prerank", "prerank/chunk", "rank", "rank/chunk", "rerank", "explain", ANSWER)
FLOOR = ("rerank", ANSWER)  # and what finds the candidates


@dataclass(frozen=True, kw_only=True)
class Stages:
    """`clock` knows times by the names of CLOCKED."""

    bundle: LoadedBundle
    features: RequestFeatures
    user_tower: UserTower
    retrieval: RetrievalStage
    prerank: PrerankStage
    rank: RankStage
    rerank: RerankStage
    reasons: Reasons
    clock: StageClock

    def least(self, query: RankQuery) -> float:
        """Seconds of work below which there is no answer to it: those of finding candidates, or of every stage."""
        if query.partial_ok:
            return self.clock.estimate(finding(query), *FLOOR)
        explain = ["explain"] if query.explain else []
        return self.clock.estimate(finding(query), *FLOOR, "prerank", "rank", *explain)


def finding(query: RankQuery) -> str:
    """What the clock calls finding its candidates."""
    return SEARCH if query.candidates is None else LIST
