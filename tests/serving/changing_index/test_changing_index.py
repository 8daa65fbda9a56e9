from __future__ import annotations

import numpy as np
import pytest

from contracts.config.stages import Retrieve
from serving.bundle import item_index
from serving.bundle.item_set import ItemSet
from serving.changing_index.changing_index import ChangingIndex

COUNT, SIZE, WIDTH = 1200, 1600, 8


@pytest.fixture(params=[True, False], ids=["exact", "lists"])
def exact(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def index(exact: bool) -> ChangingIndex:
    draw = np.random.default_rng(1)
    vectors = np.zeros((SIZE, WIDTH), dtype=np.float32)
    vectors[:COUNT] = draw.standard_normal((COUNT, WIDTH))
    settings = Retrieve(flat_below=COUNT if exact else 10)
    return ChangingIndex(item_index.build(vectors[:COUNT].copy(), settings), vectors)


def queries(count: int = 5) -> np.ndarray:
    return np.random.default_rng(2).standard_normal((count, WIDTH)).astype(np.float32)


def best(index: ChangingIndex, query: np.ndarray, k: int, shown: np.ndarray) -> set[int]:
    scores = np.where(shown, index.vectors @ query, -np.inf)
    return set(np.argsort(-scores)[:k].tolist())


def change_all(index: ChangingIndex) -> np.ndarray:
    """New items, items described anew, withdrawn ones, other numbers. Returns who is shown."""
    draw = np.random.default_rng(3)
    shown = np.arange(SIZE) < COUNT
    for round_ in range(6):
        rows = np.unique(draw.integers(0, COUNT + 60 * (round_ + 1), 80))
        index.vectors[rows] = draw.standard_normal((len(rows), WIDTH))
        index.put(rows)
        gone, moved = draw.integers(0, COUNT, 30), np.unique(draw.integers(0, COUNT, 60))
        shown[rows], shown[gone] = True, False
        index.show(rows, np.ones(len(rows), dtype=bool))
        index.show(gone, np.zeros(len(gone), dtype=bool))
        index.set_column(moved, 7, draw.standard_normal(len(moved)).astype(np.float32) * 2)
    index.publish()
    return shown


def test_a_search_finds_what_is_shown_now(index: ChangingIndex, exact: bool) -> None:
    shown, limit = change_all(index), 1.0 if exact else 0.97
    found, wanted = 0, 0
    for query in queries():
        rows = index.search(query, 100).rows
        assert len(set(rows.tolist())) == len(rows) == 100
        assert shown[rows].all()
        found, wanted = found + len(set(rows.tolist()) & best(index, query, 100, shown)), wanted + 100
        assert index.recall(query, 100) >= limit - 0.02
    assert found >= limit * wanted


def test_items_described_anew_may_be_all_of_the_best(index: ChangingIndex) -> None:
    query = queries(1)[0]
    rows = np.random.default_rng(5).permutation(COUNT)[:160]
    index.vectors[rows] = query * np.linspace(2, 4, len(rows))[:, None]
    index.put(rows)
    index.publish()
    assert set(index.search(query, 160).rows.tolist()) == set(rows.tolist())


def test_filters_hold(index: ChangingIndex) -> None:
    shown = change_all(index)
    for share in (0.5, 0.01):
        passing = np.random.default_rng(4).random(SIZE) < share
        for query in queries(2):
            hits = index.search(query, 20, ItemSet.of(passing))
            both = shown & passing
            assert both[hits.rows].all()
            assert len(hits.rows) == min(20, both.sum())
            assert len(set(hits.rows.tolist()) & best(index, query, len(hits.rows), both)) >= 0.9 * len(hits.rows)


def test_who_is_shown_is_seen_once_it_is_published(index: ChangingIndex) -> None:
    query = queries(1)[0]
    first = index.search(query, 1).rows
    index.show(first, np.zeros(1, dtype=bool))
    np.testing.assert_array_equal(index.search(query, 1).rows, first)
    index.publish()
    assert index.search(query, 1).rows[0] != first[0]
    index.show(np.arange(SIZE), np.zeros(SIZE, dtype=bool))
    index.publish()
    assert len(index.search(query, 3).rows) == 0


@pytest.mark.parametrize(("share", "spread"), [(0.25, 1.0), (0.5, 1.5), (1.0, 1.5)])
def test_bids_that_change_cost_no_recall(share: float, spread: float) -> None:
    """Beside an index built anew, whose lists know of them."""
    draw, count = np.random.default_rng(5), 6000
    vectors = draw.standard_normal((count, WIDTH)).astype(np.float32)
    settings = Retrieve(flat_below=10, max_codes=600)
    index = ChangingIndex(item_index.build(vectors.copy(), settings), vectors)
    changed = draw.permutation(count)[: round(share * count)]
    for rows in np.array_split(changed, 8):
        index.set_column(rows, 7, spread * draw.standard_normal(len(rows)).astype(np.float32))
        index.publish()
    asked = queries(100)
    asked[:, 7] = 1
    anew = [item_index.recall(item_index.build(vectors.copy(), settings, seed), asked, 50).mean for seed in range(3)]
    assert max(anew) < 0.99
    assert np.mean([index.recall(query, 50) for query in asked]) >= 0.98 * np.mean(anew)
