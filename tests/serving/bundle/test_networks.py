"""Networks come back filled, in evaluation mode, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from contracts.config.stages import Prerank
from contracts.config.training import Train
from contracts.errors import BundleError
from models.networks.tower_pre_ranker import PreRanker
from models.training import checkpoint
from serving.bundle.networks import load_pre_ranker

TRAIN, PRERANK = Train(tower_dim=4), Prerank(hidden=(3,))


def test_loaded_network_answers_as_the_saved_one(tmp_path: Path) -> None:
    saved = PreRanker(4, (3,)).eval()
    checkpoint.save(saved, tmp_path / "weights.safetensors")
    loaded = load_pre_ranker(tmp_path / "weights.safetensors", TRAIN, PRERANK)
    user, item = torch.randn(1, 4), torch.randn(5, 4)
    with torch.inference_mode():
        torch.testing.assert_close(loaded(user, item), saved(user, item))
    assert not loaded.training
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_missing_weights(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="no weights at"):
        load_pre_ranker(tmp_path / "weights.safetensors", TRAIN, PRERANK)


def test_weights_of_another_shape(tmp_path: Path) -> None:
    checkpoint.save(PreRanker(4, (7,)), tmp_path / "weights.safetensors")
    with pytest.raises(BundleError, match="other settings"):
        load_pre_ranker(tmp_path / "weights.safetensors", TRAIN, PRERANK)
