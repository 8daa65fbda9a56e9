from __future__ import annotations

import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, Block
from models.networks.fscd import Fscd


@pytest.fixture
def network(spec: FeatureSpec) -> Fscd:
    return Fscd(spec, 4, (16, 8)).eval()


def test_a_dropped_field_says_nothing(network: Fscd, batch: Batch) -> None:
    network.keep([name for name in network.fields if name != "item_group"])
    before = network(batch.shared, batch.own)
    slot = next(slot for slot in network.spec.block_ids("own") if slot.field == "item_group")
    ids = batch.own.ids.clone()
    ids[:, slot.start] = 2
    assert torch.equal(network(batch.shared, Block(ids, batch.own.dense)), before)
    network.keep(network.fields)
    assert not torch.equal(network(batch.shared, Block(ids, batch.own.dense)), network(batch.shared, batch.own))


def test_a_mask_of_zeros_is_dropping(network: Fscd, batch: Batch) -> None:
    mask = torch.ones(len(batch.label), len(network.fields))
    mask[:, network.fields.index("price")] = 0.0
    masked = network(batch.shared, batch.own, mask)
    network.keep([name for name in network.fields if name != "price"])
    assert torch.allclose(masked, network(batch.shared, batch.own), atol=1e-6)


def test_a_dropped_field_is_its_mean_and_the_mean_stays(network: Fscd, batch: Batch) -> None:
    network.train()
    for _ in range(200):
        network.inputs(batch.shared, batch.own)
    network.keep([name for name in network.fields if name != "price"])
    column = network.own_columns == network.fields.index("price")
    found = network.inputs(batch.shared, batch.own)[1][:, column]
    assert torch.allclose(found[:, -1:], batch.own.dense.mean(dim=0).expand(len(found), 1), atol=1e-3)
    network.inputs(batch.shared, Block(batch.own.ids, batch.own.dense + 5.0))
    assert torch.equal(network.inputs(batch.shared, batch.own)[1][:, column], found)


def test_a_request_stands_for_all_its_candidates(network: Fscd, batch: Batch) -> None:
    requests = Block(batch.shared.ids[::8], batch.shared.dense[::8])
    repeated = Block(*(part.repeat_interleave(8, 0) for part in requests))
    assert torch.allclose(network(requests, batch.own), network(repeated, batch.own), atol=1e-6)
