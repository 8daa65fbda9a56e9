"""Flat search is exact, IVF search is close, filters hold, and bids count in log-odds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.config.stages import Retrieve
from contracts.errors import BundleError
from serving.bundle import item_index
from serving.bundle.item_set import ItemSet
from serving.vector_search import faiss_device

FLAT = Retrieve()
IVF = Retrieve(flat_below=100, max_codes=2000)


def clustered(count: int, width: int, seed: int) -> np.ndarray:
    """Unit vectors around 40 centres, as trained item vectors lie."""
    draw = np.random.default_rng(seed)
    vectors = draw.normal(size=(40, width))[draw.integers(0, 40, count)] + 0.5 * draw.normal(size=(count, width))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


VECTORS = clustered(6000, 16, 0)


@pytest.fixture(scope="module")
def ivf() -> item_index.ItemIndex:
    return item_index.build(VECTORS, IVF)


@pytest.fixture(scope="module")
def flat() -> item_index.ItemIndex:
    return item_index.build(VECTORS, FLAT)


def brute_force(vectors: np.ndarray, query: np.ndarray, k: int, allowed: np.ndarray | None = None) -> set[int]:
    rows = range(len(vectors)) if allowed is None else np.flatnonzero(allowed).tolist()
    return set(sorted(rows, key=lambda row: -float(vectors[row] @ query))[:k])


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 60), st.integers(1, 70), st.integers(0, 2**32 - 1))
def test_flat_is_exact(count: int, k: int, seed: int) -> None:
    vectors, query = clustered(count, 8, seed), clustered(1, 8, seed + 1)[0]
    hits = item_index.search(item_index.build(vectors, FLAT), query, k)
    assert set(hits.rows.tolist()) == brute_force(vectors, query, k)
    assert (np.diff(hits.scores) <= 0).all()
    np.testing.assert_allclose(hits.scores, vectors[hits.rows] @ query, rtol=1e-5, atol=1e-6)


def test_kind_follows_the_limit(flat: item_index.ItemIndex, ivf: item_index.ItemIndex) -> None:
    assert flat.exact
    assert not ivf.exact
    assert item_index.build(VECTORS[:100], IVF).exact


def test_ivf_recall_is_high_and_bounded_by_exact(flat: item_index.ItemIndex, ivf: item_index.ItemIndex) -> None:
    queries = VECTORS[:50]
    assert item_index.recall(flat, queries, 100).worst == 1.0
    found = item_index.recall(ivf, queries, 100)
    assert 0.9 < found.mean <= 1.0
    assert 0.7 < found.worst <= found.mean


def test_recall_falls_with_the_bound() -> None:
    bounds = [Retrieve(flat_below=100, max_codes=codes) for codes in (100, 300, 6000)]
    found = [item_index.recall(item_index.build(VECTORS, bound), VECTORS[:50], 100).mean for bound in bounds]
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_recall_counts_twins_as_found() -> None:
    vectors = np.repeat(VECTORS[:5], 10, axis=0)
    assert item_index.recall(item_index.build(vectors, FLAT), VECTORS[:5], 3).worst == 1.0


@pytest.mark.parametrize("rate", [0.5, 0.2, 0.06])
def test_filter_is_kept(flat: item_index.ItemIndex, ivf: item_index.ItemIndex, rate: float) -> None:
    allowed = np.random.default_rng(4).random(len(VECTORS)) < rate
    searched = replace(ivf, max_codes=150)  # by its lists, which one in twenty already fills
    for query in VECTORS[:20]:
        expected = brute_force(VECTORS, query, 50, allowed)
        for exact in (flat, ivf):
            assert set(item_index.search(exact, query, 50, ItemSet.of(allowed)).rows.tolist()) == expected
        rows = item_index.search(searched, query, 50, ItemSet.of(allowed)).rows
        assert allowed[rows].all()
        assert len(rows) == 50


STATISTICS: Any = faiss.cvar
BROAD, ASKED, AT = clustered(20_000, 16, 5), clustered(40, 16, 6), 20
SELECTED = {
    "anything": lambda rate: np.random.default_rng(4).random(len(BROAD)) < rate,
    "one side": lambda rate: BROAD[:, 0] <= np.quantile(BROAD[:, 0], rate),
}


@pytest.fixture(scope="module")
def broad() -> item_index.ItemIndex:
    return item_index.build(BROAD, Retrieve(flat_below=100, max_codes=400))


@pytest.mark.parametrize("kind", SELECTED)
@pytest.mark.parametrize("rate", [0.5, 0.2, 0.1, 0.06])
def test_a_broad_filter_keeps_the_recall_of_none(broad: item_index.ItemIndex, rate: float, kind: str) -> None:
    """And reads no more than it says, but for the end of one list."""
    allowed = ItemSet.of(SELECTED[kind](rate))
    assert allowed.count > broad.exact_up_to
    found, seen = [], STATISTICS.indexIVF_stats
    for query in ASKED:
        limit = item_index.exact_search(BROAD, query, AT, allowed.rows()).scores[-1]
        seen.reset()
        rows = item_index.search(broad, query, AT, allowed).rows
        assert seen.ndis <= 400 * rate**0.3 + 40
        found.append(np.count_nonzero(BROAD[rows] @ query >= limit - 1e-5) / AT)
    assert np.mean(found) >= item_index.recall(broad, ASKED, AT).mean - 0.02


def test_a_filter_of_few_is_exact_up_to_a_number(broad: item_index.ItemIndex) -> None:
    rows = np.random.default_rng(4).permutation(len(BROAD))
    for count, exact in ((broad.exact_up_to, True), (broad.exact_up_to + 1, False)):
        STATISTICS.indexIVF_stats.reset()
        assert len(item_index.search(broad, BROAD[0], AT, _of(rows[:count])).rows) == AT
        assert (STATISTICS.indexIVF_stats.ndis == 0) == exact


def _of(rows: np.ndarray) -> ItemSet:
    return ItemSet.of(np.isin(np.arange(len(BROAD)), rows))


def test_tiny_pass_rate_is_exact(ivf: item_index.ItemIndex) -> None:
    allowed = np.random.default_rng(4).random(len(VECTORS)) < 0.01
    for query in VECTORS[:20]:
        found = item_index.search(ivf, query, 30, ItemSet.of(allowed)).rows
        assert set(found.tolist()) == brute_force(VECTORS, query, 30, allowed)


def test_nothing_and_everything_allowed(flat: item_index.ItemIndex, ivf: item_index.ItemIndex) -> None:
    nobody, everybody = np.zeros(len(VECTORS), dtype=bool), np.ones(len(VECTORS), dtype=bool)
    for index in (flat, ivf):
        assert len(item_index.search(index, VECTORS[0], 10, ItemSet.of(nobody)).rows) == 0
        expected = item_index.search(index, VECTORS[0], 10).rows
        assert item_index.search(index, VECTORS[0], 10, ItemSet.of(everybody)).rows.tolist() == expected.tolist()


def test_fewer_allowed_than_asked(flat: item_index.ItemIndex) -> None:
    allowed = np.zeros(len(VECTORS), dtype=bool)
    allowed[[3, 99]] = True
    assert set(item_index.search(flat, VECTORS[0], 10, ItemSet.of(allowed)).rows.tolist()) == {3, 99}


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.floats(0.05, 2.0))
def test_bids_order_by_expected_value(seed: int, temperature: float) -> None:
    """The order of u . v / temperature + ln(bid), the logarithm of bid x odds up to a constant of the user."""
    vectors, query = clustered(50, 8, seed), clustered(1, 8, seed + 1)
    bids = np.random.default_rng(seed).uniform(0.1, 5.0, 50).astype(np.float32)
    index = item_index.build(item_index.with_bids(vectors, bids, temperature), FLAT)
    hits = item_index.search(index, item_index.with_bid_weight(query)[0], 50)
    value = vectors @ query[0] / temperature + np.log(bids)
    np.testing.assert_allclose(value[hits.rows], np.sort(value)[::-1], rtol=1e-4, atol=1e-4)


def test_a_bid_of_zero_is_finite_and_last() -> None:
    vectors = item_index.with_bids(np.zeros((3, 2), dtype=np.float32), np.array([0.5, 0.0, 2.0], dtype=np.float32), 0.1)
    assert np.isfinite(vectors).all()
    assert vectors[:, 2].argsort().tolist() == [1, 0, 2]
    assert np.isfinite(item_index.with_bids(np.zeros((2, 2)), np.zeros(2), 0.1)).all()


@pytest.mark.parametrize(("dim", "width"), [(2, 8), (7, 8), (8, 16), (64, 72)])
def test_vectors_with_bids_fill_whole_blocks(dim: int, width: int) -> None:
    """And the filling adds nothing to a score; a weight of 0 leaves the bid out."""
    vectors, query = clustered(5, dim, 1), clustered(1, dim, 2)
    stored = item_index.with_bids(vectors, np.full(5, 2.0, dtype=np.float32), 0.5)
    assert stored.shape == (5, width)
    scores = vectors @ query[0]
    assert stored @ item_index.with_bid_weight(query)[0] == pytest.approx(scores + 0.5 * np.log(2), abs=1e-5)
    assert stored @ item_index.with_bid_weight(query, 0.0)[0] == pytest.approx(scores, abs=1e-5)


@pytest.mark.parametrize("settings", [FLAT, IVF])
def test_saved_index_answers_the_same(settings: Retrieve, tmp_path: Path) -> None:
    index = item_index.build(VECTORS, settings)
    item_index.save(index, tmp_path / "index.faiss")
    again = item_index.load(tmp_path / "index.faiss", VECTORS, settings)
    allowed = np.arange(len(VECTORS)) % 3 == 0
    for query in VECTORS[:5]:
        for choice in (None, ItemSet.of(allowed)):
            expected = item_index.search(index, query, 20, choice).rows.tolist()
            assert item_index.search(again, query, 20, choice).rows.tolist() == expected


def test_same_vectors_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        item_index.save(item_index.build(VECTORS, IVF), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_foreign_and_damaged_indexes_are_refused(tmp_path: Path) -> None:
    item_index.save(item_index.build(VECTORS[:50], FLAT), tmp_path / "index.faiss")
    with pytest.raises(BundleError, match="50 vectors of 16 dimensions, the item table 60 of 16"):
        item_index.load(tmp_path / "index.faiss", VECTORS[:60], FLAT)
    (tmp_path / "index.faiss").write_bytes(b"no index")
    with pytest.raises(BundleError, match="cannot be read"):
        item_index.load(tmp_path / "index.faiss", VECTORS[:60], FLAT)


def test_what_a_gpu_would_read_finds_as_much() -> None:
    """A search on a GPU knows no max_codes: it reads the lists that the file says, and here a CPU reads those."""
    for seed in range(3):
        vectors = clustered(20_000, 16, seed)
        made = item_index.build(vectors, Retrieve(flat_below=100, max_codes=4000))
        queries = clustered(200, 16, seed + 10)
        best = np.argpartition(-(queries @ vectors.T), 100, axis=1)[:, :100]
        served, read = (np.mean([len(np.intersect1d(*pair)) / 100 for pair in zip(rows, best, strict=True)])
                        for rows in (item_index.search_many(made, queries, 100)[1],
                                     made.faiss_index.search(queries, 100)[1]))
        assert read >= served - 0.005


@pytest.mark.skipif(not faiss_device.gpus(), reason="faiss sees no GPU")
@pytest.mark.parametrize("kind", [FLAT, IVF])
def test_recall_on_a_gpu_is_that_of_the_cpu(kind: Retrieve, tmp_path: Path) -> None:
    item_index.save(item_index.build(VECTORS, kind), tmp_path / "index.faiss")
    on_gpu = item_index.load(tmp_path / "index.faiss", VECTORS, kind)
    assert on_gpu.gpu_index is not None
    queries = clustered(100, 16, 9)
    on_cpu = replace(on_gpu, gpu_index=None)
    found, wanted = (item_index.recall(index, queries, 100).mean for index in (on_gpu, on_cpu))
    assert found == pytest.approx(wanted, abs=0.005)
