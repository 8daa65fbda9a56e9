"""The inputs that the embedding itself joins, lists and paddings among them."""

from __future__ import annotations

import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.inference.block_inputs import BlockInputs
from models.layers.embedding import FusedEmbedding


@torch.inference_mode()
def test_both_blocks(spec: FeatureSpec, batch: Batch) -> None:
    torch.manual_seed(0)
    embedding = FusedEmbedding(spec, 4)
    expected = embedding(batch.request, batch.candidate)
    for reader, block, inputs in zip((embedding.request, embedding.candidate), (batch.request, batch.candidate),
                                     expected, strict=True):
        found = BlockInputs(reader, embedding)(block.ids.numpy(), block.dense.numpy())
        assert found.shape[1] == reader.width
        torch.testing.assert_close(torch.from_numpy(found), inputs)


@torch.inference_mode()
def test_a_block_wider_than_its_reader(spec: FeatureSpec, batch: Batch) -> None:
    """As the item tower reads candidates: without what follows the items' columns."""
    embedding = FusedEmbedding(spec, 4, candidate_sides=("item",))
    ids = batch.candidate.ids
    narrow = BlockInputs(embedding.candidate, embedding)(ids[:, : spec.id_width("item")].numpy(),
                                                         batch.candidate.dense.numpy())
    wide = BlockInputs(embedding.candidate, embedding)(ids.numpy(), batch.candidate.dense.numpy())
    assert (narrow == wide).all()
