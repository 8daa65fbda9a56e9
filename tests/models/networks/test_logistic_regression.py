from __future__ import annotations

import torch

from contracts.features.feature_spec import FeatureSpec, IdSlot
from models.examples.batches import Batch
from models.networks.logistic_regression import STEP_SCALE, LogisticRegression


def slot_of(spec: FeatureSpec, name: str) -> IdSlot:
    """As laid out in the candidate block."""
    return next(slot for slot in spec.block_ids("candidate") if slot.name == name)


def test_the_weight_of_a_value_moves_the_rows_that_hold_it_and_no_others(spec: FeatureSpec, batch: Batch) -> None:
    network = LogisticRegression(spec)
    before = network(batch.request, batch.candidate).detach()
    slot = slot_of(spec, "item")
    ids = batch.candidate.ids[:, slot.start]
    with torch.no_grad():
        network.embedding.weight[network.embedding.starts["item"] + int(ids[0])] += 0.5
    change = network(batch.request, batch.candidate).detach() - before
    torch.testing.assert_close(change, STEP_SCALE * 0.5 * (ids == ids[0]).float())


def test_a_list_counts_as_the_mean_of_its_values(spec: FeatureSpec, batch: Batch) -> None:
    network = LogisticRegression(spec)
    slot = slot_of(spec, "tags")
    ids = batch.candidate.ids[:, slot.start : slot.start + slot.width]
    with torch.no_grad():
        network.embedding.weight[network.embedding.starts["tags"] + 2] = 1.0
    share = (ids == 2).sum(dim=1) / (ids > 0).sum(dim=1).clamp(min=1)
    torch.testing.assert_close(network(batch.request, batch.candidate).detach(), STEP_SCALE * share)


def test_numbers_weigh_by_their_size(spec: FeatureSpec, batch: Batch) -> None:
    network = LogisticRegression(spec)
    with torch.no_grad():
        network.candidate_dense[0] = 0.25
    expected = STEP_SCALE * 0.25 * batch.candidate.dense[:, 0]
    torch.testing.assert_close(network(batch.request, batch.candidate).detach(), expected)
