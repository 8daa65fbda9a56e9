"""What is served after changes is what a bundle would serve whose items were always so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import ITEM, Artifacts
from contracts.bundle import bundle
from serving.assembly.assemble import assemble
from serving.bundle.loaded_bundle import LoadedBundle
from serving.catalogue.change import WITHDRAWN, Change, Kind, encoded
from serving.catalogue.change_store import ChangeStore
from serving.catalogue.fresh_bundle import LEAST_ROOM, FreshBundle
from serving.catalogue.item_columns import Described, ItemColumns, ItemEncoder
from serving.catalogue.unshown_items import UnshownState
from serving.request.deadline import Deadline
from serving.request.query import RankAnswer, RankQuery
from serving.stages.funnel import Funnel
from serving.stages.retrieval import RetrievalStage
from tests.serving.conftest import BORN, FIRST_BORN, Market, Publish


def change(item: str, kind: Kind, value: object, event_time: int = 10**15) -> Change:
    return Change(item=item, kind=kind, version=1, event_time=event_time, arrived=event_time, value=encoded(value))


def answer(fresh: FreshBundle, limit: int = 10, **asked: object) -> RankAnswer:
    return Funnel(fresh.bundle).rank(RankQuery(user="u01", limit=limit, **asked), Deadline(None))  # type: ignore[arg-type]


def shown(fresh: FreshBundle, limit: int = 10, **asked: object) -> list[str]:
    return [item.item for item in answer(fresh, limit, **asked).items]


@pytest.fixture
def fresh(loaded: LoadedBundle, bundle_folder: Path) -> FreshBundle:
    return FreshBundle(loaded, bundle_folder)


def test_without_changes_it_answers_as_the_bundle_does(loaded: LoadedBundle, fresh: FreshBundle) -> None:
    query = RankQuery(user="u01", limit=10, filters={"category": ("books", "sport")})
    plain = Funnel(loaded).rank(query, Deadline(None))
    found = Funnel(fresh.bundle).rank(query, Deadline(None))
    assert [item.item for item in found.items] == [item.item for item in plain.items]
    np.testing.assert_allclose([item.score for item in found.items], [item.score for item in plain.items], rtol=1e-5)
    assert found.stages[0].candidates_in == plain.stages[0].candidates_in


def test_a_withdrawn_item_is_shown_nowhere(fresh: FreshBundle) -> None:
    first = shown(fresh)[0]
    fresh.apply([change(first, "item", WITHDRAWN), change("nobody", "item", WITHDRAWN)])
    assert first not in shown(fresh)
    assert first not in shown(fresh, candidates=(first, "i05"))
    assert fresh.hidden_items == 1
    fresh.apply([change(first, "item", {})])
    assert shown(fresh)[0] == first
    assert fresh.hidden_items == 0


def test_an_item_that_has_run_out_comes_back_with_its_stock(fresh: FreshBundle) -> None:
    first = shown(fresh)[0]
    fresh.apply([change(first, "stock", 0)])
    assert first not in shown(fresh)
    fresh.apply([change(first, "stock", 3.0)])
    assert first in shown(fresh)


def test_ranges_ask_what_is_true_now(fresh: FreshBundle) -> None:
    fresh.apply([change("i05", "stock", 3), change("i06", "stock", 9), change("i05", "bid", 500.0)])
    assert shown(fresh, ranges={"stock": (1.0, 5.0)}) == ["i05"]
    assert shown(fresh, ranges={"stock": (1.0, float("inf")), "bid": (0.0, 400.0)}) == ["i06"]
    assert "i05" not in shown(fresh, excluded={"category": ("games",)}, ranges={"bid": (400.0, 600.0)})
    fresh.apply([change("new", "item", {})])
    assert within(fresh, bid=(0.0, 0.0)) == {"new"}


@pytest.fixture(scope="module")
def ranged_folder(publish_bundle: Publish) -> Path:
    """Whose requests may ask ranges of `price` and of the age."""
    return publish_bundle(retrieve={"range_fields": ["price"], "created_field": BORN})


def within(fresh: FreshBundle, **ranges: tuple[float, float]) -> set[str]:
    """All items in these ranges, whatever the search finds."""
    allowed = RetrievalStage(fresh.bundle).allowed(RankQuery(user="u01", limit=1, ranges=ranges))
    assert allowed is not None
    return set(fresh.items.keys_of(allowed.rows()))


def test_free_columns_and_the_age_have_ranges_that_changes_keep_true(
    market: Market, ranged_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = float(FIRST_BORN + 100 * 86_400)
    monkeypatch.setattr("serving.bundle.loaded_bundle.time.time", lambda: now)
    loaded = LoadedBundle.load(ranged_folder)
    fresh = FreshBundle(loaded, ranged_folder)
    prices, keys = market.items["price"], market.items["item_id"]
    cheap = {key for key, price in zip(keys, prices, strict=True) if price is not None and price <= 2}
    assert within(fresh, price=(-math.inf, 2.0)) == cheap
    assert within(fresh, age=(0.0, 22 * 86_400.0)) == {"i78", "i79"}
    assert within(fresh, age=(-math.inf, math.inf)) == set(keys) - {"i13"}
    fresh.apply([change("i05", "item", {"price": 1_000.0}), change("i06", "item", {"tags": ["new"]}),
                 change("fresh", "item", {"price": 900.0}, round((now - 5) * 1e6)),
                 change("told", "item", {BORN: now - 9}), change("bare", "item", {}, round((now - 7) * 1e6))])
    assert within(fresh, price=(900.0, 1_000.0)) == {"i05", "fresh"}
    assert within(fresh, price=(-math.inf, 2.0)) == cheap - {"i05"}
    assert within(fresh, age=(0.0, 6.0)) == {"fresh"}
    assert within(fresh, age=(0.0, 9.0)) == {"fresh", "told", "bare"}
    assert within(fresh, age=(0.0, 1e9), price=(950.0, 2e3)) == {"i05"}


def test_of_a_description_that_cannot_be_read_nothing_is_written(ranged_folder: Path) -> None:
    """A bundle before had another kind of column there: a new item gets no row, and one of the bundle stays itself."""
    fresh = FreshBundle(LoadedBundle.load(ranged_folder), ranged_folder)
    fresh.apply([change("bad", "item", {BORN: "yesterday"}), change("i05", "item", {BORN: "x", "category": "odd"}),
                 change("good", "item", {BORN: 5.0})])
    assert [fresh.items.row(item) >= 0 for item in ("bad", "good")] == [False, True]
    assert fresh.bundle.filters["category"].items(["odd"]).count == 0
    assert (fresh.unshown.state.items, fresh.changed_items, fresh.hidden_items) == (2, 1, 0)
    assert fresh.unshown.state.last.startswith(f"'i05': values[{BORN}]: 'x' is no number")


def test_nor_of_one_that_a_filter_cannot_compare(loaded: LoadedBundle, bundle_folder: Path) -> None:
    """A bundle before did not filter by it: without a value the item would slip out of what excludes it."""
    fresh = FreshBundle(replace(loaded, filters={"shop": loaded.filters["category"]}), bundle_folder)
    fresh.apply([change("bad", "item", {"shop": 7.0}), change("i05", "item", {"shop": ["games"]})])
    assert (fresh.items.row("bad"), fresh.unshown.state.items, fresh.changed_items) == (-1, 2, 0)
    assert fresh.unshown.state.last.startswith("'i05': values[shop]: \"('games',)\" is no text")


def test_a_bid_counts_in_search_order_and_price(loaded: LoadedBundle, fresh: FreshBundle) -> None:
    last = shown(fresh)[-1]
    fresh.apply([change(last, "bid", 1000.0)])
    best = answer(fresh).items[0]
    assert best.item == last
    assert best.sold is not None
    assert best.sold.bid == 1000.0
    vector = np.zeros(fresh.index.vectors.shape[1], dtype=np.float32)
    vector[loaded.item_vectors.shape[1]] = 1.0
    assert fresh.index.search(vector, 1).rows[0] == loaded.items.row(last)


def test_a_new_item_is_the_item_that_it_is_described_as(market: object, fresh: FreshBundle) -> None:
    """Of an unknown item with a known one's values every stage says the same."""
    items: Mapping[str, Sequence[object]] = market.items  # type: ignore[attr-defined]
    number = items["item_id"].index("i79")  # its id is in no vocabulary
    values = {name: items[name][number] for name in ("category", "brand", "price", "tags")}
    fresh.apply([change("brand-new", "bid", items["_bid"][number]), change("brand-new", "item", values)])
    both = {item.item: item for item in answer(fresh, candidates=("i79", "brand-new")).items}
    assert both["brand-new"].probability == pytest.approx(both["i79"].probability, rel=1e-4)
    assert both["brand-new"].score == pytest.approx(both["i79"].score, rel=1e-4)
    only = shown(fresh, filters={"category": (str(values["category"]),)}, limit=10)
    assert "brand-new" in only or len(only) == 10


