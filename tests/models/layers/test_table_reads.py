"""Inputs read from a table: their gradient, and what a walk leaves behind."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from models.compiled import kernels
from models.layers.embedding import FusedEmbedding
from models.layers.table_reads import Layout, readable

pytestmark = pytest.mark.skipif(kernels.library() is None, reason="no C++ compiler on this machine")
ROWS, WIDTH = 300, 7


def fields() -> FeatureSpec:
    """A history of the items, lists of their own, and columns of one."""
    keyed = {"kind": "categorical", "size": 20 + FIRST_ID}
    return FeatureSpec(fields=tuple(FeatureField.model_validate(one) for one in (
        {"name": "user", "side": "user", **keyed}, {"name": "hour", "side": "context", **keyed},
        {"name": "history", "kind": "sequence", "side": "user", "vocabulary": "item", "of": "item", "length": 6,
         "size": 20 + FIRST_ID},
        {"name": "item", "side": "item", "vocabulary": "item", **keyed}, {"name": "shop", "side": "item", **keyed},
        {"name": "tags", "kind": "multi_valued", "side": "item", "length": 3, "size": 9 + FIRST_ID},
    )))


def drawn(embedding: FusedEmbedding, spec: FeatureSpec) -> list[torch.Tensor]:
    """Rows of the table of both blocks, some of padding."""
    made = []
    for reader, block in ((embedding.request, spec.block_ids("request")), (embedding.candidate, spec.id_slots("item"))):
        ids = torch.cat([torch.randint(0, slot.size, (ROWS, slot.width), dtype=torch.int32) for slot in block], 1)
        made.append(reader.rows(ids))
    return made


def test_gradients_are_the_same_to_the_last_bit_by_any_number_of_threads() -> None:
    torch.manual_seed(0)
    spec, before, found = fields(), torch.get_num_threads(), list[torch.Tensor]()
    embedding = FusedEmbedding(spec, WIDTH, candidate_sides=("item",))
    rows, nothing = drawn(embedding, spec), torch.empty(ROWS, 0)
    readers, weights = (embedding.request, embedding.candidate), [torch.randn(ROWS, 3 * WIDTH) for _ in range(2)]
    try:
        for threads in (1, 2, 3, 16):
            torch.set_num_threads(threads)
            embedding.weight.grad = None
            sides = embedding.read((readers[0], rows[0], [nothing]), (readers[1], rows[1], [nothing]))
            torch.stack([(side * by).sum() for side, by in zip(sides, weights, strict=True)]).sum().backward()
            gradient = embedding.weight.grad
            assert gradient is not None
            named = gradient.coalesce().indices()[0].tolist()
            assert named == sorted({*torch.cat([part.flatten() for part in rows]).tolist()} - {0})
            found.append(gradient.to_dense())
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_a_table_that_is_read_twice_has_the_sum_of_both_gradients() -> None:
    torch.manual_seed(1)
    spec = fields()
    embedding = FusedEmbedding(spec, WIDTH, candidate_sides=("item",))
    rows, once = drawn(embedding, spec)[0], list[torch.Tensor]()
    for times in (1, 2):
        embedding.weight.grad = None
        for _ in range(times):
            (side,) = embedding.read((embedding.request, rows, [torch.empty(ROWS, 0)]))
            side.square().sum().backward()
        assert embedding.weight.grad is not None
        once.append(embedding.weight.grad.to_dense())
    torch.testing.assert_close(once[1], 2 * once[0])


def test_several_threads_may_follow_gradients_of_one_table() -> None:
    """Of so many rows that the walks of two threads overlap."""
    torch.manual_seed(2)
    spec = fields()
    embedding = FusedEmbedding(spec, WIDTH, candidate_sides=("item",))
    parts = [drawn(embedding, spec)[0].repeat(200, 1) for _ in range(4)]

    def gradient(rows: torch.Tensor) -> torch.Tensor:
        (side,) = embedding.read((embedding.request, rows, [torch.empty(len(rows), 0)]))
        (found,) = torch.autograd.grad(side.sum(), embedding.weight)
        return found.to_dense()

    alone = [*map(gradient, parts)]
    with ThreadPoolExecutor(4) as threads:
        beside = [*threads.map(gradient, parts * 6)]
    assert all(map(torch.equal, beside, alone * 6))


def test_a_table_may_grow_between_two_gradients() -> None:
    torch.manual_seed(3)
    spec = fields()
    embedding = FusedEmbedding(spec, WIDTH, candidate_sides=("item",))
    rows = drawn(embedding, spec)[0]
    for more in (0, 5):
        embedding.weight = torch.nn.Parameter(torch.ones(len(embedding.weight) + more, WIDTH))
        (side,) = embedding.read((embedding.request, rows, [torch.empty(ROWS, 0)]))
        side.sum().backward()
        assert embedding.weight.grad is not None
        assert embedding.weight.grad.shape == embedding.weight.shape


def test_a_layout_counts_its_vectors() -> None:
    assert Layout(2, torch.tensor([8, 11]), torch.zeros(11, dtype=torch.int64)).slots == 4


def test_other_numbers_are_left_to_torch() -> None:
    rows = torch.zeros(4, 2, dtype=torch.int32)
    assert readable(torch.zeros(3, 2), rows)
    assert not readable(torch.zeros(3, 2, dtype=torch.float64), rows)
    assert not readable(torch.zeros(3, 2), rows.long())
    assert not readable(torch.zeros(3, 2), rows.T)
