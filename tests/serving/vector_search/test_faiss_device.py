"""Where faiss works, without a word of configuration: what holds with and without a GPU, and where there is none."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np
import pytest

from serving.vector_search import faiss_device

VECTORS = np.random.default_rng(0).normal(size=(4000, 16)).astype(np.float32)


@pytest.fixture
def asked_anew() -> Iterator[None]:
    """`gpus` is asked once a process."""
    faiss_device.gpus.cache_clear()
    yield
    faiss_device.gpus.cache_clear()


@pytest.mark.parametrize("missing", ["get_num_gpus", "StandardGpuResources"])
def test_a_faiss_without_the_classes_for_gpus_works_on_the_cpu(
    monkeypatch: pytest.MonkeyPatch, asked_anew: None, missing: str
) -> None:
    monkeypatch.delattr(faiss, missing, raising=False)
    assert faiss_device.gpus() == 0
    assert faiss_device.on_gpus(faiss.IndexFlatIP(16)) is None


def test_nearest_are_those_of_the_largest_products() -> None:
    found = faiss_device.nearest(VECTORS[:50], VECTORS, 10)
    products = VECTORS[:50] @ VECTORS.T
    wanted = np.argsort(-products, axis=1)[:, :10]
    np.testing.assert_array_equal(found, wanted)


def test_training_leaves_an_index_that_can_be_written_and_searched() -> None:
    index: Any = faiss.index_factory(16, "IVF32,SQ8", faiss.METRIC_INNER_PRODUCT)
    faiss_device.train(index, VECTORS)
    index.add(VECTORS)
    again: Any = faiss.deserialize_index(faiss.serialize_index(index))
    again.nprobe = 32
    assert (again.search(VECTORS[:20], 5)[1] >= 0).all()


def test_what_a_gpu_does_not_take_is_searched_on_the_cpu_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full() -> None:
        raise RuntimeError("Error in GpuResources:\nout of memory")

    monkeypatch.setattr(faiss_device, "gpus", lambda: 1)
    monkeypatch.setattr(faiss_device, "_resources", full)
    index: Any = faiss.IndexFlatIP(16)
    index.add(VECTORS)
    with caplog.at_level(logging.WARNING):
        assert faiss_device.on_gpus(index) is None
    assert "an index of 4000 vectors is searched on the CPU" in caplog.text
    assert "out of memory" in caplog.text


def test_nearest_that_a_gpu_does_not_take_are_searched_on_the_cpu_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = faiss_device.nearest(VECTORS[:50], VECTORS, 10)

    def full(*_: object, **__: object) -> None:
        raise RuntimeError("Error in allocMemory:\nout of memory")

    monkeypatch.setattr(faiss_device, "gpus", lambda: 1)
    monkeypatch.setattr(faiss_device, "_shared", lambda: None)
    monkeypatch.setattr(faiss, "knn_gpu", full, raising=False)
    with caplog.at_level(logging.WARNING):
        np.testing.assert_array_equal(faiss_device.nearest(VECTORS[:50], VECTORS, 10), wanted)
    assert "the nearest of 4000 vectors are searched on the CPU" in caplog.text
    assert "out of memory" in caplog.text


@pytest.mark.parametrize("when", ["made", "used"])
def test_training_that_a_gpu_does_not_take_is_done_on_the_cpu_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, when: str
) -> None:
    """Whether the GPU refuses at once or in the middle, the index is as the CPU alone trains it."""
    alone: Any = faiss.index_factory(16, "IVF32,SQ8", faiss.METRIC_INNER_PRODUCT)
    faiss_device.train(alone, VECTORS)

    def finder(flat: Any) -> Any:
        if when == "made":
            raise RuntimeError("CUDA error 2 out of memory")
        return faiss.IndexFlatIP(flat.d + 1)  # of other vectors: faiss raises while it trains

    monkeypatch.setattr(faiss_device, "gpus", lambda: 1)
    monkeypatch.setattr(faiss, "index_cpu_to_all_gpus", finder, raising=False)
    index: Any = faiss.index_factory(16, "IVF32,SQ8", faiss.METRIC_INNER_PRODUCT)
    with caplog.at_level(logging.WARNING):
        faiss_device.train(index, VECTORS)
    assert "an index is trained on 4000 vectors on the CPU" in caplog.text
    np.testing.assert_array_equal(faiss.serialize_index(index), faiss.serialize_index(alone))
