"""What is said of an item agrees with the funnel's own trace, for items lost at each stage, and scores say why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from serving.bundle.filter_column import FilterColumn
from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.candidates import Candidates
from serving.request.deadline import Deadline, StageDeadline
from serving.request.query import RankQuery
from serving.request.request_features import Requester
from serving.stages.funnel import Funnel
from serving.stages.rank import RankStage
from serving.stages.request_run import Trace
from serving.stages.scoring_stage import Stage
from serving.why_not.why_not_run import ECPM, INNER_PRODUCT, LOGIT, PROBABILITY, RELEVANCE, Fate, WhyNotRun

FOREVER = Deadline(None)
STAGES = ("retrieve", "prerank", "rank", "rerank")


@pytest.fixture(scope="module")
def funnel(loaded: LoadedBundle) -> Funnel:
    return Funnel(loaded)


@pytest.fixture(scope="module")
def diverse(loaded: LoadedBundle) -> Funnel:
    """The same, but for what is done with its ranked candidates."""
    rerank = loaded.settings.rerank.model_copy(update={"kind": "mmr", "diversity": 0.5})
    return Funnel(replace(loaded, settings=loaded.settings.model_copy(update={"rerank": rerank})))


def ask(funnel: Funnel, query: RankQuery, *items: str) -> list[Fate]:
    return WhyNotRun(funnel, query, items, FOREVER).complete().fates


def lost_in(trace: Trace, row: int) -> str:
    return next((stage for stage in STAGES if row not in trace[stage]), "")


def test_what_items_are_held_against_is_computed_once_however_many_are_asked_for(
    funnel: Funnel, loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls, run, items = list[str](), RankStage.run, FilterColumn.items

    def counted_run(stage: RankStage, *rest: Any) -> Stage:
        calls.append("rank")
        return run(stage, *rest)

    def counted_items(column: FilterColumn, wanted: Sequence[str]) -> ItemSet:
        calls.append("filter")
        return items(column, wanted)

    monkeypatch.setattr(RankStage, "run", counted_run)
    monkeypatch.setattr(FilterColumn, "items", counted_items)
    keys = [loaded.items.key(row) for row in range(len(loaded.items))]
    name = next(iter(loaded.filters))
    values = tuple(bytes(value).decode() for value in loaded.filters[name].values[:2])
    ask(funnel, RankQuery("u07", 2, filters={name: values}), *keys)
    assert calls.count("rank") <= 2  # to answer, and to hold all against it
    assert calls.count("filter") <= 3  # and to search again


@pytest.mark.parametrize("user", ["u00", "u07", "u35"])
@pytest.mark.parametrize("by_value", [True, False])
def test_every_item_is_lost_where_the_trace_says(
    funnel: Funnel, loaded: LoadedBundle, user: str, by_value: bool
) -> None:
    query = RankQuery(user, 5, {"device": "phone"}, rerank=by_value)
    trace: Trace = {}
    shown = [item.item for item in funnel.rank(query, FOREVER, trace).items]
    keys = [loaded.items.key(row) for row in range(len(loaded.items))]
    fates = ask(funnel, query, *keys)
    assert [fate.item for fate in fates] == keys
    assert [fate.stage for fate in fates] == [lost_in(trace, row) for row in range(len(keys))]
    assert {fate.stage for fate in fates} == {"retrieve", "prerank", "rerank", ""}
    for fate in fates:
        assert fate.position == (shown.index(fate.item) + 1 if fate.item in shown else 0)
        if fate.score is not None and fate.needed is not None:
            assert fate.score <= fate.needed + 1e-5 * abs(fate.needed)
    measures = {"prerank": ECPM if by_value else LOGIT, "rerank": ECPM if by_value else PROBABILITY}
    assert {fate.measure for fate in fates if fate.stage in measures} == set(measures.values())


def test_an_item_that_the_ranker_had_no_time_for_is_lost_there(
    funnel: Funnel, loaded: LoadedBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first five of the pre-ranker's twenty are ranked before the time is up."""
    work = RankStage.run

    def run(
        self: RankStage, candidates: Candidates, requester: Requester, by_value: bool, limit: int, deadline: Deadline
    ) -> Stage:
        late = Deadline(0.0) if isinstance(deadline, StageDeadline) else deadline
        return work(self, candidates, requester, by_value, limit, late)

    monkeypatch.setattr(RankStage, "run", run)
    monkeypatch.setattr("serving.stages.rank.CHUNK", 5)
    query, trace = RankQuery("u07", 3), Trace()
    funnel.rank(query, FOREVER, trace)
    keys = [loaded.items.key(row) for row in range(len(loaded.items))]
    fates = ask(funnel, query, *keys)
    assert [fate.stage for fate in fates] == [lost_in(trace, row) for row in range(len(keys))]
    lost = [fate for fate in fates if fate.stage == "rank"]
    assert len(lost) == 15
    assert {(fate.cause, fate.score) for fate in lost} == {("the deadline passed after 5 of 20 candidates", None)}
    assert {fate.stage for fate in fates} == {"retrieve", "prerank", "rank", "rerank", ""}


