"""Whole funnels under rules: whole answers, fallbacks, changed and described items, pages; and what explains them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.config.rules import Rule
from serving.bundle.bundle_settings import BundleSettings
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change import Change, encoded
from serving.catalogue.fresh_bundle import FreshBundle
from serving.request.deadline import Deadline
from serving.request.query import PageQuery, RankAnswer, RankQuery
from serving.server.page_run import PageRun
from serving.stages.funnel import Funnel
from serving.stages.request_run import RequestRun
from serving.why_not.why_not_run import WhyNotRun
from tests.serving.conftest import USERS, Market, Publish

LIMIT = 6
NO_BOOKS = Rule(name="no books", never='category == "books"')
FEW = Rule(name="few of a brand", cap="brand", most=1)
PINNED = Rule(name="launch", pin="i13", position=2)
BOOSTED = Rule(name="more games", boost='category == "games"', factor=1000.0)
ALL = (NO_BOOKS, FEW, PINNED, BOOSTED)


def ruled(bundle: LoadedBundle, *rules: Rule, **rerank: Any) -> LoadedBundle:
    settings = bundle.settings.model_copy(update={
        "rules": rules, "rerank": bundle.settings.rerank.model_copy(update=rerank)})
    return replace(bundle, settings=settings)


@pytest.fixture(scope="module")
def without_bids(publish_bundle: Publish) -> LoadedBundle:
    return LoadedBundle.load(publish_bundle(has_bid=False))


def salvaged(funnel: Funnel, query: RankQuery) -> RankAnswer:
    """As when the first stage overruns."""
    return funnel.begin(query, Deadline(None)).salvage()


def without(stage: str) -> Callable[[Funnel, RankQuery], RankAnswer]:
    """That stage fails."""

    def answer(funnel: Funnel, query: RankQuery) -> RankAnswer:
        class Broken:
            def __getattr__(self, name: str) -> Any:
                if name == "run":
                    raise ZeroDivisionError
                return getattr(stages[stage], name)

        stages: dict[str, Any] = {"prerank": funnel.stages.prerank, "rank": funnel.stages.rank,
                                  "rerank": funnel.stages.rerank}
        broken: Any = Broken()
        return RequestRun(replace(funnel.stages, **{stage: broken}), query, Deadline(None)).complete()

    return answer


WAYS: dict[str, Callable[[Funnel, RankQuery], RankAnswer]] = {
    "whole": lambda funnel, query: funnel.rank(query, Deadline(None)), "salvaged": salvaged,
    "prerank": without("prerank"), "rank": without("rank"), "rerank": without("rerank"),
    "organic": lambda funnel, query: funnel.rank(replace(query, rerank=False), Deadline(None)),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", ["auction", "mmr", "none"])
def test_rules_hold_in_every_answer_however_degraded(
    loaded: LoadedBundle, without_bids: LoadedBundle, market: Market, kind: str, way: str
) -> None:
    bundle = ruled(loaded if kind == "auction" else without_bids, *ALL, kind=kind)
    funnel, of = Funnel(bundle), dict(zip(market.items["item_id"], zip(
        market.items["category"], market.items["brand"], strict=True), strict=True))
    for user in [f"u{number:02d}" for number in range(0, USERS, 7)] + ["nobody"]:
        shown = [item.item for item in WAYS[way](funnel, RankQuery(user, LIMIT)).items]
        assert len(shown) == LIMIT
        assert shown[1] == "i13"
        assert all(of[item][0] != "books" for item in shown)
        brands = Counter(of[item][1] for item in shown if of[item][1] is not None)
        assert max(brands.values()) == 1


def test_without_rules_that_a_request_is_under_nothing_changes(loaded: LoadedBundle) -> None:
    elsewhere = [rule.model_copy(update={"when": 'placement == "top"'}) for rule in ALL]
    for user in ("u01", "u04", "nobody"):
        plain, found = (Funnel(bundle).rank(RankQuery(user, LIMIT, explain=True), Deadline(None))
                        for bundle in (loaded, ruled(loaded, *elsewhere)))
        assert found.items == plain.items


def test_an_auction_under_rules_that_say_nothing_sells_as_without(loaded: LoadedBundle) -> None:
    """A cap that is never reached and a boost of none: the same slate, prices and runners-up."""
    idle = (Rule(name="wide", cap="brand", most=100), Rule(name="once", boost="bid >= 0", factor=1.0))
    for reserve in (0.0, 300.0):
        for user in ("u01", "u02", "nobody"):
            plain, found = (Funnel(bundle).rank(RankQuery(user, LIMIT), Deadline(None)).items
                            for bundle in (ruled(loaded, reserve_price=reserve),
                                           ruled(loaded, *idle, reserve_price=reserve)))
            assert [one.item for one in found] == [one.item for one in plain]
            assert [one.sold for one in found] == [one.sold for one in plain]


def test_a_boost_lifts_its_items_and_neither_probability_nor_price_beyond_the_bid(loaded: LoadedBundle) -> None:
    plain, found = (Funnel(bundle).rank(RankQuery("u02", LIMIT), Deadline(None)).items
                    for bundle in (loaded, ruled(loaded, BOOSTED)))
    games = loaded.filters["category"].items(["games"])
    assert not games.contains(loaded.items.rows([one.item for one in plain])).all()
    assert games.contains(loaded.items.rows([one.item for one in found])).all()
    for one in found:
        assert one.sold is not None
        assert one.stage_scores["boost"] == 1000.0
        assert one.score == pytest.approx(1000 * one.sold.bid * one.probability * 1000, rel=1e-6)
        assert one.sold.price <= one.sold.bid
        assert one.sold.price == pytest.approx(min(one.sold.bid, one.sold.to_beat / (1000 * one.probability)))


def test_a_pinned_item_is_sold_at_the_reserve_and_comes_by_the_rule(loaded: LoadedBundle) -> None:
    last = Rule(name="last", pin="i79", position=99)
    answer = Funnel(ruled(loaded, PINNED, last, reserve_price=0.1)).rank(RankQuery("u01", LIMIT), Deadline(None))
    second, end = answer.items[1], answer.items[-1]
    assert (second.item, second.channel, end.item) == ("i13", "rule", "i79")
    for one in (second, end):
        assert one.sold is not None
        assert (one.sold.to_beat, one.sold.runner_up) == (0.1, "")
        assert one.sold.price == pytest.approx(min(one.sold.bid, 0.1 / (1000 * one.probability)))


def test_a_pin_gives_way_to_filters_to_the_requests_own_list_and_to_never(loaded: LoadedBundle) -> None:
    funnel = Funnel(ruled(loaded, PINNED))
    for query in (RankQuery("u01", LIMIT, excluded={"category": ("games",)}), RankQuery("u01", 2, shown=("i13",)),
                  RankQuery("u01", LIMIT, candidates=("i01", "i02"))):
        assert "i13" not in [one.item for one in funnel.rank(query, Deadline(None)).items]
    listed = funnel.rank(RankQuery("u01", LIMIT, candidates=("i01", "i02", "i13")), Deadline(None)).items
    assert listed[1].item == "i13"
    forbidden = Funnel(ruled(loaded, PINNED, Rule(name="not it", never='item == "i13"')))
    assert "i13" not in [one.item for one in forbidden.rank(RankQuery("u01", LIMIT), Deadline(None)).items]


@pytest.mark.parametrize("way", WAYS)
def test_an_item_that_two_rules_pin_is_shown_once_where_the_first_says(loaded: LoadedBundle, way: str) -> None:
    funnel = Funnel(ruled(loaded, PINNED, Rule(name="again", pin="i13", position=4)))
    shown = [one.item for one in WAYS[way](funnel, RankQuery("u01", LIMIT)).items]
    assert (shown[1], shown.count("i13"), len(shown)) == ("i13", 1, LIMIT)


def test_a_pinned_item_leads_the_requests_own_list_so_that_who_is_cut_short_keeps_it(loaded: LoadedBundle) -> None:
    funnel, own = Funnel(ruled(loaded, PINNED)), ("i01", "i02", "i13", "i03")
    trace: dict[str, np.ndarray] = {}
    funnel.rank(RankQuery("u01", LIMIT, candidates=own), Deadline(None), trace)
    assert [loaded.items.key(row) for row in trace["retrieve"].tolist()] == ["i13", "i01", "i02", "i03"]


def test_changed_and_described_items_are_under_the_rules(loaded: LoadedBundle, bundle_folder: Path) -> None:
    fresh = FreshBundle(ruled(loaded, NO_BOOKS, Rule(name="new", pin="new", position=1)), bundle_folder)

    def change(item: str, kind: Any, value: object) -> Change:
        return Change(item=item, kind=kind, version=1, event_time=10**15, arrived=0, value=encoded(value))

    fresh.apply([change("new", "item", {"category": "games"}), change("new", "bid", 1.0)])
    funnel, query = Funnel(fresh.bundle), RankQuery("u01", LIMIT)
    first = funnel.rank(query, Deadline(None)).items[0].item
    assert first == "new"
    fresh.apply([change("new", "item", {"category": "books"})])
    assert "new" not in [one.item for one in funnel.rank(query, Deadline(None)).items]
    described = {"a": {"category": "books"}, "b": {"category": "games"}}
    own = RankQuery("u01", LIMIT, candidates=("a", "b"), features=described, bids={"a": 9.0, "b": 1.0})
    assert [one.item for one in funnel.rank(own, Deadline(None)).items] == ["b"]


def test_a_placement_has_rules_of_its_own_and_shares_the_work_where_it_has_not(loaded: LoadedBundle) -> None:
    top = NO_BOOKS.model_copy(update={"when": 'placement == "top"'})
    funnel = Funnel(ruled(loaded, top))
    books = loaded.filters["category"].items(["books"])

    def page(*names: str) -> PageRun:
        query = RankQuery("u00", LIMIT, filters={"category": ("books", "games")})
        queries = tuple(replace(query, placement=name) for name in names)
        return PageRun(funnel, PageQuery(names, queries), Deadline(None))

    def shows_books(answer: RankAnswer) -> bool:
        return bool(books.contains(loaded.items.rows([one.item for one in answer.items])).any())

    assert [shows_books(slate) for slate in page("top", "side", "foot").complete().slates] == [False, True, True]
    retrieved = [next(stage.microseconds for stage in slate.stages if stage.name == "retrieve")
                 for slate in page("side", "foot", "top").complete().slates]
    assert [spent > 0 for spent in retrieved] == [True, False, True]


def test_why_not_names_the_rule(loaded: LoadedBundle, market: Market) -> None:
    funnel, query = Funnel(ruled(loaded, NO_BOOKS, FEW, PINNED)), RankQuery("u01", LIMIT)
    shown = [one.item for one in funnel.rank(query, Deadline(None)).items]
    brands = dict(zip(market.items["item_id"], market.items["brand"], strict=True))
    taken = {brands[item] for item in shown} - {None}
    trace: dict[str, np.ndarray] = {}
    funnel.rank(query, Deadline(None), trace)
    ranked = loaded.items.keys_of(trace["rank"])
    capped = next(item for item in ranked if item not in shown and brands[item] in taken)
    fates = WhyNotRun(funnel, query, ("i13", "i00", capped), Deadline(None)).complete().fates
    assert (fates[0].position, fates[0].cause) == (2, "the rule 'launch' puts it there")
    assert (fates[1].stage, fates[1].cause) == ("retrieve", "the rule 'no books' never shows it here")
    assert fates[2].stage == "rerank"
    assert fates[2].cause == (f"the rule 'few of a brand' lets at most 1 of brand '{brands[capped]}' into a slate")


def test_rules_travel_in_the_bundles_settings(market: Market, tmp_path: Path) -> None:
    config = market.config.model_copy(update={"rules": ALL})
    BundleSettings.of(config, market.spec, "dnn").write(tmp_path)
    assert BundleSettings.read(tmp_path).rules == ALL
    earlier = json.loads((tmp_path / "settings.json").read_text())
    del earlier["rules"]
    (tmp_path / "settings.json").write_text(json.dumps(earlier))
    assert BundleSettings.read(tmp_path).rules == ()
