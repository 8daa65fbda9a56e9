from __future__ import annotations

from typing import Any

import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.networks.fives import Fives, different_fields, nodes


def network(spec: FeatureSpec, **changed: Any) -> Fives:
    torch.manual_seed(0)
    return Fives(spec, **{"dim": 4, "hidden": (8,), "dropout": 0.0, "layers": 2, **changed})


def test_nodes_are_all_slots_once(spec: FeatureSpec) -> None:
    slots = [*spec.block_ids("request"), *spec.block_ids("candidate")]
    assert sorted(slot.name for slot in nodes(spec)) == sorted(slot.name for slot in slots)


def test_two_granularities_of_a_field_are_no_pair(spec: FeatureSpec) -> None:
    slots = nodes(spec)
    allowed = different_fields(slots)
    assert not allowed.diagonal().any()
    price = next(index for index, slot in enumerate(slots) if slot.field == "price")
    assert allowed[price].sum() == len(slots) - 1


def test_one_request_row_equals_the_same_row_repeated(spec: FeatureSpec, batch: Batch) -> None:
    model = network(spec).eval()
    one = FeatureBlock(batch.request.ids[:1], batch.request.dense[:1])
    many = FeatureBlock(one.ids.expand(len(batch.label), -1), one.dense.expand(len(batch.label), -1))
    torch.testing.assert_close(model(one, batch.candidate), model(many, batch.candidate))


def test_without_edges_all_layers_are_the_first(spec: FeatureSpec) -> None:
    count = len(nodes(spec))
    model = network(spec, allowed=torch.zeros(count, count, dtype=torch.bool))
    vectors = torch.randn(3, count, 4)
    for state in model.propagate(vectors, model.edges()):
        torch.testing.assert_close(state, vectors)


def test_the_last_layer_alone_reads_a_narrower_input(spec: FeatureSpec, batch: Batch) -> None:
    every, last = network(spec), network(spec, readout="last")
    assert last.mlp.first.candidate.shape[1] * 3 == every.mlp.first.candidate.shape[1]
    assert last(batch.request, batch.candidate).shape == batch.label.shape


def test_the_structure_gets_a_gradient(spec: FeatureSpec, batch: Batch) -> None:
    model = network(spec)
    model(batch.request, batch.candidate).sum().backward()
    assert model.edges.structure.grad is not None
    assert (model.edges.structure.grad[0] != 0).any()
