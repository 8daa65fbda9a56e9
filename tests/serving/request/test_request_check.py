from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from contracts.config.stages import Serve
from contracts.errors import RequestError
from contracts.features.event_features import ToldEvents
from contracts.features.feature_spec import FeatureField, FeatureSpec
from serving.request.query import ContextValue, PageQuery, RankQuery
from serving.request.request_check import check, check_features, check_page, check_value

SPEC = FeatureSpec(fields=(
    FeatureField(name="device", kind="categorical", side="context", vocabulary="device", size=4),
    FeatureField(name="zone", kind="categorical", side="context", key_type="int64", vocabulary="zone", size=4),
    FeatureField(name="member", kind="categorical", side="context", key_type="bool", vocabulary="member", size=4),
    FeatureField(name="hour", kind="numeric", side="context"),
    FeatureField(name="moods", kind="multi_valued", side="context", vocabulary="moods", size=4, length=2),
    FeatureField(name="views_count_1m", kind="counter", side="item"),
    FeatureField(name="brand_name", kind="categorical", side="item", vocabulary="brand_name", size=4),
))
SERVE = Serve(max_limit=10, max_candidates=3, default_limit=5)


def refused(field: str, **query: object) -> str:
    with pytest.raises(RequestError) as caught:
        check(RankQuery(**{"user": "u", "limit": 5, **query}), SERVE, SPEC, {"brand"})  # type: ignore[arg-type]
    assert caught.value.field == field
    return str(caught.value)


def test_what_is_right_passes() -> None:
    context: dict[str, ContextValue] = {"device": "phone", "zone": 3, "member": True, "hour": 4}
    check(RankQuery("u", 10, context, ("a",), {"brand": ("x",)}, ("i",)), SERVE, SPEC, {"brand"})


def test_a_column_of_events_that_the_bundle_does_not_read_is_refused() -> None:
    query = RankQuery("u", 5, recent_items=("i",), told=ToldEvents(columns={"ratin": ["5"]}))
    with pytest.raises(RequestError, match=r"retrieve.events of this bundle.*did you mean 'rating'"):
        check(query, SERVE, SPEC, {"brand"}, event_columns=("rating",))


@pytest.mark.parametrize("limit", [0, -1, 11])
def test_the_limit_has_bounds(limit: int) -> None:
    message = refused("limit", limit=limit)
    assert f"is {limit}, must lie between 1 and 10 (serve.max_limit)" in message


def test_unknown_context_field_names_the_nearest() -> None:
    assert "did you mean 'device'?" in refused("context[devise]", context={"devise": "phone"})


def test_item_fields_are_no_context() -> None:
    said = refused("context[brand_name]", context={"brand_name": "red"})
    assert "there are device, hour, member, moods, zone" in said


@pytest.mark.parametrize(("name", "value"), [
    ("device", 3), ("device", True), ("device", "a\0"), ("zone", "3"), ("zone", 3.0), ("zone", True), ("zone", 2**63),
    ("member", 1), ("member", "true"), ("hour", "noon"), ("hour", True), ("hour", float("nan")), ("hour", float("inf")),
    ("hour", 10**400),
])
def test_context_of_the_wrong_type(name: str, value: ContextValue) -> None:
    assert repr(value)[:20] in refused(f"context[{name}]", context={name: value})


def test_a_list_is_for_a_field_with_several_values() -> None:
    """As many as somebody sends: what is beyond the field's length is left out, as offline."""
    check(RankQuery("u", 5, {"moods": ("calm", "late", "far")}), SERVE, SPEC, {})
    check(RankQuery("u", 5, {"moods": "calm"}), SERVE, SPEC, {})
    check(RankQuery("u", 5, {"moods": ()}), SERVE, SPEC, {})
    assert "is a list of 1 values, and the field takes one" in refused("context[device]", context={"device": ("a",)})
    assert "string is needed" in refused("context[moods][1]", context={"moods": ("calm", 3)})


def test_unknown_filter_names_the_nearest() -> None:
    assert "did you mean 'brand'?" in refused("filters[brnad]", filters={"brnad": ("x",)})


