"""The stages of one bundle, which all its requests share, and the clock that knows what they take."""

from __future__ import annotations

from dataclasses import dataclass

from models.inference.tower_vectors import UserTower
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.request_features import RequestFeatures
from serving.request.stage_clock import StageClock
from serving.stages.prerank import PrerankStage
from serving.stages.rank import RankStage
from serving.stages.reasons import Reasons
from serving.stages.rerank import RerankStage
from serving.stages.retrieval import RetrievalStage

ANSWER, CHUNK = "answer", "/chunk"
CLOCKED = ("retrieve", "prerank", "prerank/chunk", "rank", "rank/chunk", "rerank", "explain", ANSWER)
FLOOR = ("retrieve", "rerank", ANSWER)


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
