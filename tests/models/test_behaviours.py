"""What every registered ranker must do, on data with a known answer."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from contracts.config.training import Train
from contracts.features.feature_spec import UNKNOWN, FeatureSpec
from models.examples.batches import Batch, FeatureBlock
from models.networks import registry
from models.training import checkpoint, fitting
from models.training.loop import FitResult

Auc = Callable[[np.ndarray, np.ndarray], float]
PLAIN = ("factorisation_machine", "dnn", "dcn_v2", "gdcn", "deep_fm", "final_mlp", "final_net", "wukong", "fives",
         "din", "din_sequence")
VARIANTS: dict[str, dict[str, str]] = {
    "dnn, ramps": {"numbers": "piecewise_linear"}, "dcn_v2, waves": {"numbers": "periodic"},
    "dcn_v2, stacked": {"cross_structure": "stacked"}}  # of the network named first
DEEP = (*PLAIN, *VARIANTS)
TRAINED = ("logistic_regression", *DEEP)


def build(name: str, spec: FeatureSpec, settings: Train) -> nn.Module:
    changed = settings.model_copy(update=VARIANTS.get(name, {}))
    return registry.build(name.partition(",")[0], spec, changed)


@pytest.fixture(scope="module")
def fitted(item_world: Any, spec: FeatureSpec, settings: Train) -> dict[str, tuple[nn.Module, FitResult]]:
    def fit(name: str) -> tuple[nn.Module, FitResult]:
        torch.set_num_threads(1)
        torch.manual_seed(1)
        network = build(name, spec, settings)
        return network, fitting.fit(network, item_world.train, item_world.validation, settings, seed=1)

    return {name: fit(name) for name in (*registry.names(), *VARIANTS)}


@pytest.fixture(params=(*registry.names(), *VARIANTS))
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def network(fitted: dict[str, Any], name: str) -> nn.Module:
    return fitted[name][0]


def test_reaches_the_ceiling_of_a_signal_it_can_represent(network: nn.Module, item_world: Any, auc: Auc) -> None:
    labels = item_world.validation.column("_label")
    logits = fitting.predict(network, item_world.validation)
    assert logits.dtype == np.float64
    assert auc(labels, logits) > auc(labels, item_world.logits) - 0.015


@pytest.mark.parametrize("name", TRAINED)
def test_the_loss_falls(fitted: dict[str, Any], name: str) -> None:
    history = fitted[name][1].history
    assert history[-1].train_loss < history[0].train_loss


def test_the_best_epoch_is_the_one_kept(fitted: dict[str, Any], name: str, item_world: Any) -> None:
    network, result = fitted[name]
    labels = item_world.validation.column("_label")
    logits = fitting.predict(network, item_world.validation)
    loss = np.mean(np.logaddexp(0, logits) - labels * logits)
    best = max(result.history, key=lambda entry: entry.validation_auc or 0.0)
    assert best.epoch == result.best_epoch
    assert loss <= best.validation_loss * (1 + 1e-5)  # popularity may have been given more weight since


def test_same_seed_same_weights(name: str, spec: FeatureSpec, settings: Train, item_world: Any) -> None:
    short = settings.model_copy(update={"epochs": 1, "batch_size": 1024, "dropout": 0.2})
    runs = []
    for _ in range(2):
        torch.manual_seed(3)
        network = build(name, spec, short)
        fitting.fit(network, item_world.train, item_world.validation, short, seed=3, positions=4)
        runs.append(network.state_dict())
    assert all(torch.equal(runs[0][key], runs[1][key]) for key in runs[0])


def test_one_request_row_is_broadcast(network: nn.Module, batch: Batch) -> None:
    one = FeatureBlock(batch.request.ids[:1], batch.request.dense[:1])
    many = FeatureBlock(*(part.expand(len(batch.label), -1) for part in one))
    torch.testing.assert_close(network(one, batch.candidate), network(many, batch.candidate), atol=1e-6, rtol=1e-6)


def test_permuted_rows_permute_the_logits(network: nn.Module, batch: Batch) -> None:
    order = torch.randperm(len(batch.label))
    mixed = batch.take(order)
    expected = network(batch.request, batch.candidate)[order]
    torch.testing.assert_close(network(mixed.request, mixed.candidate), expected, atol=1e-6, rtol=1e-5)


def test_where_the_padding_stands_changes_nothing(network: nn.Module, batch: Batch, spec: FeatureSpec) -> None:
    def padded_first(block: FeatureBlock, slots: list[Any]) -> FeatureBlock:
        ids = block.ids.clone()
        for slot in slots:
            span = slice(slot.start, slot.start + slot.width)
            order = (ids[:, span] > 0).int().argsort(dim=1, stable=True)
            ids[:, span] = ids[:, span].gather(1, order)
        return FeatureBlock(ids, block.dense)

    request = padded_first(batch.request, spec.block_ids("request"))
    candidate = padded_first(batch.candidate, spec.block_ids("candidate"))
    assert not torch.equal(request.ids, batch.request.ids)
    expected = network(batch.request, batch.candidate)
    torch.testing.assert_close(network(request, candidate), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("value", [0, UNKNOWN])
def test_unknown_and_missing_ids_give_finite_logits(network: nn.Module, batch: Batch, value: int) -> None:
    blocks = [FeatureBlock(torch.full_like(block.ids, value), block.dense)
              for block in (batch.request, batch.candidate)]
    logits = network(*blocks)
    assert logits.shape == batch.label.shape
    assert torch.isfinite(logits).all()


def test_an_empty_sequence_is_no_obstacle(network: nn.Module, batch: Batch, spec: FeatureSpec) -> None:
    slot = spec.slot("history")
    ids = batch.request.ids.clone()
    ids[:, slot.start : slot.start + slot.width] = 0
    assert torch.isfinite(network(FeatureBlock(ids, batch.request.dense), batch.candidate)).all()


def test_stored_weights_give_the_same_logits(
    network: nn.Module, name: str, spec: FeatureSpec, settings: Train, batch: Batch, tmp_path: Path
) -> None:
    checkpoint.save(network, tmp_path / "weights.safetensors")
    other = build(name, spec, settings).eval()
    checkpoint.load(other, tmp_path / "weights.safetensors")
    assert torch.equal(other(batch.request, batch.candidate), network(batch.request, batch.candidate))


def test_weights_are_finite_and_the_padding_is_zero(network: Any) -> None:
    assert all(torch.isfinite(tensor).all() for tensor in network.state_dict().values())
    if hasattr(network, "embedding"):
        assert not network.embedding.weight[0].any()


@pytest.mark.parametrize("name", TRAINED)
def test_gradient_reaches_every_parameter(name: str, network: nn.Module, batch: Batch) -> None:
    trained = copy.deepcopy(network)
    trained(batch.request, batch.candidate).square().sum().backward()
    for label, parameter in trained.named_parameters():
        gradient = parameter.grad
        assert gradient is not None, label
        assert (gradient.to_dense() if gradient.is_sparse else gradient).any(), label


def _xor(columns: dict[str, np.ndarray]) -> np.ndarray:
    return np.where((columns["user_group"] + columns["item_group"]) % 2 == 0, 1.5, -1.5)


@pytest.fixture(scope="module")
def xor_world(make_world: Callable[..., Any]) -> Any:
    return make_world(_xor, rows=8000, seed=7)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_a_cross_is_learned_by_the_deep_ones_alone(
    name: str, xor_world: Any, spec: FeatureSpec, settings: Train, auc: Auc
) -> None:
    longer = settings.model_copy(update={"epochs": 8, "patience": 8})
    network = build(name, spec, longer)
    fitting.fit(network, xor_world.train, xor_world.validation, longer, seed=2)
    labels = xor_world.validation.column("_label")
    reached, ceiling = auc(labels, fitting.predict(network, xor_world.validation)), auc(labels, xor_world.logits)
    assert reached > ceiling - 0.03 if name in DEEP else reached < 0.55


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
def test_the_position_tower_takes_the_effect_of_the_position(
    name: str, make_world: Callable[..., Any], spec: FeatureSpec, settings: Train
) -> None:
    """Position is confounded with the item: shown lower, an item looks worse than it is."""
    def logit(columns: dict[str, np.ndarray]) -> np.ndarray:
        low = columns["item"] % 2 == 0
        columns["_position"] = np.where(low & (columns["_row"] % 5 > 0), 4, 1).astype(np.int32)
        return 0.5 - 1.5 * (columns["_position"] == 4)

    world = make_world(logit, seed=11)
    torch.manual_seed(1)
    network = build(name, spec, settings)
    result = fitting.fit(network, world.train, world.validation, settings, seed=1, positions=4)
    assert result.position_bias[0] == 0.0
    assert result.position_bias[3] == pytest.approx(-1.5, abs=0.25)
    low = world.validation.column("item") % 2 == 0
    logits = fitting.predict(network, world.validation)
    assert abs(logits[low].mean() - logits[~low].mean()) < 0.25
    assert logits.mean() == pytest.approx(0.5, abs=0.2)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("column", ["tags", "history"])
def test_what_a_list_says_is_heard(
    name: str, column: str, make_world: Callable[..., Any], spec: FeatureSpec, settings: Train, auc: Auc
) -> None:
    """A multi-valued field, and a sequence, whose entries each move the logit: the mean of the lists tells it."""
    effect = np.random.default_rng(8).normal(0, 3, 40)

    def logit(columns: dict[str, np.ndarray]) -> np.ndarray:
        ids = columns[column]
        total = np.where(ids > 0, effect[ids], 0.0).sum(axis=1)
        return total / np.maximum((ids > 0).sum(axis=1), 1) - 0.5

    world = make_world(logit, seed=21)
    torch.manual_seed(4)
    network = build(name, spec, settings)
    fitting.fit(network, world.train, world.validation, settings, seed=1)
    labels = world.validation.column("_label")
    assert auc(labels, fitting.predict(network, world.validation)) > auc(labels, world.logits) - 0.05
