from __future__ import annotations

from typing import Any

import torch

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.networks.factorisation_machine import FactorisationMachine
from models.networks.logistic_regression import STEP_SCALE


def test_the_logit_is_the_sum_over_all_pairs_of_inputs(spec: FeatureSpec, batch: Batch) -> None:
    """Pair by pair, from the looked-up vectors: the paper's definition instead of its O(n) form."""
    network = FactorisationMachine(spec, 3)
    torch.nn.init.normal_(network.embedding.weight)
    with torch.no_grad():
        network.embedding.weight[0] = 0.0
    left, right = network.embedding(batch.request, batch.candidate)
    terms = torch.cat([network.terms(left, network.embedding.request, network.request_numbers),
                       network.terms(right, network.embedding.candidate, network.candidate_numbers)], dim=1)
    count = terms.shape[1]
    pairs = sum((terms[:, i, :3] * terms[:, j, :3]).sum(dim=1) for i in range(count) for j in range(i))
    expected = pairs + STEP_SCALE * terms[:, :, 3].sum(dim=1)
    torch.testing.assert_close(network(batch.request, batch.candidate), expected, rtol=1e-4, atol=1e-4)


def test_a_list_counts_as_the_mean_of_its_values(spec: FeatureSpec, batch: Batch) -> None:
    network = FactorisationMachine(spec, 2)
    reader = network.embedding.candidate
    rows = reader.rows(batch.candidate.ids)
    tags = spec.slot("tags")
    singles_first = sorted(reader.slots, key=lambda slot: slot.width > 1)
    place = next(index for index, slot in enumerate(singles_first) if slot.name == "tags")
    _, right = network.embedding(batch.request, batch.candidate)
    found = network.terms(right, reader, network.candidate_numbers)[:, place]
    columns = rows[:, reader.places["tags"] : reader.places["tags"] + tags.width]
    vectors = network.embedding.weight[columns.long()]
    expected = vectors.sum(dim=1) / (columns > 0).sum(dim=1, keepdim=True).clamp(min=1)
    torch.testing.assert_close(found, expected)


def test_numbers_have_vectors_too(spec: FeatureSpec, batch: Any) -> None:
    network = FactorisationMachine(spec, 2)
    assert network.request_numbers.shape == (1, 3)
    assert network.candidate_numbers.shape == (1, 3)
    before = network(batch.request, batch.candidate)
    with torch.no_grad():
        network.request_numbers[0, 2] = 0.5
    change = network(batch.request, batch.candidate) - before
    torch.testing.assert_close(change, STEP_SCALE * 0.5 * batch.request.dense[:, 0], rtol=1e-3, atol=1e-4)
