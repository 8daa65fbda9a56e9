from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import faiss
import numpy as np
import pytest

from contracts.config.stages import Retrieve
from serving.bundle import item_index
from serving.bundle.item_index import ItemIndex
from serving.bundle.item_set import ItemSet
from serving.changing_index import listed_vectors, uncoded_rows
from serving.changing_index.listed_vectors import SCORED_AT_ONCE, ListedVectors

COUNT, SIZE, WIDTH = 1200, 1600, 8
SECONDS = 60


def made(max_codes: int = 20_000) -> tuple[ListedVectors, ItemIndex, np.ndarray]:
    draw = np.random.default_rng(1)
    vectors = np.zeros((SIZE, WIDTH), dtype=np.float32)
    vectors[:COUNT] = draw.standard_normal((COUNT, WIDTH))
    base = item_index.build(vectors[:COUNT].copy(), Retrieve(flat_below=10, max_codes=max_codes))
    return ListedVectors(base, vectors), base, vectors


def held(base: ItemIndex) -> dict[int, tuple[int, bytes]]:
    """By item: its list, and its code there. No item lies there twice."""
    lists: Any = base.faiss_index.invlists
    found = dict[int, tuple[int, bytes]]()
    for number in range(base.faiss_index.nlist):
        for place in range(lists.list_size(number)):
            item = lists.get_single_id(number, place)
            assert item not in found
            found[item] = (number, faiss.rev_swig_ptr(lists.get_single_code(number, place), WIDTH).tobytes())
    return found


def built_anew(base: ItemIndex, vectors: np.ndarray) -> dict[int, tuple[int, bytes]]:
    """With the same centroids and codes."""
    index: Any = base.faiss_index
    other: Any = type(index)(index.quantizer, index.d, index.nlist, index.sq.qtype, index.metric_type,
                             index.by_residual)
    other.sq, other.is_trained = index.sq, True
    other.add(vectors)
    return held(ItemIndex(other, vectors, base.max_codes))


def test_it_holds_what_a_build_with_the_same_centroids_would() -> None:
    lists, base, vectors = made()
    draw = np.random.default_rng(2)
    for size in (1, 20, SCORED_AT_ONCE + 1, 700):
        rows = draw.permutation(COUNT)[:size]
        vectors[rows] = vectors[draw.permutation(COUNT)[:size]]
        lists.put(np.sort(rows))
    assert held(base) == built_anew(base, vectors[:COUNT])


def test_new_ones_are_appended_whatever_lies_between() -> None:
    """Rows that have no vector yet are held, for nobody may be shown them, and get one later."""
    lists, base, vectors = made()
    draw = np.random.default_rng(3)
    vectors[[3, 1250]] = vectors[[7, 8]]
    lists.put(np.array([3, 1250]))
    vectors[1230] = vectors[9]
    lists.put(np.array([1230]))
    vectors[1251:1500] = vectors[draw.permutation(COUNT)[:249]]
    lists.put(np.arange(1251, 1500))
    assert held(base) == built_anew(base, vectors[:1500])
    members = np.arange(SIZE) == 1400
    assert lists.search(vectors[1400], 1, ItemSet.of(members)).rows.tolist() == [1400]


@pytest.mark.parametrize(("count", "hidden"), [(1200, 20), (6000, 290)])
def test_those_that_are_not_wanted_are_not_found_though_they_score_best(count: int, hidden: int) -> None:
    """Hits beside the wanted ones make up for them, and a search of the others alone where those are not enough."""
    vectors = np.random.default_rng(6).standard_normal((count, WIDTH)).astype(np.float32)
    settings = Retrieve(flat_below=10, max_codes=count)
    lists = ListedVectors(item_index.build(vectors.copy(), settings), vectors)
    query = np.random.default_rng(7).standard_normal(WIDTH).astype(np.float32)
    order = np.argsort(-(vectors @ query))
    members = np.ones(count, dtype=bool)
    members[order[:hidden]] = False
    found = lists.search(query, 10, ItemSet.of(members)).rows
    assert len(found) == 10
    assert members[found].all()
    assert len(set(found.tolist()) & set(order[hidden : hidden + 10].tolist())) >= 8


