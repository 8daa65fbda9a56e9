from __future__ import annotations

from typing import Any

import pytest
import torch

from contracts.features.feature_spec import FeatureField, FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.networks.wukong import FactorisationBlock, Wukong, WukongLayer


def test_a_block_reads_the_products_of_all_pairs_of_vectors() -> None:
    block, x = FactorisationBlock(5, 3, 2, 4), torch.randn(7, 5, 3)
    pairs = torch.einsum("bnd,bmd->bnm", x, x) @ block.projection
    torch.testing.assert_close(block(x), block.layers(pairs.flatten(1)).view(7, 2, 3))


@pytest.mark.parametrize("vectors", [4, 5])
def test_a_layer_keeps_what_came_in_beside_what_it_made(vectors: int) -> None:
    layer: Any = WukongLayer(vectors, 3, 2, 6)
    x = torch.randn(7, vectors, 3)
    kept = x if vectors == 4 else torch.einsum("kn,bnd->bkd", layer.residual.weight, x)
    made = torch.cat([layer.crosses(x), torch.einsum("kn,bnd->bkd", layer.compression.weight, x)], 1)
    torch.testing.assert_close(layer(x), layer.norm(made + kept))


def test_every_slot_and_the_numbers_of_each_block_are_vectors(spec: FeatureSpec, batch: Batch) -> None:
    network: Any = Wukong(spec, 4, (8,), 0.0, layers=1, vectors=3)
    left, right = network.embedding(batch.request, batch.candidate)
    counts = [network.vectors(inputs, block).shape[1] for block, inputs in enumerate((left, right))]
    slots = [len(reader.slots) for reader in (network.embedding.request, network.embedding.candidate)]
    dense = [bool(spec.block_dense(block)) for block in ("request", "candidate")]  # type: ignore[arg-type]
    assert counts == [count + number for count, number in zip(slots, dense, strict=True)]


@pytest.mark.parametrize("side", ["context", "item"])
def test_a_table_of_one_side_is_no_obstacle(side: str) -> None:
    spec = FeatureSpec(fields=(FeatureField(name="f", kind="categorical", side=side, size=5),))  # type: ignore[arg-type]
    ids, none = torch.tensor([[2], [3]], dtype=torch.int32), torch.zeros(2, 0)
    empty = FeatureBlock(torch.zeros(2, 0, dtype=torch.int32), none)
    request, candidate = (FeatureBlock(ids, none), empty) if side == "context" else (empty, FeatureBlock(ids, none))
    assert torch.isfinite(Wukong(spec, 4, (8,), 0.0, layers=2, vectors=3)(request, candidate)).all()
