from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import faiss
import numpy as np
import pytest

from contracts.config.stages import Retrieve
from serving.bundle import item_index
from serving.bundle.item_set import ItemSet
from serving.changing_index.changing_index import MOST_LATEST, ChangingIndex

COUNT, SIZE, WIDTH = 1200, 1600, 8
SECONDS = 60


@pytest.fixture(params=["exact", "lists"])
def index(request: pytest.FixtureRequest) -> ChangingIndex:
    draw = np.random.default_rng(1)
    vectors = np.zeros((SIZE, WIDTH), dtype=np.float32)
    vectors[:COUNT] = draw.standard_normal((COUNT, WIDTH))
    settings = Retrieve(flat_below=COUNT if request.param == "exact" else 10)
    return ChangingIndex(item_index.build(vectors[:COUNT].copy(), settings), vectors)


def queries(count: int = 5) -> np.ndarray:
    return np.random.default_rng(2).standard_normal((count, WIDTH)).astype(np.float32)


def best(index: ChangingIndex, query: np.ndarray, k: int, shown: np.ndarray) -> set[int]:
    scores = np.where(shown, index.vectors @ query, -np.inf)
    return set(np.argsort(-scores)[:k].tolist())


def change_all(index: ChangingIndex) -> np.ndarray:
    """New items, items described anew, withdrawn ones, other numbers; merged in between. Returns who is shown."""
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
        if round_ in (2, 4):
            index.merge()
    index.publish()
    return shown


def test_a_search_finds_what_is_shown_now(index: ChangingIndex) -> None:
    shown = change_all(index)
    assert index.merges == 2
    assert index.unmerged > 0
    found, wanted = 0, 0
    for query in queries():
        rows = index.search(query, 100).rows
        assert len(set(rows.tolist())) == len(rows) == 100
        assert shown[rows].all()
        found, wanted = found + len(set(rows.tolist()) & best(index, query, 100, shown)), wanted + 100
        assert index.recall(query, 100) >= 0.95
    assert found >= (1.0 if index.base.exact else 0.97) * wanted


@pytest.mark.parametrize("merged", [True, False])
def test_items_described_anew_may_be_all_of_the_best(index: ChangingIndex, merged: bool) -> None:
    """However few they are: hits beside them are asked for by their share of all."""
    query = queries(1)[0]
    rows = np.random.default_rng(5).permutation(COUNT)[:160]
    index.vectors[rows] = query * np.linspace(2, 4, len(rows))[:, None]
    index.put(rows)
    if merged:
        index.merge()
    index.publish()
    assert set(index.search(query, 160).rows.tolist()) == set(rows.tolist())


@pytest.mark.parametrize(("count", "hidden"), [(COUNT, 20), (6000, 290)])
def test_few_that_are_withdrawn_are_not_found_though_they_score_best(count: int, hidden: int) -> None:
    """Hits beside the wanted ones make up for them, and a search of the others alone where those are not enough."""
    vectors = np.random.default_rng(6).standard_normal((count, WIDTH)).astype(np.float32)
    index = ChangingIndex(item_index.build(vectors.copy(), Retrieve(flat_below=count)), vectors)
    query = queries(1)[0]
    order = np.argsort(-(vectors @ query))
    index.show(order[:hidden], np.zeros(hidden, dtype=bool))
    index.publish()
    assert index.search(query, 10).rows.tolist() == order[hidden : hidden + 10].tolist()


def test_filters_hold_for_all_parts(index: ChangingIndex) -> None:
    shown = change_all(index)
    for share in (0.5, 0.01):
        passing = np.random.default_rng(4).random(SIZE) < share
        for query in queries(2):
            hits = index.search(query, 20, ItemSet.of(passing))
            both = shown & passing
            assert both[hits.rows].all()
            assert len(hits.rows) == min(20, both.sum())
            assert len(set(hits.rows.tolist()) & best(index, query, len(hits.rows), both)) >= 0.9 * len(hits.rows)


