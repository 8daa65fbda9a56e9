from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from contracts.features.feature_spec import FIRST_ID, UNKNOWN, FeatureSpec
from models.examples.in_memory import ArrayExamples, examples_with_crosses, rows_of


@pytest.fixture(scope="module")
def examples(item_world: Any, spec: FeatureSpec) -> ArrayExamples:
    return ArrayExamples(item_world.train.folder, spec, rows_of(item_world.train, spec, 10**9, 0))


def test_batches_are_those_of_the_files(examples: ArrayExamples, item_world: Any) -> None:
    for ours, theirs in zip(examples.batches(700), item_world.train.batches(700), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_shuffling_keeps_the_rows(examples: ArrayExamples) -> None:
    rows = torch.cat([batch.row for batch in examples.batches(512, shuffle=True, seed=1)])
    assert rows.tolist() != examples.column("_row").tolist()
    assert sorted(rows.tolist()) == sorted(examples.column("_row").tolist())


def test_processes_share_every_batch(examples: ArrayExamples) -> None:
    whole = [*examples.batches(512, shuffle=True, seed=1)]
    parts = [[*examples.batches(512, shuffle=True, seed=1, rank=rank, world=2)] for rank in (0, 1)]
    for batch, *shares in zip(whole, *parts, strict=True):
        assert sorted(row for share in shares for row in share.row.tolist()) == sorted(batch.row.tolist())


def test_a_last_batch_of_fewer_rows_than_wanted_is_left_out(examples: ArrayExamples, item_world: Any) -> None:
    assert examples.rows % 857 == 1
    for kind in (examples, item_world.train):
        assert [len(kept.row) for kept in kind.batches(857, fewest=2)] == [857] * 7
        assert [len(kept.row) for kept in kind.batches(857)] == [857] * 7 + [1]


def test_a_sample_has_the_asked_size(item_world: Any, spec: FeatureSpec) -> None:
    assert len(rows_of(item_world.train, spec, 300, 0)) == 300


@pytest.mark.parametrize("representation", ["embedding", "product"])
def test_crosses_become_fields(item_world: Any, spec: FeatureSpec, representation: str) -> None:
    rows = {"train": rows_of(item_world.train, spec, 10**9, 0), "test": rows_of(item_world.validation, spec, 300, 0)}
    pair = [("g", ("user_group", "item_group"))]
    made, crossed = examples_with_crosses(spec, rows, pair, representation, min_count=1)
    assert len(made.products()) == (representation == "product")
    ids = crossed["train"].columns["g"]
    pairs = rows["train"].columns["user_group"] * 100 + rows["train"].columns["item_group"]
    assert len(set(zip(ids, pairs, strict=True))) == len(set(ids)) == len(set(pairs))
    assert ids.min() >= FIRST_ID
    ArrayExamples(item_world.train.folder, made, crossed["test"])


def test_keys_seen_too_rarely_are_unknown(item_world: Any, spec: FeatureSpec) -> None:
    rows = {"train": rows_of(item_world.train, spec, 300, 0)}
    _, crossed = examples_with_crosses(spec, rows, [("g", ("user", "item"))], "embedding", min_count=10**6)
    np.testing.assert_array_equal(crossed["train"].columns["g"], UNKNOWN)
