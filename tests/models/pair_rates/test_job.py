from __future__ import annotations

import pytest

from contracts.artifacts import WEIGHTS, Artifacts
from contracts.config.config import parse
from contracts.features.feature_spec import FeatureSpec
from contracts.features.pair_graph import GraphManifest
from contracts.summaries import summary
from contracts.summaries.pair_rates import PairRatesSummary
from models.pair_rates import job as pretrain_job
from models.pair_rates import weights as pair_weights
from tests.models.stored_graph import store

TEXT = """
name = "t"
seed = 3
log = { path = "p" }
label = { expression = "y" }
pair_rates = { dim = 4, epochs = 3, patience = 3, batch_size = 32, model = "MODEL" }
fields = [{ name = "city", kind = "categorical", side = "user" }]
"""


def config(model="pcf_gnn"):
    return parse(TEXT.replace("MODEL", model))


@pytest.fixture
def out(tmp_path, pair_graph, pair_spec):
    """A run's folder with a fitted spec and the graph as Spark leaves it."""
    found = Artifacts(tmp_path)
    found.encoding.mkdir()
    pair_spec.write(found.encoding)
    store(pair_graph, found.pair_rates)
    return found


@pytest.mark.parametrize("model", ["pcf_gnn", "posterior", "factorisation", "two_tower", "table"])
def test_pair_rates_are_summed_up_and_can_be_named_in_the_spec(out, pair_graph, pair_spec, model):
    found = pretrain_job.pretrain(config(model), out, GraphManifest.read(out.pair_rates))
    assert FeatureSpec.read(out.encoding) == pair_spec
    pair_weights.name_in_spec(out, found)
    spec = FeatureSpec.read(out.encoding)
    assert [field.parts for field in spec.pair_rates()] == [("city", "brand")]
    assert spec.pair_model is not None
    assert spec.pair_model.head == {"pcf_gnn": "mlp", "posterior": "mlp", "table": "table"}.get(model, "dot")
    assert found.pairs == (("city", "brand"),)
    assert found == summary.read(out.pair_rates, PairRatesSummary)
    assert found.bytes is not None
    assert found.history is not None
    assert found.bytes.table == 12 * len(pair_graph.targets)
    assert found.bytes.dense == 4 * 14 * 17
    assert len(found.history) == (0 if model == "table" else 3)


def test_progress_counts_the_batches_of_all_epochs(out, pair_graph):
    seen = []
    manifest = GraphManifest.read(out.pair_rates)
    pretrain_job.pretrain(config(), out, manifest, on_progress=lambda *count: seen.append(count))
    batches = len(seen) // 3
    assert [done for _, done, _ in seen] == list(range(1, 3 * batches + 1))
    assert {(name, whole) for name, _, whole in seen} == {("pcf_gnn", 3 * batches)}


def test_the_same_run_again_trains_nothing_and_another_seed_does(out, pair_graph):
    pretrain_job.pretrain(config(), out, GraphManifest.read(out.pair_rates))
    weights = (out.pair_rates / WEIGHTS).read_bytes()
    seen = []
    manifest = GraphManifest.read(out.pair_rates)
    pretrain_job.pretrain(config(), out, manifest, on_progress=lambda *count: seen.append(count))
    assert seen == []
    pretrain_job.pretrain(config(), out, GraphManifest.read(out.pair_rates), seed=4)
    assert (out.pair_rates / WEIGHTS).read_bytes() != weights


def test_weights_of_batches_that_were_cut_otherwise_are_not_kept(out, monkeypatch):
    manifest = GraphManifest.read(out.pair_rates)
    before = pretrain_job.pretrain(config("table"), out, manifest)
    monkeypatch.setattr(pretrain_job, "SCHEME", 1)
    assert pretrain_job.pretrain(config("table"), out, manifest).digest != before.digest


def test_without_pairs_the_spec_loses_its_pair_rates(out, pair_graph, pair_spec):
    pair_weights.name_in_spec(out, pretrain_job.pretrain(config(), out, GraphManifest.read(out.pair_rates)))
    found = pretrain_job.pretrain(config(), out, None)
    pair_weights.name_in_spec(out, found)
    assert found.pairs == ()
    assert FeatureSpec.read(out.encoding) == pair_spec