def test_the_score_of_a_lost_ad_is_its_revenue_and_it_needed_the_last_ones(
    funnel: Funnel, loaded: LoadedBundle
) -> None:
    query = RankQuery("u07", 3)
    answer = funnel.rank(query, FOREVER)
    wide = funnel.rank(replace(query, limit=10), FOREVER)
    fourth = wide.items[3]
    fate = ask(funnel, query, fourth.item)[0]
    assert fate.stage == "rerank"
    assert fate.score == pytest.approx(fourth.score, rel=1e-5)
    assert fate.needed == pytest.approx(answer.items[-1].score, rel=1e-5)


def test_an_item_that_is_too_much_like_others_is_measured_as_the_last_one_was(diverse: Funnel) -> None:
    query = RankQuery("u07", 3)
    answer, wide = diverse.rank(query, FOREVER), diverse.rank(replace(query, limit=10), FOREVER)
    fates = ask(diverse, query, *(item.item for item in wide.items[3:]))
    assert {fate.measure for fate in fates} == {RELEVANCE}
    for fate in fates:
        assert fate.score is not None
        assert fate.needed is not None
        assert fate.needed == pytest.approx(answer.items[-1].score, rel=1e-4)
        assert fate.score <= fate.needed + 1e-6


@pytest.mark.parametrize(("kind", "measure"), [("auction", ECPM), ("mmr", RELEVANCE), ("none", PROBABILITY)])
def test_where_described_items_alone_are_above_there_is_a_score_and_none_that_was_needed(
    loaded: LoadedBundle, kind: str, measure: str
) -> None:
    rerank = loaded.settings.rerank.model_copy(update={"kind": kind, "reserve_price": 0.0})
    funnel = Funnel(replace(loaded, settings=loaded.settings.model_copy(update={"rerank": rerank})))
    keys = tuple(loaded.items.key(row) for row in range(10))
    worst = funnel.rank(RankQuery("u07", len(keys), candidates=keys), FOREVER).items[-1].item
    query = RankQuery("u07", 1, candidates=("own", worst), features={"own": {}}, bids={"own": 1e6})
    assert [item.item for item in funnel.rank(query, FOREVER).items] == ["own"]
    (fate,) = ask(funnel, query, worst)
    assert (fate.stage, fate.measure, fate.needed) == ("rerank", measure, None)
    assert fate.score is not None
    assert "reserve" not in fate.cause


def test_what_retrieval_never_looked_at_says_so(funnel: Funnel, loaded: LoadedBundle) -> None:
    recent = loaded.items.key(3)
    query = RankQuery("u07", 5, recent_items=(recent,))
    assert ask(funnel, query, recent)[0].cause.startswith("it is among the user's recent items")
    assert ask(funnel, query, "no-such-item")[0].cause == "the bundle does not know it"
    listed = replace(query, recent_items=None, candidates=tuple(loaded.items.key(row) for row in range(4, 12)))
    assert "names its candidates" in ask(funnel, listed, recent)[0].cause


def test_a_filter_that_does_not_admit_it_is_named(funnel: Funnel, loaded: LoadedBundle) -> None:
    shown = funnel.rank(RankQuery("u07", 5), FOREVER).items[0].item
    category = next(value for value in ("music", "books", "games", "sport")
                    if not loaded.filters["category"].items((value,)).contains(np.array([loaded.items.row(shown)]))[0])
    fate = ask(funnel, RankQuery("u07", 5, filters={"category": (category,)}), shown)[0]
    assert (fate.stage, fate.cause) == ("retrieve", "the filter 'category' does not admit it")


def test_an_item_that_the_towers_placed_too_low_has_its_inner_product(funnel: Funnel, loaded: LoadedBundle) -> None:
    keys = [loaded.items.key(row) for row in range(len(loaded.items))]
    lost = [fate for fate in ask(funnel, RankQuery("u07", 5), *keys) if fate.measure == INNER_PRODUCT]
    assert lost
    assert all(fate.stage == "retrieve" and fate.score < fate.needed for fate in lost)  # type: ignore[operator]


def test_it_needs_no_less_time_than_an_answer(funnel: Funnel) -> None:
    query = RankQuery("u07", 5)
    assert WhyNotRun(funnel, query, ("i",), FOREVER).least == funnel.run(query, FOREVER).least


def test_the_slate_is_that_of_an_answer(funnel: Funnel) -> None:
    query = RankQuery("u07", 5)
    found = WhyNotRun(funnel, query, (), FOREVER).complete()
    assert [item.item for item in found.answer.items] == [item.item for item in funnel.rank(query, FOREVER).items]
    assert found.fates == []
