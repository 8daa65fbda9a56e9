from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
import torch

from contracts.artifacts import WEIGHTS
from contracts.bundle.bundle import SCHEMA_VERSION, Manifest
from contracts.features import vocabulary
from contracts.features.vocabulary import Vocabulary
from contracts.summaries.bundle import BundleMetrics, ParityFigures
from models.jobs.carried_weights import CarriedWeights
from models.networks import registry
from models.training import checkpoint, fitting
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


@pytest.mark.parametrize("change", [{"embedding_dim": 6}, {"hidden": [12]}])
def test_other_widths_than_the_parents_are_a_cold_start(make_task, tmp_path, change: dict) -> None:
    """In all that it is: batch normalisation, the spread of the vectors, and the weights that come out."""
    def dnn(spec, config):
        return registry.build("dnn", spec, config.train)

    first, task = make_task(), make_task(**change)
    metrics = BundleMetrics(ranker="dnn", parity=ParityFigures(rows=0, mismatches=0, max_logit_difference=0.0))
    manifest = Manifest(schema_version=SCHEMA_VERSION, name="tiny", content_hash="0" * 64, created=datetime.now(UTC),
                        files={}, metrics=metrics)
    checkpoint.save(dnn(first.spec, first.config), tmp_path / "parent" / "rank" / WEIGHTS)
    parent = Parent(tmp_path / "parent", manifest, task.spec, {}, first.config)
    keys = {field.vocabulary or field.name: Vocabulary.of([*map(str, range(field.size - 2))], "string")
            for field in task.spec.fields if field.kind in ("categorical", "sequence", "multi_valued")}
    for name, values in keys.items():
        vocabulary.write(task.out.encoding, name, values)
    carried = CarriedWeights(replace(task, parent=replace(parent, vocabularies=keys)), "dnn", dnn)
    logits = []
    for start in (carried, None):
        torch.manual_seed(1)
        network = dnn(task.spec, task.config)
        fitting.fit(network, task.examples("train"), task.early_stopping(), task.config.train, 1, start=start)
        logits.append(fitting.predict(network, task.examples("test")))
    assert (logits[0] == logits[1]).all()
    assert carried.figures is not None
    assert carried.figures.rows_carried == 0
    assert (carried.figures.cold or "").startswith("dnn starts cold: ")


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
