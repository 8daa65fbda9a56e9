from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet
from models.leakage.field_columns import QUANTILES, TAIL_ROWS, number_column, read


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


@pytest.mark.parametrize("clicked", [5, 30, 800, 3000])
def test_zero_unless_clicked_is_told_from_zero_however_rare_and_beside_missing_ones(clicked: int) -> None:
    random = np.random.default_rng(clicked)
    label = np.arange(20_000) < clicked
    values = np.where(label, random.uniform(0.1, 9, 20_000), 0.0)
    values[random.random(20_000) < 0.3] = np.nan
    charged = number_column("charged", values)
    codes, present = charged.codes[:, 0], charged.present
    assert not set(codes[present & label]) & set(codes[present & ~label])
    assert set(codes[present & ~label]) == {codes[np.flatnonzero(values == 0)[0]]}
    assert (codes[~present] == 0).all()


def test_every_frequent_value_is_alone_and_the_others_lie_between_them() -> None:
    values = np.concatenate([np.repeat([-1.0, 0.0, 5.0], 1000), np.linspace(-0.9, 4.9, 90), np.linspace(6, 7, 90)])
    codes = number_column("x", values).codes[:, 0]
    for often in (-1.0, 0.0, 5.0):
        assert len(set(codes[values == often])) == 1
        assert not set(codes[values == often]) & set(codes[values != often])
    assert (np.diff(codes[np.argsort(values, kind="stable")]) >= 0).all()


def test_tails_are_cut_finer_as_long_as_their_bins_have_rows() -> None:
    counts = np.bincount(number_column("x", np.random.default_rng(0).normal(size=60_000)).codes[:, 0])[1:]
    assert counts.min() >= TAIL_ROWS - 2
    assert max(counts[0], counts[-1]) < 4 * TAIL_ROWS
    assert number_column("x", np.arange(900.0)).size == QUANTILES + 1  # too few for tails


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
