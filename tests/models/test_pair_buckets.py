from __future__ import annotations

import numpy as np
import pytest

from models.pair_buckets import auc_by_bucket, of_rows, seen_together


def test_counts_are_those_of_the_graph(pair_graph):
    city, brand = np.indices((12, 15))
    expected = np.where((city + brand) % 4 == 0, 0, 40)
    np.testing.assert_array_equal(seen_together(pair_graph, 0, city + 2, brand + 2), expected)
    assert seen_together(pair_graph, 0, np.array([1]), np.array([1])).tolist() == [0]


class Rows:
    rows = 3

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
    assert [cell["rows"] for cell in found.values()] == [
        (seen == 0).sum(), np.isin(seen, [5, 10]).sum(), np.isin(seen, [11, 100]).sum(), (seen == 101).sum()]
    assert found["1-10"]["auc"] == pytest.approx(auc(labels[np.isin(seen, [5, 10])], logits[np.isin(seen, [5, 10])]))
    assert found[">100"]["auc"] is None
