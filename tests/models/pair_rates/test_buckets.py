from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.artifacts import TEST_LOGITS, Artifacts
from contracts.bundle import bundle
from contracts.config.training import PairRates
from models.examples.batches import ExampleSet
from models.pair_rates import network as pair_network
from models.pair_rates import weights as pair_weights
from models.pair_rates.buckets import auc_by_bucket, co_occurrence, memory, of_rows, seen_together
from tests.models.stored_graph import store


def test_counts_are_those_of_the_graph(pair_graph):
    city, brand = np.indices((12, 15))
    expected = np.where((city + brand) % 4 == 0, 0, 40)
    np.testing.assert_array_equal(seen_together(pair_graph, 0, city + 2, brand + 2), expected)
    assert seen_together(pair_graph, 0, np.array([1]), np.array([1])).tolist() == [0]


class Rows(ExampleSet):
    """Three rows in memory."""

    def __init__(self):
        self.rows = 3

    def column(self, name):
        return {"city": np.array([2, 2, 3]), "brand": np.array([[2, 3], [2, 0], [2, 2]])}[name]


def test_a_list_counts_by_its_best_known_value(pair_graph):
    assert of_rows(pair_graph, 0, Rows()).tolist() == [40, 0, 40]


def test_every_row_is_in_one_bucket_and_auc_is_its_own(auc):
    random = np.random.default_rng(0)
    seen, labels = random.choice([0, 5, 10, 11, 100, 101], 500), random.integers(0, 2, 500).astype(float)
    labels[seen == 101] = 1.0
    logits = random.normal(size=500)
    found = auc_by_bucket(seen, labels, logits)
    assert [cell.rows for cell in found.values()] == [
        (seen == 0).sum(), np.isin(seen, [5, 10]).sum(), np.isin(seen, [11, 100]).sum(), (seen == 101).sum()]
    assert found["1-10"].auc == pytest.approx(auc(labels[np.isin(seen, [5, 10])], logits[np.isin(seen, [5, 10])]))
    assert found[">100"].auc is None


@pytest.fixture
def run(tmp_path, pair_graph, pair_spec, write):
    """A pre-trained run with a table of rates, and 400 test rows with the logits of one model."""
    out, random, rows = Artifacts(tmp_path), np.random.default_rng(1), 400
    columns: dict[str, Any] = {}
    for slot in [*pair_spec.block_ids("request"), *pair_spec.block_ids("candidate")]:
        ids = random.integers(2, slot.size, (rows, slot.width)).astype(np.int32)
        columns[slot.name] = ids if slot.width > 1 else ids[:, 0]
    for dense in [*pair_spec.block_dense("request"), *pair_spec.block_dense("candidate")]:
        columns[dense.name] = random.normal(size=rows)
    columns |= {"_label": random.integers(0, 2, rows).astype(float), "_row": np.arange(rows), "_user": np.arange(rows)}
    write(out.examples("test"), columns)
    logits = random.normal(size=rows)
    bundle.save_array(out.model("dnn") / TEST_LOGITS, logits)
    store(pair_graph, out.pair_rates)
    made = pair_weights.table(pair_graph, pair_spec, PairRates())
    pairs = pair_weights.pairs_of(pair_graph)
    return out, pair_weights.publish(made, pair_spec, pairs, PairRates(), out.pair_rates), columns, logits, made


def test_models_and_the_predicted_rate_alone_are_evaluated_in_the_same_buckets(run, auc):
    out, spec, columns, logits, made = run
    found = co_occurrence(out, spec, ["dnn"])
    assert list(found) == ["city_x_brand_rate"]
    assert set(found["city_x_brand_rate"]) == {"statistic", "dnn"}
    city, brand, labels = (columns[name] for name in ("city", "brand", "_label"))
    never = (city + brand - 4) % 4 == 0
    rates = made.rates(0, city, brand)
    for name, scores in (("dnn", logits), ("statistic", rates)):
        cells = found["city_x_brand_rate"][name]
        assert (cells["0"].rows, cells["11-100"].rows) == (never.sum(), (~never).sum())
        assert cells["0"].auc == pytest.approx(auc(labels[never], scores[never]), abs=1e-3)
        assert cells["11-100"].auc == pytest.approx(auc(labels[~never], scores[~never]), abs=1e-3)


def test_without_pair_rates_there_is_nothing_to_evaluate(run, pair_spec):
    assert co_occurrence(run[0], pair_spec, ["dnn"]) == {}


def test_bytes_by_hand(pair_graph, pair_spec):
    torch.manual_seed(0)
    network = pair_network.build(PairRates(model="factorisation", dim=4), pair_graph)
    made = pair_weights.from_network(network, pair_graph, pair_spec)
    found = memory(made, pair_graph)
    cities, brands, width = 12 + 2, 15 + 2, 4 + 1
    assert found.table == 12 * len(pair_graph.targets)
    assert found.dense == 4 * cities * brands
    vectors, rest = 4 * (cities + brands) * width, found.own - 4 * (cities + brands) * width
    assert vectors <= found.own
    assert 0 <= rest < 200  # a head and its standardisation
