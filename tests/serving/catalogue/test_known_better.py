"""Running workers and those that start later show the same, whatever the bundle knows better."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from serving.bundle.loaded_bundle import NEVER, LoadedBundle
from serving.catalogue.change import WITHDRAWN, Change, Kind, encoded
from serving.catalogue.fresh_bundle import FreshBundle
from serving.catalogue.known_better import ON_ITS_WAY, later, left_unsaid
from tests.serving.conftest import BORN, Publish

UNTIL = datetime(2026, 1, 2, tzinfo=UTC)
BEFORE, AFTER = (round(UNTIL.timestamp() * 1e6) + shift for shift in (0, 1))


def change(item: str, kind: Kind, value: object, event_time: int = AFTER) -> Change:
    return Change(item=item, kind=kind, version=1, event_time=event_time, arrived=event_time, value=encoded(value))


def until(loaded: LoadedBundle, bid_times: np.ndarray | None = None) -> LoadedBundle:
    """The bundle as if its data ended then; without times of bids it knows those until then."""
    metrics = loaded.manifest.metrics
    assert metrics is not None
    manifest = loaded.manifest.model_copy(update={"metrics": metrics.model_copy(update={"data_until": UNTIL})})
    return replace(loaded, manifest=manifest, bid_times=bid_times)


def bids(fresh: FreshBundle, *items: str) -> list[float]:
    assert fresh.bundle.bids is not None
    found: list[float] = fresh.bundle.bids[fresh.items.rows(items)].tolist()
    return found


def test_a_change_holds_of_new_items_and_after_what_is_known(loaded: LoadedBundle) -> None:
    said = [change("i05", "item", {"price": 1.0}, 7), change("new", "bid", 1.0, 0), change("i06", "stock", 2, 8)]
    row, other = loaded.items.rows(["i05", "i06"]).tolist()
    assert later(said, loaded.items, 7) == [(said[0], row, False), (said[1], -1, True), (said[2], other, True)]
    known = np.full(len(loaded.items), 6)
    known[other] = 8
    assert [holds for *_, holds in later(said, loaded.items, known)] == [True, True, False]
    assert later([], loaded.items, known) == []
    assert left_unsaid(said[0]) == change("i05", "item", {}, 7)


def test_a_bundle_of_later_data_knows_better_but_for_withdrawals_and_stock(
    loaded: LoadedBundle, bundle_folder: Path
) -> None:
    fresh = FreshBundle(until(loaded), bundle_folder)
    (old,) = bids(fresh, "i05")
    fresh.apply([change("i05", "bid", 77.0, BEFORE), change("i06", "bid", 77.0),
                 change("i07", "item", WITHDRAWN, BEFORE), change("i08", "stock", 0, BEFORE),
                 change("new", "item", {}, BEFORE), change("i09", "item", {"category": "odd"}, BEFORE)])
    assert bids(fresh, "i05", "i06") == [old, 77.0]
    assert fresh.hidden_items == 2
    assert fresh.items.row("new") >= 0
    assert fresh.bundle.filters["category"].items(["odd"]).count == 0


def test_a_bid_is_newer_than_the_bundles_where_no_later_impression_had_one(
    loaded: LoadedBundle, bundle_folder: Path
) -> None:
    """However long the bundle's data go on, and though a page that was ranked before the change was shown after it; of
    an item that no impression had a bid of, every one is."""
    times = np.full(len(loaded.items), ON_ITS_WAY + 2000)
    times[loaded.items.row("i07")] = NEVER
    fresh = FreshBundle(until(loaded, times), bundle_folder)
    (old,) = bids(fresh, "i05")
    fresh.apply([change("i05", "bid", 77.0, 2000), change("i06", "bid", 77.0, 2001), change("i07", "bid", 77.0, 1)])
    assert bids(fresh, "i05", "i06", "i07") == [old, 77.0, 77.0]


@pytest.fixture(scope="module")
def served(publish_bundle: Publish) -> tuple[LoadedBundle, Path]:
    """What requests may ask the age of."""
    folder = publish_bundle(retrieve={"filter_fields": ["category"], "created_field": BORN})
    return until(LoadedBundle.load(folder)), folder


@pytest.mark.parametrize(("said", "event_time"), [({"category": "new"}, BEFORE), ({BORN: "yesterday"}, AFTER)])
def test_where_the_latest_change_does_not_hold_nor_does_the_one_before(
    served: tuple[LoadedBundle, Path], said: dict[str, object], event_time: int
) -> None:
    """Since a worker that starts now knows that one no longer."""
    running, started = FreshBundle(*served), FreshBundle(*served)
    running.apply([change("i05", "item", {"category": "odd", "price": 99.0, BORN: 7}), change("i05", "bid", 77.0)])
    latest = [change("i05", "item", said, event_time), change("i05", "bid", 88.0, BEFORE)]
    for fresh in (running, started):
        fresh.apply(latest)
    row, own = running.items.row("i05"), started.bundle
    np.testing.assert_array_equal(running.items.ids[row], own.items.ids[row])
    np.testing.assert_array_equal(running.items.dense[row], own.items.dense[row])
    np.testing.assert_allclose(running.index.vectors[row], started.index.vectors[row], rtol=1e-4, atol=1e-5)
    assert bids(running, "i05") == bids(started, "i05")
    for fresh in (running, started):
        assert fresh.bundle.filters["category"].items(["odd"]).count == 0
        assert fresh.bundle.numbers[BORN].within(7, 7).count == 0
        assert fresh.hidden_items == 0


def test_a_new_item_whose_latest_description_cannot_be_shown_is_not(served: tuple[LoadedBundle, Path]) -> None:
    fresh = FreshBundle(*served)
    fresh.apply([change("new", "item", {"category": "odd"})])
    fresh.apply([change("new", "item", {BORN: "yesterday"}), change("good", "item", {})])
    assert (fresh.hidden_items, fresh.unshown.state.items) == (1, 1)
    fresh.apply([change("new", "item", {"category": "odd"})])
    assert (fresh.hidden_items, fresh.unshown.state.items) == (0, 0)
