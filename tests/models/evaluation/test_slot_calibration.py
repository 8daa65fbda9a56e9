from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.evaluation.slot_calibration import position_logit, pre_ranker_curve, telling
from models.examples.batches import ExampleSet

BIAS = (0.0, -0.7, -1.4, -2.0)


def test_what_a_slot_adds_to_a_logit(item_world: Any) -> None:
    """The bias has one entry less than the log has positions: the last counts for the rest."""
    examples, bias = item_world.validation, (0.0, -0.5, -1.0)
    expected = np.array([0.0, -0.5, -1.0, -1.0])[examples.column("_position") - 1]
    np.testing.assert_array_equal(position_logit(examples, bias), expected)
    assert not position_logit(examples, ()).any()
    assert not position_logit(examples, (0.7,)).any()


@pytest.mark.parametrize("bias", [BIAS, ()])
def test_mean_probability_at_the_first_slot_is_its_click_rate(
    bias: tuple[float, ...], spec: FeatureSpec, columns: Any, write: Any, tmp_path: Any
) -> None:
    rows, random = 40_000, np.random.default_rng(0)
    drawn, logits = columns(spec, rows, 0), random.normal(-2, 1, rows)
    chance = 1 / (1 + np.exp(-logits - np.array(BIAS)[drawn["_position"] - 1]))
    drawn["_label"] = (random.random(rows) < chance).astype(np.float64)
    curve = pre_ranker_curve(Train(), ExampleSet(write(tmp_path, drawn), spec), logits, bias)
    first = drawn["_position"] == 1
    assert curve.apply(logits[first]).mean() == pytest.approx(drawn["_label"][first].mean(), abs=0.006)


def test_a_bias_lets_every_row_tell_and_few_clicks_of_the_first_slot_tell_nothing(item_world: Any) -> None:
    examples = item_world.validation
    every, position = np.ones(examples.rows, dtype=bool), examples.column("_position")
    np.testing.assert_array_equal(telling(examples, BIAS, every), every)
    np.testing.assert_array_equal(telling(examples, (0.0,), every), position == 1)
    few = np.arange(examples.rows) < 20
    np.testing.assert_array_equal(telling(examples, (), few), few)
