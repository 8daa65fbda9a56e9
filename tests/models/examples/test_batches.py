from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from contracts.errors import DataError, SchemaError
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet


@pytest.fixture
def raw(spec: FeatureSpec, columns: Callable[..., Any]) -> dict[str, np.ndarray]:
    drawn = columns(spec, 1000, 3)
    drawn["_label"] = (drawn["_row"] % 3 == 0).astype(np.float64)
    return drawn


@pytest.fixture
def examples(spec: FeatureSpec, raw: dict[str, np.ndarray], write: Callable[..., Path], tmp_path: Path) -> ExampleSet:
    return ExampleSet(write(tmp_path, raw, files=3, row_group=100), spec)


def test_every_slot_lies_where_the_spec_says(
    examples: ExampleSet, raw: dict[str, np.ndarray], spec: FeatureSpec
) -> None:
    batches = list(examples.batches(64))
    assert [len(batch.label) for batch in batches] == [64] * 15 + [40]
    for name in ("request", "candidate"):
        ids = torch.cat([getattr(batch, name).ids for batch in batches]).numpy()
        dense = torch.cat([getattr(batch, name).dense for batch in batches]).numpy()
        assert ids.dtype == np.int32
        for slot in spec.block_ids(name):  # type: ignore[arg-type]
            expected = raw[slot.name].reshape(1000, -1)
            np.testing.assert_array_equal(ids[:, slot.start : slot.start + slot.width], expected)
        for place in spec.block_dense(name):  # type: ignore[arg-type]
            field = spec.by_name[place.field]
            scaled = (raw[place.name] - field.mean) / field.std
            np.testing.assert_allclose(dense[:, place.start], scaled, rtol=1e-5, atol=1e-6)
    for part, name in (("label", "_label"), ("position", "_position"), ("user", "_user"), ("row", "_row")):
        np.testing.assert_array_equal(torch.cat([getattr(b, part) for b in batches]).numpy(), raw[name])
        np.testing.assert_array_equal(examples.column(name), raw[name])


@pytest.mark.parametrize("size", [7, 100, 1000, 5000])
def test_shuffling_keeps_every_row_whole_and_once(examples: ExampleSet, size: int) -> None:
    plain = next(examples.batches(1000))
    batches = list(examples.batches(size, shuffle=True, seed=4))
    rows = torch.cat([batch.row for batch in batches])
    assert not torch.equal(rows, plain.row)
    assert torch.equal(rows.sort().values, plain.row)
    assert torch.equal(torch.cat([batch.candidate.ids for batch in batches]), plain.candidate.ids[rows])
    again = torch.cat([batch.row for batch in examples.batches(size, shuffle=True, seed=4)])
    other = torch.cat([batch.row for batch in examples.batches(size, shuffle=True, seed=5)])
    assert torch.equal(rows, again)
    assert not torch.equal(rows, other)


