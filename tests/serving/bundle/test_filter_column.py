"""Filtering by codes equals filtering by values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from serving.bundle.filter_column import FilterColumn, from_raw

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)


@given(st.lists(st.none() | TEXTS, max_size=30), st.lists(TEXTS, max_size=5), st.integers(0, 30))
def test_passing_equals_membership(values: list[str | None], wanted: list[str], many: int) -> None:
    """Of few values and of many, which are looked for otherwise."""
    asked = [*wanted, *[value for value in values[:many] if value is not None]]
    assert from_raw(values, "x").passing(asked).tolist() == [value is not None and value in asked for value in values]


def test_numbers_and_booleans_by_their_text() -> None:
    assert from_raw([10, None, 7], "x").passing(["7"]).tolist() == [False, False, True]
    assert from_raw([True, False], "x").passing(["true"]).tolist() == [True, False]


def test_a_nul_does_not_pass_for_its_stem() -> None:
    assert from_raw(["a"], "x").passing(["a\0"]).tolist() == [False]


@pytest.mark.parametrize("value", [1.5, ["a"]])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(DataError, match="column 'x' holds"):
        from_raw([value], "x")


def test_saved_column_is_mapped(tmp_path: Path) -> None:
    from_raw(["b", None, "a"], "x").save(tmp_path, "x")
    found = FilterColumn.load(tmp_path, "x")
    assert isinstance(found.codes, np.memmap)
    assert found.passing(["a"]).tolist() == [False, False, True]


@given(st.lists(st.none() | TEXTS, min_size=1, max_size=20), st.lists(TEXTS, max_size=5))
def test_items_equal_passing(values: list[str | None], wanted: list[str]) -> None:
    column = from_raw(values, "x")
    asked = [*wanted, *[value for value in values[:3] if value is not None]]
    for _ in range(2):  # a kept set is the same
        assert column.items(asked).rows().tolist() == np.flatnonzero(column.passing(asked)).tolist()


@pytest.mark.parametrize("asked", [9, 40, 90])
def test_values_of_few_and_of_many_items(asked: int) -> None:
    """Nine of a hundred values have fewer than an eighth of the items, forty have more."""
    draw = np.random.default_rng(2)
    values = [None if number == 100 else f"v{number}" for number in draw.integers(0, 101, 3000).tolist()]
    wanted = [f"v{number}" for number in range(asked)]
    np.testing.assert_array_equal(from_raw(values, "brand").items(wanted).rows(),
                                  np.flatnonzero([value in wanted for value in values]))
