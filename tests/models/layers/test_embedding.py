from __future__ import annotations

import pytest
import torch

from contracts.features.feature_spec import FeatureSpec, IdSlot
from models.compiled import kernels
from models.examples.batches import Batch, FeatureBlock
from models.layers.embedding import FusedEmbedding, item_slot


def _slow(embedding: FusedEmbedding, starts: dict[str, int], slots: list[IdSlot], block: FeatureBlock) -> torch.Tensor:
    """One row and one slot at a time; slots of one column first."""
    rows = []
    for ids, dense in zip(block.ids.tolist(), block.dense, strict=True):
        parts = []
        for slot in sorted(slots, key=lambda slot: slot.width > 1):
            real = [starts[slot.table] + i for i in ids[slot.start : slot.start + slot.width] if i]
            parts.append(embedding.weight[real].mean(dim=0) if real else torch.zeros(embedding.dim))
        rows.append(torch.cat([*parts, dense]))
    return torch.stack(rows)


def test_inputs_equal_a_loop_over_tables(spec: FeatureSpec, batch: Batch) -> None:
    embedding = FusedEmbedding(spec, 4)
    starts, end = {}, 0
    for table, size in spec.tables().items():
        starts[table], end = end, end + size - 1
    assert len(embedding.weight) == end + 1
    request, candidate = embedding(batch.request, batch.candidate)
    torch.testing.assert_close(request, _slow(embedding, starts, spec.block_ids("request"), batch.request))
    torch.testing.assert_close(candidate, _slow(embedding, starts, spec.block_ids("candidate"), batch.candidate))
    assert request.shape[1] == embedding.request.width
    assert candidate.shape[1] == embedding.candidate.width


def test_a_sequence_and_its_target_share_rows_unless_untied(spec: FeatureSpec) -> None:
    tied, untied = FusedEmbedding(spec, 2), FusedEmbedding(spec, 2, tie=False)
    assert len(untied.weight) - len(tied.weight) == spec.slot("item").size - 1


def test_padding_is_zero_and_gets_no_gradient(spec: FeatureSpec, batch: Batch) -> None:
    embedding = FusedEmbedding(spec, 4)
    sum(part.sum() for part in embedding(batch.request, batch.candidate)).backward()
    assert embedding.weight.grad is not None
    gradient = embedding.weight.grad.to_dense()
    assert not embedding.weight[0].any()
    assert not gradient[0].any()
    assert gradient[1:].any()


def test_the_gradient_is_that_of_each_row_read_less_the_padding(spec: FeatureSpec) -> None:
    """Of a batch with padding, and of one without, whose gradient is handed on as it is."""
    embedding = FusedEmbedding(spec, 4)
    for least in (0, 2):
        rows = torch.arange(12).view(3, 4).clamp(min=least)
        embedding.weight.grad = None
        (vectors,) = embedding.vectors(rows)
        (vectors * torch.arange(12.0).view(3, 4, 1)).sum().backward()
        assert embedding.weight.grad is not None
        wanted = torch.zeros(len(embedding.weight)).index_add_(0, rows.flatten(), torch.arange(12.0))
        wanted[0] = 0.0
        torch.testing.assert_close(embedding.weight.grad.to_dense(), wanted[:, None].expand(-1, 4))


def test_without_a_compiler_inputs_and_gradients_are_the_same(
    spec: FeatureSpec, batch: Batch, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kernels.library() is None:
        pytest.skip("no C++ compiler on this machine")
    embedding = FusedEmbedding(spec, 5)
    found: list[tuple[torch.Tensor, ...]] = []
    weights = [torch.randn(reader.width) for reader in (embedding.request, embedding.candidate)]
    for _ in range(2):
        embedding.weight.grad = None
        sides = embedding(batch.request, batch.candidate)
        sum((side * weight).sum() for side, weight in zip(sides, weights, strict=True)).backward()
        assert embedding.weight.grad is not None
        found.append((*sides, embedding.weight.grad.to_dense()))
        monkeypatch.setattr(kernels, "library", lambda: None)
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_rows_of_blocks_that_are_cut_out_of_wider_ones(spec: FeatureSpec, batch: Batch) -> None:
    """As the item's side of a candidate block is."""
    reader = FusedEmbedding(spec, 2, candidate_sides=("item",)).candidate
    ids = batch.candidate.ids[:, : spec.id_width("item")]
    assert not ids.is_contiguous()
    torch.testing.assert_close(reader.rows(ids), reader.rows(ids.contiguous()))
    wanted = torch.where(ids[:, reader.order] == 0, 0, ids[:, reader.order] + reader.offsets)
    torch.testing.assert_close(reader.rows(ids), wanted)


def test_further_inputs_get_the_gradient_of_their_columns(spec: FeatureSpec, batch: Batch) -> None:
    embedding = FusedEmbedding(spec, 3)
    rows = embedding.request.rows(batch.request.ids)
    (vectors,) = embedding.vectors(rows)
    further = [torch.randn(len(rows), width, requires_grad=True) for width in (2, 1)]
    joined = embedding.request.join(rows, vectors, *further)
    wanted = torch.randn_like(joined)
    torch.testing.assert_close(joined[:, -3:], torch.cat(further, 1))
    found = torch.autograd.grad(joined, further, wanted)
    torch.testing.assert_close(torch.cat(found, 1), wanted[:, -3:])


def test_the_item_is_named_by_its_largest_table(spec: FeatureSpec) -> None:
    slot = item_slot(spec)
    assert slot is not None
    assert slot.name == "item"
    assert item_slot(spec.model_copy(update={"fields": spec.fields[:2]})) is None
