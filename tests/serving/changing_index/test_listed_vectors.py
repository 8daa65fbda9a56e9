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
from serving.changing_index.listed_vectors import SCORED_AT_ONCE, ListedVectors

COUNT, SIZE, WIDTH = 1200, 1600, 8
SECONDS = 60


def made() -> tuple[ListedVectors, ItemIndex, np.ndarray]:
    draw = np.random.default_rng(1)
    vectors = np.zeros((SIZE, WIDTH), dtype=np.float32)
    vectors[:COUNT] = draw.standard_normal((COUNT, WIDTH))
    base = item_index.build(vectors[:COUNT].copy(), Retrieve(flat_below=10))
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
        vectors[rows] = 2 * draw.standard_normal((size, WIDTH))
        lists.put(np.sort(rows))
    assert held(base) == built_anew(base, vectors[:COUNT])


def test_new_ones_are_appended_whatever_lies_between() -> None:
    """Rows that have no vector yet are held, for nobody may be shown them, and get one later."""
    lists, base, vectors = made()
    draw = np.random.default_rng(3)
    vectors[[3, 1250]] = draw.standard_normal((2, WIDTH))
    lists.put(np.array([3, 1250]))
    vectors[1230] = draw.standard_normal(WIDTH)
    lists.put(np.array([1230]))
    vectors[1251:1500] = draw.standard_normal((249, WIDTH))
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
