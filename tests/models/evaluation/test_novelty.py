from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from contracts.features.feature_spec import UNKNOWN, FeatureSpec
from models.evaluation.novelty import by_novelty
from models.examples.batches import ExampleSet


def test_rows_are_split_by_who_training_knew(columns: Any, write: Any, spec: FeatureSpec, tmp_path: Any) -> None:
    sets = []
    for number, window in enumerate(("train", "test")):
        drawn = columns(spec, 900, number)
        drawn["_label"] = np.random.default_rng(70 + number).integers(0, 2, 900).astype(np.float64)
        if window == "train":
            drawn["_user"] = drawn["_user"] % 10
        else:
            drawn["item"][:300] = UNKNOWN
        sets.append(ExampleSet(write(tmp_path / window, drawn), spec))
    logits = np.random.default_rng(3).normal(size=900)
    found = by_novelty(sets[0], sets[1], logits)
    labels, users = sets[1].column("_label"), sets[1].column("_user")
    assert list(found) == ["known users", "new users", "known items", "new items"]
    known = users < 10
    assert found["known users"].rows == known.sum()
    assert found["known users"].auc == pytest.approx(roc_auc_score(labels[known], logits[known]))
    assert found["new items"].rows == 300
    assert found["new items"].auc == pytest.approx(roc_auc_score(labels[:300], logits[:300]))
    assert found["new users"].gauc is not None


def test_a_slice_of_one_class_has_no_auc(item_world: Any) -> None:
    found = by_novelty(item_world.train, item_world.validation, np.zeros(item_world.validation.rows))
    assert found["new users"].rows == 0
    assert (found["new users"].auc, found["new users"].gauc) == (None, None)
