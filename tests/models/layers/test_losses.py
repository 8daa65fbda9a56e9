from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import OneClassError
from models.layers.losses import log_loss_sum, prior_logit, sampled_softmax_sum


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


def test_the_prior_is_the_log_odds_and_needs_both_classes(item_world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rate = item_world.train.column("_label").mean()
    assert 1 / (1 + math.exp(-prior_logit(item_world.train))) == pytest.approx(rate)
    monkeypatch.setattr(item_world.train, "parts", lambda name: iter([(np.ones(item_world.train.rows),)]))
    with pytest.raises(OneClassError, match="labels are 1"):
        prior_logit(item_world.train)
