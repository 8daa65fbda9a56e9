from __future__ import annotations

from typing import Any

import numpy as np

from contracts.feature_spec import FeatureSpec
from models.boosted_trees import available, fit_and_predict, raw_columns
from models.metrics import auc


def test_learns_what_the_item_says(item_world: Any, spec: FeatureSpec) -> None:
    assert available()
    train, categories = raw_columns(item_world.train, spec)
    validation, _ = raw_columns(item_world.validation, spec)
    assert train.shape == (item_world.train.rows, 6)
    label = item_world.train.column("_label"), item_world.validation.column("_label")
    half = len(validation) // 2
    logits, judged = fit_and_predict(
        (train, label[0]), (validation[:half], label[1][:half]), validation[half:], categories, seed=0)
    best = auc(label[1][half:], item_world.logits[half:])
    assert auc(label[1][half:], logits) > best - 0.02
    assert judged > 0.5
    np.testing.assert_array_equal(categories, [2, 3, 4, 5])
