from __future__ import annotations

import math
from typing import Any

import numpy as np

from contracts.features.feature_spec import FeatureSpec
from models.cross_search.columns import LARGEST_TABLE, CrossColumns, crossable, joined, read
from tests.models.crossed_world import crossed_columns


def test_only_single_columns_that_are_no_cross_can_be_crossed(spec: FeatureSpec) -> None:
    assert [slot.name for slot in crossable(spec)] == ["user", "user_group", "item", "item_group", "price#3"]


def test_codes_tell_every_combination_apart() -> None:
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), rows=3000)
    codes, size = columns.codes([0, 2, 5])
    combinations = np.unique(columns.ids[:, [0, 2, 5]], axis=0)
    assert len(np.unique(codes)) == len(combinations)
    assert codes.max() < size


def test_a_sparse_cross_is_numbered_densely() -> None:
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), rows=500)
    wide = tuple(slot._replace(size=100_000) for slot in columns.slots)
    sparse = CrossColumns(wide, columns.ids, columns.label, columns.position, columns.row)
    codes, size = sparse.codes([0, 1])
    assert math.prod(slot.size for slot in sparse.slots[:2]) > LARGEST_TABLE
    assert size == len(np.unique(columns.codes([0, 1])[0])) == codes.max() + 1


def test_reading_takes_all_rows_or_a_sample_of_them(item_world: Any, spec: FeatureSpec) -> None:
    examples = item_world.train
    every, some = read(examples, spec, 10**9, 0), read(examples, spec, 500, 0)
    np.testing.assert_array_equal(every.ids[:, 2], examples.column("item"))
    assert every.user is not None
    np.testing.assert_array_equal(every.user, examples.column("_user"))
    assert read(examples, spec.model_copy(update={"has_users": False}), 500, 0).user is None
    assert some.rows == 500
    assert np.isin(some.row, every.row).all()
    assert (np.diff(np.searchsorted(every.row, some.row)) > 0).all()


def test_taking_and_joining_are_inverse() -> None:
    columns = crossed_columns(lambda ids: np.zeros(len(ids)), rows=100)
    again = joined([columns.take(np.arange(40)), columns.take(np.arange(40, 100))])
    np.testing.assert_array_equal(again.ids, columns.ids)
    np.testing.assert_array_equal(again.label, columns.label)