def test_an_item_that_training_saw_comes_to_a_bundle_without_it_with_its_own_id(
    market: Market, trained_copy: Artifacts, loaded: LoadedBundle
) -> None:
    """Though the change does not name the field of keys."""
    (file,) = trained_copy.online_items.iterdir()
    table = pq.read_table(file)
    pq.write_table(table.filter(pc.not_equal(table.column(ITEM), "i03")), file)
    metrics = assemble(market.config, trained_copy, trained_copy.out / "build")
    bundle.publish(trained_copy.out / "build", trained_copy.bundle, market.config.name, metrics=metrics)
    fresh = FreshBundle(LoadedBundle.load(trained_copy.bundle), trained_copy.bundle)
    assert fresh.items.row("i03") < 0
    values = {name: market.items[name][3] for name in ("category", "brand", "price", "tags")}
    fresh.apply([change("i03", "item", values)])
    np.testing.assert_array_equal(
        fresh.items.ids[fresh.items.row("i03")], loaded.items.ids[loaded.items.row("i03")])


def test_what_a_change_gives_a_value_histories_list(loaded: LoadedBundle, bundle_folder: Path) -> None:
    """Until the change is taken back; of a new item, where it is said."""
    has = np.ones(len(loaded.items) + 1, dtype=bool)
    has[loaded.items.rows(["i03"])] = has[-1] = False
    fresh = FreshBundle(replace(loaded, listed={"category": has}), bundle_folder)

    def listed(*items: str) -> list[bool]:
        return fresh.bundle.listed["category"][fresh.bundle.items.rows(items)].tolist()

    assert listed("i02", "i03", "new") == [True, False, False]
    described = {"category": "books"}
    fresh.apply([change("i03", "item", described), change("new", "item", described), change("bare", "item", {})])
    assert listed("i02", "i03", "new", "bare") == [True, True, True, False]
    fresh.apply([change("i03", "item", {})])
    assert listed("i03") == [False]
    assert not has[loaded.items.rows(["i03"])]


