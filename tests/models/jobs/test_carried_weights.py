from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import torch

from contracts.artifacts import WEIGHTS
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from contracts.summaries.bundle import BundleMetrics, ParityFigures
from models.jobs.carried_weights import CarriedWeights
from models.networks import registry
from models.training import checkpoint
from models.training.warm_start import Parent


def build(spec, config):
    return registry.build("logistic_regression", spec, config.train)


def test_without_a_parent_training_starts_cold(make_task) -> None:
    task = make_task()
    network = build(task.spec, task.config)
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    carried = CarriedWeights(task, "logistic_regression", build)
    carried(network)
    assert carried.figures is None
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())


def test_a_parent_gives_its_dense_weights_and_is_named(make_task, tmp_path) -> None:
    task = make_task()
    metrics = BundleMetrics(ranker="logistic_regression",
                            parity=ParityFigures(rows=0, mismatches=0, max_logit_difference=0.0))
    manifest = Manifest(schema_version=SCHEMA_VERSION, name="tiny", content_hash="0" * 64, created=datetime.now(UTC),
                        files={}, metrics=metrics)
    old = build(task.spec, task.config)
    torch.nn.init.normal_(old.candidate_dense)
    checkpoint.save(old, tmp_path / "parent" / "rank" / WEIGHTS)
    parent = Parent(tmp_path / "parent", manifest, task.spec, {}, task.config)
    carried, network = CarriedWeights(replace(task, parent=parent), "logistic_regression", build), build(
        task.spec, task.config)
    carried(network)
    assert carried.figures is not None
    assert carried.figures.parent == manifest.version
    assert torch.equal(network.candidate_dense, old.candidate_dense)
    several = replace(make_task(ensemble=2), parent=parent)
    members = CarriedWeights(several, "logistic_regression", build, ensembled=True)
    assert members(network) is members.figures is None
    assert CarriedWeights(several, "logistic_regression", build)(network) is not None  # as towers are: one beside them
