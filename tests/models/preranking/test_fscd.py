from __future__ import annotations

import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.preranking.fscd import Fscd


@pytest.fixture
def network(spec: FeatureSpec) -> Fscd:
    return Fscd(spec, 4, (16, 8)).eval()


def test_a_dropped_field_says_nothing(network: Fscd, batch: Batch) -> None:
    network.keep([name for name in network.fields if name != "item_group"])
    before = network(batch.request, batch.candidate)
    slot = next(slot for slot in network.spec.block_ids("candidate") if slot.field == "item_group")
    ids = batch.candidate.ids.clone()
    ids[:, slot.start] = 2
    assert torch.equal(network(batch.request, FeatureBlock(ids, batch.candidate.dense)), before)
    network.keep(network.fields)
    changed = network(batch.request, FeatureBlock(ids, batch.candidate.dense))
    assert not torch.equal(changed, network(batch.request, batch.candidate))


def test_a_mask_of_zeros_is_dropping(network: Fscd, batch: Batch) -> None:
    mask = torch.ones(len(batch.label), len(network.fields))
    mask[:, network.fields.index("price")] = 0.0
    masked = network(batch.request, batch.candidate, mask)
    network.keep([name for name in network.fields if name != "price"])
    assert torch.allclose(masked, network(batch.request, batch.candidate), atol=1e-6)


def test_a_dropped_field_is_its_mean_and_the_mean_stays(network: Fscd, batch: Batch) -> None:
    network.train()
    for _ in range(200):
        network.inputs(batch.request, batch.candidate)
    network.keep([name for name in network.fields if name != "price"])
    column = network.candidate_columns == network.fields.index("price")
    found = network.inputs(batch.request, batch.candidate)[1][:, column]
    assert torch.allclose(found[:, -1:], batch.candidate.dense.mean(dim=0).expand(len(found), 1), atol=1e-3)
    network.inputs(batch.request, FeatureBlock(batch.candidate.ids, batch.candidate.dense + 5.0))
    assert torch.equal(network.inputs(batch.request, batch.candidate)[1][:, column], found)


def test_a_request_stands_for_all_its_candidates(network: Fscd, batch: Batch) -> None:
    requests = FeatureBlock(batch.request.ids[::8], batch.request.dense[::8])
    repeated = FeatureBlock(*(part.repeat_interleave(8, 0) for part in requests))
    assert torch.allclose(network(requests, batch.candidate), network(repeated, batch.candidate), atol=1e-6)
