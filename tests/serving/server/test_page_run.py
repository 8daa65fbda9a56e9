"""Several slates in one run: no item twice, one search where they ask for the same, an answer whatever happens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from contracts.config.stages import Serve
from contracts.errors import RequestError
from serving.bundle.loaded_bundle import LoadedBundle
from serving.request.deadline import Cancelled, Deadline, DeadlineExpired
from serving.request.query import MORE_COMES, Fallback, PageAnswer, PageQuery, RankQuery, StageStatus
from serving.server.page_run import PageRun
from serving.stages.funnel import Funnel

CONTEXT: dict[str, str | float] = {"device": "phone", "hour": 9.0}
FOREVER = Deadline(None)
ASKED = RankQuery("u06", 3, CONTEXT)
SERVE = Serve(max_candidates=50)


@pytest.fixture(scope="module")
def funnel(loaded: LoadedBundle) -> Funnel:
    return Funnel(loaded)


def page(**queries: RankQuery) -> PageQuery:
    return PageQuery(tuple(queries), tuple(queries.values()))


def begin(funnel: Funnel, asked: PageQuery, deadline: Deadline = FOREVER) -> PageRun:
    return PageRun(funnel, asked, deadline)


def items(answer: PageAnswer) -> list[list[str]]:
    return [[item.item for item in slate.items] for slate in answer.slates]


def test_one_placement_is_a_request(funnel: Funnel) -> None:
    alone = funnel.rank(ASKED, FOREVER)
    found = begin(funnel, page(top=ASKED)).complete()
    assert found.names == ("top",)
    assert found.slates[0].items == alone.items


def test_a_page_of_lists_does_not_need_the_time_of_a_search(loaded: LoadedBundle) -> None:
    funnel, listed = Funnel(loaded), replace(ASKED, candidates=("i01", "i02", "i03"))
    for _ in range(2):
        funnel.clock.tell("retrieve", 10.0)
    assert begin(funnel, page(top=listed, side=listed)).least < 10.0
    assert begin(funnel, page(top=ASKED, side=ASKED)).least >= 10.0


@pytest.mark.parametrize("candidates", [("i05", "new"), ("new",)])
def test_a_slate_whose_described_items_are_not_read_in_time_costs_the_others_nothing(
    funnel: Funnel, candidates: tuple[str, ...]
) -> None:
    """Whichever it is: to it they are unknown. Where all slates need such items, there is no answer."""
    described = replace(ASKED, candidates=candidates, features={"new": {"category": "music"}}, bids={"new": 1.0})
    listed, known = replace(ASKED, candidates=("i01", "i02")), set(candidates) - {"new"}
    for asked, found in ((page(top=listed, side=described), [{"i01", "i02"}, known]),
                         (page(top=described, side=listed), [known, {"i01", "i02"}])):
        answer = begin(funnel, asked).salvage()
        assert [set(slate) for slate in items(answer)] == found
        assert all(slate.degraded for slate in answer.slates)
    with pytest.raises(DeadlineExpired, match="described items"):
        begin(funnel, page(top=described, side=described)).salvage()


def test_slates_that_ask_for_the_same_share_one_ranking(funnel: Funnel) -> None:
    """The second takes what a longer first one would have shown next, without another search."""
    top, side = items(found := begin(funnel, page(top=ASKED, side=replace(ASKED, limit=4))).complete())
    longer = funnel.rank(replace(ASKED, limit=7), FOREVER)
    assert top + side == [item.item for item in longer.items]
    assert [report.microseconds for report in found.slates[1].stages[:3]] == [0, 0, 0]
    assert [report.name for report in found.slates[1].stages] == [report.name for report in longer.stages]
    assert not found.slates[1].degraded


def test_no_item_is_shown_twice_whatever_the_slates_ask(funnel: Funnel, loaded: LoadedBundle) -> None:
    known = tuple(loaded.items.key(row) for row in range(12))
    for other in ({"context": {"device": "desk"}}, {"filters": {"category": ("music", "books", "games", "sport")}},
                  {"candidates": known}, {"rerank": False}):
        asked = page(top=replace(ASKED, limit=10), side=replace(ASKED, **other))  # type: ignore[arg-type]
        first, second = items(begin(funnel, asked).complete())
        assert (len(first), len(second)) == (10, 3)
        assert not set(first) & set(second)


def test_a_slate_for_which_too_little_is_ranked_searches_anew(funnel: Funnel, loaded: LoadedBundle) -> None:
    """20 are ranked: the third slate of ten finds none of them left."""
    asked = replace(ASKED, limit=10)
    found = begin(funnel, page(a=asked, b=asked, c=asked)).complete()
    shown = [item for slate in items(found) for item in slate]
    assert loaded.settings.prerank.keep == 20
    assert len(set(shown)) == 30
    assert found.slates[2].stages[0].microseconds > 0


def test_each_slate_gets_its_part_of_the_time(funnel: Funnel) -> None:
    deadlines: list[float] = []
    run = begin(funnel, page(a=ASKED, b=ASKED, c=ASKED), Deadline(30.0))
    for number in range(3):
        deadlines.append(run.part(number).remaining())
    assert deadlines == pytest.approx([10, 15, 30], abs=0.5)


def test_what_is_not_done_in_time_gets_fallbacks(funnel: Funnel) -> None:
    run = begin(funnel, page(top=ASKED, side=replace(ASKED, context={"device": "desk"})))
    found = run.salvage()
    assert [len(slate) for slate in items(found)] == [3, 3]
    assert not set(items(found)[0]) & set(items(found)[1])
    assert {slate.stages[0].fallback for slate in found.slates} == {Fallback.POPULAR}
    assert {slate.stages[0].status for slate in found.slates} == {StageStatus.DEGRADED}


def test_a_page_whose_caller_has_gone_stops(funnel: Funnel) -> None:
    run = begin(funnel, page(top=ASKED, side=ASKED), deadline := Deadline(None))
    deadline.cancel()
    with pytest.raises(Cancelled):
        run.complete()


@pytest.mark.parametrize(("queries", "field"), [
    ({"top": ASKED, "side": replace(ASKED, limit=99)}, "placements[1].limit"),
    ({"top": replace(ASKED, filters={"colour": ("x",)})}, "placements[0].filters[colour]"),
    ({"": ASKED}, "placements[0].name"),
])
def test_what_cannot_be_answered_names_its_placement(funnel: Funnel, queries: Any, field: str) -> None:
    with pytest.raises(RequestError) as caught:
        begin(funnel, page(**queries))
    assert caught.value.field == field


def test_two_placements_of_one_name_are_refused(funnel: Funnel) -> None:
    with pytest.raises(RequestError, match=r"placements\[1\].name: is 'top', as another one's"):
        begin(funnel, PageQuery(("top", "top"), (ASKED, ASKED)))


def test_every_slate_of_a_page_does_without_the_same_stages(funnel: Funnel) -> None:
    run = begin(funnel, page(top=ASKED, other=replace(ASKED, context={"device": "desk"})))
    run.simplify(1)
    for slate in run.complete().slates:
        assert {stage.name: stage.cause for stage in slate.stages}["rank"] == MORE_COMES
        assert len(slate.items) == 3
