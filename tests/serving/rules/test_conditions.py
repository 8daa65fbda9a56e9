"""Conditions of items against what the market's items are, and of requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from contracts.config.condition import parse
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change import Change, encoded
from serving.catalogue.fresh_bundle import FreshBundle
from serving.request.given_items import Described, ItemDescriber
from serving.request.query import RankQuery
from serving.rules.conditions import given_where, holds, items_where
from tests.serving.conftest import Market


def found(text: str, bundle: LoadedBundle) -> set[str]:
    return set(bundle.items.keys_of(items_where(parse(text), bundle).rows()))


def test_a_condition_holds_for_the_items_that_it_describes(loaded: LoadedBundle, market: Market) -> None:
    columns = (market.items[name] for name in ("item_id", "category", "brand", "_bid"))
    items = list(zip(*columns, strict=True))
    assert found('category in ("books", "music")', loaded) == {
        key for key, category, _, _ in items if category in ("books", "music")}
    assert found('category != "books"', loaded) == {key for key, category, _, _ in items if category != "books"}
    assert found("brand == 1000000000000 and not item == 'i01'", loaded) == {
        key for key, _, brand, _ in items if brand == 10**12} - {"i01"}
    assert found('0.5 <= bid < 1 or item in ("i03", "nobody")', loaded) == {
        key for key, _, _, bid in items if 0.5 <= bid < 1} | {"i03"}
    assert found("stock == 0", loaded) == set()


def test_what_changes_is_seen(loaded: LoadedBundle, bundle_folder: Path) -> None:
    fresh = FreshBundle(loaded, bundle_folder)
    told = [("item", {"category": "odd"}), ("stock", 2.0)]
    fresh.apply([Change(item=item, kind=kind, version=1, event_time=10**15, arrived=0, value=encoded(value))  # type: ignore[arg-type]
                 for item in ("i05", "new") for kind, value in told])
    assert found('category == "odd"', fresh.bundle) == {"i05", "new"}
    assert found("stock < 3", fresh.bundle) == {"i05", "new"}
    assert "i05" not in found('category == "games"', fresh.bundle)


def test_items_that_a_request_describes(loaded: LoadedBundle) -> None:
    described: dict[str, Described] = {
        "a": {"category": "books", "tags": ("red", "new"), "price": 2.0}, "b": {"category": "games"}}
    given = ItemDescriber(loaded).rows(["a", "b", "i01"], described, {"a": 0.4, "b": 2.0})[1]
    assert given is not None
    for text, expected in (('category == "books"', [True, False]), ("price <= 2", [True, False]),
                           ("bid > 1", [False, True]), ('item == "b"', [False, True]),
                           ("price != 2", [False, True]), ('tags == "red"', [True, False])):
        assert given_where(parse(text), given).tolist() == expected


@pytest.mark.parametrize(("text", "expected"), [
    ('placement == "top"', True), ('placement != "top"', False), ('device == "phone" and hour >= 7', True),
    ("hour == 7", True), ("hour == 7.0", True), ("hour < 7", False), ('mood == "bad"', False), ('mood != "bad"', True)])
def test_requests(text: str, expected: bool) -> None:
    query = RankQuery("u", 1, context={"device": "phone", "hour": 7}, placement="top")
    assert holds(parse(text), query) is expected
    assert holds(None, query)
