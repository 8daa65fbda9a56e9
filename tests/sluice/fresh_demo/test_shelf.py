"""The shelf, and the changes that lead to it."""

from __future__ import annotations

import numpy as np
import pytest

from sluice.fresh_demo.shelf import Shelf, ShelfShares

KNOWN, NEW = 200, 20
SHARES = ShelfShares(withdrawn=0.1, sold_out=0.2, repriced=0.3, new=NEW / KNOWN)


@pytest.fixture
def shelf() -> Shelf:
    rng = np.random.default_rng(4)
    return Shelf.drawn(rng.uniform(0.1, 2.0, KNOWN + NEW), KNOWN, SHARES, rng)


def test_what_the_changes_say_is_what_lies_there_at_every_minute(shelf: Shelf) -> None:
    there = np.append(np.ones(KNOWN, dtype=bool), np.zeros(NEW, dtype=bool))
    bids, waiting = shelf.bid_before.copy(), shelf.changes()
    for minute in np.linspace(0, 60, 241):
        while waiting and waiting[0].minute <= minute:
            change = waiting.pop(0)
            if change.kind == "set_bids":
                bids[change.item] = change.number
            else:
                there[change.item] = change.kind == "upsert" or (change.kind == "set_stock" and change.number > 0)
        np.testing.assert_array_equal(there, shelf.on(minute))
        np.testing.assert_array_equal(bids, shelf.bids(minute))
    assert not waiting


def test_as_many_items_change_as_was_declared_and_none_in_two_ways(shelf: Shelf) -> None:
    changes = shelf.changes()
    of_kind = {kind: [change.item for change in changes if change.kind == kind]
               for kind in ("upsert", "withdraw", "set_bids", "set_stock")}
    assert {kind: len(set(items)) for kind, items in of_kind.items()} == {
        "upsert": 20, "withdraw": 20, "set_bids": 60, "set_stock": 40}
    assert len(of_kind["set_stock"]) == 60  # half come back
    assert len(set().union(*of_kind.values())) == 140
    assert all(0 <= change.minute <= 60 for change in changes)


def test_without_shares_nothing_changes() -> None:
    bids = np.ones(KNOWN)
    still = Shelf.drawn(bids, KNOWN, ShelfShares(0.0, 0.0, 0.0, 0.0), np.random.default_rng(4))
    assert still.changes() == []
    assert still.on(30.0).all()
