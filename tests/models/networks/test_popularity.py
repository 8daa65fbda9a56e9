from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.errors import OneClassError
from contracts.features.feature_spec import FeatureSpec
from models.networks.popularity import STRENGTH, Popularity


def test_the_logit_is_the_smoothed_click_rate_of_the_item(item_world: Any, spec: FeatureSpec) -> None:
    popularity = Popularity(spec)
    popularity.prepare(item_world.train)
    items, labels = item_world.train.column("item"), item_world.train.column("_label")
    for item in (2, 7, 31):
        mine = labels[items == item]
        rate = (mine.sum() + STRENGTH * labels.mean()) / (len(mine) + STRENGTH)
        assert torch.sigmoid(popularity.logit[item]).item() == pytest.approx(rate, rel=1e-5)
    assert torch.sigmoid(popularity.logit[1]).item() == pytest.approx(labels.mean(), rel=1e-5)


def test_labels_of_one_class_are_refused(item_world: Any, spec: FeatureSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(item_world.train, "parts", lambda *names: iter([[np.zeros(5, dtype=np.int32) for _ in names]]))
    with pytest.raises(OneClassError, match="labels are 0"):
        Popularity(spec).prepare(item_world.train)
