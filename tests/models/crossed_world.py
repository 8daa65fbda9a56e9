"""Columns whose label depends on chosen crosses, with the answer known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.features.feature_spec import FIRST_ID, FeatureField, FeatureSpec, IdSlot
from models.cross_search.columns import CrossColumns

FIELDS, VALUES = 6, 4
Ids = np.ndarray


def crossed_spec(fields: int = FIELDS, values: int = VALUES) -> FeatureSpec:
    sides = ("user", "context", "item")
    return FeatureSpec(fields=tuple(
        FeatureField(name=f"f{i}", kind="categorical", side=sides[i * 3 // fields], vocabulary=f"f{i}",
                     size=values + FIRST_ID)
        for i in range(fields)
    ))


def crossed_columns(
    logit: Callable[[Ids], np.ndarray], rows: int = 8000, seed: int = 0, fields: int = FIELDS, values: int = VALUES
) -> CrossColumns:
    """`logit` takes values 0, 1, ... [N, fields]; ids are values + 2."""
    generator = np.random.default_rng(seed)
    drawn = generator.integers(0, values, size=(rows, fields))
    label = (generator.random(rows) < 1 / (1 + np.exp(-logit(drawn)))).astype(float)
    spec = crossed_spec(fields, values)
    slots: tuple[IdSlot, ...] = (*spec.block_ids("request"), *spec.block_ids("candidate"))
    return CrossColumns(slots, (drawn + FIRST_ID).astype(np.int32), label, np.ones(rows, dtype=np.int64),
                        np.arange(rows))


def pair_logit(one: int, other: int, strength: float = 2.5) -> Callable[[Ids], np.ndarray]:
    """Both fields in the upper half of their values raise the logit: a cross with marginal signal."""
    return lambda ids: strength * ((ids[:, one] >= VALUES // 2) & (ids[:, other] >= VALUES // 2)) - 1.0


def triple_logit(strength: float = 3.0) -> Callable[[Ids], np.ndarray]:
    return lambda ids: strength * ((ids[:, 0] >= 2) & (ids[:, 2] >= 2) & (ids[:, 4] >= 2)) - 1.0


def parity_logit(*members: int) -> Callable[[Ids], np.ndarray]:
    """Pure XOR: no member, and no part of the members, says anything alone."""
    return lambda ids: np.where(sum((ids[:, m] >= 2).astype(int) for m in members) % 2 == 1, 1.5, -1.5)


def write_examples(folder: Path, columns: CrossColumns, days: int = 4) -> Path:
    """The columns as encoded examples, `days` days of equal size in the order of the rows."""
    for number, rows in enumerate(np.array_split(np.arange(columns.rows), days), start=1):
        day = folder / f"day=2026-01-{number:02d}"
        day.mkdir(parents=True)
        made = {slot.name: columns.ids[rows, i] for i, slot in enumerate(columns.slots)}
        made |= {"_label": columns.label[rows].astype(np.float32), "_row": columns.row[rows],
                 "_user": columns.row[rows] % 97}
        pq.write_table(pa.table(made), day / "part.parquet", row_group_size=1000)
    return folder
