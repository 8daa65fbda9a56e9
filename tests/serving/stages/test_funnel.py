from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from contracts.errors import RequestError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Deadline, DeadlineExpired
from serving.request.query import Fallback, RankAnswer, RankQuery, StageStatus
from serving.stages.funnel import Funnel
from serving.stages.prerank import PrerankStage
from serving.stages.rank import RankStage

STAGES = ["retrieve", "prerank", "rank", "rerank", "explain"]
FOREVER = Deadline(None)
USERS = [f"u{number:02d}" for number in range(0, 60, 7)] + ["nobody"]


@pytest.fixture(scope="module")
def funnel(loaded: LoadedBundle) -> Funnel:
    return Funnel(loaded)


def without_times(answer: RankAnswer) -> RankAnswer:
    return replace(answer, stages=[replace(stage, microseconds=0) for stage in answer.stages])


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("rerank", [True, False])
def test_the_laws_of_every_answer(funnel: Funnel, loaded: LoadedBundle, user: str, rerank: bool) -> None:
    answer = funnel.rank(RankQuery(user, 7, {"device": "phone"}, rerank=rerank), FOREVER)
    keys = [item.item for item in answer.items]
    assert len(keys) == len(set(keys)) == 7
    assert answer.known_user is (user != "nobody")
    assert answer.bundle_version == loaded.version
    scores = [item.score for item in answer.items]
    assert scores == sorted(scores, reverse=True)
    row = loaded.users.row(user)
    seen = {loaded.items.key(r) for r in loaded.recent[row] if r >= 0} if row >= 0 else set()
    assert not seen & set(keys)
    for item in answer.items:
        assert 0 < item.probability < 1
        assert set(item.stage_scores) == {"retrieve", "prerank", "rank"}
        assert item.stage_scores["rank"] == item.probability
        assert loaded.bids is not None
        bid = float(loaded.bids[loaded.items.row(item.item)])
        assert item.score == pytest.approx(1000 * bid * item.probability if rerank else item.probability)
        assert (item.price is not None) is rerank
        assert item.price is None or item.price <= bid


@pytest.mark.parametrize("user", USERS)
def test_stages_hand_on_what_they_kept(funnel: Funnel, user: str) -> None:
    trace: dict[str, np.ndarray] = {}
    answer = funnel.rank(RankQuery(user, 5, explain=True), FOREVER, trace)
    assert [stage.name for stage in answer.stages] == STAGES
    for before, after in pairwise(answer.stages):
        assert after.candidates_in == before.candidates_out <= before.candidates_in
    assert {stage.status for stage in answer.stages} == {StageStatus.COMPLETE}
    for stage in answer.stages[:-1]:
        assert len(trace[stage.name]) == stage.candidates_out
    for larger, smaller in pairwise(STAGES[:-1]):
        assert set(trace[smaller].tolist()) <= set(trace[larger].tolist())


def test_the_trace_ends_with_the_slate(funnel: Funnel, loaded: LoadedBundle) -> None:
    trace: dict[str, np.ndarray] = {}
    answer = funnel.rank(RankQuery("u07", 5), FOREVER, trace)
    assert [loaded.items.key(row) for row in trace["rerank"]] == [item.item for item in answer.items]


def test_one_query_has_one_answer(funnel: Funnel) -> None:
    first, second = (funnel.rank(RankQuery("u11", 10, {"hour": 3}), FOREVER) for _ in range(2))
    assert without_times(first) == without_times(second)


def test_filters_hold(funnel: Funnel, loaded: LoadedBundle) -> None:
    answer = funnel.rank(RankQuery("u11", 10, filters={"category": ("music",)}), FOREVER)
    allowed = loaded.filters["category"].passing(("music",))
    assert answer.items
    assert all(allowed[loaded.items.row(item.item)] for item in answer.items)


def test_explicit_candidates_alone(funnel: Funnel) -> None:
    answer = funnel.rank(RankQuery("u11", 10, candidates=("i01", "what", "i02", "i01")), FOREVER)
    assert {item.item for item in answer.items} == {"i01", "i02"}
    assert {item.channel for item in answer.items} == {"explicit"}
    assert answer.unknown_candidates == ["what"]
    assert answer.stages[0].candidates_in == 4


