from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from contracts.config.training import Train
from models.cross_search import baselines as cross_baselines
from models.cross_search.columns import CrossColumns
from models.examples.batches import ExampleSet
from models.networks import registry
from models.training import fitting
from tests.models.crossed_world import FIELDS, crossed_columns, crossed_spec, pair_logit, write_examples

PLANTED = [frozenset({0, 3}), frozenset({1, 4})]
ALLOWED = ~np.eye(FIELDS, dtype=bool)


@pytest.fixture(scope="module")
def columns() -> CrossColumns:
    first, second = pair_logit(0, 3), pair_logit(1, 4)
    return crossed_columns(lambda ids: first(ids) + second(ids))


def test_pairs_are_the_allowed_ones_once() -> None:
    allowed = ALLOWED.copy()
    allowed[0, 1] = allowed[1, 0] = False
    found = cross_baselines.pairs(allowed)
    assert len(found) == len(set(found)) == FIELDS * (FIELDS - 1) // 2 - 1
    assert frozenset({0, 1}) not in found


def test_random_crosses_follow_the_seed() -> None:
    first, again, other = (cross_baselines.random_crosses(ALLOWED, 5, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len(set(first)) == 5


def test_information_ranks_the_interacting_pairs_first(columns: CrossColumns) -> None:
    assert set(cross_baselines.most_informative(columns, ALLOWED, 2)) == set(PLANTED)


def test_taylor_scores_rank_the_interacting_pairs_first(columns: CrossColumns, tmp_path: Path) -> None:
    spec = crossed_spec()
    examples = ExampleSet(write_examples(tmp_path, columns), spec)
    torch.manual_seed(0)
    settings = Train(embedding_dim=4, hidden=(16,), dropout=0.0, batch_size=256, epochs=4, learning_rate=5e-3)
    network = registry.build("dnn", spec, settings)
    fitting.fit(network, examples, examples, settings, seed=0)
    found = cross_baselines.taylor_crosses(network, examples, columns, ALLOWED, 4)
    assert len(found) == 4
    assert set(PLANTED) <= set(found)
