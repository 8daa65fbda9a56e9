"""How long pre-rankers take, alone and in the whole funnel, measured side by side on the same requests.

Every repetition runs all variants one after the other in an order of its own, so that what else the machine does, and
what the variant before left in its caches, falls on all of them alike.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from models.evaluation import calibration
from models.inference.tower_vectors import UserTower
from serving.bundle.loaded_bundle import LoadedBundle
from serving.replay.past_requests import PastRequest
from serving.request.deadline import Deadline
from serving.request.query import RankQuery
from serving.request.request_features import RequestFeatures
from serving.stages.funnel import Funnel
from serving.stages.prerank import PrerankStage
from serving.stages.prerank_scorers import DotProductScorer, Scorer
from serving.stages.rank import RankStage
from serving.stages.retrieval import RetrievalStage

Work = Callable[[int], object]
WARM_UP = 3


def side_by_side(
    variants: Mapping[str, Work], repetitions: int, clock: Callable[[], int] = time.perf_counter_ns
) -> dict[str, list[float]]:
    """Microseconds by `clock` of each repetition of each variant on one thread, as the server's; `work(n)` does
    repetition n."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _timed(variants, repetitions, clock)
    finally:
        torch.set_num_threads(threads)


def _timed(variants: Mapping[str, Work], repetitions: int, clock: Callable[[], int]) -> dict[str, list[float]]:
    spent: dict[str, list[float]] = {name: [] for name in variants}
    names, order = list(variants), np.random.default_rng(0)
    for number in range(-WARM_UP, repetitions):
        for name in order.permutation(names).tolist():
            start = clock()
            variants[name](number)
            if number >= 0:
                spent[name].append((clock() - start) / 1000)
    return spent


@torch.inference_mode()
def stage_microseconds(
    bundle: LoadedBundle, scorers: Mapping[str, Scorer], requests: Sequence[PastRequest], repetitions: int
) -> dict[str, float]:
    """Median microseconds to score and cut 1,000 candidates; "full_ranker": the ranker scoring as many."""
    features, retrieved = RequestFeatures(bundle), []
    tower, retrieval, auction = UserTower(bundle.towers), RetrievalStage(bundle), bundle.settings.auction
    for request in requests[:64]:
        vector = tower(request.requester.inputs)
        query = RankQuery(user="", limit=1)
        retrieved.append((request.requester, vector,
                      retrieval.run(query, request.requester, vector, auction).candidates))
    late, limit = Deadline(None), bundle.settings.serve.default_limit

    def prerank(stage: PrerankStage) -> Work:
        def work(number: int) -> object:
            requester, vector, candidates = retrieved[number % len(retrieved)]
            return stage.run(candidates, requester, vector, auction, limit, late)
        return work

    def rank(number: int) -> object:
        requester, _, candidates = retrieved[number % len(retrieved)]
        return stage.run(candidates, requester, auction, limit, late)

    stage = RankStage(bundle, features)
    variants = {name: prerank(PrerankStage(bundle, chosen)) for name, chosen in scorers.items()} | {"full_ranker": rank}
    size = statistics.mean(len(candidates) for _, _, candidates in retrieved)
    spent = side_by_side(variants, repetitions)
    return {name: statistics.median(times) * 1000 / size for name, times in spent.items()}


def funnel_milliseconds(
    bundle: LoadedBundle, scorers: Mapping[str, Scorer], queries: Sequence[RankQuery], repetitions: int
) -> dict[str, float]:
    """Median milliseconds of the funnel without explanations; "full_ranker" ranks whatever was retrieved."""
    funnels = {name: Funnel(bundle, chosen) for name, chosen in scorers.items()}
    funnels["full_ranker"] = without_prerank(bundle)
    variants = {name: _ask(funnel, queries) for name, funnel in funnels.items()}
    return {name: statistics.median(times) / 1000 for name, times in side_by_side(variants, repetitions).items()}


def without_prerank(bundle: LoadedBundle) -> Funnel:
    """A funnel whose ranker sees everything that was retrieved."""
    prerank = bundle.settings.prerank.model_copy(update={"keep": bundle.settings.retrieve.candidates})
    wide = replace(bundle, settings=bundle.settings.model_copy(update={"prerank": prerank}))
    return Funnel(wide, DotProductScorer(wide, calibration.identity()))


def _ask(funnel: Funnel, queries: Sequence[RankQuery]) -> Work:
    return lambda number: funnel.rank(queries[number % len(queries)], Deadline(None))
