from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

from models.training.best_weights import BestWeights


def _set(module: nn.Linear, value: float) -> None:
    nn.init.constant_(module.weight, value)


def test_the_first_of_the_best_scores_is_given_back(tmp_path: Path) -> None:
    module = nn.Linear(3, 2)
    best = BestWeights(module, tmp_path)
    for epoch, score in enumerate((0.5, 0.7, 0.6, 0.7), start=1):
        _set(module, float(epoch))
        best.offer(score, epoch)
    assert best.epoch == 2
    best.restore()
    assert bool((module.weight == 2.0).all())


def test_epochs_of_an_earlier_process_count_without_their_weights() -> None:
    module = nn.Linear(3, 2)
    best = BestWeights(module, None)
    assert best.seen(0.9, 1)
    best.offer(0.8, 2)
    assert (best.epoch, best.weights) == (1, {})


def test_training_on_changes_nothing_of_what_is_kept() -> None:
    module = nn.Linear(3, 2)
    best = BestWeights(module, None)
    best.offer(-1.0, 1)
    kept = module.weight.detach().clone()
    _set(module, 7.0)
    assert torch.equal(best.weights["weight"], kept)