@pytest.mark.parametrize("hidden", [0, 300])
def test_bids_far_beyond_those_of_the_bundle_are_searched_exactly(hidden: int) -> None:
    """Their codes would be those of the last within: hardly better than others, and of no bid hardly worse."""
    lists, base, vectors = made(max_codes=COUNT)
    query = np.random.default_rng(7).standard_normal(WIDTH).astype(np.float32)
    query[-1] = 1.0
    draw = np.random.default_rng(9)
    far, none = np.split(draw.permutation(COUNT)[:240], 2)
    codes = held(base)
    members = np.arange(SIZE) < COUNT
    members[draw.permutation(COUNT)[:hidden]] = False
    vectors[far, -1], vectors[none, -1] = 40.0, -40.0
    lists.put(np.sort(np.concatenate([far, none])))
    assert held(base) == codes
    shown = ItemSet.of(members)
    lists.publish(shown)
    assert lists.search(query, 200, ItemSet.of(members)).rows.tolist() == lists.search(query, 200, shown).rows.tolist()
    found = lists.search(query, 200, shown)
    order = np.argsort(-np.where(members, vectors @ query, -np.inf))[:200]
    assert len(found.rows) == 200
    np.testing.assert_array_equal(found.rows[: members[far].sum()], order[: members[far].sum()])
    assert not set(found.rows.tolist()) & set(none.tolist())
    assert len(set(found.rows.tolist()) & set(order.tolist())) >= 195
    vectors[far, -1] = vectors[none, -1] = 0.0
    lists.put(np.sort(np.concatenate([far, none])))
    assert held(base) == built_anew(base, vectors[:COUNT])
    lists.publish(shown)
    order = np.argsort(-np.where(members, vectors @ query, -np.inf))[:100]
    assert len(set(lists.search(query, 100, shown).rows.tolist()) & set(order.tolist())) >= 97


def test_beyond_what_is_searched_exactly_codes_say_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uncoded_rows, "MOST", 10)
    lists, base, vectors = made(max_codes=COUNT)
    rows = np.arange(30)
    vectors[rows, -1] = 40.0
    lists.put(rows)
    coded = {item: code for item, code in built_anew(base, vectors[:COUNT]).items() if item in range(10, 30)}
    assert coded.items() <= held(base).items()


def test_where_bids_were_all_the_same_codes_learn_to_say_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (listed_vectors, uncoded_rows):
        monkeypatch.setattr(module, "MOST", 200)
    draw = np.random.default_rng(1)
    vectors = draw.standard_normal((COUNT, WIDTH)).astype(np.float32)
    vectors[:, -1] = 0.5
    base = item_index.build(vectors.copy(), Retrieve(flat_below=10, max_codes=COUNT))
    lists, everybody = ListedVectors(base, vectors), ItemSet.of(np.ones(COUNT, dtype=bool))
    query = np.ones(WIDTH, dtype=np.float32)
    for rows in np.array_split(draw.permutation(COUNT), 40):
        vectors[rows, -1] = 2 * draw.standard_normal(len(rows))
        lists.put(np.sort(rows))
        lists.publish(everybody)
        found, scores = lists.search(query, 100, everybody), vectors @ query
        assert len(set(found.rows.tolist())) == 100
        assert np.abs(found.scores - scores[found.rows]).mean() < 0.1
        assert len(set(found.rows.tolist()) & set(np.argsort(-scores)[:100].tolist())) >= 90


def test_the_more_items_have_changed_the_more_codes_are_read_each_item_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, search = list[int](), item_index.search_index

    def noted(index: ItemIndex, *more: Any) -> item_index.Hits:
        asked.append(index.max_codes)
        return search(index, *more)

    monkeypatch.setattr(item_index, "search_index", noted)
    lists, _, vectors = made(max_codes=400)
    for rows, times in ((np.arange(1), 1), (np.arange(600), 5), (np.arange(COUNT), 2)):
        for _ in range(times):
            lists.put(rows)
            lists.search(vectors[0], 5, ItemSet.of(np.arange(SIZE) < COUNT))
    assert asked == [400, *[500] * 5, *[600] * 2]


def test_searches_meet_no_list_in_the_middle_of_a_change() -> None:
    """All that is found is one of the items and scores as one of its vectors does."""
    lists, _, vectors = made()
    query = np.random.default_rng(7).standard_normal(WIDTH).astype(np.float32)
    both = np.stack([vectors[:COUNT].copy(), np.random.default_rng(8).standard_normal((COUNT, WIDTH)) * 0.5])
    everybody, stop = ItemSet.of(np.arange(SIZE) < COUNT), threading.Event()
    known = both @ query

    def change() -> None:
        turn = 0
        while not stop.is_set():
            turn += 1
            rows = np.arange(turn % 7, COUNT, 7)
            vectors[rows] = both[turn % 2, rows]
            lists.put(rows)
            if COUNT + turn < SIZE:  # new ones, by one or two
                lists.put(np.arange(COUNT + turn - 1, COUNT + turn))

    with ThreadPoolExecutor(1) as pool:
        changing = pool.submit(change)
        try:
            for _ in range(2000):
                found = lists.search(query, 50, everybody)
                assert len(set(found.rows.tolist())) == len(found.rows) == 50
                off = np.abs(known[:, found.rows] - found.scores).min(axis=0)
                assert off.max() < 0.2  # of codes with 255 steps
        finally:
            stop.set()
        changing.result(SECONDS)