def test_a_new_value_can_be_filtered_by(fresh: FreshBundle) -> None:
    fresh.apply([change("odd", "item", {"category": "never seen"}), change("odd", "bid", 1.0),
                 change("i05", "item", {"category": "never seen"})])
    assert set(shown(fresh, filters={"category": ("never seen",)})) == {"odd", "i05"}
    assert "i05" not in shown(fresh, candidates=("i05", "i06"), filters={"category": ("games", "books", "music")})


def test_one_that_cannot_be_shown_stops_no_other(fresh: FreshBundle) -> None:
    fresh.apply([change("bad", "item", {"price": "cheap"}), change("good", "item", {}), change("good", "bid", 1.0)])
    assert fresh.items.row("good") >= 0
    assert fresh.unshown.state.items == 1
    assert "'bad': values[price]: " in fresh.unshown.state.last
    assert "cheap" in fresh.unshown.state.last
    fresh.apply([change("bad", "item", {"price": 3.0})])
    assert fresh.unshown.state == UnshownState(0, "")


def test_nor_does_one_of_which_nobody_knew_that_it_can_fail(
    fresh: FreshBundle, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    columns = ItemEncoder.columns

    def failing(encoder: ItemEncoder, described: Sequence[Described], rows: np.ndarray) -> ItemColumns:
        if any("odd" in said.values() for said in described):
            raise OverflowError("too large")
        return columns(encoder, described, rows)

    monkeypatch.setattr(ItemEncoder, "columns", failing)
    fresh.apply([change("bad", "item", {"category": "odd"}), change("good", "item", {})])
    assert [fresh.items.row(item) >= 0 for item in ("bad", "good")] == [False, True]
    assert fresh.unshown.state == UnshownState(1, "'bad': OverflowError: too large")
    assert "'bad': OverflowError: too large" in caplog.text


def test_new_items_beyond_the_room_are_left_out_and_told_of_until_they_are_withdrawn(
    fresh: FreshBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh.items, "size", fresh.items.first + 4)
    new = [change(f"new{number}", "item", {}) for number in range(9)]
    fresh.apply([*new, change("i05", "item", {"category": "odd"})])
    assert [fresh.items.row(f"new{number}") >= 0 for number in range(9)] == [True] * 4 + [False] * 5
    assert fresh.bundle.filters["category"].items(["odd"]).count == 1
    assert fresh.unshown.state.items == 5
    assert "'new8': there is room for 4 new items" in fresh.unshown.state.last
    fresh.apply(new)
    assert (fresh.unshown.state.items, fresh.items.added) == (5, 4)
    fresh.apply([change(f"new{number}", "item", WITHDRAWN) for number in range(9)])
    assert fresh.unshown.state.items == 0


def test_what_was_said_of_an_item_before_it_came_holds_however_long_ago(
    loaded: LoadedBundle, bundle_folder: Path, tmp_path: Path
) -> None:
    """Its stock and its bid, with more said of others meanwhile than items may come."""
    with closing(ChangeStore(tmp_path)) as store:
        fresh = FreshBundle(loaded, bundle_folder, store.numbers_of)
        unknown = ["first", *(f"x{number}" for number in range(LEAST_ROOM)), "last"]
        said = [change("first", "bid", 3.0), *(change(item, "stock", 0) for item in unknown)]
        said += [change("i05", "bid", 9.0), change("sold", "bid", 5.0)]
        store.record(said)
        for begin in range(0, len(said), 2000):
            fresh.apply(said[begin : begin + 2000])
        fresh.apply([change(item, "item", {}) for item in ("first", "last", "sold")])
        assert fresh.hidden_items == 2
        assert not {"first", "last"} & set(shown(fresh, candidates=("first", "last", "sold", "i05")))
        fresh.apply([change("first", "stock", 1)])
        rows = fresh.items.rows(["first", "sold", "last", "i05"])
        assert fresh.bundle.bids[rows].tolist() == [3.0, 5.0, 0.0, 9.0]  # type: ignore[index]


def test_requests_go_on_with_items_of_all_kinds_in_their_history(fresh: FreshBundle) -> None:
    fresh.apply([change("new", "item", {"category": "sport"}), change("new", "bid", 2.0)])
    assert "new" not in shown(fresh, recent_items=("new", "i05"))
    assert len(shown(fresh, recent_items=("new", "i05"), explain=True)) == 10
