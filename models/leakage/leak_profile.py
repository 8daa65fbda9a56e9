"""What the values of one field say: the rate of positives by value, as the report draws it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from contracts.features import vocabulary
from contracts.features.feature_spec import FIRST_ID, UNKNOWN, FeatureField
from contracts.summaries.leaks import ValueGroup
from models.leakage.field_columns import FieldColumn

GROUPS = 8
NOTHING, OTHERS = "no value", "other values"


def profile(column: FieldColumn, field: FeatureField, label: np.ndarray, encoding: Path) -> tuple[ValueGroup, ...]:
    """At most GROUPS groups of rows and two more; `label` [N], `encoding` the folder of the vocabularies."""
    parts = _keys(column, field, encoding) if column.values is None else _numbers(column.present, column.values)
    return tuple(
        ValueGroup(value=name, share=float(rows.mean()), rate=float(label[rows].mean()))
        for name, rows in [(NOTHING, ~column.present), *parts]
        if rows.any()
    )


def _numbers(present: np.ndarray, values: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """Between quantiles, each named by its least and its largest value."""
    edges = np.unique(np.quantile(values[present], np.arange(1, GROUPS) / GROUPS)) if present.any() else np.empty(0)
    group = np.where(present, np.searchsorted(edges, values, side="right"), -1)
    groups = []
    for number in range(len(edges) + 1):
        rows = group == number
        if rows.any():
            low, high = values[rows].min(), values[rows].max()
            groups.append((f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}", rows))
    return groups


def _keys(column: FieldColumn, field: FeatureField, encoding: Path) -> list[tuple[str, np.ndarray]]:
    """The most frequent keys by name, then all others."""
    keys = vocabulary.read_all(encoding)[field.vocabulary or field.name]
    counts = np.bincount(column.codes.ravel(), minlength=column.size)
    counts[: UNKNOWN + 1] = 0
    most = [code for code in np.argsort(-counts, kind="stable")[:GROUPS] if counts[code]]
    named = [(str(keys.key(int(code) - FIRST_ID)), (column.codes == code).any(axis=1)) for code in most]
    rest = column.present & ~np.isin(column.codes, most).any(axis=1)
    return [*named, (OTHERS, rest)]
