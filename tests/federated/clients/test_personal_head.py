"""A head of a client's own: which weights it is, where its descent ends, and whose model it belongs to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from contracts.errors import ConfigError
from federated.clients import client_files
from federated.clients.networks import FederatedNetworks
from federated.clients.personal_head import HEADS, HeadSettings, fit, head_of, keep, model_name, put_on
from federated.clients.prepare import SamplesByUser, federated_spec
from models.examples.batches import ExampleSet
from models.layers.losses import ClickLoss
from models.networks import registry
from tests.federated import small_world

LEARNING = [name for name in registry.names() if name != "popularity"]


@pytest.fixture(scope="module")
def own(tmp_path_factory):
    """One user's rows."""
    out = small_world.write(tmp_path_factory.mktemp("out"))
    samples = SamplesByUser(ExampleSet(out.examples("train"), federated_spec(small_world.config(), small_world.spec())))
    return samples.of(samples.users[0])


def networks_of(model):
    config = small_world.config(model=model)
    torch.manual_seed(3)
    made = FederatedNetworks(federated_spec(config, small_world.spec()), config)
    return made.eval()


def moved(networks, batch, by):
    """Logits where the head is moved by so many times a fixed direction."""
    head = head_of(networks.ranker)
    draws = torch.Generator().manual_seed(1)
    steps = [by * torch.randn(each.shape, generator=draws) for each in head]
    with torch.no_grad():
        for each, step in zip(head, steps, strict=True):
            each.add_(step)
        logits = networks.ranker(batch.request, batch.candidate)
        for each, step in zip(head, steps, strict=True):
            each.sub_(step)
    return logits.double()


@pytest.mark.parametrize("model", LEARNING)
def test_a_logit_is_an_affine_function_of_the_head(own, model):
    """It is the last layer, whole: what lies before it would bend the line."""
    networks = networks_of(model)
    before, start, after = (moved(networks, own, by) for by in (-1.0, 0.0, 1.0))
    assert (after - start).abs().max() > 0.01
    assert (after + before - 2 * start).abs().max() < 1e-4 * after.abs().max()


def test_a_network_without_a_last_layer_is_told_so():
    with pytest.raises(ConfigError, match="ReLU has no last layer that a client could have of its own"):
        head_of(torch.nn.ReLU())


def slope_of_the_sum(networks, batch):
    """Of the summed log loss by each weight of the head."""
    total, _ = ClickLoss(networks.ranker, networks.bias)(batch)
    return torch.autograd.grad(total, head_of(networks.ranker))


@pytest.mark.slow
def test_descent_ends_where_the_rows_and_the_common_head_balance(own):
    """grad sum of losses + pull (h - h0) = 0; all below the head is as it was."""
    networks = networks_of("dnn")
    head, pull = head_of(networks.ranker), 2.0
    start, body = [each.detach().clone() for each in head], networks.ranker.mlp.first.request.detach().clone()
    fit(networks, own, HeadSettings(1500, 0.5, pull))
    for slope, each, common in zip(slope_of_the_sum(networks, own), head, start, strict=True):
        assert torch.allclose(slope, pull * (common - each), atol=1e-3)
    assert max((each - common).abs().max() for each, common in zip(head, start, strict=True)) > 0.05
    assert (networks.ranker.mlp.first.request == body).all()


def test_a_head_that_is_a_bias_alone_ends_at_the_clients_own_click_rate(own):
    networks = networks_of("logistic_regression")
    fit(networks, own, HeadSettings(500, 0.5, 0.0))
    with torch.no_grad():
        said = torch.sigmoid(networks.ranker(own.request, own.candidate)).mean()
    assert float(said) == pytest.approx(float(own.label.mean()), abs=1e-3)


@pytest.mark.slow
def test_few_rows_or_a_strong_pull_leave_a_client_near_the_common_head(own):
    def distance(rows, pull):
        networks = networks_of("dnn")
        start = [each.detach().clone() for each in head_of(networks.ranker)]
        fit(networks, own.take(torch.arange(rows)), HeadSettings(300, 0.3, pull))
        return sum(float((each.detach() - common).square().sum())
                   for each, common in zip(head_of(networks.ranker), start, strict=True))

    assert distance(0, 1.0) == 0.0
    assert 0 < distance(2, 1.0) < distance(len(own.label), 1.0)
    assert distance(len(own.label), 1e6) < 1e-6


def test_a_head_is_kept_for_the_model_it_was_fitted_on_and_for_no_other(own, tmp_path):
    networks, common = networks_of("dnn"), networks_of("dnn")
    name = model_name(networks)
    assert not put_on(tmp_path, 7, common)
    fit(networks, own, HeadSettings(20, 0.3, 1.0))
    assert model_name(networks) != name
    keep(tmp_path, 7, name, networks)
    (file,) = (client_files.client(tmp_path, 7) / HEADS).iterdir()
    assert file.stat().st_mode & 0o077 == 0
    assert not put_on(tmp_path, 8, common)
    assert put_on(tmp_path, 7, common)
    assert all(np.array_equal(mine, kept) for mine, kept in zip(networks.read(), common.read(), strict=True))
    assert not put_on(tmp_path, 7, networks)
