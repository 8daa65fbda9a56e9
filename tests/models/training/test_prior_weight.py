from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from contracts.config.training import Train
from contracts.features.feature_spec import FeatureSpec
from models.layers.position_bias import PositionBias
from models.networks import registry
from models.training.fitting import predict
from models.training.prior_weight import LEAST, borne_out, weigh_prior

ROWS = 20_000
LINEAR = {"popularity", "logistic_regression"}
RANDOM = np.random.default_rng(0)
LEARNED, KNOWN = RANDOM.normal(size=(2, ROWS))


def drawn(logits: np.ndarray) -> np.ndarray:
    return (RANDOM.random(len(logits)) < 1 / (1 + np.exp(-logits))).astype(np.float64)


@pytest.mark.parametrize(("share", "level"), [(0.7, -1.0), (0.4, 0.0), (0.25, 3.0)])
def test_what_was_learned_too_surely_is_damped(share: float, level: float) -> None:
    labels = drawn(share * LEARNED + level + KNOWN)
    assert borne_out(labels, LEARNED + 2.0, KNOWN) == pytest.approx(share, abs=0.06)


def test_rows_of_one_user_are_no_further_evidence() -> None:
    """Each row four times: the weight is what it was, and so is its error where they are known to belong together."""
    learned, known, users = LEARNED[:800], KNOWN[:800], np.arange(800)
    rows = drawn(0.5 * learned + known), learned, known
    copies = [np.repeat(part, 4) for part in (*rows, users)]
    assert borne_out(*copies) == pytest.approx(borne_out(*rows), abs=0.02)
    assert borne_out(*copies[:3]) > borne_out(*rows) + 0.02


def test_what_the_rows_bear_out_is_left_alone() -> None:
    assert borne_out(drawn(1.2 * LEARNED + KNOWN - 1), LEARNED, KNOWN) == 1.0


def test_where_nothing_but_popularity_holds_hardly_anything_else_is_left() -> None:
    assert borne_out(drawn(KNOWN - 2), LEARNED, KNOWN) == LEAST


def test_few_rows_prove_nothing_and_one_class_is_no_obstacle() -> None:
    assert borne_out(np.ones(3), np.zeros(3), np.zeros(3)) == 1.0
    assert borne_out(np.zeros(4), LEARNED[:4] / 10, KNOWN[:4]) == 1.0


@pytest.mark.parametrize("name", sorted(set(registry.names()) - LINEAR))
def test_what_a_network_learned_is_rescaled_and_not_its_prior(
    name: str, item_world: Any, spec: FeatureSpec, settings: Train, batch: Any
) -> None:
    network: Any = registry.build(name, spec, settings).eval()
    network.prior.start_at(item_world.train)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
        network.embedding.weight[0] = 0.0
        prior = network.prior(batch.candidate)
        expected = 0.3 * (network(batch.request, batch.candidate) - prior) + 0.7 + prior
        network.rescale(0.3, 0.7)
        torch.testing.assert_close(network(batch.request, batch.candidate), expected, atol=1e-5, rtol=1e-5)


def test_noise_beside_the_prior_is_damped(
    make_world: Callable[..., Any], spec: FeatureSpec, settings: Train, auc: Callable[..., float]
) -> None:
    effect = np.random.default_rng(5).normal(0, 1, 40)
    world = make_world(lambda columns: effect[columns["item"]] - 1, rows=2000)
    network: Any = registry.build("dnn", spec, settings).eval()
    network.prior.start_at(world.train)
    torch.nn.init.normal_(network.mlp.rest[-1].weight, std=5.0)
    labels, before = world.validation.column("_label"), predict(network, world.validation)
    assert weigh_prior(network, PositionBias(0), world.validation) < 0.5
    after = predict(network, world.validation)
    assert auc(labels, after) > auc(labels, before) + 0.02
    assert after.mean() == pytest.approx(before.mean(), abs=1e-3)


@pytest.mark.parametrize("name", sorted(LINEAR))
def test_other_networks_are_left_alone(name: str, item_world: Any, spec: FeatureSpec, settings: Train) -> None:
    assert weigh_prior(registry.build(name, spec, settings), PositionBias(0), item_world.validation) == 1.0