def test_nothing_to_rank_is_an_empty_answer(funnel: Funnel) -> None:
    answer = funnel.rank(RankQuery("u11", 10, candidates=("what",)), FOREVER)
    assert answer.items == []
    assert [stage.candidates_out for stage in answer.stages] == [0] * len(STAGES)


def test_recent_items_are_not_shown_again(funnel: Funnel) -> None:
    first = funnel.rank(RankQuery("u11", 5), FOREVER)
    shown = tuple(item.item for item in first.items)
    assert not set(shown) & {item.item for item in funnel.rank(RankQuery("u11", 5, recent_items=shown), FOREVER).items}


def test_an_empty_list_of_candidates_is_refused(funnel: Funnel) -> None:
    with pytest.raises(RequestError, match="candidates: is an empty list"):
        funnel.rank(RankQuery("u11", 5, candidates=()), FOREVER)


def test_a_wrong_request_is_refused(funnel: Funnel) -> None:
    with pytest.raises(RequestError, match="limit"):
        funnel.rank(RankQuery("u11", 0), FOREVER)


def test_expired_at_entry_is_an_error(funnel: Funnel) -> None:
    with pytest.raises(DeadlineExpired):
        funnel.rank(RankQuery("u11", 5), Deadline(0.0))


def statuses(answer: RankAnswer) -> dict[str, StageStatus]:
    return {stage.name: stage.status for stage in answer.stages}


def lacks_time_for(loaded: LoadedBundle, stage: str, asked: RankQuery) -> RankAnswer:
    """Of a funnel in which the stage is known to take ten seconds, asked with one."""
    funnel = Funnel(loaded)
    funnel.rank(asked, FOREVER)
    for name in (stage, f"{stage}/chunk") if stage in ("prerank", "rank") else (stage,):
        for _ in range(2):
            funnel.clock.tell(name, 10.0)
    return funnel.rank(asked, Deadline(1.0))


def test_no_time_for_ranking_answers_by_the_pre_ranker(loaded: LoadedBundle) -> None:
    answer = lacks_time_for(loaded, "rank", RankQuery("u11", 5))
    stages = {stage.name: stage for stage in answer.stages}
    assert (stages["rank"].status, stages["rank"].fallback) == (StageStatus.SKIPPED, Fallback.PREVIOUS_ORDER)
    assert "deadline" in stages["rank"].cause
    assert answer.degraded
    assert len(answer.items) == 5
    for item in answer.items:
        assert item.probability == loaded.prerank_calibration.apply(np.array(item.stage_scores["prerank"]))
        assert item.price is not None
        assert item.reasons == []


def test_no_time_for_reasons_costs_the_reasons_alone(funnel: Funnel, loaded: LoadedBundle) -> None:
    asked = RankQuery("u11", 5, explain=True)
    answers = funnel.rank(asked, FOREVER), lacks_time_for(loaded, "explain", asked)
    whole, short = map(without_times, answers)
    assert short.stages[-1].fallback is Fallback.WITHOUT_REASONS
    assert all(stage.status is StageStatus.COMPLETE for stage in short.stages[:-1])
    assert short.items == [replace(item, reasons=[]) for item in whole.items]


@pytest.mark.parametrize(("stage", "fallback"), [
    ("retrieve", Fallback.POPULAR), ("prerank", Fallback.TWO_TOWER_SCORE), ("rank", Fallback.PREVIOUS_ORDER),
    ("rerank", Fallback.ORGANIC_ORDER)])
def test_every_stage_has_its_fallback(loaded: LoadedBundle, stage: str, fallback: Fallback) -> None:
    answer = lacks_time_for(loaded, stage, RankQuery("u11", 5))
    found = {report.name: report.fallback for report in answer.stages}
    assert found == {name: fallback if name == stage else Fallback.NONE for name in STAGES}
    assert len({item.item for item in answer.items}) == 5
    assert all(0 < item.probability < 1 for item in answer.items)
    assert all(item.score == item.probability for item in answer.items) or stage != "rerank"


@pytest.mark.parametrize("stage", ["retrieve", "prerank", "rank", "rerank"])
def test_all_or_nothing_is_nothing_without_time(loaded: LoadedBundle, stage: str) -> None:
    with pytest.raises(DeadlineExpired, match="partial"):
        lacks_time_for(loaded, stage, RankQuery("u11", 5, partial_ok=False))


