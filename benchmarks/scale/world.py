"""Examples of the comparison's shape over tables of any size: ten fields, the frequencies of whose ids fall steeply."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch

from contracts.artifacts import LABEL, ROW, USER
from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec
from models.examples.batches import Batch, ExampleSet, FeatureBlock

GROUP_ROWS = 16_384
FIELDS, SKEW = 10, 4.0  # an id is size * u^SKEW, u uniform: half of the rows have one of the first sixteenth of the ids


def spec(table_rows: int) -> FeatureSpec:
    """Ten categorical fields of both sides, `table_rows` values in all."""
    size = max(table_rows // FIELDS, 2) + FIRST_ID
    return FeatureSpec(fields=tuple(
        FeatureField(name=f"c{number}", kind="categorical", side="item" if number % 2 else "user", size=size)
        for number in range(FIELDS)))


def ids(layout: FeatureSpec, rows: int, random: np.random.Generator) -> np.ndarray:
    """int32 [rows, FIELDS]."""
    values = layout.fields[0].size - FIRST_ID
    return (random.random((rows, FIELDS)) ** SKEW * values).astype(np.int32) + FIRST_ID


def write(folder: Path, layout: FeatureSpec, rows: int, seed: int = 0) -> ExampleSet:
    """As `sluice features` leaves them, in row groups of GROUP_ROWS."""
    random = np.random.default_rng(seed)
    drawn = ids(layout, rows, random)
    columns: dict[str, np.ndarray] = {f"c{number}": drawn[:, number] for number in range(FIELDS)}
    columns[LABEL] = (random.random(rows) < 0.1).astype(np.float64)
    columns[USER] = columns[ROW] = np.arange(rows)
    day = folder / "day=2026-01-05"
    day.mkdir(parents=True)
    pq.write_table(pa.table(columns), day / "part-00000.parquet", row_group_size=GROUP_ROWS)
    return ExampleSet(folder, layout)


def batches(layout: FeatureSpec, rows: int, count: int, seed: int = 0) -> Iterator[Batch]:
    """Drawn as they are asked for, without files."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        drawn = torch.from_numpy(ids(layout, rows, random))
        label = torch.from_numpy((random.random(rows) < 0.1).astype(np.float32))
        dense, numbers = torch.empty(rows, 0), torch.arange(rows)
        yield Batch(FeatureBlock(drawn[:, 0::2].contiguous(), dense), FeatureBlock(drawn[:, 1::2].contiguous(), dense),
                    label, torch.ones(rows, dtype=torch.int32), numbers, numbers)
