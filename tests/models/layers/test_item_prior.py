from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import UNKNOWN, FeatureField, FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.layers.item_prior import STRENGTH, ItemPrior


def logit(rate: np.ndarray | float) -> np.ndarray | float:
    return np.log(rate / (1 - rate))


def test_it_is_the_smoothed_log_odds_over_those_of_all_rows(item_world: Any, spec: FeatureSpec) -> None:
    prior = ItemPrior(spec.model_copy(update={"has_position": False}))
    prior.start_at(item_world.train)
    items, labels = item_world.train.column("item"), item_world.train.column("_label")
    chosen = items == 7
    rate = (labels[chosen].sum() + STRENGTH * labels.mean()) / (chosen.sum() + STRENGTH)
    assert prior.logit[7] == pytest.approx(logit(rate) - logit(labels.mean()), rel=1e-4)
    assert prior.logit[UNKNOWN] == pytest.approx(0.0, abs=1e-6)  # no training row has it


def test_a_counter_of_the_items_side_takes_its_place(item_world: Any, spec: FeatureSpec) -> None:
    for side, counts in (("user", True), ("item", False)):
        counter = FeatureField(name=f"{side}_rate", kind="counter", side=side)
        prior = ItemPrior(spec.model_copy(update={"fields": (*spec.fields, counter)}))
        prior.start_at(item_world.train)
        assert bool(prior.logit.any()) == counts


def test_an_item_is_not_held_to_be_bad_for_having_been_shown_low(
    make_world: Callable[..., Any], spec: FeatureSpec
) -> None:
    def shown_low(columns: dict[str, np.ndarray]) -> np.ndarray:
        low = columns["item"] % 2 == 0
        columns["_position"] = np.where(low & (columns["_row"] % 5 > 0), 4, 1).astype(np.int32)
        return 0.5 - 1.5 * (columns["_position"] == 4)

    prior = ItemPrior(spec)
    prior.start_at(make_world(shown_low, seed=31).train)
    assert prior.logit[2:].abs().mean() < 0.15


def test_every_row_gets_its_items_prior_and_rows_without_items_none(batch: Batch, spec: FeatureSpec) -> None:
    prior = ItemPrior(spec)
    prior.logit.normal_()
    column = next(slot.start for slot in spec.block_ids("candidate") if slot.name == "item")
    ids = batch.candidate.ids[:, column].long()
    assert torch.equal(prior(batch.candidate), prior.logit[ids])
    field = FeatureField(name="age", kind="categorical", side="user", size=5)
    nothing = ItemPrior(FeatureSpec(fields=(field,)))
    assert nothing(FeatureBlock(torch.empty(3, 0, dtype=torch.int32), torch.empty(3, 0))).tolist() == [0.0]
