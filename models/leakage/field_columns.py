"""Every field of a bounded sample of examples as small whole numbers: what the leak check's tiny models see.

    categorical             its ids; 0 and 1 (unknown) count as no value
    multi_valued, sequence  its ids, padded with 0
    numeric, counter        1 + the bin of the value; 0 where there is none

Numbers are cut so that no rare value hides among frequent ones: a value that is one of QUANTILES rows or more has a bin
of its own, the others lie between QUANTILES quantiles of themselves, and what is beyond the outer ones is halved while
halves have TAIL_ROWS rows. "0 unless clicked" is told from 0 however few the clicks are.

Crosses and pair rates are left out: they say nothing that their parts do not say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from contracts.artifacts import LABEL, ROW
from contracts.features.feature_spec import BLOCK_SIDES, PADDING, UNKNOWN, FeatureField, FeatureSpec
from models.examples.example_files import ExampleFiles

QUANTILES = 32
TAIL_ROWS = 64  # of a bin in the tails: some twenty in each third of the sample
LEFT_OUT = ("cross", "statistic")


@dataclass(frozen=True)
class FieldColumn:
    """codes [N, width] int64 below `size`, 0 = nothing; present [N] bool; of a number: values [N] float64, `edges`."""

    name: str
    codes: np.ndarray
    size: int
    present: np.ndarray
    values: np.ndarray | None = None
    edges: np.ndarray | None = None
    own_count: bool = False  # a counter: Sluice's own, on two clocks


@dataclass(frozen=True)
class Sample:
    """Rows in file order: label [N] float64, row id [N], number of the day [N] among the days of the window."""

    fields: tuple[FieldColumn, ...]
    label: np.ndarray
    row: np.ndarray
    day: np.ndarray


def read(examples: ExampleFiles, spec: FeatureSpec, limit: int, seed: int, like: Sample | None = None) -> Sample:
    """All rows, or a uniform sample of `limit`; numbers are cut at the edges of `like` where it is given."""
    kept = np.arange(examples.rows)
    if limit < examples.rows:
        kept = np.sort(np.random.default_rng(seed).choice(examples.rows, limit, replace=False))
    fields = [field for field in spec.fields if field.kind not in LEFT_OUT]
    names = [group.path.parent.name for group in examples.groups]
    days = np.repeat(np.unique(names, return_inverse=True)[1], [group.rows for group in examples.groups])
    edges = {column.name: column.edges for column in like.fields} if like else {}
    return Sample(
        tuple(_column(field, examples.column(_source(field, spec))[kept], edges.get(field.name)) for field in fields),
        examples.column(LABEL)[kept].astype(np.float64), examples.column(ROW)[kept], days[kept],
    )


def _source(field: FeatureField, spec: FeatureSpec) -> str:
    if field.dense:
        return field.name
    sides = (*BLOCK_SIDES["request"], *BLOCK_SIDES["candidate"])
    return next(slot.name for slot in spec.id_slots(*sides) if slot.field == field.name)


def _column(field: FeatureField, values: np.ndarray, edges: np.ndarray | None) -> FieldColumn:
    if field.dense:
        return number_column(field.name, values, edges, field.kind == "counter")
    codes = values.reshape(len(values), -1).astype(np.int64)
    nothing = UNKNOWN if field.kind == "categorical" else PADDING
    return FieldColumn(field.name, codes, field.size, np.any(codes > nothing, axis=1))


def number_column(
    name: str, values: np.ndarray, edges: np.ndarray | None = None, own_count: bool = False
) -> FieldColumn:
    """`values` [N], missing where not finite; between `edges`, of the values themselves where none are given."""
    values = values.astype(np.float64)
    present = np.isfinite(values)
    if edges is None:
        edges = bin_edges(values[present])
    bins = np.searchsorted(edges, np.where(present, values, 0.0), side="right") + 1
    return FieldColumn(name, np.where(present, bins, 0)[:, None], len(edges) + 2, present, values, edges, own_count)


def bin_edges(values: np.ndarray) -> np.ndarray:
    """Ascending lower ends of all bins but the first, of finite `values` [N]: frequent values alone, others apart."""
    found, counts = np.unique(values, return_counts=True)
    often = counts * QUANTILES >= len(values)
    others = np.repeat(found[~often], counts[~often])
    shares = np.arange(1, QUANTILES) / QUANTILES
    tail = 0.5 / QUANTILES
    while tail * len(others) >= TAIL_ROWS:
        shares = np.concatenate([[tail], shares, [1 - tail]])
        tail /= 2
    cuts = np.quantile(others, shares) if len(others) else np.empty(0)
    return np.unique(np.concatenate([cuts, found[often], np.nextafter(found[often], np.inf)]))
