from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet
from models.leakage.field_columns import number_column, read


@pytest.fixture
def examples(tmp_path: Path, spec: FeatureSpec, columns: Any, write: Any) -> ExampleSet:
    drawn = columns(spec, 900, 3)
    drawn["_label"] = (np.arange(900) % 7 == 0).astype(np.float64)
    drawn["price"][::10] = np.nan
    return ExampleSet(write(tmp_path, drawn), spec)


def test_every_field_but_crosses_is_there_in_file_order(examples: ExampleSet, spec: FeatureSpec) -> None:
    sample = read(examples, spec, 10_000, 0)
    assert [one.name for one in sample.fields] == [f.name for f in spec.fields if f.kind != "cross"]
    assert sample.row.tolist() == list(range(900))
    assert set(sample.day.tolist()) == {0, 1}
    assert (np.diff(sample.day) >= 0).all()
    tags = next(one for one in sample.fields if one.name == "tags")
    assert tags.codes.shape == (900, 3)
    assert (tags.present == (examples.column("tags") > 0).any(axis=1)).all()


def test_numbers_are_cut_at_quantiles_and_missing_ones_are_no_value(examples: ExampleSet, spec: FeatureSpec) -> None:
    price = next(one for one in read(examples, spec, 10_000, 0).fields if one.name == "price")
    assert (price.codes[::10] == 0).all()
    assert not price.present[::10].any()
    counts = np.bincount(price.codes[price.present, 0])[1:]
    assert counts.max() - counts.min() <= 2
    assert price.values is not None
    order = np.argsort(price.values[price.present])
    assert (np.diff(price.codes[price.present, 0][order]) >= 0).all()


def test_a_later_sample_is_cut_at_the_same_edges(examples: ExampleSet, spec: FeatureSpec) -> None:
    first, later = read(examples, spec, 10_000, 0), read(examples, spec, 300, 5)
    alike = read(examples, spec, 300, 5, like=first)
    assert len(later.label) == 300
    for whole, part in zip(first.fields, alike.fields, strict=True):
        assert (part.codes == whole.codes[np.isin(first.row, alike.row)]).all()


def test_a_column_without_a_single_number_has_one_code() -> None:
    empty = number_column("x", np.full(4, np.nan))
    assert (empty.codes == 0).all()
    assert empty.size == 2
