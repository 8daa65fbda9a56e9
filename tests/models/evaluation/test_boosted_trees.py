from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import FeatureSpec
from models.evaluation.boosted_trees import (
    LISTED,
    PATIENCE,
    ROUNDS,
    available,
    fit_and_predict,
    frequent_values,
    raw_columns,
)
from models.evaluation.metrics import auc
from tests.heard_progress import counts, heard


def test_learns_what_the_item_says(item_world: Any, spec: FeatureSpec) -> None:
    assert available()
    frequent = frequent_values(item_world.train, spec)
    train, categories = raw_columns(item_world.train, spec, frequent)
    validation, _ = raw_columns(item_world.validation, spec, frequent)
    label = item_world.train.column("_label"), item_world.validation.column("_label")
    half = len(validation) // 2
    logits, judged = fit_and_predict(
        (train, label[0]), (validation[:half], label[1][:half]), validation[half:], categories, seed=0)
    best = auc(label[1][half:], item_world.logits[half:])
    assert auc(label[1][half:], logits) > best - 0.02
    assert judged > 0.5
    np.testing.assert_array_equal(categories, [2, 3, 4, 5])


def test_lists_are_their_length_and_their_most_frequent_values(item_world: Any, spec: FeatureSpec) -> None:
    frequent = frequent_values(item_world.train, spec)
    assert list(frequent) == ["history", "tags"]
    tags, history = item_world.train.column("tags"), item_world.train.column("history")
    counts = {value: int((tags == value).sum()) for value in range(2, 12)}
    assert [counts[value] for value in frequent["tags"]] == sorted(counts.values(), reverse=True)
    table, categories = raw_columns(item_world.train, spec, frequent)
    assert table.shape[1] == 6 + 1 + min(LISTED, 30) + 1 + 10
    np.testing.assert_array_equal(table[:, 6], (history > 0).sum(axis=1))
    np.testing.assert_array_equal(table[:, -10], (tags == frequent["tags"][0]).any(axis=1))
    assert max(categories) < 6


@pytest.mark.slow
def test_the_trees_do_not_hang_on_the_threads(item_world: Any, spec: FeatureSpec) -> None:
    frequent = frequent_values(item_world.train, spec)
    (train, categories), (test, _) = (raw_columns(part, spec, frequent)
                                      for part in (item_world.train, item_world.validation))
    pairs = (train, item_world.train.column("_label")), (test, item_world.validation.column("_label"))
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(fit_and_predict(*pairs, test, categories, seed=0)[0])
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(found[0], found[1])


def test_trees_are_counted_until_it_stops(item_world: Any, spec: FeatureSpec) -> None:
    """The last tree that is fitted is the last that is reported, of those that there may be."""
    frequent = frequent_values(item_world.train, spec)
    train, validation = ((raw_columns(part, spec, frequent)[0], part.column("_label"))
                         for part in (item_world.train, item_world.validation))
    with heard() as said:
        fit_and_predict(train, validation, validation[0], [2, 3, 4, 5], seed=0)
    told = counts(said, "lightgbm")
    assert told == [(tree, ROUNDS) for tree in range(1, len(told) + 1)]
    assert PATIENCE < len(told) < ROUNDS
