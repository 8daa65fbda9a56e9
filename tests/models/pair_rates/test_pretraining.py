from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.config.training import PairRates
from contracts.errors import ConfigError, SluiceError
from models.distributed import kept_tensor
from models.distributed.run_checkpoint import RunCheckpoint
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining as pair_pretraining
from models.pair_rates.pretraining import hold_out
from tests.models.stored_graph import store

ROOT = Path(__file__).parents[3]
SETTINGS = PairRates(dim=8, epochs=40, patience=40, batch_size=16, learning_rate=5e-3, neighbours=30)


def fit(graph, settings=SETTINGS, seed=1, **more):
    torch.manual_seed(seed)
    network = pair_network.build(settings, graph)
    return network, pair_pretraining.fit(network, graph, settings, seed, **more)


def grid(network, graph, cities, brands):
    with torch.no_grad():
        vectors = network.encoder.all_vectors(graph)
        left = vectors[graph.starts["city"] + 2 + torch.arange(cities)]
        right = vectors[graph.starts["brand"] + 2 + torch.arange(brands)]
        return torch.sigmoid(network.heads[0](left[:, None], right[None])).numpy()


@pytest.fixture(scope="module")
def fitted(pair_graph):
    torch.set_num_threads(1)
    return fit(pair_graph, SETTINGS.model_copy(update={"layers": 1, "learning_rate": 5e-2}))


@pytest.mark.slow
def test_pairs_never_seen_together_are_known_from_region_and_tier(fitted, pair_graph, pair_rates):
    city, brand = np.indices(pair_rates.shape)
    never = (city + brand) % 4 == 0
    predicted = grid(fitted[0], pair_graph, *pair_rates.shape)
    error = np.square(predicted - pair_rates)[never].mean()
    assert error < 0.2 * np.square(pair_rates.mean() - pair_rates)[never].mean()


def test_unseen_values_are_answered_with_the_rate_of_the_other_one(fitted, pair_graph, pair_rates):
    """No value's rate differs from the overall one here; an unknown value must not take the answer far from it."""
    network, _ = fitted
    with torch.no_grad():
        vectors = network.encoder.all_vectors(pair_graph)
        unknown = vectors[pair_graph.starts["city"] + 1]
        brands = vectors[pair_graph.starts["brand"] + 2 + torch.arange(15)]
        answers = torch.sigmoid(network.heads[0](unknown, brands))
    assert float((answers - pair_rates.mean()).abs().mean()) < 0.1


@pytest.mark.parametrize("model", ["factorisation", "two_tower"])
def test_the_baselines_learn_what_they_have_seen(model, pair_graph, pair_rates):
    network, result = fit(pair_graph, SETTINGS.model_copy(update={"model": model, "learning_rate": 2e-2}))
    city, brand = np.indices(pair_rates.shape)
    seen = (city + brand) % 4 != 0
    error = np.square(grid(network, pair_graph, *pair_rates.shape) - pair_rates)[seen].mean()
    assert error < 0.7 * np.square(pair_rates.mean() - pair_rates)[seen].mean()
    assert result.history[-1].train_loss < result.history[0].train_loss


def test_held_out_pairs_are_a_tenth_and_of_no_link(pair_graph):
    train, holdout = hold_out(pair_graph, seed=3)
    assert len(holdout) == len(pair_graph.targets) // 10
    assert sorted([*train.tolist(), *holdout.tolist()]) == pair_graph.targets.tolist()


@pytest.mark.parametrize("model", ["pcf_gnn", "factorisation", "two_tower"])
@pytest.mark.parametrize("pairs", [1, 2, 4])
def test_a_graph_of_a_few_pairs_is_trained_too(pair_graph, model, pairs):
    few = pair_graph.without(pair_graph.targets[pairs:])
    training, holdout = hold_out(few, 1)
    assert len(training) + len(holdout) == pairs
    assert len(training) >= 1
    network, found = fit(few, SETTINGS.model_copy(update={"epochs": 2, "model": model}))
    assert all(np.isfinite(entry.validation_loss) for entry in found.history)
    assert np.isfinite(grid(network, few, 3, 3)).all()


def test_training_stops_when_held_out_pairs_get_worse_and_keeps_the_best(pair_graph):
    eager = SETTINGS.model_copy(update={"learning_rate": 0.3, "patience": 2, "epochs": 30})
    network, result = fit(pair_graph, eager)
    losses = [entry.validation_loss for entry in result.history]
    assert len(losses) == result.best_epoch + 2 < 30
    assert losses[result.best_epoch - 1] == min(losses)
    run = pair_pretraining.PretrainRun(network, pair_graph, eager, 1)
    assert run.evaluate() == pytest.approx(min(losses), rel=1e-5)


