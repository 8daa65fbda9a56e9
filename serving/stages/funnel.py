"""The funnel in process: one query in, one slate out, with a report per stage.

    check ▶ retrieve ▶ prerank ▶ rank ▶ rerank ▶ explain

A deadline that has passed before retrieval ends the request; later it costs stages, never the answer: pre-ranking
scores its first chunk, ranking and explanations are left out, and the reports say so.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import torch

from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import CHANNELS, Candidates
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.query import RankAnswer, RankedItem, RankQuery, Reason, StageReport, StageStatus
from serving.request.request_check import check
from serving.request.request_features import Requester, RequestFeatures, block
from serving.stages.prerank import PrerankStage
from serving.stages.prerank_scorers import Scorer
from serving.stages.rank import RankStage
from serving.stages.reasons import Reasons
from serving.stages.rerank import RerankStage, Slate
from serving.stages.retrieval import RetrievalStage, Retrieved

Result = TypeVar("Result")
Trace = dict[str, np.ndarray]


class Funnel:
    """One per process and bundle; holds no state of a request. One intra-op thread of torch is assumed.

    `prerank` scores instead of the pre-ranker that the bundle names.
    """

    def __init__(self, bundle: LoadedBundle, prerank: Scorer | None = None) -> None:
        self._bundle = bundle
        features = RequestFeatures(bundle)
        self._features = features
        self._retrieval = RetrievalStage(bundle)
        self._prerank = PrerankStage(bundle, prerank)
        self._rank = RankStage(bundle, features)
        self._rerank = RerankStage(bundle)
        self._reasons = Reasons(bundle, features)

    @torch.inference_mode()
    def rank(self, query: RankQuery, deadline: Deadline, trace: Trace | None = None) -> RankAnswer:
        """`trace` receives the item rows after every stage, in that stage's order.

        Raises RequestError when the query cannot be answered as asked, DeadlineExpired when no time is left at entry.
        """
        check(query, self._bundle.settings.serve, self._bundle.spec, self._bundle.filters)
        if deadline.expired:
            raise DeadlineExpired("the deadline had passed before the first stage; send the request with more time")
        by_value = query.rerank and self._rerank.kind == "auction"
        stages: list[StageReport] = []
        (requester, vector, retrieved), spent = timed(lambda: self._retrieve(query, by_value))
        stages.append(StageReport("retrieve", retrieved.offered, len(retrieved.candidates), spent))
        kept, spent = timed(
            lambda: self._prerank.run(retrieved.candidates, requester, vector, by_value, query.limit, deadline))
        stages.append(_report("prerank", retrieved.candidates, kept.candidates, spent, kept.status, kept.cause))
        ranked, spent = timed(lambda: self._rank.run(kept.candidates, requester, by_value, query.limit, deadline))
        stages.append(_report("rank", kept.candidates, ranked.candidates, spent, ranked.status, ranked.cause))
        slate, spent = timed(lambda: self._rerank.run(ranked.candidates, query.limit, query.rerank, deadline))
        stages.append(_report("rerank", ranked.candidates, slate.candidates, spent, slate.status, slate.cause))
        reasons = self._explain(slate.candidates, requester, query.explain, deadline, stages)
        if trace is not None:
            names = ("retrieve", "prerank", "rank", "rerank")
            after = (retrieved.candidates, kept.candidates, ranked.candidates, slate.candidates)
            trace.update({name: candidates.rows for name, candidates in zip(names, after, strict=True)})
        return RankAnswer(self._items(slate, reasons), stages, self._bundle.version, retrieved.unknown, requester.known)

    def _retrieve(self, query: RankQuery, by_value: bool) -> tuple[Requester, torch.Tensor, Retrieved]:
        requester = self._features.requester(query)
        vector = self._bundle.towers.user_vector(block(requester.inputs))
        return requester, vector, self._retrieval.run(query, requester, vector[0].numpy(), by_value)

    def _explain(
        self, slate: Candidates, requester: Requester, wanted: bool, deadline: Deadline, stages: list[StageReport]
    ) -> list[list[Reason]]:
        """Explains the ranker's logits; where the ranker did not run there is nothing to explain."""
        ranked = "rank" in slate.scores
        if not wanted or not ranked or deadline.expired:
            late = "the deadline passed before it began" if ranked else "there are no scores of the ranker to explain"
            cause = late if wanted else "the request asked for none"
            stages.append(_report("explain", slate, slate, 0, StageStatus.SKIPPED, cause))
            return [[] for _ in range(len(slate))]
        reasons, spent = timed(lambda: self._reasons.top(slate.rows, requester))
        stages.append(_report("explain", slate, slate, spent, StageStatus.COMPLETE, ""))
        return reasons

    def _items(self, slate: Slate, reasons: list[list[Reason]]) -> list[RankedItem]:
        candidates = slate.candidates
        prices = [None] * len(candidates) if slate.price is None else slate.price.tolist()
        scores = {stage: values.tolist() for stage, values in candidates.scores.items()}
        return [
            RankedItem(
                item=self._bundle.items.key(row), probability=float(slate.probability[n]), score=float(slate.score[n]),
                price=prices[n], channel=CHANNELS[candidates.channels[n]],
                stage_scores={stage: values[n] for stage, values in scores.items()}, reasons=reasons[n],
            )
            for n, row in enumerate(candidates.rows.tolist())
        ]


def timed(work: Callable[[], Result]) -> tuple[Result, int]:
    """The result and the microseconds it took."""
    start = time.perf_counter_ns()
    result = work()
    return result, (time.perf_counter_ns() - start) // 1000


def _report(
    name: str, before: Candidates, after: Candidates, microseconds: int, status: StageStatus, cause: str
) -> StageReport:
    return StageReport(name, len(before), len(after), microseconds, status, cause)
