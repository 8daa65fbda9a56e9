from __future__ import annotations

import pytest
from torch import nn

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.networks import registry
from models.training.input_columns import input_columns


@pytest.mark.parametrize("name", ["dnn", "dcn_v2", "gdcn", "final_mlp", "final_net", "wukong", "factorisation_machine",
                                  "deep_fm", "logistic_regression"])
def test_there_is_a_name_for_every_input(name: str, spec: FeatureSpec, settings: Train) -> None:
    network = registry.build(name, spec, settings)
    columns, embedding = input_columns(network, spec), network.embedding
    assert len(columns["request"]) == embedding.request.width  # type: ignore[union-attr]
    assert len(columns["candidate"]) == embedding.candidate.width  # type: ignore[union-attr]
    assert columns["both"] == columns["request"] + columns["candidate"]
    assert len(set(columns["both"])) == len(columns["both"])


@pytest.mark.parametrize("numbers", ["piecewise_linear", "periodic"])
@pytest.mark.parametrize("name", ["logistic_regression", "wukong"])
def test_what_encodes_a_number_is_named_after_it(name: str, numbers: str, spec: FeatureSpec, settings: Train) -> None:
    network = registry.build(name, spec, settings.model_copy(update={"numbers": numbers}))
    columns, embedding = input_columns(network, spec), network.embedding
    assert len(columns["candidate"]) == embedding.candidate.width  # type: ignore[union-attr]
    assert len(columns["request"]) == embedding.request.width  # type: ignore[union-attr]
    assert len(set(columns["both"])) == len(columns["both"])
    assert {"price", "price 0"} <= set(columns["candidate numbers"])


def test_attention_adds_a_vector_per_history(spec: FeatureSpec, settings: Train) -> None:
    plain, attending = (input_columns(registry.build(name, spec, settings), spec) for name in ("dnn", "din"))
    added = attending["candidate"][len(plain["candidate"]) :]
    assert added == [f"attention history[{number}]" for number in range(settings.embedding_dim)]


def test_a_network_without_embeddings_has_no_columns(spec: FeatureSpec) -> None:
    assert input_columns(nn.Linear(2, 1), spec) == {}
