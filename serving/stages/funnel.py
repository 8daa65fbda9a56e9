"""The funnel in process: one query in, one slate out, with a report per stage.

    check ▶ retrieve ▶ prerank ▶ rank ▶ rerank ▶ explain

How a request keeps its deadline, and what stands in for a stage: serving/stages/request_run.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from models.inference.tower_vectors import UserTower
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.given_items import ItemDescriber
from serving.request.query import RankAnswer, RankQuery, ScoreQuery
from serving.request.request_check import check, check_features, check_score
from serving.request.request_features import RequestFeatures
from serving.request.stage_clock import StageClock
from serving.stages.bundle_stages import ANSWER, CLOCKED, FLOOR, LIST, SEARCH, Stages
from serving.stages.prerank import PrerankStage
from serving.stages.prerank_scorers import Scorer, configured_scorer
from serving.stages.rank import RankStage
from serving.stages.reasons import Reasons
from serving.stages.request_run import RequestRun, Trace
from serving.stages.rerank import RerankStage
from serving.stages.retrieval import RetrievalStage
from serving.stages.score_run import ScoreRun
from serving.stages.tower_probability import fitted


class Funnel:
    """One per process and bundle; holds no state of a request. One intra-op thread of torch is assumed.

    `prerank` scores instead of the pre-ranker that the bundle names. `clock` keeps what the stages take.
    """

    def __init__(self, bundle: LoadedBundle, prerank: Scorer | None = None) -> None:
        self._bundle, self._describer, self.clock = bundle, ItemDescriber(bundle), StageClock(CLOCKED)
        features, retrieval = RequestFeatures(bundle), RetrievalStage(bundle)
        scorer = configured_scorer(bundle) if prerank is None else prerank
        rank = RankStage(bundle, features)
        self._stages = Stages(
            bundle=bundle, features=features, user_tower=UserTower(bundle.towers), retrieval=retrieval,
            prerank=PrerankStage(bundle, scorer),
            rank=rank, rerank=RerankStage(bundle, fitted(bundle, features, retrieval, scorer)),
            reasons=Reasons(bundle, features, rank), clock=self.clock,
        )

    @property
    def floor(self) -> float:
        """Seconds of work below which a request gets less than a search of the items: retrieval and the answer."""
        return self.clock.estimate(SEARCH, *FLOOR)

    @property
    def least(self) -> float:
        """Seconds of work below which there is no answer, whatever is asked; lists count once there has been one."""
        search, listed = self.clock.estimate(SEARCH), self.clock.estimate(LIST)
        return min(search, listed or search) + self.clock.estimate(*FLOOR)

    @property
    def whole(self) -> float:
        """Seconds that a search without reasons takes."""
        return self.clock.estimate(SEARCH, *FLOOR, "prerank", "rank")

    def begin(self, query: RankQuery, deadline: Deadline) -> RequestRun:
        """The request, checked and ready to be run; cheap. Raises what `check` raises."""
        self.check(query, deadline)
        return self.run(query, deadline)

    def run(self, query: RankQuery, deadline: Deadline) -> RequestRun:
        """The request, ready to be run; it has been checked."""
        return RequestRun(self._stages, query, deadline)

    def check(self, query: RankQuery, deadline: Deadline) -> None:
        """Raises RequestError when the query cannot be answered as asked, DeadlineExpired when no time is left at
        entry."""
        check(query, self._bundle.settings.serve, self._bundle.spec, self._bundle.filters,
              self._bundle.range_names, self._bundle.settings.retrieve.event_columns)
        check_features(query, self._bundle.spec, self._bundle.settings.auction)
        if deadline.remaining() <= self.clock.estimate(ANSWER):
            raise DeadlineExpired("the deadline had passed before the first stage; send the request with more time")

    def forget_times(self) -> None:
        """As if no stage had been run yet."""
        self.clock.forget()
        self._stages.retrieval.forget_times()

    @contextmanager
    def timed_by(self, now: Callable[[], float]) -> Iterator[None]:
        """In its block the stages tell what they take by another clock."""
        with self.clock.timed_by(now), self._stages.retrieval.timed_by(now):
            yield

    @property
    def stages(self) -> Stages:
        """For who looks at them one by one."""
        return self._stages

    def begin_score(self, query: ScoreQuery, deadline: Deadline) -> ScoreRun:
        """Given items, scored and nothing else. Raises RequestError, DeadlineExpired."""
        check_score(query, self._bundle.spec)
        if deadline.expired:
            raise DeadlineExpired("the deadline had passed before the first item; send the request with more time")
        return ScoreRun(self._bundle, self._stages.features, self._describer, self._stages.rank, query, deadline)

    def rank(self, query: RankQuery, deadline: Deadline, trace: Trace | None = None) -> RankAnswer:
        """`trace` receives the item rows after every stage, in that stage's order.

        Raises what `begin` raises; without `partial_ok` also DeadlineExpired where a stage lacks time, and what a
        stage raises.
        """
        return self.begin(query, deadline).complete(trace)
