from __future__ import annotations

import numpy as np
import pytest

from contracts.config.config import parse
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.pair_graph import Relation
from pipelines.cooccurrence.graph_relations import informative_relations, relations_to_count, uncertainty

SCHEMA = "relation int, left int, right int, impressions bigint"


def by_counting(edges):
    """U from the joint distribution, written as sums of p log p."""
    joint = np.zeros((10, 10))
    for left, right, n in edges:
        joint[left, right] += n
    joint /= joint.sum()

    def entropy(p):
        return -(p[p > 0] * np.log(p[p > 0])).sum()

    return (entropy(joint.sum(0)) + entropy(joint.sum(1)) - entropy(joint.ravel())) / entropy(joint.sum(0))


def test_an_attribute_says_all_chance_says_nothing(spark):
    random = np.random.default_rng(0)
    attribute = [(left, left % 3, 10 + left) for left in range(9)]
    chance = [(left, right, 20) for left in range(9) for right in range(4)]
    mixed = [(left, right, int(random.integers(1, 50))) for left in range(9) for right in range(5)]
    alone = [(left, 2, 7) for left in range(9)]
    rows = [(number, *edge) for number, edges in enumerate((attribute, chance, mixed, alone)) for edge in edges]
    found = uncertainty(spark.createDataFrame(rows, SCHEMA))
    assert found == pytest.approx({0: 1.0, 1: 0.0, 2: by_counting(mixed), 3: 0.0}, abs=1e-9)
    relations = [Relation("a", "b", "link")] * 4
    edges = spark.createDataFrame(rows, SCHEMA)
    assert informative_relations(edges, relations) == [0]
    assert informative_relations(edges, [*relations[:3], Relation("a", "b", "pair")]) == [0, 3]


def test_links_are_smaller_fields_of_the_same_side_and_never_the_key_itself():
    def field(name, side, size):
        return FeatureField(name=name, kind="categorical", side=side, vocabulary=name, size=size)

    spec = FeatureSpec(fields=(
        field("city", "user", 200), field("region", "user", 12), field("district", "user", 900),
        field("user_id", "user", 100), field("brand", "item", 500), field("format", "item", 6),
    ))
    config = parse("""
        name = "t"
        log = { path = "p", user_id = "user_id" }
        label = { expression = "y" }
        fields = [{ name = "user_id", kind = "categorical", side = "user" }]
    """)
    found = relations_to_count(config, spec, [("city", "brand")])
    assert found == [Relation("city", "brand", "pair"), Relation("city", "region", "link"),
                     Relation("brand", "format", "link")]