def test_what_is_not_read_yet_may_be_the_cheaper_of_a_search_and_a_list(loaded: LoadedBundle) -> None:
    funnel = Funnel(loaded)
    for name, seconds, least in (("retrieve", 2.0, 2.0), ("list", 0.5, 0.5), ("list", 9.0, 2.0)):
        funnel.clock.tell(name, seconds)
        assert (funnel.least, funnel.floor) == (least, 2.0)


def test_without_reasons_the_answer_is_the_same(funnel: Funnel) -> None:
    whole, plain = (without_times(funnel.rank(RankQuery("u11", 5, explain=asked), FOREVER)) for asked in (True, False))
    assert not plain.degraded
    assert plain.stages[-1].cause == "the request asked for none"
    assert plain.items == [replace(item, reasons=[]) for item in whole.items]
    assert all(item.reasons for item in whole.items)


def test_diversity_without_bids(loaded: LoadedBundle) -> None:
    answer = Funnel(replace(loaded, bids=None)).rank(RankQuery("u11", 5), FOREVER)
    assert all(item.price is None for item in answer.items)
    assert [item.score for item in answer.items] == sorted((item.score for item in answer.items), reverse=True)


@pytest.fixture(scope="module")
def twin(market: Any) -> dict[str, Any]:
    """What the market's item i78 is, which is too new for the vocabulary of ids."""
    row = market.items["item_id"].index("i78")
    return {**{name: market.items[name][row] for name in ("category", "brand", "price", "item_id")},
            "tags": tuple(market.items["tags"][row])}


@pytest.mark.parametrize("rerank", [True, False])
def test_a_candidate_that_the_request_describes_is_ranked_as_what_it_is(
    funnel: Funnel, loaded: LoadedBundle, twin: dict[str, Any], rerank: bool
) -> None:
    assert loaded.bids is not None
    bid = float(loaded.bids[loaded.items.row("i78")])
    answer = funnel.rank(RankQuery(
        "u06", 4, {"device": "phone"}, ("twin", "i01", "i78", "i02", "nobody"), {}, rerank=rerank, explain=True,
        features={"twin": twin}, bids={"twin": bid}), FOREVER)
    found = {item.item: item for item in answer.items}
    assert set(found) == {"twin", "i01", "i78", "i02"}
    assert answer.unknown_candidates == ["nobody"]
    assert found["twin"].score == pytest.approx(found["i78"].score, rel=1e-5)
    assert found["twin"].stage_scores == pytest.approx(found["i78"].stage_scores, abs=1e-5)
    told = [{reason.field: reason.logit_change for reason in found[key].reasons} for key in ("twin", "i78")]
    assert told[0] == pytest.approx(told[1], abs=1e-4)
    assert {stage.status for stage in answer.stages[:3]} == {StageStatus.COMPLETE}


def test_filters_hold_for_described_candidates(funnel: Funnel, market: Any, twin: dict[str, Any]) -> None:
    wanted = twin["category"]
    other = next(name for name in ("music", "books") if name != wanted)
    asked = RankQuery("u06", 3, candidates=("twin", "i78", "i01", "i02", "i03"), features={"twin": twin},
                      bids={"twin": 1.0})
    kept = {item.item for item in funnel.rank(replace(asked, filters={"category": (wanted,)}), FOREVER).items}
    assert {"twin", "i78"} <= kept
    kept = {item.item for item in funnel.rank(replace(asked, filters={"category": (other,)}), FOREVER).items}
    assert not {"twin", "i78"} & kept


def test_described_candidates_have_fallbacks_too(
    funnel: Funnel, twin: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    for stage in (PrerankStage, RankStage):
        monkeypatch.setattr(stage, "run", fails)
    answer = funnel.rank(RankQuery("u06", 2, candidates=("twin", "i01"), features={"twin": twin}, bids={"twin": 1.0}),
                         FOREVER)
    assert {item.item for item in answer.items} == {"twin", "i01"}
    assert answer.degraded


def test_diversity_knows_described_candidates(publish_bundle: Any, twin: dict[str, Any]) -> None:
    diverse = Funnel(LoadedBundle.load(publish_bundle(has_bid=False, rerank={"kind": "mmr", "diversity": 1.0})))
    asked = RankQuery("u06", 3, candidates=("twin", "i78", "i01", "i02"), features={"twin": twin})
    assert len({"twin", "i78"} & {item.item for item in diverse.rank(asked, FOREVER).items}) == 1