def test_a_small_buffer_still_yields_every_row(examples: ExampleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("models.examples.batches.BUFFER_ROWS", 150)
    batches = list(examples.batches(64, shuffle=True, seed=1))
    assert sorted(torch.cat([batch.row for batch in batches]).tolist()) == list(range(1000))
    assert {len(batch.row) for batch in batches[:-1]} == {64}


def test_drop_last_gives_full_batches_alone(examples: ExampleSet) -> None:
    assert {len(batch.label) for batch in examples.batches(64, drop_last=True)} == {64}


def test_ranks_share_the_rows_in_equal_numbers(examples: ExampleSet) -> None:
    shards = [[*examples.batches(50, shuffle=True, seed=2, rank=rank, world=2)] for rank in (0, 1)]
    assert len(shards[0]) == len(shards[1]) > 0
    rows = torch.cat([batch.row for shard in shards for batch in shard]).tolist()
    assert len(rows) == len(set(rows))
    with pytest.raises(DataError, match="fewer processes"):
        next(examples.batches(900, world=2))


def test_fresh_reads_the_twin_where_there_is_one(
    spec: FeatureSpec, raw: dict[str, np.ndarray], write: Callable[..., Path], tmp_path: Path
) -> None:
    raw["price@fresh"] = raw["price"] + 0.5
    folder = write(tmp_path, raw)
    old, new = (next(ExampleSet(folder, spec, fresh=fresh).batches(1000)) for fresh in (False, True))
    torch.testing.assert_close(new.candidate.dense, old.candidate.dense + 1.0)
    assert torch.equal(new.request.dense, old.request.dense)


def test_roles_the_log_lacks(
    spec: FeatureSpec, raw: dict[str, np.ndarray], write: Callable[..., Path], tmp_path: Path
) -> None:
    folder = write(tmp_path, {name: values for name, values in raw.items() if name not in ("_user", "_position")})
    batch = next(ExampleSet(folder, spec).batches(10))
    assert batch.position.tolist() == [1] * 10
    assert batch.user.tolist() == [0] * 10


def test_a_missing_number_takes_the_default(
    spec: FeatureSpec, raw: dict[str, np.ndarray], write: Callable[..., Path], tmp_path: Path
) -> None:
    raw["hour"][:] = np.nan
    batch = next(ExampleSet(write(tmp_path, raw), spec).batches(1000))
    assert torch.equal(batch.request.dense, torch.full_like(batch.request.dense, -2.0))


@pytest.mark.parametrize(("change", "error", "says"), [
    (lambda c: c.pop("item"), SchemaError, "no column 'item'"),
    (lambda c: c.update(item=c["item"].astype(float)), SchemaError, "int32 x 1"),
    (lambda c: c.update(history=c["history"][:, :3]), SchemaError, "int32 x 5"),
    (lambda c: c.update(item=c["item"] + 40), DataError, "its table has 32"),
    (lambda c: c.update(item=-c["item"]), DataError, "its table has 32"),
])
def test_examples_that_do_not_fit_the_spec_are_refused(
    change: Callable[[dict[str, np.ndarray]], Any], error: type[Exception], says: str, spec: FeatureSpec,
    raw: dict[str, np.ndarray], write: Callable[..., Path], tmp_path: Path,
) -> None:
    change(raw)
    with pytest.raises(error, match=says):
        list(ExampleSet(write(tmp_path, raw), spec).batches(100))


def test_lists_of_several_lengths_are_refused(examples: ExampleSet, tmp_path: Path, spec: FeatureSpec) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = next(tmp_path.glob("day=*/*.parquet"))
    table = pq.read_table(path)
    lists = pa.array([[2] * (1 + row % 2) for row in range(table.num_rows)], type=pa.list_(pa.int32()))
    pq.write_table(table.set_column(table.column_names.index("tags"), "tags", lists), path)
    with pytest.raises(SchemaError, match="lists of 1 to 2"):
        list(ExampleSet(tmp_path, spec).batches(100))


def test_an_empty_folder_is_refused(tmp_path: Path, spec: FeatureSpec) -> None:
    with pytest.raises(DataError, match="holds no examples"):
        ExampleSet(tmp_path, spec)


@pytest.mark.parametrize("shuffle", [False, True])
def test_what_is_held_gives_the_batches_of_the_files(item_world: Any, spec: FeatureSpec, shuffle: bool) -> None:
    files, kept = (ExampleSet(item_world.train.folder, spec) for _ in range(2))
    kept.hold()
    for seed in (1, 1, 2):
        for ours, theirs in zip(kept.batches(700, shuffle, seed), files.batches(700, shuffle, seed), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_what_is_held_is_read_once_and_what_does_not_fit_again(
    item_world: Any, spec: FeatureSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = next(item_world.train.batches(item_world.train.rows))
    size = sum(part.numel() * part.element_size() for part in (*whole.request, *whole.candidate, *whole[2:6]))
    kept, again = (ExampleSet(item_world.train.folder, spec) for _ in range(2))
    kept.hold(most=size)
    again.hold(most=size - 1)
    for examples in (kept, again):
        sum(1 for _ in examples.batches(700))
    monkeypatch.setattr(pq.ParquetFile, "read_row_group", lambda *_, **__: pytest.fail("read again"))
    assert sum(len(batch.row) for batch in kept.batches(700, shuffle=True)) == item_world.train.rows
    with pytest.raises(pytest.fail.Exception, match="read again"):
        next(again.batches(700))