def test_a_filter_without_values() -> None:
    assert "would keep no item" in refused("filters[brand]", filters={"brand": ()})


@pytest.mark.parametrize(("query", "field"), [
    ({"features": {"a": {"brand_name": "red"}, "b": {}}}, "features[b]"),
    ({"features": {"a": {"colour": "red"}}}, "features[a][colour]"),
    ({"features": {"a": {"brand_name": 3}}}, "features[a][brand_name]"),
    ({"features": {"a": {}}}, "features[a].bid"),
    ({"features": {"a": {}}, "bids": {"a": 0.0}}, "features[a].bid"),
    *(({"features": {"a": {}}, "bids": {"a": bid}}, "features[a].bid")
      for bid in (-1.0, float("nan"), float("inf"), 1e308, 1.1e9)),
])
def test_a_candidate_of_the_requests_own_is_described_whole(query: dict[str, Any], field: str) -> None:
    with pytest.raises(RequestError) as caught:
        check_features(RankQuery("u", 5, candidates=("a",), **query), SPEC, auction=True)
    assert caught.value.field == field


def test_without_an_auction_no_bid_is_needed() -> None:
    described = RankQuery("u", 5, candidates=("a",), features={"a": {"brand_name": "red"}})
    check_features(described, SPEC, auction=False)
    check_features(replace(described, rerank=False), SPEC, auction=True)
    check_features(replace(described, bids={"a": 1.0}), SPEC, auction=True)


@pytest.mark.parametrize("names", [("a", ""), ("a", "a")])
def test_placements_have_names(names: tuple[str, ...]) -> None:
    with pytest.raises(RequestError) as caught:
        check_page(PageQuery(names, (RankQuery("u", 5),) * len(names)))
    assert caught.value.field == "placements[1].name"


LONG = "x\n" * 2_000_000


@pytest.mark.parametrize("query", [
    {"context": {LONG: "a"}}, {"context": {"hour": LONG}}, {"context": {"device": LONG + "\0"}},
    {"context": {"moods": (LONG, 3)}}, {"filters": {LONG: ("x",)}}])
def test_a_refusal_shows_little_of_a_value(query: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        check(RankQuery("u", 5, **query), SERVE, SPEC, {})
    assert len(str(caught.value)) < 300
    assert str(caught.value).isprintable()


def test_a_refusal_names_some_of_many_fields() -> None:
    many = {f"field_{number}": 1 for number in range(1000)}
    assert len(refused_among(many)) < 500


def test_what_excludes_and_what_ranges_is_checked() -> None:
    assert "excludes none" in refused("excluded[brand]", excluded={"brand": ()})
    assert "did you mean 'brand'?" in refused("excluded[brnad]", excluded={"brnad": ("x",)})
    assert "columns of numbers" in refused("ranges[stock]", ranges={"stock": (1.0, 2.0)})
    check(RankQuery("u", 5, ranges={"bid": (1.0, math.inf)}), SERVE, SPEC, {}, {"bid"})
    for wrong, said in (((-math.inf, math.inf), "no bound"), ((2.0, 1.0), "smaller one first"),
                        ((math.nan, 1.0), "smaller one first")):
        with pytest.raises(RequestError, match=said):
            check(RankQuery("u", 5, ranges={"bid": wrong}), SERVE, SPEC, {}, {"bid"})


def refused_among(filters: dict[str, int]) -> str:
    with pytest.raises(RequestError) as caught:
        check(RankQuery("u", 5, filters={"zzz": ("x",)}), SERVE, SPEC, filters)
    return str(caught.value)


def test_a_counter_is_no_number_below_0() -> None:
    fields = {field.name: field for field in SPEC.fields}
    counter, number = fields["views_count_1m"], fields["hour"]
    for value in (0, 0.0, 3, 1e30):
        check_value(counter, value, "values[views_count_1m]")
    check_value(number, -2.5, "context[hour]")
    for low in (-1, -0.5):
        with pytest.raises(RequestError, match=f"is {low}, and no count and no rate is below 0"):
            check_value(counter, low, "values[views_count_1m]")