def test_nothing_is_seen_before_it_is_published(index: ChangingIndex) -> None:
    query = queries(1)[0]
    first = index.search(query, 1).rows
    index.show(first, np.zeros(1, dtype=bool))
    np.testing.assert_array_equal(index.search(query, 1).rows, first)
    index.publish()
    assert index.search(query, 1).rows[0] != first[0]
    index.show(np.arange(SIZE), np.zeros(SIZE, dtype=bool))
    index.publish()
    assert len(index.search(query, 3).rows) == 0


def test_a_merge_shows_nothing_of_what_is_not_published(index: ChangingIndex) -> None:
    """What came before is searched as it was, and all of it together once it is published."""
    query = queries(1)[0]
    index.vectors[COUNT] = 5 * query
    index.put(np.array([COUNT]))
    index.show(np.array([COUNT]), np.ones(1, dtype=bool))
    index.publish()
    before = index.search(query, 10).rows.tolist()
    assert before[0] == COUNT
    index.show(np.array(before[1:3]), np.zeros(2, dtype=bool))
    index.vectors[COUNT + 1] = 9 * query
    index.put(np.array([COUNT + 1]))
    for _ in range(2):
        index.merge()
        assert index.unmerged == 0
        assert index.search(query, 10).rows.tolist() == before
    index.show(np.array([COUNT + 1]), np.ones(1, dtype=bool))
    index.publish()
    found = index.search(query, 10).rows.tolist()
    assert found[:2] == [COUNT + 1, COUNT]
    assert not set(before[1:3]) & set(found)


def test_merging_makes_room(index: ChangingIndex) -> None:
    index.put(np.arange(400))
    index.put(np.arange(100))
    assert index.free == MOST_LATEST - 500
    index.merge()
    assert index.free == MOST_LATEST
    assert index.unmerged == 0


class ToldLock:
    """A lock that says when a second thread wants it."""

    def __init__(self) -> None:
        self.wanted, self._lock, self._asked = threading.Event(), threading.Lock(), 0

    def ask(self) -> int:
        self._asked += 1
        if self._asked == 2:
            self.wanted.set()
        return self._asked

    def __enter__(self) -> None:
        self.ask()
        self._lock.acquire()

    def __exit__(self, *about: object) -> None:
        self._lock.release()


def test_a_merge_waits_for_another(index: ChangingIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second begins in the middle of the first: it comes as far as it may before the first goes on."""
    lock, inside, without = ToldLock(), ToldLock(), faiss.IDSelectorNot
    second: list[Future[None]] = []

    def slow(found: Any) -> Any:
        if inside.ask() == 1:
            second.append(pool.submit(index.merge))
            while not lock.wanted.wait(0.01) and not inside.wanted.is_set():
                pass
        return without(found)

    monkeypatch.setattr(index, "_merging", lock, raising=False)
    index.put(np.arange(400))
    with ThreadPoolExecutor(2) as pool, monkeypatch.context() as patch:
        patch.setattr(faiss, "IDSelectorNot", slow)
        pool.submit(index.merge).result(SECONDS)
        second[0].result(SECONDS)
    assert (index.merges, index.unmerged) == (2, 0)
    assert all(index.recall(query, 100) >= 0.95 for query in queries())


def test_bids_that_change_cost_no_recall() -> None:
    """Where a bid rises, the item's vector comes nearer to another list's centroid; a search looks for it there."""
    draw, count = np.random.default_rng(5), 6000
    vectors = draw.standard_normal((count, WIDTH)).astype(np.float32)
    settings = Retrieve(flat_below=10, max_codes=600)
    index = ChangingIndex(item_index.build(vectors.copy(), settings), vectors)
    for _ in range(8):
        rows = draw.permutation(count)[:400]
        index.set_column(rows, 7, 1.5 * draw.standard_normal(400).astype(np.float32))
        index.publish()
        index.merge()
    asked = queries(40)
    asked[:, 7] = 1
    fresh = item_index.recall(item_index.build(vectors.copy(), settings), asked, 50).mean
    assert fresh < 0.99
    assert np.mean([index.recall(query, 50) for query in asked]) >= 0.98 * fresh
