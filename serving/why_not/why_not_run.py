"""Why an item is not in the slate of a request: the funnel is run as for an answer, and asked stage after stage.

    lost in     when it is gone after the stage; score and the smallest that would have done
    retrieve    unknown to the bundle, excluded by filters, by a business rule, by the user's recent items or by the
                request's own list; else its inner product against the last of the quota of the two towers
    prerank     what the pre-ranker orders by, against the last that it kept
    rank        only where time was short
    rerank      eCPM against the reserve and the last slot, marginal relevance, or probability

A stage that was cut short or replaced says so instead of a score.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch

from serving.bundle.item_index import search, with_bid_weight
from serving.bundle.item_set import ItemSet
from serving.request.candidates import CHANNELS, Candidates
from serving.request.deadline import Deadline
from serving.request.query import RankAnswer, RankQuery, StageStatus
from serving.request.request_features import Requester
from serving.stages.auction import expected_revenue
from serving.stages.diversity import unit
from serving.stages.funnel import Funnel
from serving.stages.request_run import Trace
from serving.stages.retrieval import excluded_and_within

INNER_PRODUCT, ECPM, LOGIT, PROBABILITY = "inner product of the towers", "eCPM", "logit", "probability"
RELEVANCE = "marginal relevance"


@dataclass(frozen=True, kw_only=True)
class Fate:
    """`stage` dropped the item, "" where it is shown at `position`; `score` and `needed` where a score decided;
    no `needed` where only items that the request describes were above."""

    item: str
    stage: str = ""
    cause: str = ""
    score: float | None = None
    needed: float | None = None
    measure: str = ""
    position: int = 0


class Explained(NamedTuple):
    """The slate as it would be answered, and the fates of the items asked for, in their order."""

    answer: RankAnswer
    fates: list[Fate]


class WhyNotRun:
    """`complete` is called once; there is nothing to answer with before it is done. Raises what Funnel.begin does."""

    partial_ok = brief = False

    @property
    def least(self) -> float:
        """Seconds of work below which there is no answer."""
        return self._run.least

    def __init__(self, funnel: Funnel, query: RankQuery, items: tuple[str, ...], deadline: Deadline) -> None:
        self._funnel, self._query, self._items, self.deadline = funnel, query, items, deadline
        self._run = funnel.begin(query, deadline)

    def simplify(self, level: int) -> None:
        """All or nothing: the engine does not ask where `partial_ok` is false."""

    @torch.inference_mode()
    def complete(self) -> Explained:
        """Raises what a run of the funnel raises."""
        trace: Trace = {}
        answer = self._run.complete(trace)
        traced = _Traced(self._funnel, self._query, self._items, answer, trace)
        fates = []
        for item in self._items:
            self.deadline.checkpoint()
            fates.append(traced.fate(item))
        return Explained(answer, fates)

    def salvage(self) -> Explained:
        """There is none; the engine does not ask where `partial_ok` is false."""
        raise NotImplementedError


class _Traced:
    """One request that has been answered, with the rows after every stage, and the items asked for. What all of them
    are held against is computed once, when it is first needed."""

    def __init__(
        self, funnel: Funnel, query: RankQuery, items: tuple[str, ...], answer: RankAnswer, trace: Trace
    ) -> None:
        self._stages, self._query, self._answer, self._trace = funnel.stages, query, answer, trace
        self._bundle = self._stages.bundle
        self._asked = self._bundle.items.rows(items)
        self._requester: Requester = self._stages.features.requester(query)
        self._vector = self._stages.user_tower(self._requester.inputs)
        self._by_value = query.rerank and self._stages.rerank.kind == "auction"
        self._rules = self._stages.retrieval.rules.active(query)
        self._reports = {report.name: report for report in answer.stages}

    def fate(self, item: str) -> Fate:
        shown = [one.item for one in self._answer.items]
        if item in shown:
            pinned = [one.rule.name for one in self._rules.pins if one.rule.pin == item]
            return Fate(item=item, position=shown.index(item) + 1,
                        cause=f"the rule {pinned[0]!r} puts it there" if pinned else "")
        row = self._bundle.items.row(item)
        if row < 0:
            return Fate(item=item, stage="retrieve", cause=self._unknown(item))
        stage = next(name for name in ("retrieve", "prerank", "rank", "rerank") if row not in self._trace[name])
        report = self._reports[stage]
        if stage != "retrieve" and stage != "rerank" and report.status is not StageStatus.COMPLETE:
            return Fate(item=item, stage=stage, cause=report.cause)
        return {"retrieve": self._retrieve, "prerank": self._prerank, "rerank": self._rerank}[stage](item, row)

    def _unknown(self, item: str) -> str:
        if item in self._query.features:
            return "the request alone describes it; only items of the bundle can be explained"
        return "the bundle does not know it"

    def _retrieve(self, item: str, row: int) -> Fate:
        cause = self._excluded(item, row)
        if cause:
            return Fate(item=item, stage="retrieve", cause=cause)
        cold = not self._stages.retrieval.asks_tower(self._requester)
        if cold or not self._bundle.settings.retrieve.two_tower:
            return Fate(item=item, stage="retrieve", cause="nothing is known of the user, and it is not popular enough"
                        if cold else "no channel brought it")
        score, needed = float(np.asarray(self._bundle.index.vectors[row]) @ self._searched), self._last_found
        found = "the approximate index missed it" if score >= needed else "no channel brought it"
        return Fate(item=item, stage="retrieve", cause=found, score=score, needed=needed, measure=INNER_PRODUCT)

    @cached_property
    def _searched(self) -> np.ndarray:
        """The vector that the index was asked for."""
        width = self._bundle.index.vectors.shape[1]
        if width > len(self._vector):
            found: np.ndarray = with_bid_weight(self._vector[None], float(self._by_value), width)[0]
            return found
        return self._vector

    @cached_property
    def _last_found(self) -> float:
        """The score of the last of the two towers' quota."""
        count = self._bundle.settings.retrieve.two_tower + len(self._requester.recent)
        allowed = self._stages.retrieval.allowed(self._query)
        return float(search(self._bundle.index, self._searched, count, allowed).scores[-1])

    @cached_property
    def _admitted(self) -> list[tuple[str, ItemSet]]:
        """The sets that an item has to be in, each with why one is not there."""
        shown = [] if self._bundle.shown is None else [("it is withdrawn, or none of it is left", self._bundle.shown())]
        kept = [(f"the filter {name!r} does not admit it", self._bundle.filters[name].items(values))
                for name, values in self._query.filters.items()]
        others = [("its value is excluded, or its number lies without the range", admitted)
                  for admitted in excluded_and_within(self._bundle, self._query)]
        forbidden = [(f"the rule {rule.name!r} never shows it here", admitted)
                     for rule, admitted in self._stages.retrieval.rules.forbidding(self._rules)]
        return [*shown, *kept, *others, *forbidden]

    def _excluded(self, item: str, row: int) -> str:
        query = self._query
        if query.candidates is not None and item not in query.candidates:
            return "the request names its candidates, and it is not among them"
        for why, admitted in self._admitted:
            if not admitted.contains(np.array([row]))[0]:
                return why
        if query.candidates is None and not self._bundle.settings.retrieve.repeat and row in self._requester.recent:
            return "it is among the user's recent items, which are not shown again"
        report = self._reports["retrieve"]
        return report.cause if report.status is not StageStatus.COMPLETE else ""

    def _prerank(self, item: str, row: int) -> Fate:
        last, scores = self._of_bundle("prerank"), self._prerank_scores
        return Fate(item=item, stage="prerank",
                    cause=f"{len(self._trace['prerank'])} candidates were kept, all with more",
                    score=scores[row], needed=min((scores[one] for one in last.tolist()), default=None),
                    measure=ECPM if self._by_value else LOGIT)

    @cached_property
    def _prerank_scores(self) -> dict[int, float]:
        """By item row, of the kept ones and of those asked for."""
        rows = np.union1d(self._of_bundle("prerank"), self._asked[self._asked >= 0])
        return dict(zip(rows.tolist(), self._preranked(rows).tolist(), strict=True))

    def _preranked(self, rows: np.ndarray) -> np.ndarray:
        """What the pre-ranker orders these by."""
        channels = np.full(len(rows), CHANNELS.index("explicit"), dtype=np.int8)
        candidates = self._stages.retrieval.with_tower_score(Candidates(rows, channels), self._vector)
        stage = self._stages.prerank
        candidates = self._stages.retrieval.rules.marked(self._rules, candidates)
        logits = stage.logits(candidates, self._requester, self._vector)
        return candidates.weighed(stage.objective(logits, candidates, self._by_value))

    def _rerank(self, item: str, row: int) -> Fate:
        ranked = self._reports["rank"]
        if ranked.status is not StageStatus.COMPLETE:
            return Fate(item=item, stage="rerank", cause=f"the order is not the ranker's: {ranked.cause}")
        capped = self._capped(row)
        if capped:
            return Fate(item=item, stage="rerank", cause=capped)
        rows = self._of_bundle("rank")
        place, slate = int(np.flatnonzero(rows == row)[0]), self._trace["rerank"]
        values = self._ranked_probabilities * self._boosts(rows)
        report = self._reports["rerank"]
        if self._stages.rerank.kind == "mmr" and self._query.rerank and report.status is StageStatus.COMPLETE:
            return self._too_similar(item, rows, place, values)
        if self._by_value and report.status is StageStatus.COMPLETE:
            return self._outbid(item, rows, place, values)
        return Fate(item=item, stage="rerank", cause="the slate is full", score=float(values[place]),
                    needed=_lowest(values[np.isin(rows, slate)]), measure=PROBABILITY)

    def _capped(self, row: int) -> str:
        """Of which rule the slate has no room for the item; "" where it has."""
        slate = self._of_bundle("rerank")
        for one in self._rules.caps:
            own, *others = self._bundle.filters[str(one.rule.cap)].values_of(np.array([row, *slate.tolist()]))
            if own is not None and others.count(own) >= int(one.rule.most or 0):
                return f"the rule {one.rule.name!r} lets at most {one.rule.most} of {one.rule.cap} {own!r} into a slate"
        return ""

    def _boosts(self, rows: np.ndarray) -> np.ndarray:
        """How many times rules let each one's score count."""
        return self._stages.retrieval.rules.factors(self._rules, Candidates(rows, np.zeros(len(rows), dtype=np.int8)))

    def _of_bundle(self, stage: str) -> np.ndarray:
        """Item rows after a stage, without those that the request alone describes."""
        rows = self._trace[stage]
        return rows[rows < len(self._bundle.items)]

    @cached_property
    def _ranked_probabilities(self) -> np.ndarray:
        """Of the rows after the ranker, in their order."""
        rows = self._of_bundle("rank")
        channels = np.full(len(rows), CHANNELS.index("explicit"), dtype=np.int8)
        ranked = self._stages.rank.run(Candidates(rows, channels), self._requester, False, len(rows), Deadline(None))
        found = dict(zip(ranked.candidates.rows.tolist(), ranked.candidates.scores["rank"].tolist(), strict=True))
        return np.array([found[row] for row in rows.tolist()])

    def _outbid(self, item: str, rows: np.ndarray, place: int, values: np.ndarray) -> Fate:
        bids = np.asarray(self._bundle.bids)[rows]
        revenue, reserve = expected_revenue(bids, values), self._bundle.settings.rerank.reserve_price
        full = len(self._trace["rerank"]) >= self._query.limit
        needed = _lowest(revenue[np.isin(rows, self._trace["rerank"])]) if full else reserve
        cause = "the slate is full" if full else "it is below the reserve"
        if not bids[place] > 0:
            cause = "it has no bid and is not sold"
        return Fate(item=item, stage="rerank", cause=cause, score=float(revenue[place]), needed=needed, measure=ECPM)

    def _too_similar(self, item: str, rows: np.ndarray, place: int, values: np.ndarray) -> Fate:
        """Against the item of the last slot, when that was chosen."""
        slate, diversity = self._trace["rerank"], self._bundle.settings.rerank.diversity
        relevance = values / values.max()
        vectors = unit(np.asarray(self._bundle.item_vectors)[rows].astype(np.float32))
        before = np.isin(rows, slate[:-1])
        nearest = np.maximum(vectors @ vectors[before].T, 0).max(axis=1) if before.any() else np.zeros(len(rows))
        marginal = (1 - diversity) * relevance - diversity * nearest
        return Fate(item=item, stage="rerank", cause="less relevant, or too much like the items before the last",
                    score=float(marginal[place]), needed=_lowest(marginal[rows == slate[-1]]), measure=RELEVANCE)


def _lowest(values: np.ndarray) -> float | None:
    """None of none: where the request alone describes what took the slots."""
    return float(values.min()) if len(values) else None