def test_one_seed_one_result(pair_graph):
    short = SETTINGS.model_copy(update={"epochs": 2})
    first, second = (fit(pair_graph, short)[0].state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_loss_that_is_not_finite_names_the_learning_rate(pair_graph):
    with pytest.raises(SluiceError, match=r"pair_rates\.learning_rate"):
        fit(pair_graph, SETTINGS.model_copy(update={"learning_rate": 1e30}))


def test_many_values_have_one_second_moment_each_which_a_checkpoint_brings_back(pair_graph, tmp_path, monkeypatch):
    settings = SETTINGS.model_copy(update={"epochs": 2})
    monkeypatch.setattr(pair_pretraining, "MANY_ROWS", pair_graph.nodes)
    torch.manual_seed(1)
    network = pair_network.build(settings, pair_graph)
    run = pair_pretraining.PretrainRun(network, pair_graph, settings, 1)
    assert run.rows.square.shape == (pair_graph.nodes, 1)

    def stop(done, batches):
        if done == 3:
            raise InterruptedError

    whole, expected = fit(pair_graph, settings)
    assert min(entry.validation_loss for entry in expected.history) < 1.0
    with pytest.raises(InterruptedError):
        fit(pair_graph, settings, kept=kept_run(tmp_path), on_batch=stop)
    resumed, _ = fit(pair_graph, settings, kept=kept_run(tmp_path))
    assert all(torch.equal(tensor, whole.state_dict()[name]) for name, tensor in resumed.state_dict().items())
    monkeypatch.setattr(pair_pretraining, "MANY_ROWS", pair_graph.nodes + 1)
    by_number = fit(pair_graph, settings)[0].state_dict()
    assert not all(torch.equal(tensor, by_number[name]) for name, tensor in whole.state_dict().items())


def test_large_best_weights_lie_in_files_beside_the_checkpoints(pair_graph, tmp_path, monkeypatch):
    made = []
    real = kept_tensor.kept_copy
    monkeypatch.setattr(kept_tensor, "LARGE", 1)

    def noted(tensor, before, folder):
        made.append(folder)
        return real(tensor, before, folder)

    monkeypatch.setattr(pair_pretraining, "kept_copy", noted)
    fit(pair_graph, SETTINGS.model_copy(update={"epochs": 1}), kept=kept_run(tmp_path))
    assert set(made) == {tmp_path}


KILLED = """
import os, signal, sys, torch
from pathlib import Path
from contracts.config.training import PairRates
from models.distributed.run_checkpoint import RunCheckpoint
from models.pair_rates import network as pair_network
from models.pair_rates import pretraining as pair_pretraining
from models.pair_rates.graph import PairGraph
folder, settings, n, kind, seconds = Path(sys.argv[1]), sys.argv[2], *sys.argv[3:]
graph, settings = PairGraph.read(folder), PairRates.model_validate_json(settings)
torch.set_num_threads(1)
torch.manual_seed(1)
network, seen = pair_network.build(settings, graph), []

def on_batch(done, batches):
    seen.append(done)
    if len(seen) == int(n):
        os.kill(os.getpid(), int(kind))

kept = RunCheckpoint(folder / "checkpoints", float(seconds), {"a": "1"}, resume=True)
pair_pretraining.fit(network, graph, settings, 1, kept=kept, on_batch=on_batch)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "seconds"), [(signal.SIGKILL, 0.0), (signal.SIGTERM, 3600.0)])
def test_a_killed_run_goes_on_and_ends_in_the_same_weights(pair_graph, tmp_path, kind, seconds):
    settings = SETTINGS.model_copy(update={"epochs": 3})
    store(pair_graph, tmp_path)
    arguments = [str(tmp_path), settings.model_dump_json(), "12", str(int(kind)), str(seconds)]
    command = [sys.executable, "-c", KILLED, *arguments]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True,
                          text=True, check=False)
    if kind == signal.SIGKILL:
        assert done.returncode == -kind
    else:
        assert "holds a checkpoint" in done.stderr
    seen = []
    resumed, result = fit(pair_graph, settings, kept=kept_run(tmp_path), on_batch=lambda *at: seen.append(at))
    whole, expected = fit(pair_graph, settings)
    assert len(seen) == 3 * seen[0][1] - (11 if kind == signal.SIGKILL else 12), "not all of it went on"
    assert [entry.model_dump(exclude={"seconds"}) for entry in result.history] == [
        entry.model_dump(exclude={"seconds"}) for entry in expected.history]
    assert all(torch.equal(tensor, whole.state_dict()[name]) for name, tensor in resumed.state_dict().items())


def kept_run(folder, name="1"):
    return RunCheckpoint(folder / "checkpoints", 0.0, {"a": name}, resume=True)


def test_a_checkpoint_of_other_settings_is_refused(pair_graph, tmp_path):
    settings = SETTINGS.model_copy(update={"epochs": 2})
    fit(pair_graph, settings, kept=kept_run(tmp_path))
    with pytest.raises(ConfigError, match=r"differs in a \(1 there, 2 now\)"):
        fit(pair_graph, settings, kept=kept_run(tmp_path, "2"))
    assert kept_run(tmp_path).fits()
    assert not kept_run(tmp_path, "2").fits()
