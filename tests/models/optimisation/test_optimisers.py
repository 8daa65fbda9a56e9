from __future__ import annotations

from typing import Any

import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.networks.dnn import Dnn
from models.optimisation.optimisers import Optimisers


@pytest.fixture
def network(spec: FeatureSpec) -> Dnn:
    return Dnn(spec, 4, (8,), 0.0)


def backward(network: Dnn, batch: Batch, scale: float = 1.0) -> None:
    (scale * network(batch.request, batch.candidate).sum()).backward()


def test_all_move_but_the_rows_that_the_batch_lacks(network: Dnn, batch: Batch, settings: Train) -> None:
    optimisers = Optimisers([network], settings)
    before = {name: value.clone() for name, value in network.named_parameters()}
    backward(network, batch)
    optimisers.step()
    moved = {name: (value != before[name]) for name, value in network.named_parameters()}
    assert all(change.any() for change in moved.values())
    assert not moved["embedding.weight"].all()
    assert len(optimisers.parameters) == len(optimisers.dense) + 1 == len(before)


def test_gradients_are_clipped_to_one_norm(network: Dnn, batch: Batch, settings: Train) -> None:
    optimisers = Optimisers([network], settings.model_copy(update={"clip_norm": 0.5}))
    backward(network, batch, scale=1000.0)
    optimisers.step()
    norm = torch.linalg.vector_norm(torch.stack([p.grad.norm() for p in optimisers.dense if p.grad is not None]))
    assert norm < 0.5


def test_gradients_of_a_small_norm_stay_as_they_are(network: Dnn, batch: Batch, settings: Train) -> None:
    optimisers = Optimisers([network], settings.model_copy(update={"clip_norm": 1e6}))
    backward(network, batch)
    before = [p.grad.clone() for p in optimisers.dense if p.grad is not None]
    optimisers.step()
    after = [p.grad for p in optimisers.dense if p.grad is not None]
    assert all(torch.equal(one, other) for one, other in zip(before, after, strict=True))


def test_a_norm_that_is_no_number_goes_into_all_gradients(network: Dnn, batch: Batch, settings: Train) -> None:
    optimisers = Optimisers([network], settings)
    backward(network, batch)
    first = optimisers.dense[0].grad
    assert first is not None
    first.view(-1)[0] = torch.nan
    optimisers.step()
    assert all(p.isnan().all() for p in optimisers.dense)


def test_one_rate_is_everybodys(network: Dnn, settings: Train) -> None:
    optimisers = Optimisers([network], settings)
    optimisers.learning_rate = 0.25
    assert optimisers.learning_rate == 0.25
    assert optimisers.adam is not None
    assert {group["lr"] for group in optimisers.adam.param_groups} == {0.25}
    assert [adam.learning_rate for adam in optimisers.row_adams] == [0.25]


def test_rows_are_penalised_and_paced_where_that_is_asked_for(network: Dnn, item_world: Any, settings: Train) -> None:
    optimisers = Optimisers([network], settings)
    for strength in (0.0, 10.0):
        optimisers.weigh_rows(item_world.train, strength, 256, paced=strength > 0)
        assert (optimisers.row_adams[0].l2 is not None) == (strength > 0)
        assert (optimisers.row_adams[0].pace is not None) == (strength > 0)


def test_what_takes_no_gradient_stays(network: Dnn, settings: Train) -> None:
    network.mlp.first.bias.requires_grad_(False)
    assert all(p is not network.mlp.first.bias for p in Optimisers([network], settings).parameters)
