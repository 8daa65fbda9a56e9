from __future__ import annotations

from typing import get_args

import pytest
from pydantic import ValidationError

from contracts.config.section import ModelName
from contracts.config.training import Crosses, PairRates, Train


def test_every_model_can_be_trained_and_served_and_no_other() -> None:
    for name in get_args(ModelName):
        assert Train.model_validate({"models": [name], "ranker": name}).models == (name,)
    with pytest.raises(ValidationError, match="models"):
        Train.model_validate({"models": ["oracle"]})


def test_thresholds_are_one_per_layer_or_none() -> None:
    assert Crosses(layers=3, thresholds=(0.5, 0.3, 0.0)).thresholds == (0.5, 0.3, 0.0)
    assert Crosses(layers=3).thresholds == ()
    with pytest.raises(ValidationError, match="1 thresholds for 3 layers; give one per layer, or none"):
        Crosses(layers=3, thresholds=(0.5,))


@pytest.mark.parametrize("chosen", [{"models": ["dnn", "final_net"]}, {"ranker": "final_mlp"}])
def test_layers_are_asked_for_where_a_model_is_made_of_them(chosen: dict[str, object]) -> None:
    with pytest.raises(ValidationError, match=r"train\.hidden is empty, and final_\w+ is made of hidden layers"):
        Train.model_validate({"hidden": [], **chosen})
    assert Train(hidden=(), models=("dnn",)).hidden == ()


def test_a_pair_is_of_two_fields() -> None:
    with pytest.raises(ValidationError, match="pairs"):
        PairRates.model_validate({"pairs": [["city"]]})
