from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contracts.errors import DataError
from models.examples.batches import ExampleSet
from models.examples.validation_half import ValidationHalf, half_of, halves


@pytest.fixture
def parts(item_world) -> list[ValidationHalf]:
    return [ValidationHalf(item_world.validation.folder, item_world.validation.spec, half) for half in (0, 1)]


def test_halves_share_no_user_and_together_are_the_window(item_world, parts) -> None:
    users = [set(part.column("_user").tolist()) for part in parts]
    assert users[0].isdisjoint(users[1])
    assert sorted([*parts[0].column("_row"), *parts[1].column("_row")]) == list(range(item_world.validation.rows))
    assert 0.25 < parts[0].rows / item_world.validation.rows < 0.75


def test_batches_columns_and_the_mask_agree(item_world, parts) -> None:
    mask = halves(item_world.validation)
    for half, part in enumerate(parts):
        rows = np.concatenate([batch.row.numpy() for batch in part.batches(500)])
        assert rows.tolist() == part.column("_row").tolist()
        assert rows.tolist() == item_world.validation.column("_row")[mask == half].tolist()
        assert len(rows) == part.rows


def test_no_batch_is_empty(parts) -> None:
    """Of one row each, half of which are the other half's: networks take no batch of none."""
    sizes = [len(batch.row) for batch in parts[0].batches(1)]
    assert sizes == [1] * parts[0].rows


def test_without_users_rows_are_halved(item_world) -> None:
    spec = item_world.validation.spec.model_copy(update={"has_users": False})
    mask = halves(ExampleSet(item_world.validation.folder, spec))
    assert 0.45 < mask.mean() < 0.55


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_the_half_depends_on_the_key_alone(keys: list[int]) -> None:
    found = half_of(np.array(keys, dtype=np.int64))
    assert set(found.tolist()) <= {0, 1}
    assert found.tolist() == [int((key % 2**64 * 0x9E3779B97F4A7C15 % 2**64) >> 63) for key in keys]


def test_runs_of_keys_are_cut_about_evenly() -> None:
    assert 0.49 < half_of(np.arange(100_000)).mean() < 0.51


def test_a_half_without_rows_is_refused(columns, write, spec, tmp_path) -> None:
    drawn = columns(spec, 50, 0)
    drawn |= {"_label": np.zeros(50), "_user": np.full(50, 7)}
    folder = write(tmp_path / "validation", drawn)
    empty = 1 - int(half_of(np.array([7]))[0])
    with pytest.raises(DataError, match=f"half {empty} of the users has no row among 50"):
        ValidationHalf(folder, spec, empty)
