from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import OneClassError
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Batch
from models.examples.shown_items import shown_items
from models.layers.losses import RetrievalLoss, hardest_sum, log_loss_sum, prior_logit, sampled_softmax_sum
from models.networks.two_tower import TwoTower


def test_log_loss_is_the_formula() -> None:
    logits, labels = torch.tensor([0.3, -2.0, 5.0]), torch.tensor([1.0, 0.0, 0.0])
    p = [1 / (1 + math.exp(-z)) for z in logits.tolist()]
    expected = -math.log(p[0]) - math.log(1 - p[1]) - math.log(1 - p[2])
    assert log_loss_sum(logits, labels).item() == pytest.approx(expected, rel=1e-6)


def test_sampled_softmax_corrects_for_frequency_and_leaves_hits_out() -> None:
    scores, log_q = torch.randn(2, 4), torch.log(torch.tensor([0.5, 0.2, 0.2, 0.1]))
    target, hits = torch.tensor([0, 3]), torch.tensor([[True, True, False, False], [False, False, False, True]])
    corrected = (scores - log_q).tolist()
    expected = 0.0
    for row, (t, kept) in enumerate([(0, [0, 2, 3]), (3, [0, 1, 2, 3])]):
        expected -= corrected[row][t] - math.log(sum(math.exp(corrected[row][i]) for i in kept))
    assert sampled_softmax_sum(scores, target, log_q, hits).item() == pytest.approx(expected, rel=1e-5)


def test_the_hardest_are_the_highest_of_those_that_are_no_hits() -> None:
    scores = torch.tensor([[1.0, 3.0, 2.0, 0.5], [0.2, 0.1, 0.7, -1.0]])
    target, hits = torch.tensor([0, 3]), torch.tensor([[False, True, False, False], [False] * 4])
    expected = math.log(1 + math.exp(2 - 1) + math.exp(0.5 - 1))  # the second column is a hit
    expected += math.log(1 + math.exp(0.7 + 1) + math.exp(0.2 + 1))
    assert hardest_sum(scores, target, hits, 2).item() == pytest.approx(expected, rel=1e-5)
    assert torch.isfinite(hardest_sum(scores, target, hits, 9))


@pytest.fixture
def towers(spec: FeatureSpec, item_world: Any) -> TwoTower:
    made = TwoTower(spec, 8, (16,), 8, 0.0, 0.2)
    made.prepare(item_world.train)
    return made


def test_mixed_negatives_stand_beside_the_batch_with_the_frequency_of_both(
    towers: TwoTower, batch: Batch, item_world: Any
) -> None:
    catalogue = shown_items([item_world.train], towers.slot)
    torch.manual_seed(7)
    found, clicks = RetrievalLoss(towers, catalogue, mixed=20)(batch)
    torch.manual_seed(7)
    drawn, columns = catalogue.draw(20, torch.device("cpu"))
    shown = towers.item_ids(batch.candidate)
    ids = torch.cat([shown, drawn])
    vectors = torch.cat([towers.item_vector(batch.candidate), towers.item_vector(columns)])
    rate = 64 * towers.item_log_frequency[ids].exp() + 20 / len(catalogue.ids)
    scores = (towers.user_vector(batch.request) @ vectors.T / 0.2 - rate.log()).detach()
    expected = 0.0
    for row in batch.label.nonzero().flatten().tolist():
        own = torch.cat([(batch.user == batch.user[row]) & (batch.label > 0), torch.zeros(20, dtype=torch.bool)])
        left = ~(own | (ids == shown[row]))
        left[row] = True
        expected += float(scores[row][left].logsumexp(0) - scores[row, row])
    assert clicks == int(batch.label.sum())
    assert found.item() == pytest.approx(expected, rel=1e-4)


def test_the_softmax_over_mixtures_is_that_over_the_catalogue(towers: TwoTower, item_world: Any) -> None:
    """What Q corrects for: the expected sum over a batch and its draws of f(item) / rate(item) is the sum of f."""
    catalogue = shown_items([item_world.train], towers.slot)
    rate = 64 * towers.item_log_frequency[catalogue.ids].exp() + 20 / len(catalogue.ids)
    value = torch.rand(towers.item_log_frequency.shape)
    torch.manual_seed(0)
    q = towers.item_log_frequency[catalogue.ids].exp()
    sums = []
    for _ in range(400):
        drawn, _ = catalogue.draw(20, torch.device("cpu"))
        ids = torch.cat([catalogue.ids[q.multinomial(64, replacement=True)], drawn])
        sums.append(float((value[ids] / rate[torch.searchsorted(catalogue.ids, ids)]).sum()))
    assert np.mean(sums) == pytest.approx(float(value[catalogue.ids].sum()), rel=0.02)


def test_validation_has_neither_mixed_nor_hard_negatives(towers: TwoTower, batch: Batch, item_world: Any) -> None:
    catalogue = shown_items([item_world.train], towers.slot)
    both, plain = RetrievalLoss(towers, catalogue, mixed=20, hard=3), RetrievalLoss(towers)
    assert both.eval()(batch)[0].item() == plain.eval()(batch)[0].item()
    assert both.train()(batch)[0].item() > plain.train()(batch)[0].item()


def test_the_prior_is_the_log_odds_and_needs_both_classes(item_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rate = item_world.train.column("_label").mean()
    assert 1 / (1 + math.exp(-prior_logit(item_world.train))) == pytest.approx(rate)
    monkeypatch.setattr(item_world.train, "parts", lambda name: iter([(np.ones(item_world.train.rows),)]))
    with pytest.raises(OneClassError, match="labels are 1"):
        prior_logit(item_world.train)
