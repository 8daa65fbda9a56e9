"""One request on its way through the funnel: what it holds after every stage, and what stands in for one.

    stage       begins when there is time for it and what follows     else, or when it raises
    retrieve    search, answer                                        popular items that the filters admit; a channel of
                                                                      retrieve.channels: popular items for its quota
    prerank     score, answer                                         the two-tower score
    rank        score, answer; in chunks where time is short          the previous order and its probabilities
    rerank      always (an ad without a price cannot be shown)        organic order, without prices
    explain     reasons, answer                                       no reasons

A stage is also left out where more comes than can be answered whole: first rank, then prerank, at last the search, by
the level of serving/admission/brown_out.py. Times are running quantiles (serving/request/stage_clock.py). What a run
holds is replaced as a whole after each stage, so that another thread can answer from it (`salvage`) while a stage
overruns: an overrun costs stages, not the answer, unless described items are not read yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import torch

from contracts.errors import SluiceError
from serving.request.candidates import Candidates
from serving.request.deadline import Cancelled, Deadline, DeadlineExpired
from serving.request.query import MORE_COMES, Fallback, RankAnswer, RankQuery, Reason, StageReport, StageStatus
from serving.request.request_features import Requester
from serving.stages.bundle_stages import ANSWER, CHUNK, Stages, finding
from serving.stages.prerank import CHUNK as PRERANK_CHUNK
from serving.stages.rank import CHUNK as RANK_CHUNK
from serving.stages.reasons import without_reasons
from serving.stages.rerank import NO_TIME, Slate, slate_items
from serving.stages.retrieval import NO_VECTOR, Retrieved
from serving.stages.scoring_stage import Held, Stage

Result = TypeVar("Result")
Trace = dict[str, np.ndarray]
CHUNKS = {"prerank": PRERANK_CHUNK, "rank": RANK_CHUNK}
SLOW_RERANK = 0.005  # seconds; up to these it is always done
OVERRAN = "it overran the time of the request"
LEFT_OUT = ("rank", "prerank", "retrieve")  # so many of them as the level says
log = logging.getLogger("sluice.serving")


class RequestRun:
    """`complete` is called once; `salvage` at any time, also by another thread meanwhile."""

    brief = False

    def __init__(self, stages: Stages, query: RankQuery, deadline: Deadline) -> None:
        self._stages, self._query, self.deadline = stages, query, deadline
        self._by_value = query.rerank and stages.rerank.kind == "auction"
        self._requester: Requester | None = None
        self._held: Held | None = None
        self._ranked: Held | None = None
        self._reranking = False
        self._slate: tuple[Slate, Held] | None = None
        self._left_out: tuple[str, ...] = ()
        self._rules = stages.retrieval.rules.active(query)
        self._before = () if query.fresh is None else (query.fresh.report,)

    @property
    def partial_ok(self) -> bool:
        """As the request says."""
        return self._query.partial_ok

    @property
    def least(self) -> float:
        """Seconds of work below which there is no answer."""
        return self._stages.least(self._query)

    def simplify(self, level: int) -> None:
        """Before it begins: to do without so many stages. Of given candidates there is no search to be left out."""
        self._left_out = LEFT_OUT[: level if self._query.candidates is None else min(level, 2)]

    @torch.inference_mode()
    def complete(self, trace: Trace | None = None) -> RankAnswer:
        """Every stage that time allows. Raises DeadlineExpired, Cancelled, and without `partial_ok` a stage's error."""
        held = self._ranked = self._ranked or self._rank(trace)
        self.deadline.checkpoint()
        self._reranking = True
        slate, held = self._slate = self._reranked(held)
        if trace is not None:
            trace["rerank"] = slate.candidates.rows
        return self._answer(slate, held, *self._explained(slate.candidates, held.requester))

    def following(self, query: RankQuery, deadline: Deadline) -> RequestRun | None:
        """A run that begins with what this one has ranked, less what is `shown`; None where it asks for something else,
        or not enough is left."""
        theirs, own = (replace(one, limit=1, shown=(), placement="") for one in (query, self._query))
        if self._ranked is None or theirs != own or self._stages.retrieval.rules.active(query) != self._rules:
            return None
        candidates = self._ranked.candidates
        shown = set(query.shown)
        left = [place for place, key in enumerate(candidates.keys_of(self._stages.bundle.items)) if key not in shown]
        if len(left) < query.limit:
            return None
        run = RequestRun(self._stages, query, deadline)
        reports = tuple(replace(report, microseconds=0) for report in self._ranked.reports)
        run._ranked = self._ranked._replace(candidates=candidates.take(np.array(left)), reports=reports)
        run._held = run._ranked
        return run

    def _rank(self, trace: Trace | None) -> Held:
        """From all items to those that the ranker has ordered."""
        held = self._held = self._retrieve()
        if trace is not None:
            trace["retrieve"] = held.candidates.rows
        for name in ("prerank", "rank"):
            held = self._held = self._scored(name, held)
            if trace is not None:
                trace[name] = held.candidates.rows
        return held

    @torch.inference_mode()
    def salvage(self) -> RankAnswer:
        """An answer from what is there now: the stages that are not done are replaced by their fallbacks."""
        slate, held = self._slate or self._salvaged()
        return self._answer(slate, held, *without_reasons(len(slate.candidates), NO_TIME, self._query.explain))

    def _salvaged(self) -> tuple[Slate, Held]:
        held = self._held or self._unsearched()
        done = {report.name for report in held.reports}
        for name, fallback in (("prerank", Fallback.TWO_TOWER_SCORE), ("rank", Fallback.PREVIOUS_ORDER)):
            if name not in done:
                held = held.after(self._previous(held, fallback, OVERRAN), name, 0)
        return self._organic(held, 0, OVERRAN) if self._reranking else self._reranked(held)

    def _unsearched(self) -> Held:
        """Raises DeadlineExpired rather than read described items, which may take as long as the request has had."""
        if any(self._stages.bundle.items.row(key) < 0 for key in self._query.features):
            raise DeadlineExpired("the time was over before the described items were read; send fewer, or more time")
        return self._popular(self._requester or self._stages.features.requester(self._query), None, 0, OVERRAN)

    def _retrieve(self) -> Held:
        stages, query, last = self._stages, self._query, self._last
        begun = stages.clock.now()
        requester = self._requester = stages.features.requester(query)
        if "retrieve" in self._left_out:
            return self._popular(requester, None, begun, MORE_COMES)
        vector = self._user_vector(requester)
        cause = "the user's vector could not be computed"
        if vector is not None:
            if not stages.clock.fits(finding(query), last, self.deadline):
                self._insist("retrieve")
                return self._popular(requester, vector, begun, NO_TIME)
            found, cause = self._attempt(
                lambda: stages.retrieval.run(query, requester, vector, self._by_value,
                                             self.deadline.before(last)), "retrieve")
            if found is not None:
                spent = stages.clock.now() - begun
                stages.clock.tell(finding(query), spent - found.aside)
                if found.dropped:
                    self._insist("retrieve")
                status = StageStatus.DEGRADED if found.dropped else StageStatus.COMPLETE
                report = StageReport("retrieve", found.offered, len(found.candidates), round(spent * 1e6), status,
                                     found.dropped)
                marked = stages.retrieval.rules.leading(self._rules, found.candidates)
                return Held(requester, vector, marked, found.unknown, (*self._before, report))
        return self._popular(requester, vector, begun, cause)

    def _user_vector(self, requester: Requester) -> np.ndarray | None:
        """None where it cannot be computed; NO_VECTOR of one of whom nothing is known where no stage would read it."""
        if not self._stages.retrieval.asks_tower(requester) and not self._stages.prerank.reads_towers:
            return NO_VECTOR
        return self._attempt(lambda: self._stages.user_tower(requester.inputs), "retrieve")[0]

    def _popular(self, requester: Requester, vector: np.ndarray | None, begun: float, cause: str) -> Held:
        found: Retrieved = self._stages.retrieval.popular(self._query, requester)
        candidates = found.candidates
        if vector is not None:
            candidates = self._stages.retrieval.with_tower_score(candidates, vector)
        spent = round((self._stages.clock.now() - begun) * 1e6) if begun else 0
        report = StageReport("retrieve", found.offered, len(candidates), spent, StageStatus.DEGRADED, cause,
                             Fallback.POPULAR)
        marked = self._stages.retrieval.rules.leading(self._rules, candidates)
        return Held(requester, vector, marked, found.unknown, (*self._before, report))

    def _scored(self, name: str, held: Held) -> Held:
        """Pre-ranking or ranking: whole, in chunks, or not at all."""
        clock, begun = self._stages.clock, self._stages.clock.now()
        fallback = Fallback.TWO_TOWER_SCORE if name == "prerank" else Fallback.PREVIOUS_ORDER
        if name in self._left_out:
            return held.after(self._previous(held, fallback, MORE_COMES), name, 0)
        if held.vector is None and name == "prerank":
            return held.after(self._previous(held, fallback, "the user's vector could not be computed"), name, 0)
        size, chunk, last = CHUNKS[name], name + CHUNK, self._last
        whole = clock.fits(name, last, self.deadline)
        if not whole and (len(held.candidates) <= size or not clock.fits(chunk, last, self.deadline)):
            self._insist(name)
            return held.after(self._previous(held, fallback, NO_TIME), name, 0)
        deadline = self.deadline.before(last, clock.estimate(name))
        try:
            stage, cause = self._attempt(lambda: self._work(name, held, deadline), name)
        except Cancelled:
            clock.tell(name if whole else chunk, clock.now() - begun)
            raise
        spent = clock.now() - begun
        if stage is None:
            return held.after(self._previous(held, fallback, cause), name, round(spent * 1e6))
        if stage.status is StageStatus.COMPLETE:
            clock.tell(name, spent)
        else:
            self._insist(name)
            clock.tell(chunk, spent * size / stage.scored)
        return held.after(stage, name, round(spent * 1e6))

    def _work(self, name: str, held: Held, deadline: Deadline) -> Stage:
        query = self._query
        if name == "rank":
            return self._stages.rank.run(held.candidates, held.requester, self._by_value, query.limit, deadline)
        assert held.vector is not None
        return self._stages.prerank.run(
            held.candidates, held.requester, held.vector, self._by_value, query.limit, deadline)

    def _previous(self, held: Held, fallback: Fallback, cause: str) -> Stage:
        """The candidates as they are, cut to what the stage would have kept."""
        status = StageStatus.SKIPPED if cause in (NO_TIME, MORE_COMES) else StageStatus.DEGRADED
        kept = held.candidates
        if fallback is Fallback.TWO_TOWER_SCORE:
            kept = self._stages.prerank.by_towers(kept, self._by_value)
        return Stage(kept, status, cause, fallback)

    def _reranked(self, held: Held) -> tuple[Slate, Held]:
        """The slate; its report is the last of those held."""
        query, clock, begun = self._query, self._stages.clock, self._stages.clock.now()
        after = clock.estimate(ANSWER)
        if clock.estimate("rerank") > SLOW_RERANK and not clock.fits("rerank", after, self.deadline):
            self._insist("rerank")
            return self._organic(held, 0, NO_TIME)
        slate, cause = self._attempt(lambda: self._stages.rerank.run(
            held.candidates, query.limit, query.rerank, self.deadline.before(after), self._rules), "rerank")
        spent = clock.now() - begun
        if slate is None:
            return self._organic(held, spent, cause)
        clock.tell("rerank", spent)
        return slate, _after_rerank(held, slate, spent)

    def _organic(self, held: Held, spent: float, cause: str) -> tuple[Slate, Held]:
        slate = self._stages.rerank.organic(held.candidates, self._query.limit, cause, self._rules)
        return slate, _after_rerank(held, slate, spent)

    @property
    def _last(self) -> float:
        """Seconds that are needed after any stage that scores."""
        clock = self._stages.clock
        rerank = clock.estimate("rerank")
        return (rerank if rerank < SLOW_RERANK else SLOW_RERANK) + clock.estimate(ANSWER)

    def _explained(self, slate: Candidates, requester: Requester) -> tuple[list[list[Reason]], StageReport]:
        """Explains the ranker's logits; where the ranker did not run there is nothing to explain."""
        if not self._query.explain:
            return without_reasons(len(slate), "the request asked for none", False)
        if "rank" not in slate.scores:
            return without_reasons(len(slate), "there are no scores of the ranker to explain", len(slate) > 0)
        if not self._stages.clock.fits("explain", self._stages.clock.estimate(ANSWER), self.deadline):
            self._insist("explain")
            return without_reasons(len(slate), NO_TIME, True)
        clock, begun = self._stages.clock, self._stages.clock.now()
        reasons, cause = self._attempt(lambda: self._stages.reasons.top(slate.rows, requester, slate.given), "explain")
        spent = clock.now() - begun
        if reasons is None:
            return without_reasons(len(slate), cause, True)
        clock.tell("explain", spent)
        return reasons, StageReport("explain", len(slate), len(slate), round(spent * 1e6))

    def _attempt(self, work: Callable[[], Result], name: str) -> tuple[Result | None, str]:
        """What the work returns, or None and why not. Raises what it raises where the request wants all or nothing."""
        try:
            return work(), ""
        except SluiceError:
            raise
        except Exception as error:
            if not self._query.partial_ok:
                raise
            log.error("stage %s failed, its fallback answers", name, exc_info=error)
            return None, f"it failed: {type(error).__name__}"

    def _insist(self, name: str) -> None:
        if not self._query.partial_ok:
            raise DeadlineExpired(f"no time for the whole stage {name!r}, and the request takes no partial answer; "
                                  "send it with more time, or with partial_ok")

    def _answer(self, slate: Slate, held: Held, reasons: Sequence[list[Reason]], explained: StageReport) -> RankAnswer:
        bundle, clock, begun = self._stages.bundle, self._stages.clock, self._stages.clock.now()
        items = slate_items(slate, reasons, bundle.items)
        answer = RankAnswer(items, [*held.reports, explained], bundle.version, held.unknown, held.requester.known,
                            held.requester.inputs)
        clock.tell(ANSWER, clock.now() - begun)
        return answer


def _after_rerank(held: Held, slate: Slate, seconds: float) -> Held:
    stage = Stage(slate.candidates, slate.status, slate.cause, slate.fallback)
    return held.after(stage, "rerank", round(seconds * 1e6))
